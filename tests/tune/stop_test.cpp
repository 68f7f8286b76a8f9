#include "support/test.hpp"

#include <hypertune/tune/detail/stop_judge.hpp>
#include <hypertune/tune/stop.hpp>

#include <limits>

using namespace hypertune;

namespace {

const std::vector<Objective> accuracy{maximize("accuracy")};
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

/// An experiment told in short: reports and ends, with the totals kept.
struct Story {
  explicit Story(const StopCondition& condition, std::vector<Objective> objectives = accuracy)
      : trial(condition, objectives), experiment(condition, objectives) {}

  std::optional<std::string> report(TrialId t, int steps, Metrics metrics, Seconds elapsed = 0) {
    const TrialProgressView view{.trial = t, .steps = steps, .metrics = metrics, .elapsed = elapsed};
    trial_why = trial.check(view);
    now.report = &view;
    now.ended = -1;
    ++now.total_steps;
    auto why = experiment.check(now);
    now.report = nullptr;
    return why;
  }
  std::optional<std::string> end(TrialId t, TrialState state) {
    trial.forget(t);
    now.ended = t;
    now.ended_state = state;
    now.completed += state == TrialState::completed;
    now.stopped += state == TrialState::stopped;
    now.failed += state == TrialState::failed;
    auto why = experiment.check(now);
    now.ended = -1;
    return why;
  }
  std::optional<std::string> at(Seconds elapsed) {
    now.elapsed = elapsed;
    return experiment.check(now);
  }

  TrialStop trial;
  ExperimentStop experiment;
  ExperimentProgressView now;
  std::optional<std::string> trial_why;
};

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.code() == Errc::usage);
    return error.what();
  }
  return "nothing thrown";
}

}  // namespace

TEST_CASE("no stop condition never stops") {
  Story story{StopCondition{}};
  CHECK(StopCondition{}.empty());
  CHECK_FALSE(story.report(0, 1'000'000, {{"accuracy", 1.0}}, 1e9));
  CHECK_FALSE(story.trial_why);
  CHECK_FALSE(story.at(1e12));
  CHECK_FALSE(story.experiment.next_time(0));
}

TEST_CASE("a metric is reached in the direction of its objective, by any trial") {
  Story up(until("accuracy", 0.9));
  CHECK_FALSE(up.report(0, 1, {{"accuracy", 0.89}}));
  CHECK_FALSE(up.report(0, 2, {{"accuracy", nan_value}}));
  CHECK_FALSE(up.report(0, 3, {{"accuracy", std::numeric_limits<double>::infinity()}}));
  CHECK_FALSE(up.report(0, 4, {{"loss", 5}}));
  const auto why = up.report(7, 1, {{"loss", 1}, {"accuracy", 0.9}});
  REQUIRE(why);
  CHECK(*why == "accuracy reached 0.9 in trial 7 (asked for 0.9)");
  CHECK_FALSE(up.trial_why);
  CHECK(up.report(8, 1, {{"accuracy", 0.1}}));  // it stays reached

  Story down(until("accuracy", 0.1), {minimize("accuracy")});
  CHECK_FALSE(down.report(0, 1, {{"accuracy", 0.5}}));
  CHECK(down.report(0, 2, {{"accuracy", 0.05}}));
}

TEST_CASE("a metric that is no objective needs its direction") {
  CHECK(message([] { Story{until("loss", 1)}; }) ==
        "stop condition on 'loss': it is no objective, so which direction is better is not known; say at_least() or "
        "at_most()");
  Story story(at_most("loss", 1) | at_least("reward", 10));
  CHECK_FALSE(story.report(0, 1, {{"loss", 2}, {"reward", 9}}));
  CHECK(story.report(0, 2, {{"loss", 1}}));
  Story reward(at_least("reward", 10));
  CHECK(reward.report(0, 1, {{"reward", 11}}));
}

TEST_CASE("steps end a trial, total steps and time the experiment") {
  Story story(steps(3) | total_steps(5) | within(60));
  CHECK_FALSE(story.report(0, 2, {}));
  CHECK_FALSE(story.trial_why);
  CHECK_FALSE(story.report(0, 3, {}));
  CHECK(story.trial_why == "3 steps done");
  CHECK_FALSE(story.report(1, 1, {}));
  CHECK_FALSE(story.report(1, 2, {}));
  CHECK(story.report(2, 1, {}) == "5 steps done by all trials");

  Story timed(within(60) | within(90));
  CHECK(timed.experiment.next_time(0) == 60);
  CHECK_FALSE(timed.at(59.9));
  CHECK(timed.at(60) == "the time of 60 s is over");
  CHECK(timed.experiment.next_time(60) == 90);
  CHECK_FALSE(timed.experiment.next_time(90));
}

