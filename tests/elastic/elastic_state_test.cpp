// ElasticState: trainings whose workers are killed, stopped, added and taken away, under real executors.
#include "elastic_training.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"
#include "training_results.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/train/accumulator.hpp>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/elastic_state.hpp>
#include <hypertune/trial/device_lost.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::test;

namespace {

using Train = ht::Training (*)(const ht::Params&, ht::Context&, Fate);

/// Why the workers of trials have changed.
struct Changes {
  std::shared_ptr<std::vector<std::string>> all = std::make_shared<std::vector<std::string>>();
  std::filesystem::path given_up = {};  // a file for the workers: a new one was given up
  void on_trial_resize(const ht::record::TrialResized& e) const {
    all->push_back(e.why);
    if (!given_up.empty() && e.why.find("given up") != std::string::npos) std::ofstream(given_up) << e.why;
  }
};

template <class Program>
Ended run_program(ht::AnyExecutor executor, ht::Workers workers, const Program& program,
                  const std::filesystem::path& given_up = {}, double hang_timeout = 0, int max_retries = 3,
                  int every = 0) {
  const TemporaryDirectory directory;
  ht::Options options{
      .metric = "sum", .samples = 1, .executor = std::move(executor), .output = directory.path() / "run"};
  options.workers = workers;
  options.display = ht::Display::quiet;
  options.checkpoint.every = every;
  options.max_retries = max_retries;
  options.hang_timeout = hang_timeout;
  const Changes changes{.given_up = given_up};
  options.callbacks = {changes};
  const auto results = ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [program](const ht::Params& params, ht::Context& context) { return program(params, context); }, options);
  auto ended = ended_of(results);
  ended.changes = *changes.all;
  return ended;
}
Ended run(ht::AnyExecutor executor, ht::Workers workers, const Fate& fate, int every = 0, Train training = train) {
  return run_program(
      std::move(executor), workers,
      [fate, training](const ht::Params& params, ht::Context& context) { return training(params, context, fate); }, {},
      0, 3, every);
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

const Fate nothing = [](const ht::ElasticState&, ht::Context&, int, int) {};

}  // namespace

TEST_CASE("one worker and four threads and four processes train the same") {
  const Ended alone = run(ht::threads(1), {1}, nothing);
  REQUIRE(alone.reports.size() == epochs);
  check_like(alone, alone);
  check_like(run(ht::threads(4), {4}, nothing), alone);
  const Ended four = run(ht::processes({.pool = 4}), {4}, nothing);
  check_like(four, alone);
  CHECK(four.reports.back().at("workers") == 4);
  CHECK(four.reports.back().at("generations") == 1);
}

TEST_CASE("a worker that is killed costs the others a commit, and no process but its own") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const int rank = GENERATE(0, 2);
  const Once once;
  const auto killed = run(ht::processes({.pool = 4}), {4}, [&](const auto& group, auto&, int epoch, int batch) {
    if (epoch == 1 && batch == 3 && group.rank() == rank && once()) ::raise(SIGKILL);
  });
  check_like(killed, undisturbed);
  CHECK(killed.failures == 0);
  CHECK(killed.reports.back().at("workers") == 4);
}

TEST_CASE("workers that are killed at once make one change of workers, which names both") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const TemporaryDirectory notes;
  const auto note = notes.path() / "pid";
  const Fate both = [note](const ht::ElasticState& group, auto&, int epoch, int batch) {
    if (epoch != 1 || group.generations() > 1) return;
    if (batch == 2 && group.rank() == 2) std::ofstream(note) << ::getpid();  // the others wait for it in this batch
    if (batch != 3 || group.rank() != 1) return;
    pid_t second = 0;
    std::ifstream(note) >> second;
    if (second > 0) ::kill(second, SIGKILL);
    ::raise(SIGKILL);
  };
  // A driver that gets no processor hears of the second one too late, but not each time.
  std::vector<std::string> changes(2);
  for (int i = 0; i < 5 && changes.size() > 1; ++i) {
    const auto killed = run(ht::processes({.pool = 4}), {4}, both);
    check_like(killed, undisturbed);
    CHECK(killed.failures == 0);
    changes = killed.changes;
  }
  REQUIRE(changes.size() == 1);
  CHECK_THAT(changes[0],
             ContainsSubstring("2 of 4 workers were lost: ranks 1, 2: the trial's process was killed by signal 9"));
}

