// Quoting for any login shell.
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/error.hpp>
#include <hypertune/ssh/quote.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::ssh {
namespace {

// Whether every shell takes the text literally between single quotes. Excluded are backslashes (special in fish),
// exclamation marks and newlines (special in csh), and non-ASCII characters (depend on the locale).
bool is_literal(std::string_view word) {
  for (const char c : word)
    if (c < 0x20 || c > 0x7e || c == '\\' || c == '!' || c == '\'') return false;
  return true;
}

}  // namespace

std::string remote_command_line(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front().empty()) fail(Errc::usage, "a remote command must name a program");
  std::string line = "exec";
  bool literal = true;
  for (const auto& argument : arguments) {
    if (argument.find('\0') != std::string::npos)
      fail(Errc::usage, "an argument of the remote command '{}' has a NUL character in it", arguments.front());
    literal = literal && is_literal(argument);
    line += ' ';
    line += hypertune::detail::shell_quote(argument);
  }
  if (!literal) {
    // The login shell sees only plain characters; a POSIX shell decodes the line and replaces itself with the command.
    std::string encoded;
    for (const char c : line) {
      if (hypertune::detail::is_plain(c) || c == ' ')
        encoded += c;
      else
        fmt::format_to(std::back_inserter(encoded), "\\0{:03o}", static_cast<unsigned char>(c));
    }
    line = "exec sh -c 'eval \"$(printf %b \"$0\")\"' '" + encoded + "'";
  }
  if (line.size() > 120000)  // Linux allows 128 KiB per argument, and the login shell gets the line as one argument
    fail(Errc::usage, "the remote command '{}' is {} bytes long, more than a shell takes: pass data by standard input",
         arguments.front(), line.size());
  return line;
}

}  // namespace hypertune::inline v0::ssh
