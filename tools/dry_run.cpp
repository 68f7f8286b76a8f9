#include "dry_run.hpp"

#include "dry_run_parts.hpp"

#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/trial/failure.hpp>

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

// Asks an attempt to stop when the time is over.
class Deadline {
 public:
  Deadline(Context& context, Seconds seconds)
      : thread_([this, &context, seconds](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          changed_.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
          if (stop.stop_requested()) return;
          over_ = true;
          context.request_stop();
        }) {}
  bool over() {
    const std::lock_guard lock(mutex_);
    return over_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool over_ = false;
  std::jthread thread_;
};

}  // namespace

DryRun dry_run(const Sweep& sweep, const Program& program, Seconds timeout, const DryRunSay& say) {
  const detail::TemporaryFolder folder;
  const auto& options = sweep.options;
  const Point point = dry_run_point(sweep);
  const Params params = sweep.space.params(point);
  say("trial", fmt::format("{}", params));
  Slot slot;
  slot.resources = options.resources;
  Context context({.trial = 0,
                   .attempt = 0,
                   .point = point,
                   .params = params,
                   .next_step = 0,
                   .restore = std::nullopt,
                   .slot = slot,
                   .directory = folder.path() / "trials" / "0",
                   .seed = *options.seed,
                   .checkpoints = folder.path()});
  Tail log(context.log());
  DryRun found;
  const auto show_log = [&](bool all) {
    log.lines(all, [&](const std::string& line) { show_log_line(line, found, say); });
  };
  int next = 0;
  Deadline deadline(context, timeout);
  std::optional<std::string> failure;
  bool ended = false;
  try {
    const auto run = program.begin(context);
    while (!found.report && !ended) {
      auto report = run->step();
      show_log(!report);
      if (!report) {
        ended = true;
        continue;
      }
      if (const auto saved = run->adopted()) {
        found.checkpoint = true;
        say("checkpoint", checkpoint_text(*saved));
      }
      say("report", shortened(report_text(*report, next)));
      next = report->step.value_or(next) + 1;
      if (has_objectives(sweep, report->metrics)) found.report = std::move(report);
    }
  } catch (const TrialFailure& error) { failure = error.what(); } catch (const Error& error) {
    failure = error.what();
  }
  show_log(true);
  if (found.report) {
    judge_report(sweep, *found.report, found.wrong);
    return found;
  }
  found.wrong.push_back(why_no_report(sweep, deadline.over() ? std::optional(timeout) : std::nullopt, failure));
  return found;
}

}  // namespace hypertune::inline v0::command
