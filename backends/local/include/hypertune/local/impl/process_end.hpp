// Texts for the end of a process, and the last line of its log.
#pragma once

#include <hypertune/execute/detail/bounded_log.hpp>
#include <hypertune/local/process_end.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstddef>
#include <fstream>

namespace hypertune::inline v0::local {

Cause cause_of_status(int status, const std::string& who) {
  Cause cause;
  if (WIFEXITED(status)) {
    cause.source = FailureSource::user;
    cause.text = fmt::format("{} exited with code {}{}", who, WEXITSTATUS(status),
                             WEXITSTATUS(status) == 0 ? " before the trial had ended" : "");
    return cause;
  }
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  switch (signal) {
    case SIGSEGV:
    case SIGABRT:
    case SIGFPE:
    case SIGBUS:
    case SIGILL:
    case SIGTRAP:
    case SIGSYS:
    case SIGPIPE:
    case SIGXCPU:
    case SIGXFSZ: cause.source = FailureSource::user; break;
    default: cause.source = FailureSource::infrastructure; break;
  }
  const char* name = ::sigdescr_np(signal);
  cause.text = fmt::format("{} was killed by signal {} ({})", who, signal,
                           signal == SIGKILL ? "Killed, from outside; perhaps out of memory"
                           : name != nullptr ? name
                                             : "unknown");
  return cause;
}

void append_last_output(Cause& cause, const std::string& words, const char* before) {
  if (!words.empty()) cause.text += (cause.source == FailureSource::user ? before : log_ends_with) + words;
}

bool mentions_lost_connection(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c); });
  for (const char* const words :
       {"broken pipe", "connection closed", "connection reset", "connection was likely closed", "connection refused",
        "eoferror", "remote process exit"})
    if (text.find(words) != std::string::npos) return true;
  return false;
}

std::string last_line(const std::filesystem::path& log, std::uint64_t from, std::uint64_t limit) {
  const auto parts = hypertune::detail::LogParts::of(log, limit);
  std::ifstream in(log, std::ios::binary);
  if (!in || parts.length() <= from) return {};
  const std::uint64_t size = parts.size, begin = size - std::min<std::uint64_t>({2048, size, parts.length() - from});
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  in.seekg(static_cast<std::streamoff>(begin));
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const auto end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return {};
  text.resize(end + 1);
  text.erase(0, text.find_last_of("\r\n") + 1);  // npos + 1 is 0
  return text.substr(0, 300);
}

}  // namespace hypertune::inline v0::local