TEST_CASE("failed trials end the experiment") {
  Story story(failed_trials(2));
  CHECK_FALSE(story.end(0, TrialState::failed));
  CHECK_FALSE(story.end(1, TrialState::completed));
  CHECK(story.end(2, TrialState::failed) == "2 trials failed");
}

TEST_CASE("both of two conditions") {
  Story story(until("accuracy", 0.9) & total_steps(3));
  CHECK_FALSE(story.report(0, 1, {{"accuracy", 0.95}}));
  CHECK_FALSE(story.report(0, 2, {{"accuracy", 0.1}}));
  const auto why = story.report(0, 3, {{"accuracy", 0.1}});
  CHECK(why == "accuracy reached 0.95 in trial 0 (asked for 0.9) and 3 steps done by all trials");

  Story nested((until("accuracy", 0.9) & total_steps(100)) | within(5));
  CHECK_FALSE(nested.report(0, 1, {{"accuracy", 0.95}}));
  CHECK(nested.at(5));
}

TEST_CASE("conditions on trials and on the experiment are not joined by &") {
  CHECK_THAT(message([] { static_cast<void>(steps(3) & within(5)); }), ContainsSubstring("per_trial"));
  Story story(steps(3) & per_trial(within(5)));
  CHECK_FALSE(story.report(0, 3, {}, 1));
  CHECK_FALSE(story.trial_why);
  CHECK_FALSE(story.report(0, 4, {}, 6));
  CHECK(story.trial_why == "4 steps done and the trial's time of 5 s is over");
}

TEST_CASE("per_trial moves conditions to the trials") {
  Story story(per_trial(until("accuracy", 0.9) | within(10) | total_steps(4)));
  CHECK(story.experiment.empty());
  CHECK_FALSE(story.report(0, 1, {{"accuracy", 0.95}}));
  CHECK(story.trial_why == "accuracy reached 0.95 in trial 0 (asked for 0.9)");
  story.report(1, 1, {{"accuracy", 0.5}}, 9);
  CHECK_FALSE(story.trial_why);
  story.report(1, 2, {{"accuracy", 0.5}}, 10);
  CHECK(story.trial_why == "the trial's time of 10 s is over");
  story.report(2, 4, {{"accuracy", 0.5}}, 1);
  CHECK(story.trial_why == "4 steps done");
  CHECK_THAT(message([] { per_trial(failed_trials(3)); }), ContainsSubstring("failed_trials"));
  CHECK_THAT(message([] { per_trial(stop_if([](const auto&) { return true; })); }), ContainsSubstring("stop_trial_if"));
}

TEST_CASE("an experiment's plateau is over the bests of the best trials that did not fail") {
  Story story(plateau({.tolerance = 0.01, .last = 3, .patience = 1}));
  const auto trial = [&](TrialId t, double best, TrialState state) {
    CHECK_FALSE(story.report(t, 1, {{"accuracy", best}}));
    CHECK_FALSE(story.report(t, 2, {{"accuracy", best - 0.3}}));
    return story.end(t, state);
  };
  CHECK_FALSE(trial(0, 0.900, TrialState::completed));
  CHECK_FALSE(trial(1, 0.100, TrialState::stopped));
  CHECK_FALSE(trial(2, 0.901, TrialState::completed));
  CHECK_FALSE(trial(3, 0.901, TrialState::failed));       // does not count
  CHECK_FALSE(trial(4, nan_value, TrialState::stopped));  // nor does this
  CHECK_FALSE(trial(5, 0.902, TrialState::stopped));      // calm for the first time
  CHECK_FALSE(trial(6, 0.990, TrialState::completed));    // a better one: no longer calm
  CHECK_FALSE(trial(7, 0.991, TrialState::completed));
  CHECK_FALSE(trial(8, 0.992, TrialState::completed));
  const auto why = trial(9, 0.2, TrialState::stopped);
  REQUIRE(why);
  CHECK_THAT(*why, ContainsSubstring("plateau"));
}

TEST_CASE("a trial's plateau is over its last reports") {
  Story story(per_trial(plateau({.tolerance = 0.01, .last = 3})));
  int step = 0;
  const auto next = [&](double accuracy) {
    story.report(0, ++step, {{"accuracy", accuracy}});
    return story.trial_why.has_value();
  };
  CHECK_FALSE(next(0.1));
  CHECK_FALSE(next(0.5));
  CHECK_FALSE(next(0.501));
  CHECK_FALSE(next(nan_value));
  CHECK_FALSE(next(0.501));
  CHECK_FALSE(next(0.502));
  CHECK(next(0.503));
  story.report(1, 1, {{"accuracy", 0.503}});  // another trial has values of its own
  CHECK_FALSE(story.trial_why);
}

