// ElasticState: trainings whose workers are killed, stopped, added and taken away, under real executors.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/random.hpp>
#include <hypertune/train/accumulator.hpp>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/elastic_state.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ht = hypertune;

namespace {

constexpr std::uint64_t samples = 240;
constexpr int epochs = 4;

/// What happens to a worker at a batch: called before its gradients are reduced.
using Fate = std::function<void(const ht::ElasticState& group, ht::Context& context, int epoch, int batch)>;

/// Gradients are whole numbers, so that sums do not depend on their order; weights depend on each batch and its place.
struct Model {
  std::vector<double> weights = std::vector<double>(5);
  std::vector<double> gradient = std::vector<double>(5);
  void backward(const std::vector<std::uint64_t>& batch) {
    gradient.assign(gradient.size(), 0);
    for (const std::uint64_t sample : batch)
      for (std::size_t i = 0; i < gradient.size(); ++i)
        gradient[i] += static_cast<double>((sample * (i + 3)) % 17) - static_cast<double>(i);
    for (double& value : gradient) value /= batch.empty() ? 1 : static_cast<double>(batch.size());
  }
  void step() {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = weights[i] * 0.96875 - gradient[i];
  }
};

ht::Training train(const ht::Params&, ht::Context& context, Fate fate) {  // NOLINT: a coroutine keeps it
  Model model;
  ht::ElasticState group(context, {.communicator = {.timeout = 2}});
  group.gradients().add(model.gradient);
  ht::ElasticSampler sampler(samples, {.seed = 3});
  std::vector<std::int32_t> visits(samples);
  int epoch = context.next_step();
  group.keep(model.weights).keep(epoch).keep(sampler).keep(visits);
  context.checkpoints(
      [&](ht::CheckpointWriter& out) {
        std::ofstream file(out.file("model"), std::ios::binary);
        file.write(reinterpret_cast<const char*>(model.weights.data()), 40);
        file.write(reinterpret_cast<const char*>(visits.data()), samples * 4);
      },
      [&](const ht::Checkpoint& in) {
        std::ifstream file(in.file("model"), std::ios::binary);
        file.read(reinterpret_cast<char*>(model.weights.data()), 40);
        file.read(reinterpret_cast<char*>(visits.data()), samples * 4);
        sampler.restore({static_cast<std::uint64_t>(in.info().steps), 0});
      });
  for (; epoch < epochs; ++epoch) {
    group.run([&] {
      for (int batch = 0; !sampler.done(); ++batch) {
        const auto before = sampler.processed();
        const auto mine = sampler.next(24, group.rank(), group.size());
        for (auto place = before; place < sampler.processed(); ++place) ++visits[sampler.sample(place)];
        model.backward(mine);
        fate(group, context, epoch, batch);
        group.gradients().reduce(static_cast<std::int64_t>(mine.size()));
        model.step();
        group.commit();
      }
      sampler.next_epoch();
    });
    double once = 1;
    for (const auto count : visits) once = count == epoch + 1 ? once : 0;
    double sum = 0;
    for (std::size_t i = 0; i < 5; ++i) sum += model.weights[i] * static_cast<double>(i + 1);
    co_yield ht::report("sum", sum, "once", once, "workers", static_cast<double>(group.size()), "generations",
                        static_cast<double>(group.generations()));
  }
}

/// The training with two parts in its loop, whose second one looks at all samples again, and with the checkpoints that
/// an ElasticState makes.
ht::Training train_in_parts(const ht::Params&, ht::Context& context, Fate fate) {  // NOLINT: a coroutine keeps it
  Model model;
  ht::ElasticState group(context, {.communicator = {.timeout = 2}});
  group.gradients().add(model.gradient);
  ht::ElasticSampler sampler(samples, {.seed = 3}), again(samples, {.seed = 4});
  std::vector<std::int32_t> visits(samples);
  int epoch = 0;
  double total = 0;
  group.keep(model.weights).keep(epoch).keep(sampler).keep(again).keep(visits).keep(total);
  group.checkpoints();
  for (; epoch < epochs; ++epoch) {
    group.run([&] {
      while (!sampler.done()) {
        const auto before = sampler.processed();
        const auto mine = sampler.next(24, group.rank(), group.size());
        for (auto place = before; place < sampler.processed(); ++place) ++visits[sampler.sample(place)];
        model.backward(mine);
        fate(group, context, epoch, static_cast<int>(before / 24));
        group.gradients().reduce(static_cast<std::int64_t>(mine.size()));
        model.step();
        group.commit();
      }
      sampler.next_epoch();
    });
    fate(group, context, epoch, 50);
    co_yield ht::report("sum", 0.0, "once", 1.0, "epoch", static_cast<double>(epoch));
    if (epoch % 2 == 1)
      group.run([&] {
        while (!again.done()) {
          const auto before = again.processed();
          const auto mine = again.next(80, group.rank(), group.size());
          const auto sum = group.communicator().all_reduce(static_cast<std::int64_t>(mine.size()), ht::Reduction::sum);
          fate(group, context, epoch, 10 + static_cast<int>(before / 80));
          total += static_cast<double>(sum) * model.weights[0];
          group.commit();
        }
        again.next_epoch();
      });
    double once = 1;
    for (const auto count : visits) once = count == epoch + 1 ? once : 0;
    double sum = total;
    for (std::size_t i = 0; i < 5; ++i) sum += model.weights[i] * static_cast<double>(i + 1);
    co_yield ht::report("sum", sum, "once", once, "epoch", static_cast<double>(epoch));
  }
}

struct Ended {
  ht::TrialState state = {};
  int failures = 0;
  std::vector<std::map<std::string, double>> reports;
};

Ended ended_of(const ht::Results& results) {
  const auto trial = results.trials()[0];
  Ended ended{.state = trial.state, .failures = trial.failures[0] + trial.failures[1], .reports = {}};
  results.history(0, [&](const ht::Record& record) {
    const auto* reported = std::get_if<ht::record::TrialReported>(&record.what);
    if (reported == nullptr) return;
    auto& metrics = ended.reports.emplace_back();
    for (const auto& [name, value] : reported->metrics) metrics[name] = value;
  });
  return ended;
}

using Train = ht::Training (*)(const ht::Params&, ht::Context&, Fate);

Ended run(ht::AnyExecutor executor, ht::Workers workers, const Fate& fate, int every = 0, Train training = train) {
  const TemporaryDirectory directory;
  ht::Options options{
      .metric = "sum", .samples = 1, .executor = std::move(executor), .output = directory.path() / "run"};
  options.workers = workers;
  options.display = ht::Display::quiet;
  options.checkpoint.every = every;
  options.max_failures = 3;
  const auto results = ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [fate, training](const ht::Params& params, ht::Context& context) { return training(params, context, fate); },
      options);
  return ended_of(results);
}

