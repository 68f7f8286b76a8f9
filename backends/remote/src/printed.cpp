// Output of local programs.
#include <hypertune/detail/text.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/remote/detail/printed.hpp>

#include <cstddef>

namespace hypertune::inline v0::remote::detail {

std::optional<process::Collected> printed_by(const std::vector<std::string>& arguments, double timeout,
                                             const std::stop_token& stop) {
  try {
    // With a keeper, because a Ctrl-C may kill this process while it waits: signals are not handled yet.
    return process::collect(arguments, {.spawn = {.keeper = process::Keeper::group},
                                        .deadline = timeout,
                                        .linger = 1,
                                        .max_output = std::size_t{16} << 20U,
                                        .stop = stop});
  } catch (const process::NotStarted&) { return std::nullopt; }
}

std::string last_line(std::string_view messages) {
  std::string found;
  while (!messages.empty()) {
    std::string line;
    for (const char c : hypertune::detail::take_until(messages, '\n'))
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) line += c;
    while (!line.empty() && line.back() == ' ') line.pop_back();
    // A hint at --help does not explain the error; the line before it does.
    const bool help = line.starts_with("Try ") && line.find("--help") != std::string::npos;
    if (line.find_first_not_of(" @-=*#") != std::string::npos && (!help || found.empty())) found = std::move(line);
  }
  return found.size() > 300 ? hypertune::detail::utf8_shortened(found, 297) : found;
}

}  // namespace hypertune::inline v0::remote::detail
