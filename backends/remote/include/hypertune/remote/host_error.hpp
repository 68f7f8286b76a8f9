// HostError: problems of a host, classified so that a program can react and a user can fix them.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/remote/dialer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote {

enum class HostProblem : std::uint8_t {
  local_file,         ///< a file of this machine cannot be read or written
  permission,         ///< a folder or file on the host may not be written or read
  disk_full,          ///< no space or no quota left on the host
  missing_directory,  ///< a folder on the host does not exist
  no_execute,         ///< the file system on the host does not allow execution (noexec)
  architecture,       ///< the program is built for another kind of machine
  missing_library,    ///< shared libraries are missing on the host; the message lists them
  missing_program,    ///< a required program is missing on the host
  other
};

/// An Error about a host that was reached; `what()` is one line with the host, the problem and how to fix it.
class HostError : public Error {
 public:
  HostError(HostProblem problem, const std::string& message)
      : Error(problem == HostProblem::architecture ? Errc::usage : Errc::io, message), problem_(problem) {}
  HostProblem problem() const noexcept { return problem_; }

 private:
  HostProblem problem_;
};

/// What the problem means for further attempts to use the host.
constexpr FailureClass failure_of(HostProblem problem) {
  return problem == HostProblem::disk_full || problem == HostProblem::other ? FailureClass::unknown
                                                                            : FailureClass::permanent;
}

/// Classifies the messages of a command (in the C locale); nullopt if they match no known problem.
std::optional<HostProblem> classify_messages(std::string_view messages);

}  // namespace hypertune::inline v0::remote
