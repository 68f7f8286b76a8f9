// One trial of a sweep, run to its first report, with nothing recorded.
#pragma once

#include <hypertune/config/sweep_spec.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/trial/program.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/trial.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::command {

struct DryRun {
  std::vector<std::string> wrong;  ///< what is wrong, one line each
  std::optional<Report> report;    ///< the first one that has all that is tuned
  bool checkpoint = false;         ///< one was saved with it
};

using DryRunSay = std::function<void(std::string_view, std::string_view)>;

/// Begins the sweep's command with a configuration of its space on this machine, in a folder of its own, and ends it
/// with all that it started after its first report of what is tuned, or after `timeout` seconds. `say` is told each
/// line as hypertune reads it: "log", "report" or "checkpoint", and the text.
DryRun dry_run(const Sweep& sweep, const Program& program, Seconds timeout, const DryRunSay& say);
/// The same of a trial of several workers: of as few as the sweep allows, each of which `executor` starts. Where that
/// is one, `executor` has room for one.
DryRun dry_run_group(const Sweep& sweep, const std::shared_ptr<const Program>& program, AnyExecutor executor,
                     Seconds timeout, const DryRunSay& say);

}  // namespace hypertune::inline v0::command
