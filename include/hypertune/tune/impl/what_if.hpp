// what_if(): replays recorded curves on the simulated executor.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/simulated.hpp>
#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/random.hpp>
#include <hypertune/record/detail/best_so_far.hpp>
#include <hypertune/record/rank_test.hpp>
#include <hypertune/space/space.hpp>
#include <hypertune/trial/failure.hpp>
#include <hypertune/trial/program.hpp>
#include <hypertune/tune/curve_beyond.hpp>
#include <hypertune/tune/tuner.hpp>
#include <hypertune/tune/what_if.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail::what_if {

inline constexpr const char* parameter = "recorded";  // the only parameter: the index of a recorded trial

/// A searcher that proposes one recorded trial after the other.
struct Proposals {
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;
  std::vector<std::int64_t> order;
  std::optional<SearchSpace> space{};

  void prepare(const SearchSpace& s, const SearchContext&) { space = s; }
  Suggestion suggest(const Ask& ask) {
    const auto at = static_cast<std::size_t>(ask.trial);
    if (at >= order.size()) return Suggestion::exhausted();
    Params params;
    params.set(parameter, order[at]);
    return space->point(params);
  }
  void observe(const Observation&) {}
  std::string name() const { return "as recorded"; }
};

/// The curves as a program. Counts the steps beyond the curves.
class Played {
 public:
  /// `limit`: see CurveBeyond.
  Played(const RecordedCurves& curves, Beyond beyond, int limit)
      : curves_(curves), beyond_(beyond), curve_beyond_(curves, limit), outside_(curves.trials().size()) {}

  const RecordedTrial& trial(const Params& params) const {
    return curves_.trials()[static_cast<std::size_t>(params.get<std::int64_t>(parameter))];
  }

  // The next report after `done` steps; nullopt: the program ends.
  std::optional<Report> report(const RecordedTrial& trial, int done) {
    const auto next = std::lower_bound(trial.steps.begin(), trial.steps.end(), done);
    if (next != trial.steps.end()) {
      const auto index = static_cast<std::size_t>(next - trial.steps.begin());
      return named(curves_.report(trial, index), *next);
    }
    // The recorded trial failed for good here.
    if (trial.end == RecordedTrial::End::failed) throw TrialFailure({.text = trial.cause, .retry = false});
    if (trial.end == RecordedTrial::End::by_itself) return std::nullopt;
    const auto step = curve_beyond_.next_step(trial, done - 1);
    if (!step) return std::nullopt;
    auto guess = curve_beyond_.at(trial, *step, beyond_);
    Outside& outside = outside_[static_cast<std::size_t>(&trial - curves_.trials().data())];
    outside.last = std::max(outside.last, *step);
    if (!guess.compared) outside.uncompared += *step - (done - 1);
    return named(guess.values, *step);
  }

  Seconds seconds(const Params& params, int done) const {
    const RecordedTrial& recorded = trial(params);
    const auto next = std::lower_bound(recorded.steps.begin(), recorded.steps.end(), done);
    if (next != recorded.steps.end()) return recorded.seconds[static_cast<std::size_t>(next - recorded.steps.begin())];
    if (recorded.end != RecordedTrial::End::cut) return recorded.to_end;
    return curve_beyond_.next_step(recorded, done - 1) ? usual(recorded) : 0;
  }

  void count(PlayedAgain& played) const {
    for (std::size_t i = 0; i < outside_.size(); ++i) {
      const int last = curves_.trials()[i].steps.empty() ? -1 : curves_.trials()[i].steps.back();
      if (outside_[i].last <= last) continue;
      ++played.unknown_trials;
      played.unknown_steps += outside_[i].last - last;
      played.uncompared_steps += outside_[i].uncompared;
    }
  }

 private:
  struct Outside {
    int last = -1;  // the furthest step beyond the curve
    std::int64_t uncompared = 0;
  };

  Seconds usual(const RecordedTrial& trial) const {
    return trial.seconds.empty() ? curves_.usual_step() : median(trial.seconds);
  }
  Report named(std::span<const double> values, int step) const { return Report(curves_.metrics(values)).at(step); }

  const RecordedCurves& curves_;
  Beyond beyond_;
  CurveBeyond curve_beyond_;
  std::vector<Outside> outside_;
};

class PlayedRun final : public TrialRun {
 public:
  PlayedRun(std::shared_ptr<Played> played, Context& context)
      : played_(std::move(played)), trial_(played_->trial(context.params())), done_(context.next_step()) {}
  std::optional<Report> step() override {
    auto report = played_->report(trial_, done_);
    if (report) done_ = *report->step + 1;
    return report;
  }
  bool can_save() const override { return false; }
  void save(CheckpointWriter&) override {}

 private:
  std::shared_ptr<Played> played_;
  const RecordedTrial& trial_;
  int done_;
};

