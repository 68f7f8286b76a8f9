#include "init_probe.hpp"

#include "metric_names.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/local/process_end.hpp>
#include <hypertune/local/report_line.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

// Runs a command and passes its output to `take`, until `take` returns false, the command ends, or the time is over.
// Returns its wait(2) status if it has ended.
template <class Take>
std::optional<int> run_and_read(const std::vector<std::string>& command, Seconds timeout, const Take& take) {
  local::detail::ChildProcess child(command);  // its destructor kills it, with all that it started
  const double until = detail::steady_seconds() + timeout;
  std::string out, err;
  constexpr std::size_t most = std::size_t{8} << 20U;
  for (bool more = true; more && out.size() + err.size() < most;) {
    const bool over = child.status().has_value();
    more = take(out, err, over) && !over && detail::steady_seconds() < until;
    if (more) child.pump(0.1, out, err);
  }
  return child.status();
}

std::vector<std::string> whole_lines(const std::string& text, bool all) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (all && begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string last_line(const std::string& text) {
  const auto lines = whole_lines(text, true);
  const auto last = std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) { return !line.empty(); });
  return last == lines.rend() ? std::string() : *last;
}

// "val_acc: 0.91", "loss=0.3": finds metrics by their names, not any word before a number.
void find_in_text(const std::string& line, ProbedReports& found) {
  static const std::regex pair(R"(([A-Za-z][A-Za-z0-9_]*) *[=:] *[-+]?[0-9.]+)");
  constexpr std::size_t longest = 4096;
  const std::string part = line.substr(0, longest);
  for (std::sregex_iterator it(part.begin(), part.end(), pair), last; it != last; ++it) {
    const std::string name = (*it)[1];
    const bool seen = std::any_of(found.expressions.begin(), found.expressions.end(),
                                  [&](const auto& one) { return one.first == name; });
    if (!seen && mode_of_name(name))  // nan and inf count as numbers: a diverged loss is a result too
      found.expressions.emplace_back(name, "\\b" + name + " *[=:] *([-+]?(?:[nN]a[nN]|[iI]nf(?:inity)?)|[-+0-9.eE]+)");
  }
}

}  // namespace

CommandHelp probe_help(const std::vector<std::string>& command, Seconds timeout) {
  std::vector<std::string> words;
  for (const auto& word : command) {
    const bool module = word == "-m" || word == "-u";
    if (!words.empty() && word.starts_with('-') && !module) break;
    if (words.size() > 1 && word.find('=') != std::string::npos) break;
    words.push_back(word);
  }
  words.emplace_back("--help");
  std::string text;
  run_and_read(words, timeout, [&](const std::string& out, const std::string& err, bool over) {
    if (over) text = out.empty() ? err : out;
    return true;
  });
  return read_help(text);
}

ProbedReports probe_reports(const std::vector<std::string>& command, Seconds timeout) {
  ProbedReports found;
  std::string said;
  const auto end = run_and_read(command, timeout, [&](const std::string& out, const std::string& err, bool over) {
    found = {};
    said = last_line(err.empty() ? out : err);
    constexpr int enough = 3;  // the first line may be about something else
    int reports = 0;
    for (const auto& line : whole_lines(out, over)) {
      const auto begin = line.find_first_not_of(" \t\r");
      const auto report =
          begin != std::string::npos && line[begin] == '{' ? local::parse_report_line(line) : std::nullopt;
      if (!report) {
        find_in_text(line, found);
        continue;
      }
      if (report->metrics.empty()) continue;
      ++reports;
      for (const auto& [name, value] : report->metrics)
        if (std::find(found.json.begin(), found.json.end(), name) == found.json.end()) found.json.push_back(name);
    }
    return reports < enough;
  });
  if (end && *end != 0) {
    found.failure = local::cause_of_status(*end, "the command").text;
    if (!said.empty()) found.failure += ": " + local::shortened(said);
  }
  return found;
}

}  // namespace hypertune::inline v0::command
