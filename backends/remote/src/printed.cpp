// Output of local programs.
#include <hypertune/detail/utf8.hpp>
#include <hypertune/remote/detail/printed.hpp>

#include <algorithm>
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
    const auto end = std::min(messages.find('\n'), messages.size());
    std::string line;
    for (const char c : messages.substr(0, end))
      if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) line += c;
    while (!line.empty() && line.back() == ' ') line.pop_back();
    // A hint at --help does not explain the error; the line before it does.
    const bool help = line.starts_with("Try ") && line.find("--help") != std::string::npos;
    if (line.find_first_not_of(" @-=*#") != std::string::npos && (!help || found.empty())) found = std::move(line);
    messages.remove_prefix(std::min(end + 1, messages.size()));
  }
  if (found.size() > 300) found = found.substr(0, hypertune::detail::utf8_cut(found, 297)) + "…";
  return found;
}

}  // namespace hypertune::inline v0::remote::detail
