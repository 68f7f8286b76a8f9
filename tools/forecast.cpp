#include "forecast.hpp"

#include <hypertune/execute/simulated.hpp>
#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/random.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/tune/tuner.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

constexpr std::int64_t max_trials = 2000, max_steps = 400'000;  // takes half a second

// A curve that falls towards a level of the trial. The order of the trials never changes.
class CurveRun final : public TrialRun {
 public:
  CurveRun(Context& context, const std::vector<Objective>& objectives) : context_(&context), objectives_(objectives) {
    steps_ = context.next_step();
  }
  std::optional<Report> step() override {
    const double level = static_cast<double>(context_->seed() % 1'000'003U) / 1'000'003.0;
    const double loss = level + (1 + level) / (1 + steps_);
    ++steps_;
    Report report;
    for (const auto& [metric, mode] : objectives_)
      report.metrics.emplace_back(metric, mode == Mode::minimize ? loss : -loss);
    return report;
  }
  bool can_save() const override { return true; }
  void save(CheckpointWriter& out) override { std::ofstream(out.file("step")) << steps_; }

 private:
  Context* context_;
  const std::vector<Objective>& objectives_;
  int steps_ = 0;
};

class CurveProgram final : public Program {
 public:
  explicit CurveProgram(std::vector<Objective> objectives) : objectives_(std::move(objectives)) {}
  std::unique_ptr<TrialRun> begin(Context& context) const override {
    return std::make_unique<CurveRun>(context, objectives_);
  }

 private:
  std::vector<Objective> objectives_;
};

// "repeat(tpe, 3)": 3
std::int64_t repeats_of(const std::string& searcher) {
  if (!searcher.starts_with("repeat(")) return 1;
  const auto comma = searcher.rfind(", ", searcher.rfind(')'));
  return std::max(1LL, std::strtoll(searcher.c_str() + comma + 2, nullptr, 10));
}

}  // namespace

std::optional<std::int64_t> trials_until_end(const Sweep& sweep) {
  const Options& given = sweep.options;
  const std::string name = given.search.name();
  if (given.search.finite()) {
    constexpr std::int64_t most = 100'000;
    AnySearcher search = given.search;
    search.prepare(sweep.space, {.objectives = objectives_of(given).size(), .samples = most, .seed = *given.seed});
    for (TrialId trial = 0; trial < most; ++trial) {
      Rng rng = derived_rng(*given.seed, {static_cast<std::uint64_t>(trial)});
      auto next = search.suggest({.trial = trial, .rng = rng});
      if (next.kind == Suggestion::Kind::exhausted) return trial;
      if (next.kind == Suggestion::Kind::wait) break;
      search.observe({.kind = Observation::Kind::started, .trial = trial, .point = std::move(next.point)});
    }
    return std::nullopt;
  }
  for (const char* endless : {"random", "sobol", "cma_es"})
    if (name.find(endless) != std::string::npos) return std::nullopt;
  const auto all = detail::Tried(sweep.space).untried();
  if (!all) return std::nullopt;
  return static_cast<std::int64_t>(all->size()) * repeats_of(name);
}

bool makes_one_report(const Sweep& sweep) {
  if (!sweep.trial) return false;
  const TrialOptions& trial = *sweep.trial;
  const auto objectives = objectives_of(sweep.options);
  return trial.report != ReportRule::each || trial.repeat.times > 1 ||
         std::all_of(objectives.begin(), objectives.end(), [&](const Objective& objective) {
           return std::any_of(trial.measure.begin(), trial.measure.end(),
                              [&](const auto& each) { return each.first == objective.metric; });
         });
}

std::optional<Forecast> forecast(const Sweep& sweep, int parallel, int steps) {
  const Options& given = sweep.options;
  int bound = given.schedule.max_steps();
  if (steps > 0) bound = bound > 0 ? std::min(bound, steps) : steps;
  const std::int64_t each = trials_per_sample(sweep.space, given.search);
  std::int64_t samples = given.samples;
  if (samples == 0 && !given.search.finite() && has_grid(sweep.space)) samples = 1;
  constexpr int fewest = 10;  // fewer trials tell nothing
  if (each > max_trials || bound == 0 || bound > max_steps / fewest || (samples == 0 && !given.search.finite()) ||
      given.schedule.name().starts_with("hyper_sched"))
    return std::nullopt;
  std::int64_t wanted = std::max<std::int64_t>(samples, 1) * each;
  if (const auto end = trials_until_end(sweep)) wanted = std::min(wanted, std::max<std::int64_t>(*end, 1));
  const std::int64_t played = std::min({wanted, max_trials, std::max<std::int64_t>(max_steps / bound, fewest)});
  const detail::TemporaryFolder folder;
  Options options;
  options.name = *given.name;
  options.objectives = objectives_of(given);
  options.samples = std::max<std::int64_t>(played / each, 1);
  if (samples == 0) options.samples = 0;
  options.search = given.search;
  if (!given.search.finite()) options.search = Random{};  // the points do not matter here
  options.schedule = given.schedule;
  if (steps > 0) options.stop = hypertune::steps(steps);
  options.seed = *given.seed;
  options.output = folder.path() / "forecast";
  options.display = Display::quiet;
  options.handle_signals = false;
  options.resources.cpus = 1;
  options.executor = simulated({.pool = std::clamp(parallel, 1, 1000)});
  const Results results = Tuner(sweep.space, std::make_shared<CurveProgram>(options.objectives), options).run();
  Forecast found;
  std::map<int, std::int64_t> ends;
  for (const auto& trial : results.trials()) {
    ++ends[std::max(trial.steps, 1)];
    ++found.trials;
    found.steps += trial.steps;
  }
  if (found.trials == 0) return std::nullopt;
  std::int64_t left = found.trials;
  if (!ends.contains(1)) found.reached.emplace_back(1, left);
  for (const auto& [end, count] : ends) {
    found.reached.emplace_back(end, left);
    left -= count;
  }
  if (const std::int64_t all = samples == 0 ? found.trials : wanted; all > found.trials) {
    const double factor = static_cast<double>(all) / static_cast<double>(found.trials);
    const auto scale = [&](std::int64_t& x) { x = std::llround(static_cast<double>(x) * factor); };
    for (auto& [end, count] : found.reached) scale(count);
    scale(found.steps);
    found.trials = all;
    found.scaled = true;
  }
  return found;
}

}  // namespace hypertune::inline v0::command