TEST_CASE("conditions of one's own") {
  Story story(
      stop_if([](const ExperimentProgressView& now) { return now.completed + now.stopped >= 2; }, "two are enough") |
      stop_trial_if([](const TrialProgressView& t) { return t.metrics.front().second < 0; }, "negative"));
  CHECK_FALSE(story.report(0, 1, {{"accuracy", 1}}));
  CHECK_FALSE(story.trial_why);
  CHECK_FALSE(story.report(0, 2, {{"accuracy", -1}}));
  CHECK(story.trial_why == "negative");
  CHECK_FALSE(story.end(0, TrialState::stopped));
  CHECK(story.end(1, TrialState::completed) == "two are enough");
}

TEST_CASE("conditions that make no sense are refused") {
  CHECK_THAT(message([] { steps(0); }), ContainsSubstring("steps is 0"));
  CHECK_THAT(message([] { within(0); }), ContainsSubstring("time is 0"));
  CHECK_THAT(message([] { within(nan_value); }), ContainsSubstring("time is nan"));
  CHECK_THAT(message([] { total_steps(-1); }), ContainsSubstring("total_steps is -1"));
  CHECK_THAT(message([] { failed_trials(0); }), ContainsSubstring("failed_trials is 0"));
  CHECK_THAT(message([] { until("a", nan_value); }), ContainsSubstring("'a' can never reach nan"));
  CHECK_THAT(message([] { plateau({.last = 1}); }), ContainsSubstring("plateau.last is 1"));
  CHECK_THAT(message([] { plateau({.tolerance = -1}); }), ContainsSubstring("tolerance"));
  CHECK_THAT(message([] { plateau({.patience = -1}); }), ContainsSubstring("patience"));
  CHECK_THAT(message([] { Story{plateau({.metric = "loss"})}; }), ContainsSubstring("no objective"));
  CHECK_THAT(message([] { stop_if(nullptr); }), ContainsSubstring("empty function"));
}

TEST_CASE("a replay of the same calls gives the same verdicts") {
  const auto condition = (until("accuracy", 0.97) & plateau({.tolerance = 0.05, .last = 4})) | total_steps(400);
  const auto run = [&] {
    Story story(condition);
    std::vector<std::optional<std::string>> verdicts;
    unsigned x = 1;
    for (TrialId t = 0; t < 50; ++t) {
      for (int s = 1; s <= 8; ++s) {
        x = x * 1664525U + 1013904223U;
        verdicts.push_back(story.report(t, s, {{"accuracy", (x >> 8U) % 1000 / 1000.0}}));
      }
      verdicts.push_back(story.end(t, t % 7 == 0 ? TrialState::failed : TrialState::completed));
    }
    return verdicts;
  };
  const auto first = run();
  CHECK(first == run());
  CHECK(first.back());
}

TEST_CASE("expected gain: the experiment stops when one more trial is not worth it") {
  const std::vector<Objective> objectives{minimize("loss")};
  ExperimentStop stop(expected_gain({.threshold = 0.01, .last = 5}), objectives);
  TrialId next = 0;
  const auto ends = [&](double loss, TrialState state = TrialState::completed) {
    const Metrics metrics{{"loss", loss}};
    const TrialProgressView report{.trial = next, .steps = 1, .metrics = metrics};
    ExperimentProgressView now;
    now.report = &report;
    stop.check(now);
    now.report = nullptr;
    now.ended = next++;
    now.ended_state = state;
    return stop.check(now);
  };
  for (const double loss : {5.0, 4.0, 3.0, 2.0}) CHECK_FALSE(ends(loss));  // too few
  for (const double loss : {1.0, 0.9, 0.8, 0.7}) CHECK_FALSE(ends(loss));
  CHECK_FALSE(ends(std::nan("")));
  CHECK_FALSE(ends(-100, TrialState::failed));  // neither counts
  int more = 0;
  std::optional<std::string> why;
  while (!why && more < 20) {
    why = ends(0.699 + 0.001 * (more % 3));
    ++more;
  }
  REQUIRE(why);
  CHECK_THAT(*why, ContainsSubstring("one more trial is expected to better loss by"));
  CHECK(more <= 5);  // once the last five trials are all alike
  CHECK_THROWS_WITH(expected_gain({.last = 1}), ContainsSubstring("last is 1"));
  CHECK_THROWS_WITH(expected_gain({.threshold = 0}), ContainsSubstring("threshold is 0"));
  CHECK_THROWS_WITH(per_trial(expected_gain({})), ContainsSubstring("expected_gain"));
  CHECK_THROWS_WITH(ExperimentStop(expected_gain({.metric = "lat"}), objectives), ContainsSubstring("'lat'"));
}
