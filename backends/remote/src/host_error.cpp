// Classifies the messages of commands on hosts.
#include "host_failures.hpp"

#include <hypertune/remote/detail/printed.hpp>

#include <fmt/format.h>

#include <array>
#include <random>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::remote {

std::optional<HostProblem> classify_messages(std::string_view messages) {
  static constexpr std::array<std::pair<std::string_view, HostProblem>, 13> known{{
      {"No space left on device", HostProblem::disk_full},
      {"Disk quota exceeded", HostProblem::disk_full},
      {"Read-only file system", HostProblem::permission},
      {"Exec format error", HostProblem::architecture},
      {"cannot execute binary file", HostProblem::architecture},
      {"cannot execute: required file not found", HostProblem::missing_library},
      {"Permission denied", HostProblem::permission},
      {"Operation not permitted", HostProblem::permission},
      {"No such file", HostProblem::missing_directory},  // dash prints no more than this
      {"nonexistent", HostProblem::missing_directory},
      {"Not a directory", HostProblem::missing_directory},
      {"command not found", HostProblem::missing_program},
      {"not found", HostProblem::missing_program},
  }};
  for (const auto& [text, problem] : known)
    if (messages.find(text) != std::string_view::npos) return problem;
  return std::nullopt;
}

namespace detail {

HostError host_error(const std::string& title, std::string_view doing, const RunResult& result) {
  const auto problem = classify_messages(result.err).value_or(HostProblem::other);
  std::string why = last_line(result.err);
  if (why.empty()) why = last_line(result.out);
  if (why.empty()) why = fmt::format("it ended with code {}", result.exit);
  const char* mend = "";
  switch (problem) {
    case HostProblem::disk_full: mend = "; the disk is full: free some space there, or choose another folder"; break;
    case HostProblem::permission: mend = "; choose a folder that this account may use"; break;
    case HostProblem::missing_directory: mend = "; a file or folder is missing there: check the path"; break;
    case HostProblem::missing_program:
      mend = "; install that program there, or put it into PATH of a non-interactive shell";
      break;
    default: break;
  }
  return {problem, fmt::format("{}: cannot {}: {}{}", title, doing, why, mend)};
}

void fail_local(std::string_view doing, const std::filesystem::path& path, int error) {
  throw HostError(HostProblem::local_file,
                  fmt::format("cannot {} '{}': {}", doing, path.string(), std::generic_category().message(error)));
}

std::string nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

}  // namespace detail
}  // namespace hypertune::inline v0::remote
