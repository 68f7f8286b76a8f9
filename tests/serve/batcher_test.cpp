// When requests become a batch: decisions, and a simulated burst.
#include "serve/batcher.hpp"

#include "serve/metrics.hpp"
#include "serve/replica_scale.hpp"
#include "support/test.hpp"

#include <cstddef>
#include <deque>
#include <random>
#include <vector>

using namespace hypertune;
using namespace hypertune::serving;

namespace {

Waiting request(RequestId id, double arrived, double deadline = never, int rows = 1) {
  Waiting one;
  one.id = id;
  one.rows = rows;
  one.arrived = arrived;
  one.deadline = deadline;
  return one;
}

std::vector<RequestId> ids(const Batcher::Step& step) {
  std::vector<RequestId> all;
  for (const auto& one : step.batch) all.push_back(one.id);
  return all;
}

Batcher learned(BatchOptions options, double base, double each) {
  Batcher batcher(options, true);
  for (int i = 0; i < 200; ++i) batcher.measured(1 + i % 16, base + each * (1 + i % 16));
  return batcher;
}

/// Requests come in bursts; two replicas answer. The share of requests that were answered within `objective`.
double goodput(Batching batching, double objective, std::uint64_t seed, double max_delay = 0) {
  constexpr double base = 0.004, each = 0.0001;  // seconds of a batch, and of each row
  BatchOptions options;
  options.batching = batching;
  options.latency_objective = objective;
  options.max_delay = max_delay;
  Batcher batcher = learned(options, base, each);
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(1);
  std::vector<double> arrivals;
  for (double t = 0; t < 5;) {  // a burst of 60 in some 3 ms, every 8 ms: 84 % of what two replicas can do
    t += 0.008 * gap(random);
    double in_burst = t;
    for (int i = 0; i < 60; ++i) arrivals.push_back(in_burst += 0.00005 * gap(random));
  }
  std::sort(arrivals.begin(), arrivals.end());
  std::vector<double> free(2, 0);
  std::size_t next = 0, good = 0;
  double now = 0;
  while (next < arrivals.size() || batcher.size() > 0) {
    double wake = never;
    for (;;) {
      const auto idle = std::find_if(free.begin(), free.end(), [&](double t) { return t <= now; });
      const auto step = batcher.next(now, idle != free.end());
      wake = step.wake;
      if (step.batch.empty()) break;
      const double end = now + base + each * static_cast<double>(step.batch.size());
      *idle = end;
      for (const auto& one : step.batch) good += end <= one.arrived + objective ? 1 : 0;
      batcher.measured(static_cast<int>(step.batch.size()), end - now);
    }
    double then = next < arrivals.size() ? arrivals[next] : never;
    for (const double t : free)
      if (t > now) then = std::min(then, t);
    then = std::min(then, std::max(wake, now + 1e-6));
    if (then == never) break;
    now = then;
    while (next < arrivals.size() && arrivals[next] <= now) {
      // Triton's rule knows no deadline: it answers late.
      const double deadline = batching == Batching::by_deadline ? arrivals[next] + objective : never;
      batcher.add(request(next, arrivals[next], deadline), now, *std::min_element(free.begin(), free.end()));
      ++next;
    }
  }
  return static_cast<double>(good) / static_cast<double>(arrivals.size());
}

}  // namespace

TEST_CASE("without a deadline a batch begins at once, with all that wait") {
  Batcher batcher({}, true);
  for (RequestId id = 0; id < 3; ++id) CHECK(batcher.add(request(id, 0), 0, 0) == Batcher::Added::waits);
  CHECK(batcher.next(0, false).batch.empty());
  CHECK(ids(batcher.next(0, true)) == std::vector<RequestId>{0, 1, 2});
  CHECK(batcher.size() == 0);
}

TEST_CASE("a batch has at most max_batch_size rows, of one shape, the urgent ones first") {
  Batcher batcher({.max_batch_size = 4}, true);
  batcher.add(request(1, 0, never, 3), 0, 0);
  batcher.add(request(2, 1, never, 2), 1, 0);
  auto other = request(3, 2);
  other.shape = "7,";
  batcher.add(other, 2, 0);
  auto urgent = request(4, 3);
  urgent.priority = 0;
  batcher.add(urgent, 3, 0);
  CHECK(ids(batcher.next(3, true)) == std::vector<RequestId>{4, 1});
  CHECK(ids(batcher.next(3, true)) == std::vector<RequestId>{2});
  CHECK(ids(batcher.next(3, true)) == std::vector<RequestId>{3});
  batcher.add(request(5, 4, never, 9), 4, 0);  // larger than a batch: alone
  CHECK(ids(batcher.next(4, true)) == std::vector<RequestId>{5});
}

