#include "support/test.hpp"

#include <hypertune/schedule/asha.hpp>
#include <hypertune/schedule/hyper_sched.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/learning_curve.hpp>
#include <hypertune/schedule/median_stopping.hpp>
#include <hypertune/schedule/mo_asha.hpp>
#include <hypertune/schedule/patience.hpp>
#include <hypertune/schedule/percentile.hpp>
#include <hypertune/schedule/racing.hpp>
#include <hypertune/schedule/successive_halving.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

LossText maximised() {
  LossText text;
  text.add("accuracy", true);
  return text;
}

/// Feeds a scheduler accuracies, which it sees as losses.
struct Feed {
  AnyScheduler scheduler;
  Decision operator()(TrialId trial, int steps, double accuracy, Seconds now = 0) {
    const double loss = accuracy == accuracy ? -accuracy : worst_loss;
    return scheduler.on_report({.trial = trial, .steps = steps, .losses = {&loss, 1}, .elapsed = now, .now = now});
  }
  std::string why(TrialId trial) const { return scheduler.why(trial, maximised()); }
};

/// Creates trials that pause with these accuracies after a step, and says whom the scheduler stops first.
TrialId first_stopped(Feed& feed, const std::vector<double>& accuracies, int steps = 1) {
  for (std::size_t i = 0; i < accuracies.size(); ++i) feed.scheduler.on_create(static_cast<TrialId>(i));
  for (std::size_t i = 0; i < accuracies.size(); ++i) {
    REQUIRE(feed(static_cast<TrialId>(i), steps, accuracies[i]) == Decision::pause);
    feed.scheduler.on_pause(static_cast<TrialId>(i));
  }
  const auto choice = feed.scheduler.choose_next({.running = 0, .paused = accuracies.size(), .more_trials = false});
  REQUIRE(choice.kind == Choice::Kind::stop);
  return choice.trial;
}

}  // namespace

TEST_CASE("losses are said as the metrics that they are of") {
  const auto text = maximised();
  CHECK(text.value(-0.71) == "0.71");
  CHECK(text.named(-0.71) == "accuracy 0.71");
  CHECK(text.named(worst_loss) == "accuracy (not finite)");
  CHECK(text.value(0) == "0");
  CHECK(text.against(-0.71, -0.83) == "accuracy 0.71, needed 0.83");
  CHECK(text.against(-0.712341, -0.712349) == "accuracy 0.71234, needed 0.71235");  // as many digits as it takes
  CHECK(text.against(-0.5, -0.5) == "accuracy 0.5, needed 0.5");
  LossText two;
  two.add("cost", false);
  two.add("gain", true);
  const std::vector<double> losses{3, -7};
  CHECK(two.named(losses) == "cost 3, gain 7");
  CHECK(LossText().named(2) == "loss 2");
}

TEST_CASE("asha says at which rung, and what the bar was") {
  Feed feed{Asha{.grace_period = 1, .max_steps = 81, .reduction_factor = 3}};
  for (TrialId t = 0; t < 3; ++t)
    for (const int steps : {1, 3, 9}) feed(t, steps, 0.8 + 0.01 * static_cast<double>(t) + 0.001 * steps);
  REQUIRE(feed(3, 1, 0.9) == Decision::proceed);
  REQUIRE(feed(3, 3, 0.9) == Decision::proceed);
  REQUIRE(feed(3, 9, 0.71) == Decision::stop);
  CHECK(feed.why(3) == "at rung 3 (9 steps): accuracy 0.71, needed 0.829 (the best 1 of 4)");
  REQUIRE(feed(4, 1, nan_value) == Decision::stop);
  CHECK(feed.why(4) == "at rung 1 (1 step): accuracy (not finite), needed 0.9 (the best 1 of 5)");
  Feed brackets{Asha{.grace_period = 1, .max_steps = 81, .reduction_factor = 3, .brackets = 3}};
  TrialId stopped = -1;
  for (TrialId t = 0; t < 60 && stopped < 0; ++t)
    if (brackets(t, 81 / 3, 0.9 - 0.01 * static_cast<double>(t)) == Decision::stop) stopped = t;
  REQUIRE(stopped >= 0);
  CHECK_THAT(brackets.why(stopped), ContainsSubstring("in bracket ") && ContainsSubstring("needed 0."));
}

TEST_CASE("asha's promotion form says what those lacked that were not let go on") {
  Feed feed{Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 2, .promotion = true}};
  for (TrialId t = 0; t < 4; ++t) feed(t, 1, 0.9 - 0.1 * static_cast<double>(t));
  CHECK(feed.why(3) == "at rung 1 (1 step): accuracy 0.6, needed 0.8 (the best 2 of 4)");
  Feed alone{Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3, .promotion = true}};
  alone(0, 1, 0.5);
  CHECK(alone.why(0) == "at rung 1 (1 step): accuracy 0.5, too few to compare with (1)");
}

