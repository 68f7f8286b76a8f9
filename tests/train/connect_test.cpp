// connect(Context&): trials whose workers are the same from the beginning of an attempt to its end.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/train/connect.hpp>
#include <hypertune/train/detail/polling.hpp>

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>

namespace ht = hypertune;

namespace {

/// What happens to a worker before it sums up, at each step of the first attempt.
using Fate = std::function<void(ht::Context& context, int rank, int step)>;

ht::Training sum_ranks(const ht::Params&, ht::Context& context, const Fate& fate) {
  ht::Communicator workers = ht::connect(context);
  context.checkpoints([](ht::CheckpointWriter& out) { std::ofstream(out.file("empty")); },
                      [](const ht::Checkpoint&) {});
  for (int step = context.next_step(); step < 4; ++step) {
    if (context.attempt() == 0) fate(context, workers.rank(), step);
    double sum = 0;
    try {
      sum = workers.all_reduce(static_cast<double>(workers.rank() + 1));
    } catch (const ht::GroupError& error) {
      std::ofstream(context.directory() / (error.kind() == ht::GroupError::Kind::late ? "late" : "told"));
      throw;
    }
    co_yield ht::report("sum", sum, "attempt", static_cast<double>(context.attempt()));
  }
}

struct Ended {
  ht::TrialResult trial;
  bool told = false, late = false;  // some worker was told that the generation is over; … had to find out by itself
  std::string cause = {};           // of the attempt that failed last
};

Ended run(ht::AnyExecutor executor, const Fate& fate, ht::Seconds hang_timeout = 0) {
  const TemporaryDirectory directory;
  ht::Options options{
      .metric = "sum", .samples = 1, .executor = std::move(executor), .output = directory.path() / "run"};
  options.workers = {3};
  options.display = ht::Display::quiet;
  options.checkpoint.every = 1;
  options.max_retries = 1;
  options.hang_timeout = hang_timeout;
  const auto results = ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [fate](const ht::Params& params, ht::Context& context) { return sum_ranks(params, context, fate); }, options);
  const auto trial = directory.path() / "run/trials/0";
  std::string cause;
  ht::read_journal(directory.path() / "run", [&](const ht::Record& record) {
    if (const auto* failed = std::get_if<ht::record::AttemptFailed>(&record.what)) cause = failed->cause.text;
  });
  return {results.trial(0), std::filesystem::exists(trial / "told"), std::filesystem::exists(trial / "late"),
          std::move(cause)};
}

const Fate nothing = [](ht::Context&, int, int) {};

}  // namespace

TEST_CASE("the workers of an attempt are connected by their context") {
  for (const bool processes : {false, true}) {
    const auto [trial, told, late, cause] =
        processes ? run(ht::processes({.pool = 3}), nothing) : run(ht::threads(3), nothing);
    CHECK(trial.state == ht::TrialState::completed);
    CHECK(trial.best->value == 6);
    CHECK(trial.steps == 4);
    CHECK_FALSE(told);
  }
}

TEST_CASE("where a worker fails or is lost, the others are told, and the trial begins again") {
  const bool killed = GENERATE(false, true);
  const Fate fate = [killed](ht::Context&, int rank, int step) {
    if (rank != 1 || step != 2) return;
    if (killed) ::raise(SIGKILL);
    throw std::runtime_error("this worker fails");
  };
  const auto [trial, told, late, cause] = killed ? run(ht::processes({.pool = 3}), fate) : run(ht::threads(3), fate);
  CHECK(trial.state == ht::TrialState::completed);
  CHECK(trial.best->value == 6);
  CHECK(trial.attempts == 2);
  CHECK(told);
  CHECK_FALSE(late);
}

TEST_CASE("whoever waits for others in a collective does not count as hung, however long they take") {
  constexpr double limit = 0.5;
  const Fate slow = [](ht::Context& context, int rank, int step) {
    if (rank != 1 || step != 2) return;
    for (const auto end = ht::detail::steady_after(3 * limit); ht::detail::seconds_until(end) > 0;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // what it has to do
      context.alive();
    }
  };
  for (const bool processes : {false, true}) {
    const auto [trial, told, late, cause] =
        processes ? run(ht::processes({.pool = 3}), slow, limit) : run(ht::threads(3), slow, limit);
    CHECK(trial.state == ht::TrialState::completed);
    CHECK(trial.attempts == 1);
    CHECK_FALSE(told);
  }
}

TEST_CASE("of workers of which one hangs, that one is named, long before the others' time limit") {
  const Fate hangs = [](ht::Context&, int rank, int step) {
    if (rank == 2 && step == 2) ::raise(SIGSTOP);
  };
  const auto [trial, told, late, cause] = run(ht::processes({.pool = 3}), hangs, 2);
  CHECK(trial.state == ht::TrialState::completed);
  CHECK(trial.attempts == 2);
  CHECK(told);
  CHECK_FALSE(late);
  CHECK_THAT(cause, Catch::Contains("rank 2: ") && Catch::Contains("hung"));
}

TEST_CASE("an aborter does not keep its communicator") {
  std::function<void(const ht::GroupError&)> abort;
  const ht::GroupError over(ht::GroupError::Kind::changed, "over");
  {
    ht::Group alone;
    ht::Communicator communicator = ht::connect({}, alone);
    abort = communicator.abort_function();
    abort(over);
    CHECK_THROWS_AS(communicator.barrier(), ht::GroupError);
  }
  abort(over);
}
