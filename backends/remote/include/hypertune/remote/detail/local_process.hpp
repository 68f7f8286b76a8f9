// LocalProcess: a program of this machine with its standard streams in pipes, waited for with bounds.
#pragma once

#include <hypertune/checkpoint/posix_files.hpp>

#include <sys/types.h>
#include <sys/wait.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::remote::detail {

using hypertune::detail::Descriptor;

double steady_seconds();
int poll_milliseconds(double until);
std::pair<Descriptor, Descriptor> make_pipe();

/// How a process ended, or that it was ended at a bound.
struct ProcessOutcome {
  int status = 0;          ///< of wait(2)
  bool late = false;       ///< ended by us: the deadline, or nothing moved for too long
  bool too_much = false;   ///< ended by us: it printed more than allowed
  bool input_cut = false;  ///< it did not read all of its input
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }
};

struct ProcessBounds {
  double deadline = 60;  ///< seconds
  double stall = 1e6;    ///< seconds without a byte in or out
  std::size_t max_output = std::size_t{64} << 20U;
  std::stop_token stop = {};  ///< ends it
  /// It ends with this program, whatever the way, and with it what it has started in its group.
  bool bound = false;
};

/// Pieces of the input; empty: no more. Pieces of the output; false: enough, end it.
using NextInput = std::function<std::string_view()>;
using TakeOutput = std::function<bool(std::string_view)>;

int wait_for(pid_t pid);

/// In a forked process: becomes the program, with these as its standard streams, all of them above 2. Only what is safe
/// after a fork of a program with threads. `failed`: where errno is written to if that cannot be.
[[noreturn]] void become(char** argv, int in, int out, int err, int failed);

/// Runs a program to its end. `not_started` is called with errno if it cannot be started, and must throw.
ProcessOutcome run_process(const std::vector<std::string>& arguments, const NextInput& next, const TakeOutput& take_out,
                           const TakeOutput& take_err, const ProcessBounds& bounds,
                           const std::function<void(int)>& not_started);

struct Printed {
  int exit = 0;
  bool late = false;
  std::string out, err;
};
/// What a program prints that must end with this one; nullopt if it cannot be started.
std::optional<Printed> printed_by(const std::vector<std::string>& arguments, double timeout,
                                  const std::stop_token& stop = {});

/// The last line that says something, for messages; at most 300 characters, control characters removed.
std::string last_line(std::string_view messages);

}  // namespace hypertune::remote::detail