/// True for the first who asks, in whatever process.
class Once {
 public:
  bool operator()() const {
    const int fd = ::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (fd < 0) return false;
    ::close(fd);
    return true;
  }

 private:
  TemporaryDirectory directory_;
  std::filesystem::path path_ = directory_.path() / "once";
};

void check_like(const Ended& run, const Ended& undisturbed) {
  CHECK(run.state == ht::TrialState::completed);
  REQUIRE(run.reports.size() == undisturbed.reports.size());
  for (std::size_t i = 0; i < run.reports.size(); ++i) {
    INFO("report " << i);
    CHECK(run.reports[i].at("sum") == undisturbed.reports[i].at("sum"));
    CHECK(run.reports[i].at("once") == 1);
  }
}

const Fate nothing = [](const ht::ElasticState&, ht::Context&, int, int) {};

}  // namespace

TEST_CASE("one worker and four threads and four processes train the same") {
  const Ended alone = run(ht::threads(1), {1}, nothing);
  REQUIRE(alone.reports.size() == epochs);
  check_like(alone, alone);
  check_like(run(ht::threads(4), {4}, nothing), alone);
  const Ended four = run(ht::processes({.workers = 4}), {4}, nothing);
  check_like(four, alone);
  CHECK(four.reports.back().at("workers") == 4);
  CHECK(four.reports.back().at("generations") == 1);
}