TEST_CASE("workers join at a commit where there is room, and leave when they are lost") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const Once once;
  const auto changed =
      run(ht::processes({.pool = 4}), {.min = 2, .max = 4}, [&](const auto& group, auto&, int epoch, int batch) {
        if (epoch == 1 && batch == 3 && group.rank() == 1 && once()) ::raise(SIGKILL);
      });
  check_like(changed, undisturbed);
  CHECK(changed.reports[0].at("workers") == 4);
}

TEST_CASE("a worker whose device is lost is lost, and another process takes its place") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const TemporaryDirectory notes;
  const auto note = notes.path() / "pid";
  const bool in_collective = GENERATE(false, true);
  const Once once;
  const Fate fate = [&](const ht::ElasticState& group, auto&, int epoch, int batch) {
    if (epoch == 1 && batch == 3 && group.rank() == 1 && once()) {
      std::ofstream(note) << ::getpid();
      if (in_collective) throw ht::GroupError(ht::GroupError::Kind::device, "CUDA: a collective: an ECC error");
      throw ht::DeviceLost("CUDA: a kernel: an ECC error");
    }
    pid_t lost = 0;
    std::ifstream(note) >> lost;
    if (lost == ::getpid()) throw std::logic_error("it goes on");
  };
  const auto lost = run(ht::processes({.pool = 3}), {3}, fate);
  check_like(lost, undisturbed);
  CHECK(lost.failures == 0);
  REQUIRE(lost.changes.size() == 1);
  CHECK_THAT(lost.changes[0],
             ContainsSubstring("1 of 3 workers was lost: rank 1: CUDA: a ") && ContainsSubstring(": an ECC error"));
}

TEST_CASE("a worker that is stopped is named, ended and replaced") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const Once once;
  const auto stopped = run(ht::processes({.pool = 3}), {3}, [&](const auto& group, auto&, int epoch, int batch) {
    if (epoch == 2 && batch == 1 && group.rank() == 1 && once()) ::raise(SIGSTOP);
  });
  check_like(stopped, undisturbed);
  CHECK(stopped.failures == 0);
}

TEST_CASE("a training says how many workers it wants, and each sample counts once all the same") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const Fate plan = [](const auto&, ht::Context& context, int epoch, int) {
    context.request_workers(epoch < 2 ? 2 : 4);
  };
  const auto grown = run(ht::processes({.pool = 4}), {.min = 1, .max = 4}, plan);
  check_like(grown, undisturbed);
  CHECK(grown.reports[0].at("workers") == 4);  // nobody knew of the plan before
  CHECK(grown.reports[1].at("workers") <= 4);
}

TEST_CASE("workers that are killed at random change nothing but the time") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const TemporaryDirectory notes;
  const auto seed = GENERATE(1U, 2U, 3U);
  const Fate chaos = KilledAtRandom{seed, notes.path()};
  check_like(run(ht::processes({.pool = 4}), {4}, chaos, 1), undisturbed);
  check_like(run(ht::processes({.pool = 4}), {.min = 1, .max = 4}, chaos, 1), undisturbed);
}

TEST_CASE("workers that come and go find the part in which the others are") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing, 0, train_in_parts);
  REQUIRE(undisturbed.reports.size() == 2 * epochs);
  const TemporaryDirectory notes;
  const auto seed = GENERATE(1U, 2U, 3U);
  const Fate chaos = KilledAtRandom{seed, notes.path()};
  check_like(run(ht::processes({.pool = 4}), {4}, chaos, 1, train_in_parts), undisturbed);
  check_like(run(ht::processes({.pool = 4}), {.min = 1, .max = 4}, chaos, 1, train_in_parts), undisturbed);
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
    options.executor = processes ? ht::AnyExecutor(ht::processes({.pool = 2})) : ht::AnyExecutor(ht::threads(2));
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
      .metric = "sum", .samples = 1, .executor = ht::processes({.pool = 3}), .output = directory.path() / "run"};
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

namespace {

bool is_new(const ht::Context& context) { return context.group().place().generation > 0; }
void wait_for(const std::filesystem::path& file, ht::Context& context) {
  for (int i = 0; i < 60000 && !std::filesystem::exists(file); ++i, ::usleep(1000)) context.alive();
  if (!std::filesystem::exists(file)) throw std::runtime_error("waited in vain");
}
std::string all_of(const std::vector<std::string>& texts) {
  std::string all;
  for (const auto& text : texts) all += text + '\n';
  return all;
}

}  // namespace

