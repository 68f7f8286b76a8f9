// Errors: one family of exceptions, each with a code that a program can switch on.
#pragma once

#include <hypertune/detail/format.hpp>

#include <fmt/core.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

namespace hypertune::inline v0 {

/// The kind of an error. It decides the exit code of the `hypertune` command and whether a retry can help.
enum class Errc {
  usage = 1,   ///< invalid use: options that make no sense, calls in the wrong order
  space,       ///< a search space is malformed or cannot be satisfied
  input,       ///< an input file or text is malformed; the message says where
  resources,   ///< no host can ever satisfy the request
  busy,        ///< another process holds what is needed (a second driver on one directory)
  io,          ///< the operating system refused (disk full, permission)
  corrupt,     ///< stored data failed its integrity check
  protocol,    ///< a peer sent what the protocol does not allow
  experiment,  ///< the experiment has no result, cannot go on, or was stopped; also failures of user code
  group,       ///< a trial's workers could not work together: one is lost, late, or the group changes (GroupError)
};

}  // namespace hypertune::inline v0

template <>
struct std::is_error_code_enum<hypertune::Errc> : std::true_type {};

namespace hypertune::inline v0 {

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
    case Errc::group: return "group";
  }
  return "unknown";
}

/// Whether the same run may succeed if it is tried again without any change. False for what its user has written.
constexpr bool may_pass(Errc code) { return code != Errc::usage && code != Errc::input; }

/// The category of the std::error_code that an Errc converts to.
const std::error_category& error_category() noexcept;
std::error_code make_error_code(Errc code) noexcept;

/// Every exception that hypertune throws on purpose. `what()` is one line: what is wrong, where, and how to fix it.
class Error : public std::runtime_error {
 public:
  Error(Errc code, const std::string& message);
  Errc code() const noexcept { return code_; }

 private:
  Errc code_;
};

namespace detail {
[[noreturn]] void throw_error(Errc code, fmt::string_view format, fmt::format_args args);
}  // namespace detail

/// The error code of the exception that `exception` holds: the code of an Error or of a std::system_error;
/// std::errc::not_enough_memory for a std::bad_alloc; Errc::experiment for any other exception, which comes from the
/// user's code. An empty error_code for a null pointer.
std::error_code error_code_of(const std::exception_ptr& exception);

/// Throws an Error whose message is formatted by fmt.
template <class... Args>
[[noreturn]] void fail(Errc code, detail::FormatText<Args...> format, const Args&... args) {
  detail::throw_error(code, format, fmt::make_format_args(args...));
}

}  // namespace hypertune::inline v0

template <>
struct fmt::formatter<hypertune::Errc> : hypertune::detail::WordFormatter {};
