// Errors: one family of exceptions for the blocking API, with a category a program can switch on.
#pragma once

#include <hypertune/detail/format.hpp>

#include <stdexcept>
#include <string>

namespace hypertune {

/// What kind of thing went wrong. The kind decides the exit code of the `hypertune` command and whether a retry can
/// help.
enum class Errc {
  usage,       ///< the caller asked for something that makes no sense (options, API order)
  space,       ///< a search space is malformed or cannot be satisfied
  input,       ///< a file or text from outside is malformed; the message says where
  resources,   ///< no host can ever satisfy the request
  busy,        ///< somebody else holds what is needed (a second driver on one directory)
  io,          ///< the operating system refused (disk full, permission)
  corrupt,     ///< stored data failed its integrity check
  protocol,    ///< a peer sent what the protocol does not allow
  experiment,  ///< the experiment failed: no trial completed, or more failed than allowed
};

constexpr const char* to_string(Errc code) {
  switch (code) {
    case Errc::usage: return "usage";
    case Errc::space: return "space";
    case Errc::input: return "input";
    case Errc::resources: return "resources";
    case Errc::busy: return "busy";
    case Errc::io: return "io";
    case Errc::corrupt: return "corrupt";
    case Errc::protocol: return "protocol";
    case Errc::experiment: return "experiment";
  }
  return "unknown";
}

/// Every exception that hypertune throws on purpose. `what()` is one line: what, where, how to mend.
class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Errc code() const noexcept { return code_; }

 private:
  Errc code_;
};

namespace detail {
[[noreturn]] inline void throw_error(Errc code, fmt::string_view format, fmt::format_args args) {
  throw Error(code, fmt::vformat(format, args));
}
}  // namespace detail

/// Throws an Error whose message is formatted by fmt.
template <class... Args>
[[noreturn]] void fail(Errc code, detail::FormatText<Args...> format, const Args&... args) {
  detail::throw_error(code, format, fmt::make_format_args(args...));
}

}  // namespace hypertune
