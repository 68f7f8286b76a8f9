// The one clear line about a remote command, or a file, that failed.
#pragma once

#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/ssh/error.hpp>
#include <hypertune/ssh/run_result.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::ssh::detail {

using remote::detail::last_line;

inline SshError remote_error(const std::string& host, std::string_view doing, const RunResult& result) {
  const Problem problem = classify_remote(result.err).value_or(Problem::other);
  std::string why = last_line(result.err);
  if (why.empty()) why = last_line(result.out);
  if (why.empty()) why = fmt::format("it ended with code {}", result.exit);
  const char* mend = "";
  switch (problem) {
    case Problem::disk_full: mend = "; the disk is full: free some space there, or choose another folder"; break;
    case Problem::permission: mend = "; choose a folder that this account may use"; break;
    case Problem::missing_directory: mend = "; a file or folder is missing there: check the path"; break;
    case Problem::missing_program:
      mend = "; install that program there, or put it into PATH of a non-interactive shell";
      break;
    default: break;
  }
  return SshError(problem, host, fmt::format("host '{}': cannot {}: {}{}", host, doing, why, mend));
}

/// For names of unfinished things: no two alike.
inline std::string nonce() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// Of a file of this machine.
[[noreturn]] inline void fail_local(const std::string& host, std::string_view doing, const std::filesystem::path& path,
                                    int error) {
  throw SshError(Problem::local_file, host,
                 fmt::format("cannot {} '{}': {}", doing, path.string(), std::generic_category().message(error)));
}

}  // namespace hypertune::inline v0::ssh::detail