TEST_CASE("a worker that is killed costs the others a commit, and no process but its own") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const int rank = GENERATE(0, 2);
  const Once once;
  const auto killed = run(ht::processes({.workers = 4}), {4}, [&](const auto& group, auto&, int epoch, int batch) {
    if (epoch == 1 && batch == 3 && group.rank() == rank && once()) ::raise(SIGKILL);
  });
  check_like(killed, undisturbed);
  CHECK(killed.failures == 0);
  CHECK(killed.reports.back().at("workers") == 4);
}

TEST_CASE("workers join at a commit where there is room, and leave when they are lost") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const Once once;
  const auto changed =
      run(ht::processes({.workers = 4}), {.min = 2, .max = 4}, [&](const auto& group, auto&, int epoch, int batch) {
        if (epoch == 1 && batch == 3 && group.rank() == 1 && once()) ::raise(SIGKILL);
      });
  check_like(changed, undisturbed);
  CHECK(changed.reports[0].at("workers") == 4);
}

TEST_CASE("a worker that is stopped is named, ended and replaced") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const Once once;
  const auto stopped = run(ht::processes({.workers = 3}), {3}, [&](const auto& group, auto&, int epoch, int batch) {
    if (epoch == 2 && batch == 1 && group.rank() == 1 && once()) ::raise(SIGSTOP);
  });
  check_like(stopped, undisturbed);
  CHECK(stopped.failures == 0);
}

TEST_CASE("a training says how many workers it wants, and each sample counts once all the same") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const Fate plan = [](const auto&, ht::Context& context, int epoch, int) { context.want_workers(epoch < 2 ? 2 : 4); };
  const auto grown = run(ht::processes({.workers = 4}), {.min = 1, .max = 4}, plan);
  check_like(grown, undisturbed);
  CHECK(grown.reports[0].at("workers") == 4);  // nobody knew of the plan before
  CHECK(grown.reports[1].at("workers") <= 4);
}

TEST_CASE("workers that are killed at random change nothing but the time") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const TemporaryDirectory notes;
  const auto seed = GENERATE(1U, 2U, 3U);
  // Each kill happens once: what was done again is not killed again.
  const Fate chaos = [&, seed](const auto& group, auto&, int epoch, int batch) {
    ht::Rng rng = ht::derived_rng(seed, {static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(batch)});
    if (ht::uniform01(rng) > 0.25) return;
    const int victim = static_cast<int>(ht::uniform01(rng) * group.size());
    const auto once = notes.path() / std::to_string(epoch * 100 + batch);
    const int fd = group.rank() == victim ? ::open(once.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;
    if (fd >= 0) ::raise(SIGKILL);
  };
  check_like(run(ht::processes({.workers = 4}), {4}, chaos, 1), undisturbed);
  check_like(run(ht::processes({.workers = 4}), {.min = 1, .max = 4}, chaos, 1), undisturbed);
}

TEST_CASE("workers that come and go find the part in which the others are") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing, 0, train_in_parts);
  REQUIRE(undisturbed.reports.size() == 2 * epochs);
  const TemporaryDirectory notes;
  const auto seed = GENERATE(1U, 2U, 3U);
  const Fate chaos = [&, seed](const auto& group, auto&, int epoch, int batch) {
    ht::Rng rng = ht::derived_rng(seed, {static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(batch)});
    if (ht::uniform01(rng) > 0.25) return;
    const int victim = static_cast<int>(ht::uniform01(rng) * group.size());
    const auto once = notes.path() / std::to_string(epoch * 100 + batch);
    const int fd = group.rank() == victim ? ::open(once.c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;
    if (fd >= 0) ::raise(SIGKILL);
  };
  check_like(run(ht::processes({.workers = 4}), {4}, chaos, 1, train_in_parts), undisturbed);
  check_like(run(ht::processes({.workers = 4}), {.min = 1, .max = 4}, chaos, 1, train_in_parts), undisturbed);
}