TEST_CASE("by deadline, a batch waits as long as its first request allows") {
  Batcher batcher = learned({.latency_objective = 0.010}, 0.002, 0.0001);
  batcher.add(request(1, 0, 0.010), 0, 0);
  const auto step = batcher.next(0, true);
  CHECK(step.batch.empty());
  CHECK(step.wake == Approx(0.010 - 0.0022 - 0.0005).margin(0.0004));
  batcher.add(request(2, 0.003, 0.013), 0.003, 0);
  CHECK(batcher.next(0.003, true).batch.empty());
  CHECK(ids(batcher.next(step.wake, true)) == std::vector<RequestId>{1, 2});
}

TEST_CASE("deadlines are for the time at which the clients have their answers, after that of the replica") {
  Batcher batcher = learned({.latency_objective = 0.010}, 0.002, 0.0001);
  for (int i = 0; i < 200; ++i) batcher.delivered(1 + i % 16, 0.003 + 0.0002 * (1 + i % 16));
  batcher.add(request(1, 0, 0.010), 0, 0);
  CHECK(batcher.next(0, true).wake == Approx(0.010 - 0.0034 - 0.0005).margin(0.0004));
  CHECK(batcher.latency().mean(10) == Approx(0.003).margin(0.0001));  // how long a replica is busy
  CHECK(batcher.next(0.0067, false).wake == Approx(0.0068).margin(0.0001));
  CHECK(batcher.next(0.0069, false).late == std::vector<RequestId>{1});
  CHECK(batcher.add(request(2, 0, 0.010), 0, 0.0065) == Batcher::Added::waits);
  CHECK(batcher.add(request(3, 0, 0.010), 0, 0.0070) == Batcher::Added::late);  // the replica's answer would be in time
}

TEST_CASE("a client's own time limit keeps nobody waiting") {
  Batcher batcher = learned({}, 0.002, 0.0001);
  batcher.add(request(1, 0, 9e12), 0, 0);
  CHECK(ids(batcher.next(0, true)) == std::vector<RequestId>{1});
}

TEST_CASE("what cannot be answered in time is refused at once") {
  Batcher batcher = learned({.max_queued_requests = 2}, 0.002, 0.0001);
  CHECK(batcher.add(request(1, 0, 0.010), 0, 0.009) == Batcher::Added::late);  // no replica is free before
  CHECK(batcher.add(request(1, 0, 0.010), 0, 0.001) == Batcher::Added::waits);
  CHECK(batcher.add(request(2, 0, 0.001), 0, 0) == Batcher::Added::late);
  CHECK(batcher.add(request(2, 0, 0.050), 0, 0) == Batcher::Added::waits);
  CHECK(batcher.add(request(3, 0), 0, 0) == Batcher::Added::full);
  const auto step = batcher.next(0.009, false);
  CHECK(step.late == std::vector<RequestId>{1});
  CHECK(step.wake == Approx(0.050 - 0.0021).margin(0.0005));
  auto waits = request(4, 0.009);
  waits.expires = 1;
  CHECK(batcher.add(waits, 0.009, 0.01) == Batcher::Added::waits);
  CHECK(batcher.next(1.1, false).late.size() == 2);
}

TEST_CASE("after a batch that took very long, others are tried, and then no longer refused") {
  Batcher batcher({.latency_objective = 0.2}, true);
  batcher.measured(1, 1);
  int tried = 0;
  for (RequestId id = 0; id < 20; ++id) {
    const double now = static_cast<double>(id);
    if (batcher.add(request(id, now, now + 0.2), now, 0) != Batcher::Added::waits) continue;
    const auto step = batcher.next(now + 0.19, true);  // whenever that is
    CHECK(ids(step) == std::vector<RequestId>{id});
    batcher.measured(1, 0.01);
    ++tried;
  }
  CHECK(tried == 20);
  CHECK(batcher.latency().mean(1) < 0.1);
}

