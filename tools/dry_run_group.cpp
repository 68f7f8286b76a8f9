// A dry run of a trial with several workers. It is a real run, because only executors can start groups.
#include "dry_run_parts.hpp"

#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/tune/stop.hpp>
#include <hypertune/tune/tuner.hpp>

#include <algorithm>
#include <deque>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

// Passes on what the group reports and prints, while it runs.
struct GroupFollower {
  const Sweep* sweep;
  const DryRunSay* say;
  DryRun* found;
  std::filesystem::path folder;  // the trial's folder
  int workers;
  std::deque<Tail> logs{};  // by rank

  void show_logs(bool all) {
    while (static_cast<int>(logs.size()) < workers)
      logs.emplace_back(folder / (logs.empty() ? "log" : fmt::format("worker-{}.log", logs.size())));
    for (std::size_t rank = 0; rank < logs.size(); ++rank)
      logs[rank].lines(all, [&](const std::string& line) {
        rank == 0 ? show_log_line(line, *found, *say)
                  : (*say)("log", shortened(fmt::format("rank {}: {}", rank, line)));
      });
  }
  void on_trial_report(const record::TrialReported& report) {
    show_logs(false);
    if (found->report) return;
    Report shown(report.metrics);
    shown.step = report.step;
    (*say)("report", shortened(report_text(shown, report.step)));
    if (has_objectives(*sweep, shown.metrics)) found->report = std::move(shown);
  }
  void on_trial_checkpoint(const record::TrialCheckpointed& saved) {
    if (std::exchange(found->checkpoint, true)) return;  // it may save again when it is stopped
    (*say)("checkpoint", checkpoint_text(saved.checkpoint));
  }
};

}  // namespace

DryRun dry_run_group(const Sweep& sweep, const std::shared_ptr<const Program>& program, AnyExecutor executor,
                     Seconds timeout, const DryRunSay& say) {
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
  options.workers.max = std::max(2, options.workers.min);  // keeps it a group, even with one worker
  options.executor = std::move(executor);
  options.output = folder.path() / "run";
  options.display = Display::quiet;
  options.handle_signals = false;
  options.stop = stop_trial_if([&](const TrialProgressView& now) { return has_objectives(sweep, now.metrics); },
                               "it has reported what is tuned") |
                 within(timeout);
  DryRun found;
  const auto follower = std::make_shared<GroupFollower>(
      GroupFollower{&sweep, &say, &found, options.output / "trials" / "0", options.workers.min});
  options.callbacks.emplace_back(follower);
  const Results results = Tuner(sweep.space, program, options).run();
  follower->show_logs(true);
  if (found.report) {
    judge_report(sweep, *found.report, found.wrong);
    return found;
  }
  const TrialResult trial = results.trial(0);
  std::optional<std::string> failure;
  if (trial.state == TrialState::failed) failure = trial.cause ? trial.cause->text : "no cause is known";
  found.wrong.push_back(
      why_no_report(sweep, trial.state == TrialState::stopped ? std::optional(timeout) : std::nullopt, failure));
  return found;
}

}  // namespace hypertune::inline v0::command
