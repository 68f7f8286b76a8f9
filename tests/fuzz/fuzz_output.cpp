// Any bytes as a program's output: the lines do not depend on the pieces in which it comes, and numbers in them are
// read or refused.
#include <hypertune/local/number_text.hpp>
#include <hypertune/local/output_lines.hpp>
#include <hypertune/local/report_line.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace local = hypertune::local;

std::vector<std::string> lines_of(std::string_view output, std::size_t piece) {
  constexpr std::size_t most = 64;
  local::OutputLines lines(most);
  std::vector<std::string> texts;
  const auto take = [&](local::OutputLine line) {
    if (line.text.size() > most + 2) std::abort();
    texts.push_back(std::move(line.text));
  };
  for (std::size_t i = 0; i < output.size(); i += piece) lines.add(output.substr(i, piece), 0, take);
  lines.end(take);
  return texts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lines = lines_of(text, std::max<std::size_t>(size, 1));
  if (lines_of(text, 1) != lines || lines_of(text, 3) != lines) std::abort();
  for (const auto& line : lines) {
    local::parse_report_line(line);
    for (std::size_t begin = 0; begin < line.size(); begin += 5)
      for (const std::size_t length : {std::size_t{1}, std::size_t{4}, line.size()}) {
        const std::size_t end = std::min(begin + length, line.size());
        std::string why, behind;
        for (const auto unit : {local::NumberUnit::none, local::NumberUnit::seconds, local::NumberUnit::bytes})
          if (!local::number_in_line({.line = line, .begin = begin, .end = end, .match_end = end}, unit, why,
                                     &behind) &&
              why.empty())
            std::abort();
      }
  }
  return 0;
}