TEST_CASE("workers go on when one of them is lost while a newcomer hangs as it starts") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  const TemporaryDirectory notes;
  const auto hangs = notes.path() / "hangs", lost = notes.path() / "lost";
  const auto program = [=](const ht::Params& params, ht::Context& context) {
    if (is_new(context)) {
      std::ofstream(hangs) << ::getpid();
      for (;;) ::pause();
    }
    return train(params, context, [=](const ht::ElasticState& group, ht::Context& own, int epoch, int batch) {
      if (epoch == 1 && batch == 3 && group.rank() == 2 && group.size() == 3) ::raise(SIGKILL);
      if (epoch != 2 || batch != 4 || group.size() != 2) return;
      wait_for(hangs, own);
      if (group.rank() == 1) ::raise(SIGKILL);
    });
  };
  const auto ended = run_program(ht::processes({.pool = 3, .stop_grace = 0.1}), {.min = 1, .max = 3}, program);
  check_like(ended, undisturbed);
  CHECK(ended.failures == 0);
  CHECK(ended.reports.back().at("workers") == 1);
  CHECK_THAT(all_of(ended.changes), ContainsSubstring("1 new worker was not ready and is not waited for"));
}

TEST_CASE("a newcomer that throws, ends or is too slow as it starts is given up alone") {
  const Ended undisturbed = run(ht::threads(1), {1}, nothing);
  enum class Way { throws, exits, slow };
  const auto [way, threads] = GENERATE(std::pair(Way::throws, false), std::pair(Way::throws, true),
                                       std::pair(Way::exits, false), std::pair(Way::slow, false));
  const TemporaryDirectory notes;
  const auto given_up = notes.path() / "given_up";
  const Once once;
  const auto program = [&, way = way, threads = threads](const ht::Params& params, ht::Context& context) {
    if (is_new(context)) {
      if (way == Way::throws) throw std::runtime_error("the data set is away");
      if (way == Way::exits) ::_exit(3);
      for (;;) ::pause();
    }
    return train(params, context, [&, threads](const ht::ElasticState& group, ht::Context& own, int epoch, int batch) {
      if (epoch == 1 && batch == 3 && group.rank() == 2 && once()) {
        if (threads) throw ht::DeviceLost("a kernel");
        ::raise(SIGKILL);
      }
      if (epoch == 3 && batch == 4) wait_for(given_up, own);
    });
  };
  const auto ended = run_program(
      threads ? ht::AnyExecutor(ht::threads(3)) : ht::AnyExecutor(ht::processes({.pool = 3, .stop_grace = 0.1})),
      {.min = 1, .max = 3}, program, given_up, way == Way::slow ? 0.5 : 0);
  check_like(ended, undisturbed);
  CHECK(ended.failures == 0);
  CHECK(ended.reports.back().at("workers") == 2);
  const std::string why = way == Way::throws  ? "the data set is away"
                          : way == Way::exits ? "code 3"
                                              : "hung: no report and no alive() for 0.5 s";
  CHECK_THAT(all_of(ended.changes),
             ContainsSubstring("1 new worker was given up before its first step: rank 2: ") && ContainsSubstring(why));
}

TEST_CASE("a rank that makes more reports than the others is named when it keeps them waiting again") {
  const bool threads = GENERATE(false, true);
  const auto program = [](const ht::Params&, ht::Context& context) -> ht::Training {
    ht::ElasticState group(context, {.communicator = {.timeout = 0.5}});
    int epoch = 0;
    group.keep(epoch);
    for (; epoch < 30; ++epoch) {
      group.run([&] { group.communicator().barrier(); });
      co_yield ht::report("sum", 1.0);
      if (group.rank() == 1) co_yield ht::report("sum", 2.0);
    }
  };
  const auto ended = run_program(
      threads ? ht::AnyExecutor(ht::threads(2)) : ht::AnyExecutor(ht::processes({.pool = 2})), {2}, program, {}, 0, 0);
  CHECK(ended.state == ht::TrialState::failed);
  CHECK(ended.reports.size() < 5);
  CHECK_THAT(ended.cause, ContainsSubstring("rank 1 has reported step ") &&
                              ContainsSubstring("all ranks are to make the same reports"));
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
