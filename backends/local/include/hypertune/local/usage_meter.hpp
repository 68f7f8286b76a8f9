// UsageMeter: the time and the memory that a command uses.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/trial/measured.hpp>

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// What a command uses, together with all that it has started. While it runs, its processes are looked at; how much
/// processor time it has used in the end, and how much memory its largest process, the kernel says.
class UsageMeter {
 public:
  /// To be called right before the command is started.
  void begin();
  /// Whether it is time to look at the processes of the command.
  bool due() const { return !ended_ && hypertune::detail::steady_seconds() >= look_at_; }
  /// `roots`: the command's process, or those that it has left.
  void look(const std::vector<pid_t>& roots);
  /// To be called when it has ended, with what wait4(2) says of it.
  void end(const rusage& usage);

  void suspend();
  void resume();

  /// Of the present command, until now or its end.
  double value(Measured what) const;

 private:
  static constexpr double interval = 0.05;  // seconds

  double begun_ = 0, look_at_ = 0;
  std::optional<double> ended_, suspended_;
  double cpu_time_ = 0;
  std::uint64_t memory_ = 0;
  std::uint64_t own_memory_ = 0;  // the most that this process had resident when the command was started
};

}  // namespace hypertune::inline v0::local::detail
