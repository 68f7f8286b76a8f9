// Runs one trial of a sweep up to its first report, without recording anything.
#pragma once

#include <hypertune/config/sweep_options.hpp>
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
  std::vector<std::string> wrong;  ///< problems, one line each
  std::optional<Report> report;    ///< the first report with all objectives
  bool checkpoint = false;         ///< whether a checkpoint was saved with it
};

using DryRunSay = std::function<void(std::string_view, std::string_view)>;

/// Starts a trial of the sweep with `executor`, in a temporary folder, with a configuration from its space and as few
/// workers as the sweep allows. After the first report with all objectives, or after `timeout` seconds, ends it and
/// everything that it has started. `say` gets each line as hypertune reads it: its kind ("log", "report" or
/// "checkpoint") and the text. If the sweep allows several workers, `executor` has room only for those it is to start.
DryRun dry_run(const Sweep& sweep, const std::shared_ptr<const Program>& program, AnyExecutor executor, Seconds timeout,
               const DryRunSay& say);

}  // namespace hypertune::inline v0::command