TEST_CASE("Triton's rule: at once, or after a fixed delay, or when the batch is full") {
  Batcher batcher({.batching = Batching::fixed_delay, .max_batch_size = 2, .max_delay = 0.005}, true);
  batcher.add(request(1, 0), 0, 0);
  CHECK(batcher.next(0, true).wake == 0.005);
  CHECK(ids(batcher.next(0.005, true)) == std::vector<RequestId>{1});
  batcher.add(request(2, 1), 1, 0);
  batcher.add(request(3, 1), 1, 0);
  CHECK(ids(batcher.next(1, true)) == std::vector<RequestId>{2, 3});
}

TEST_CASE("one whose batch has failed shares none any more; a model without batches has none") {
  Batcher batcher({}, true);
  auto alone = request(1, 0);
  alone.alone = true;
  batcher.put_back(alone);
  batcher.add(request(2, 0), 0, 0);
  CHECK(ids(batcher.next(0, true)) == std::vector<RequestId>{1});
  CHECK(ids(batcher.next(0, true)) == std::vector<RequestId>{2});
  Batcher single({}, false);
  single.add(request(1, 0), 0, 0);
  single.add(request(2, 0), 0, 0);
  CHECK(ids(single.next(0, true)) == std::vector<RequestId>{1});
}

TEST_CASE("the time of a batch is learnt: a part for itself, and one for each row") {
  LatencyModel model;
  CHECK_FALSE(model.known());
  std::mt19937_64 random(3);
  std::normal_distribution<double> noise(0, 0.0001);
  for (int i = 0; i < 400; ++i) model.add(1 + i % 8, 0.004 + 0.001 * (1 + i % 8) + noise(random));
  CHECK(model.mean(1) == Approx(0.005).margin(0.0002));
  CHECK(model.mean(16) == Approx(0.020).margin(0.0006));
  CHECK(model.bound(8) > model.mean(8));
  // One was held up.
  const double bound = model.bound(8);
  model.add(8, 0.100);
  CHECK(model.mean(8) == Approx(0.012).margin(0.0002));
  CHECK(model.bound(8) < bound + 0.0005);
  // It has become twice as slow.
  for (int i = 0; i < 400; ++i) model.add(1 + i % 8, 0.008 + 0.002 * (1 + i % 8));
  CHECK(model.mean(8) == Approx(0.024).margin(0.0005));
  // Larger batches than those before.
  LatencyModel small;
  for (int i = 0; i < 100; ++i) small.add(1, 0.001);
  for (int i = 0; i < 10; ++i) small.add(32, 0.032);
  CHECK(small.mean(32) == Approx(0.032).margin(0.004));
}

TEST_CASE("under bursts, batches by deadline answer at least 1.5 times as many in time as Triton's rule") {
  double ours = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) ours += goodput(Batching::by_deadline, 0.010, seed);
  for (const double max_delay : {0.0, 0.002, 0.005}) {
    double tritons = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) tritons += goodput(Batching::fixed_delay, 0.010, seed, max_delay);
    INFO("by deadline " << ours / 5 << ", after " << max_delay << " s " << tritons / 5);
    CHECK(ours >= 1.5 * tritons);
  }
}

TEST_CASE("the number of replicas follows the requests under way, once that lasts") {
  const ReplicaOptions options{
      .min_replicas = 1, .max_replicas = 4, .target_ongoing_requests = 2, .upscale_delay = 3, .downscale_delay = 10};
  ReplicaScale scale;
  scale.step(options, 7, 0);
  scale.step(options, 7, 2);
  CHECK(scale.replicas == 1);
  scale.step(options, 7, 3);
  CHECK(scale.replicas == 4);
  scale.step(options, 0, 4);
  scale.step(options, 9, 5);  // it was a pause
  scale.step(options, 0, 6);
  scale.step(options, 0, 15);
  CHECK(scale.replicas == 4);
  scale.step(options, 0, 16);
  CHECK(scale.replicas == 1);
}

TEST_CASE("a histogram counts what is at most its bound") {
  Histogram histogram(rows_bounds);
  for (const double rows : {1.0, 2.0, 2.0, 1000.0}) histogram.add(rows);
  std::string text;
  histogram.put(text, "r", "a=\"b\"");
  CHECK_THAT(text, ContainsSubstring("r_bucket{a=\"b\",le=\"1\"} 1\nr_bucket{a=\"b\",le=\"2\"} 3\n"));
  CHECK_THAT(text, ContainsSubstring(
                       "le=\"512\"} 3\nr_bucket{a=\"b\",le=\"+Inf\"} 4\nr_sum{a=\"b\"} 1005\nr_count{a=\"b\"} 4\n"));
}
