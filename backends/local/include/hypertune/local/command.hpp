// CommandProgram: runs trials as an external command, which reports by lines on its standard output.
#pragma once

#include <hypertune/local/command_options.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/program.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::local {

namespace detail {

struct CommandPlan;

/// Throws an Error of kind `usage` that names `where` if the pattern is no regular expression or has fewer than
/// `groups` groups.
void check_pattern(const std::string& pattern, std::string_view where, std::size_t groups);

}  // namespace detail

/// A trial that is an external command. It gets its parameters by {name} in its arguments, or as JSON in
/// HYPERTUNE_PARAMS. It reports by JSON lines on its standard output, one per step (`{"step": 3, "accuracy": 0.91,
/// "checkpoint": "step-3"}`). It saves by writing a folder under HYPERTUNE_CHECKPOINT and naming it in a report. Its
/// other output goes to trials/<id>/log. Works under every executor. If a trial has several workers, each runs the
/// command, with its rank in the same environment variables as under torchrun; the reports and checkpoints of rank 0
/// are the trial's.
class CommandProgram final : public Program {
 public:
  /// Throws an Error of kind `usage` if the command names an unknown parameter or a regular expression is malformed.
  CommandProgram(const SearchSpace& space, CommandOptions options);
  CommandProgram(const std::vector<std::string>& names, CommandOptions options);

  std::unique_ptr<TrialRun> begin(Context& context) const override;
  bool reusable() const override { return true; }
  bool external() const override { return true; }
  double stop_grace() const override;

 private:
  std::shared_ptr<const detail::CommandPlan> plan_;
};

}  // namespace hypertune::inline v0::local
