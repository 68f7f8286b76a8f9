#include "support/scheduler_conformance.hpp"
#include "support/test.hpp"

#include <hypertune/schedule/hyper_sched.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/successive_halving.hpp>

#include <algorithm>
#include <limits>

using namespace hypertune;
using Rungs = std::vector<BracketRung>;

namespace {

Decision report(auto& scheduler, TrialId trial, int steps, double loss) {
  return scheduler.on_report({.trial = trial, .steps = steps, .losses = {&loss, 1}});
}

/// How many trials of [first, first + n) got at least so many steps.
std::int64_t reached(const hypertune_test::PoolOutcome& outcome, TrialId first, std::int64_t n, int steps) {
  std::int64_t count = 0;
  for (TrialId t = first; t < first + n; ++t) count += outcome.steps.at(t) >= steps;
  return count;
}

}  // namespace

TEST_CASE("hyperband's brackets are those of the paper") {
  const auto brackets = hyperband_brackets(81, 3);  // table 1
  REQUIRE(brackets.size() == 5);
  CHECK(brackets[0] == Rungs{{81, 1}, {27, 3}, {9, 9}, {3, 27}, {1, 81}});
  CHECK(brackets[1] == Rungs{{34, 3}, {11, 9}, {3, 27}, {1, 81}});
  CHECK(brackets[2] == Rungs{{15, 9}, {5, 27}, {1, 81}});
  CHECK(brackets[3] == Rungs{{8, 27}, {2, 81}});
  CHECK(brackets[4] == Rungs{{5, 81}});
  CHECK(hyperband_brackets(1, 3) == std::vector<Rungs>{{{1, 1}}});
  CHECK(hyperband_brackets(2, 3) == std::vector<Rungs>{{{1, 2}}});
  CHECK(hyperband_brackets(10, 3).front() == Rungs{{9, 1}, {3, 3}, {1, 10}});
  for (int max = 1; max < 200; ++max)
    for (int reduction = 2; reduction < 6; ++reduction)
      for (const auto& rungs : hyperband_brackets(max, reduction)) {
        CHECK(rungs.back().steps == max);
        for (std::size_t i = 1; i < rungs.size(); ++i) {
          CHECK(rungs[i].steps > rungs[i - 1].steps);
          CHECK(rungs[i].trials >= 1);
        }
      }
  CHECK(hyperband_brackets(std::numeric_limits<int>::max(), 2).size() == 31);
}

TEST_CASE("a round of hyperband gives each trial the steps of its bracket") {
  for (const int slots : {1, 7, 200}) {
    const auto outcome = hypertune_test::run_pool(HyperBand{}, {.trials = 2 * 143, .slots = slots});
    TrialId first = 0;
    for (int round = 0; round < 2; ++round)
      for (const auto& rungs : hyperband_brackets(81, 3)) {
        for (const auto& rung : rungs) CHECK(reached(outcome, first, rungs.front().trials, rung.steps) == rung.trials);
        first += rungs.front().trials;
      }
    CHECK(outcome.drained == 0);
    CHECK(outcome.max_running == std::min(slots, 2 * 143));
  }
}

TEST_CASE("a bracket that stays short of trials goes on in proportion") {
  const auto outcome = hypertune_test::run_pool(HyperBand{}, {.trials = 27, .slots = 4});
  CHECK(reached(outcome, 0, 27, 3) == 9);
  CHECK(reached(outcome, 0, 27, 9) == 3);
  CHECK(reached(outcome, 0, 27, 27) == 1);
  CHECK(reached(outcome, 0, 27, 81) == 1);
  const auto one = hypertune_test::run_pool(HyperBand{}, {.trials = 1, .slots = 4});
  CHECK(one.steps.at(0) == 81);
  CHECK(one.states.at(0) == TrialState::completed);
}

TEST_CASE("the best of a rung go on, whoever failed") {
  HyperBand hyperband{.max_steps = 9};  // 9 trials at 1 step, 3 at 3, 1 at 9
  for (TrialId t = 0; t < 9; ++t) hyperband.on_create(t);
  for (TrialId t = 0; t < 4; ++t) CHECK(report(hyperband, t, 1, static_cast<double>(t)) == Decision::pause);
  CHECK(hyperband.choose_next({}).kind == Choice::Kind::start_new);
  for (TrialId t = 4; t < 8; ++t) hyperband.on_end(t, TrialState::failed);
  CHECK(report(hyperband, 8, 1, -1) == Decision::pause);
  CHECK(hyperband.choose_next({}).kind == Choice::Kind::stop);
  hyperband.on_end(3, TrialState::stopped);
  hyperband.on_end(2, TrialState::stopped);
  for (const TrialId t : {8, 0, 1}) {
    const auto choice = hyperband.choose_next({});
    CHECK(choice.kind == Choice::Kind::resume);
    CHECK(choice.trial == t);
    hyperband.on_resume(t);
  }
  CHECK(hyperband.choose_next({}).kind == Choice::Kind::start_new);
  CHECK(report(hyperband, 3, 2, 0) == Decision::stop);  // a word from a trial that has ended
}

TEST_CASE("a bracket goes on without trials whose programs have ended, which are not taken for paused") {
  const auto over = [](auto& scheduler, TrialId trial, int steps, double loss) {
    return scheduler.on_report({.trial = trial, .steps = steps, .losses = {&loss, 1}, .over = true});
  };
  const auto check = [&](auto scheduler) {
    for (TrialId t = 0; t < 9; ++t) scheduler.on_create(t);
    for (TrialId t = 0; t < 4; ++t) CHECK(over(scheduler, t, 1, -1) == Decision::proceed);
    for (TrialId t = 4; t < 9; ++t) CHECK(report(scheduler, t, 1, static_cast<double>(t)) == Decision::pause);
    CHECK(scheduler.choose_next({.more_trials = false}).kind == Choice::Kind::wait);  // for the four
    for (TrialId t = 0; t < 4; ++t) {
      CHECK(over(scheduler, t, 3, -1) == Decision::proceed);
      scheduler.on_end(t, TrialState::completed);
    }
    for (const TrialId loser : {7, 8}) {
      CHECK(scheduler.choose_next({.more_trials = false}).kind == Choice::Kind::stop);
      scheduler.on_end(loser, TrialState::stopped);
    }
    for (const TrialId winner : {4, 5, 6}) {
      const auto choice = scheduler.choose_next({.more_trials = false});
      CHECK(choice.kind == Choice::Kind::resume);
      CHECK(choice.trial == winner);
      scheduler.on_resume(winner);
    }
  };
  check(HyperBand{.max_steps = 9});
  check(SuccessiveHalving{.max_steps = 9, .trials = 9});
  HyperSched deadline{.deadline = 100};
  deadline.on_create(0);
  CHECK(over(deadline, 0, 1, 1) == Decision::proceed);
  CHECK(over(deadline, 0, 3, 1) == Decision::proceed);
  CHECK(deadline.choose_next({.more_trials = false}).kind == Choice::Kind::wait);
}

TEST_CASE("hyperband refuses options that make no sense") {
  CHECK_THROWS_AS(AnyScheduler(HyperBand{.max_steps = 0}), Error);
  CHECK_THROWS_WITH(AnyScheduler(HyperBand{.reduction_factor = 1}), ContainsSubstring("reduction_factor is 1"));
}
