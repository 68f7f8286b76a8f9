// remote_error: the one clear line about a remote command that failed.
#pragma once

#include <hypertune/ssh/connection.hpp>
#include <hypertune/ssh/error.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace hypertune::ssh::detail {

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

}  // namespace hypertune::ssh::detail