class PlayedProgram final : public Program {
 public:
  explicit PlayedProgram(std::shared_ptr<Played> played) : played_(std::move(played)) {}
  std::unique_ptr<TrialRun> begin(Context& context) const override {
    return std::make_unique<PlayedRun>(played_, context);
  }

 private:
  std::shared_ptr<Played> played_;
};

/// A callback that collects the results of the simulated experiment.
class Follower {
 public:
  Follower(const RecordedCurves& curves, PlayedAgain& played)
      : curves_(curves), played_(played), best_(curves.objectives().front(), curves.constraints()) {}

  void on_trial_create(const record::TrialCreated& event) {
    configurations_.resize(static_cast<std::size_t>(event.trial) + 1, -1);
    configurations_.back() = event.params.get<std::int64_t>(parameter);
    done_.resize(configurations_.size(), 0);
  }
  void on_trial_report(const record::TrialReported& event, Seconds time) {
    const auto at = static_cast<std::size_t>(event.trial);
    played_.trials += done_[at] == 0 ? 1 : 0;
    played_.steps += event.step + 1 - done_[at];
    done_[at] = event.step + 1;
    const RecordedTrial& recorded = curves_.trials()[static_cast<std::size_t>(configurations_[at])];
    if (recorded.end == RecordedTrial::End::failed) return;
    if (const auto value = best_.add(event.trial, event.metrics))
      played_.improvements.push_back({time, played_.steps, recorded.trial, *value});
  }
  void on_trial_end(const record::TrialEnded&, Seconds time) { played_.elapsed = std::max(played_.elapsed, time); }

 private:
  const RecordedCurves& curves_;
  PlayedAgain& played_;
  BestSoFar best_;
  std::vector<std::int64_t> configurations_;  // by trial
  std::vector<int> done_;                     // steps, by trial
};

inline PlayedAgain play(const RecordedCurves& curves, const WhatIf& change, int workers, Beyond beyond) {
  const auto count = static_cast<std::int64_t>(curves.trials().size());
  Proposals proposals;
  proposals.order.resize(static_cast<std::size_t>(count));
  std::iota(proposals.order.begin(), proposals.order.end(), std::int64_t{0});
  if (change.order == TrialOrder::shuffled) {
    Rng rng = derived_rng(change.seed, {});
    for (std::size_t left = proposals.order.size(); left > 1; --left)
      std::swap(proposals.order[left - 1],
                proposals.order[static_cast<std::size_t>(uniform01(rng) * static_cast<double>(left))]);
  }
  const TemporaryFolder folder;
  const auto played = std::make_shared<Played>(curves, beyond, change.schedule.max_steps());
  PlayedAgain result;
  Follower follower(curves, result);
  SimulationOptions machines;
  machines.pool = workers;
  machines.startup_seconds = curves.startup();
  machines.step_seconds = [played, &result](const Params& params, int done) {
    const Seconds seconds = played->seconds(params, done);
    result.busy += seconds;
    return seconds;
  };
  machines.seed = change.seed;
  Options options;
  options.name = "what-if";
  options.objectives = curves.objectives();
  options.constraints = curves.constraints();
  options.samples = count;
  options.search = proposals;
  options.schedule = change.schedule;
  options.executor = simulated(std::move(machines));
  options.concurrency = workers;
  options.seed = change.seed;
  options.output = folder.path() / "experiment";
  options.display = Display::quiet;
  options.handle_signals = false;
  options.callbacks.emplace_back(std::ref(follower));
  const auto space = hypertune::space(dim(parameter, integer(0, std::max<std::int64_t>(count - 1, 1))));
  Tuner tuner(space, std::make_shared<PlayedProgram>(played), std::move(options));
  const Results results = tuner.run(change.stop);
  if (change.stop.stop_requested()) fail(Errc::experiment, "playing the experiment again was stopped");
  played->count(result);
  return result;
}

}  // namespace detail::what_if

WhatIfResult what_if(const RecordedCurves& curves, const WhatIf& change) {
  if (change.schedule.exploits())
    fail(Errc::usage,
         "the scheduler '{}' makes trials go on from the states of others: what they would have become was never "
         "recorded",
         change.schedule.name());
  if (change.workers < 0) fail(Errc::usage, "what_if: workers is {}, but must be at least 0", change.workers);
  WhatIfResult result;
  result.workers = change.workers > 0 ? change.workers : std::max(1, curves.max_at_once());
  result.stands_still = detail::what_if::play(curves, change, result.workers, Beyond::stands_still);
  result.usual = result.best = result.stands_still;
  // If no trial went beyond its record, all assumptions give the same result.
  if (result.stands_still.unknown_steps == 0) return result;
  result.usual = detail::what_if::play(curves, change, result.workers, Beyond::usual);
  result.best = detail::what_if::play(curves, change, result.workers, Beyond::best);
  return result;
}

}  // namespace hypertune::inline v0
