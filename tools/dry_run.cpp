#include "dry_run.hpp"

#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/random.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/tune/stop.hpp>
#include <hypertune/tune/tuner.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <fstream>
#include <ios>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

// Reads the lines appended to a file since the last call.
class Tail {
 public:
  explicit Tail(std::filesystem::path file) : file_(std::move(file)) {}
  template <class Take>
  void lines(bool all, const Take& take) {
    std::ifstream in(file_, std::ios::binary);
    in.seekg(at_);
    std::string line;
    while (std::getline(in, line)) {
      if (in.eof() && !all) break;  // an incomplete line
      at_ += static_cast<std::streamoff>(line.size()) + 1;
      take(line);
    }
  }

 private:
  std::filesystem::path file_;
  std::streamoff at_ = 0;
};

std::string report_text(const Report& report) {
  std::string text = fmt::format("step {}:", *report.step);
  for (const auto& [name, value] : report.metrics) text += fmt::format(" {}={}", name, value);
  for (const auto& [name, value] : report.attributes) text += fmt::format(" {}={}", name, to_string(value));
  return text;
}

std::string checkpoint_text(const CheckpointInfo& saved) {
  return fmt::format("{}, after {} step{}", saved.name, saved.steps, detail::plural(saved.steps));
}

// Complains of metrics that are needed, but missing or not finite.
void judge_report(const Sweep& sweep, const Report& report, std::vector<std::string>& wrong) {
  for (const auto& [metric, mode] : objectives_of(sweep.options)) {
    const double* value = find_metric(report.metrics, metric);
    if (value != nullptr && !std::isfinite(*value))
      wrong.push_back(fmt::format("'{}' is {}: a trial whose values stay so is the worst of all", metric, *value));
  }
  for (const auto& bound : sweep.options.constraints)
    if (find_metric(report.metrics, bound.metric) == nullptr)
      wrong.push_back(fmt::format("the report has no '{}', on which 'constraints' sets a bound", bound.metric));
}

bool has_objectives(const Sweep& sweep, const Metrics& metrics) {
  for (const auto& [metric, mode] : objectives_of(sweep.options))
    if (find_metric(metrics, metric) == nullptr) return false;
  return true;
}

// The configuration that the sweep would begin with, as far as it is known before the run.
Point dry_run_point(const Sweep& sweep) {
  const auto& options = sweep.options;
  if (!options.start_with.empty()) return sweep.space.point(options.start_with.front());
  Rng rng = derived_rng(*options.seed, {0});
  return sweep.space.sample(rng);
}

std::string shortened(std::string_view line) {
  constexpr std::size_t most = 400;
  return hypertune::detail::terminal::elide(hypertune::detail::terminal::printable(line), most);
}

// Shows a line of a trial's log. Lines from hypertune itself are errors.
void show_log_line(std::string_view line, DryRun& found, const DryRunSay& say) {
  constexpr std::string_view ours = "hypertune: ";
  const bool own = line.starts_with(ours);
  if (own) found.wrong.push_back(shortened(line.substr(ours.size())));
  say(own ? "hypertune" : "log", shortened(line));
}

// `over`: the time limit, if it has passed.
std::string why_no_report(const Sweep& sweep, std::optional<Seconds> over, const std::optional<std::string>& failure) {
  const auto objectives = objectives_of(sweep.options);
  std::string wanted;
  for (const auto& [metric, mode] : objectives) wanted += (wanted.empty() ? "'" : ", '") + metric + "'";
  if (over)
    return fmt::format(
        "no report of {} within {} s: print one JSON line a step, flushed, or give it longer by --timeout", wanted,
        *over);
  if (failure) return "the trial failed: " + shortened(*failure);
  return fmt::format(
      "the command ended without a report of {}: print a JSON line such as {{\"{}\": 0.5}}, or write an expression "
      "under 'trial.metrics'",
      wanted, objectives.front().metric);
}

// Passes on what the trial reports and prints, while it runs.
struct Follower {
  const Sweep* sweep;
  const DryRunSay* say;
  DryRun* found;
  std::filesystem::path folder;  // the trial's folder
  int workers;
  std::deque<Tail> logs{};     // by rank
  Attributes attributes = {};  // not shown yet
  std::optional<std::string> failure = {};

  void show_logs(bool all) {
    while (static_cast<int>(logs.size()) < workers)
      logs.emplace_back(folder / (logs.empty() ? "log" : fmt::format("worker-{}.log", logs.size())));
    for (std::size_t rank = 0; rank < logs.size(); ++rank)
      logs[rank].lines(all, [&](const std::string& line) {
        rank == 0 ? show_log_line(line, *found, *say)
                  : (*say)("log", shortened(fmt::format("rank {}: {}", rank, line)));
      });
  }
  void on_attributes(const record::AttributesSet& set) {
    if (set.trial == 0) attributes = set.attributes;
  }
  void on_trial_report(const record::TrialReported& report) {
    show_logs(false);
    if (found->report) return;
    Report shown(report.metrics);
    shown.step = report.step;
    shown.attributes = std::exchange(attributes, {});
    (*say)("report", shortened(report_text(shown)));
    if (has_objectives(*sweep, shown.metrics)) found->report = std::move(shown);
  }
  void on_trial_failure(const record::AttemptFailed& failed) { failure = failed.cause.text; }
  void on_trial_checkpoint(const record::TrialCheckpointed& saved) {
    if (std::exchange(found->checkpoint, true)) return;  // it may save again when it is stopped
    (*say)("checkpoint", checkpoint_text(saved.checkpoint));
  }
};

}  // namespace

DryRun dry_run(const Sweep& sweep, const std::shared_ptr<const Program>& program, AnyExecutor executor, Seconds timeout,
               const DryRunSay& say) {
  const detail::TemporaryFolder folder;
  const Params params = sweep.space.params(dry_run_point(sweep));
  say("trial", fmt::format("{}", params));
  Options options;
  options.name = *sweep.options.name;
  options.objectives = objectives_of(sweep.options);
  options.samples = 1;
  options.search = Random{};
  options.start_with = {params};
  options.seed = *sweep.options.seed;
  options.resources = sweep.options.resources;
  options.workers = sweep.options.workers;
  if (options.workers.several()) options.workers.max = std::max(2, options.workers.min);  // a group, even of one
  options.executor = std::move(executor);
  options.output = folder.path() / "run";
  options.display = Display::quiet;
  options.handle_signals = false;
  options.stop = stop_trial_if([&](const TrialProgressView& now) { return has_objectives(sweep, now.metrics); },
                               "it has reported what is tuned") |
                 within(timeout);
  DryRun found;
  const auto follower =
      std::make_shared<Follower>(Follower{&sweep, &say, &found, options.output / "trials" / "0", options.workers.min});
  options.callbacks.emplace_back(follower);
  const Results results = Tuner(sweep.space, program, options).run();
  follower->show_logs(true);
  if (found.report) {
    judge_report(sweep, *found.report, found.wrong);
    return found;
  }
  const TrialResult trial = results.trial(0);
  found.wrong.push_back(why_no_report(sweep, trial.state == TrialState::stopped ? std::optional(timeout) : std::nullopt,
                                      follower->failure));
  return found;
}

}  // namespace hypertune::inline v0::command