TEST_CASE("who is to leave within a step leaves its last commit as a checkpoint") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing, 0, train_in_parts);
  // In the first part, which has 10 batches, in the second one, or between them.
  const int last_epoch = GENERATE(0, 1, 2, 3), last_batch = last_epoch == 1 ? 12 : last_epoch == 2 ? 50 : 6;
  const bool processes = GENERATE(false, true);
  const TemporaryDirectory directory;
  const auto batches = directory.path() / "batches";
  const Once once;
  const pid_t driver = ::getpid();
  const Fate fate = [&](const auto& group, ht::Context& context, int epoch, int batch) {
    if (group.rank() == 0) std::ofstream(batches, std::ios::app) << epoch * 100 + batch << '\n';
    if (epoch != last_epoch || batch != last_batch || group.rank() != 0 || !once()) return;
    ::kill(driver, SIGINT);  // as two Ctrl-C
    ::usleep(100000);
    ::kill(driver, SIGINT);
    for (int i = 0; i < 5000 && !context.stop_requested(); ++i) ::usleep(1000);  // it comes to no report before
  };
  const auto tune = [&] {
    ht::Options options{.metric = "sum", .samples = 1, .output = directory.path() / "run", .resume = true};
    options.executor = processes ? ht::AnyExecutor(ht::processes({.workers = 2})) : ht::AnyExecutor(ht::threads(2));
    options.workers = {2};
    options.display = ht::Display::quiet;
    options.handle_signals = true;
    return ht::tune(
        ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
        [&](const ht::Params& params, ht::Context& context) { return train_in_parts(params, context, fate); }, options);
  };
  CHECK(tune().trials()[0].state != ht::TrialState::completed);
  check_like(ended_of(tune()), undisturbed);
  std::ifstream in(batches);
  std::map<int, int> times;
  for (int batch = 0; in >> batch;) ++times[batch];
  for (const auto& [batch, count] : times) {
    if (batch % 100 == 50 && last_batch != 50) continue;  // between the parts: whoever comes through does it
    INFO("batch " << batch);
    CHECK(count == (batch == last_epoch * 100 + last_batch ? 2 : 1));  // what was not committed is done again
  }
}

TEST_CASE("what the training itself throws in one worker fails the trial, with that worker's rank") {
  const TemporaryDirectory directory;
  ht::Options options{
      .metric = "sum", .samples = 1, .executor = ht::processes({.workers = 3}), .output = directory.path() / "run"};
  options.workers = {3};
  options.display = ht::Display::quiet;
  const auto results = ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [](const ht::Params& params, ht::Context& context) {
        return train(params, context, [](const auto& group, auto&, int epoch, int) {
          if (epoch == 1 && group.rank() == 2) throw std::runtime_error("the loss is not a number");
        });
      },
      options);
  const ht::TrialResult trial = results.trials()[0];
  CHECK(trial.state == ht::TrialState::failed);
  REQUIRE(trial.cause);
  CHECK(trial.cause->source == ht::FailureSource::user);
  CHECK_THAT(trial.cause->text, ContainsSubstring("rank 2: the loss is not a number"));
}

TEST_CASE("groups that are larger together than the machine take turns") {
  const TemporaryDirectory directory;
  ht::Options options{.metric = "sum", .samples = 5, .executor = ht::threads(4), .output = directory.path() / "run"};
  options.workers = {3};
  options.display = ht::Display::quiet;
  const auto results = ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [](const ht::Params& params, ht::Context& context) { return train(params, context, nothing); }, options);
  for (const auto& trial : results.trials()) CHECK(trial.state == ht::TrialState::completed);
}

TEST_CASE("an ElasticState goes back to the last commit of an Accumulator, too") {
  ht::Context context(ht::Context::Start{});
  ht::ElasticState group(context);
  ht::Accumulator metrics;
  group.keep(metrics);
  int calls = 0;
  group.run([&] {
    if (++calls == 2) return;
    metrics.sum("seen", 1);
    metrics.reduce(group.communicator());
    group.commit();
    metrics.sum("seen", 10);
    metrics.reduce(group.communicator());
    throw ht::GroupError(ht::GroupError::Kind::changed, "as if another worker were gone");
  });
  CHECK(calls == 2);
  CHECK(metrics.values().at("seen") == 1);
}

TEST_CASE("what points at a state is not taken for the state") {
  const auto keeps = [](auto& value) { return requires(ht::ElasticState& group) { group.keep(value); }; };
  std::array<float, 3> weights = {};
  float* pointer = weights.data();
  std::span<float> all(weights);
  std::span<float, 3> three(weights);
  std::string_view text;
  CHECK(keeps(weights));
  CHECK(keeps(all));
  CHECK_FALSE(keeps(pointer));
  CHECK_FALSE(keeps(three));
  CHECK_FALSE(keeps(text));
}