TEST_CASE("rounds say what the bar of the round was") {
  Feed halving{SuccessiveHalving{.grace_period = 2, .max_steps = 9, .reduction_factor = 3, .trials = 3}};
  CHECK(halving.why(first_stopped(halving, {0.5, 0.9, 0.7}, 2)) ==
        "at rung 1 (2 steps): accuracy 0.5, needed 0.9 (the best 1 of 3)");
  Feed hyperband{HyperBand{.max_steps = 3, .reduction_factor = 3}};  // its first bracket: 3 trials at 1 step, 1 at 3
  const TrialId loser = first_stopped(hyperband, {0.5, 0.9, 0.7});
  CHECK_THAT(hyperband.why(loser), ContainsSubstring("in bracket 1 at rung 1 (1 step): accuracy ") &&
                                       ContainsSubstring(", needed 0.9 (the best 1 of 3)"));
  CHECK(hyperband.why(1).empty());  // it goes on
}

TEST_CASE("rules over all steps say what the others had") {
  Feed median{MedianStopping{.grace_period = 1, .min_trials = 3}};
  for (TrialId t = 0; t < 3; ++t) median(t, 1, 0.7 + 0.1 * static_cast<double>(t));
  REQUIRE(median(3, 1, 0.75) == Decision::stop);
  CHECK(median.why(3) == "at step 1: best accuracy 0.75, needed 0.8 (the median of 3 others)");
  Feed percentile{Percentile{.percentile = 25, .grace_period = 1, .min_trials = 4}};
  for (TrialId t = 0; t < 4; ++t) percentile(t, 1, 0.6 + 0.1 * static_cast<double>(t));
  REQUIRE(percentile(4, 1, 0.65) == Decision::stop);
  CHECK_THAT(percentile.why(4), ContainsSubstring("at step 1: best accuracy 0.65, needed 0.8") &&
                                    ContainsSubstring("(the best 25 % of 4 others)"));
  Feed patience{Patience{.patience = 3, .min_delta = 0.01}};
  patience(0, 1, 0.7);
  for (int step = 2; step < 4; ++step) REQUIRE(patience(0, step, 0.705) == Decision::proceed);
  REQUIRE(patience(0, 4, 0.705) == Decision::stop);
  CHECK(patience.why(0) == "after 3 steps without an improvement by more than 0.01: best accuracy 0.7 after 1 step");
}

TEST_CASE("other rules say what they went by") {
  LossText two;
  two.add("cost", false);
  two.add("gain", true);
  AnyScheduler mo = MoAsha{.grace_period = 1, .max_steps = 9, .reduction_factor = 2};
  const auto report = [&](TrialId t, std::vector<double> losses) {
    return mo.on_report({.trial = t, .steps = 1, .losses = losses});
  };
  report(0, {1, -5});
  REQUIRE(report(1, {2, -3}) == Decision::stop);
  CHECK(mo.why(1, two) == "at rung 1 (1 step): cost 2, gain 3, not among the best 1 of 2 by all objectives");

  Feed race{Race{.instances = 20, .grace_period = 5}};
  for (int n = 1; n <= 20; ++n) race(0, n, 0.9);
  int n = 1;
  while (n < 20 && race(1, n, 0.5) != Decision::stop) ++n;
  REQUIRE(n < 20);
  CHECK_THAT(race.why(1),
             ContainsSubstring(fmt::format("after {} instances: mean accuracy 0.5, against 0.9 of trial 0", n)) &&
                 ContainsSubstring("below 0.0"));

  Feed curve{LearningCurve{.max_steps = 50}};
  for (int step = 1; step <= 50; ++step) curve(0, step, 0.95 - 0.5 / step);
  int step = 1;
  while (step < 50 && curve(1, step, 0.5 - 0.2 / step) != Decision::stop) ++step;
  REQUIRE(step < 50);
  CHECK_THAT(curve.why(1), ContainsSubstring(fmt::format("at step {}: accuracy 0.4", step)) &&
                               ContainsSubstring(", needed 0.94, with a chance of ") &&
                               ContainsSubstring(" to get there in 50 steps (0.05 is asked for)"));

  Feed deadline{HyperSched{.deadline = 10, .grace_period = 1}};
  deadline.scheduler.on_create(0);
  REQUIRE(deadline(0, 1, 0.6, 1) == Decision::pause);
  const auto choice = deadline.scheduler.choose_next({.running = 0, .paused = 1, .more_trials = false, .now = 11});
  REQUIRE(choice.kind == Choice::Kind::stop);
  CHECK(deadline.why(0) == "at the deadline of 10 s: paused after 1 step with accuracy 0.6");
}

TEST_CASE("a scheduler of one's own may say why, or not") {
  struct Silent {
    Decision on_report(const Progress&) { return Decision::stop; }
  };
  struct Plain {
    Decision on_report(const Progress&) { return Decision::stop; }
    std::string why(TrialId trial) const { return "by a whim, trial " + std::to_string(trial); }
  };
  CHECK(AnyScheduler(Silent{}).why(0, maximised()).empty());
  CHECK(AnyScheduler(Plain{}).why(7, maximised()) == "by a whim, trial 7");
}
