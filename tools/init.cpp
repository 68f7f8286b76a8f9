#include "init.hpp"

#include "commands.hpp"
#include "init_guess.hpp"
#include "init_probe.hpp"
#include "metric_names.hpp"
#include "shell_words.hpp"

#include <hypertune/config/sweep.hpp>
#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/detail/units.hpp>
#include <hypertune/process/program_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

namespace {

struct Metric {
  std::string name = "loss";
  Mode mode = Mode::minimize;
  std::string comment;
  std::vector<std::pair<std::string, std::string>> expressions;
};

// Chooses among several metrics the one that judges the model best: one on held-out data, and a score before a loss.
Metric metric_of(const ProbedReports& reports) {
  std::vector<std::string> names = reports.json;
  const bool json = !names.empty();
  for (const auto& [name, expression] : reports.expressions)
    if (!json) names.push_back(name);
  const auto rank = [](const std::string& name) {
    const auto mode = mode_of_name(name);
    const bool held_out = name.find("val") != std::string::npos || name.find("test") != std::string::npos ||
                          name.find("dev") != std::string::npos;
    return (mode ? 2 : 0) + (held_out ? 4 : 0) + (mode == Mode::maximize ? 1 : 0);
  };
  Metric metric;
  if (names.empty()) return metric;
  metric.name =
      *std::max_element(names.begin(), names.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  metric.mode = mode_of_name(metric.name).value_or(Mode::minimize);
  metric.comment = fmt::format("# The command reports {}. Is this the one, and the direction?", fmt::join(names, ", "));
  if (!json) metric.expressions = reports.expressions;
  return metric;
}

// The schema file installed with this program.
std::optional<fs::path> installed_schema() {
  std::error_code error;
  const auto program = fs::read_symlink("/proc/self/exe", error);
  if (error) return std::nullopt;
  auto file = program.parent_path().parent_path() / "share" / "hypertune" / "schema" / "sweep.schema.json";
  return fs::exists(file, error) ? std::optional(std::move(file)) : std::nullopt;
}

std::string name_of(const std::vector<std::string>& command) {
  std::string name;
  for (const auto& word : command) {
    const fs::path file(word);
    if (word.starts_with('-')) break;
    if (name.empty() || file.has_extension()) name = file.stem().string();
    if (file.has_extension()) break;
  }
  std::string out;
  for (const char c : name)
    if ((static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_' ||
        c == '-')
      out += c;
  return out.empty() ? "sweep" : out;
}

std::string file_text(const InitArguments& arguments, const Guess& guess, const Metric& metric) {
  std::string out;
  if (const auto schema = installed_schema())
    out += fmt::format("# yaml-language-server: $schema={}\n", schema->string());
  const std::string line = detail::terminal::printable(typed(arguments.command));
  out += fmt::format("# Written by hypertune init for: {}\n# Look at it:    hypertune check {} --run\n", line,
                     detail::shell_quote(arguments.output));
  out += fmt::format("# Then:          hypertune run {}\n\n", detail::shell_quote(arguments.output));
  out += fmt::format("name: {}\n\ntrial:\n  # {{name}} stands for the value of a parameter below.\n  command:\n",
                     yaml_text(name_of(arguments.command)));
  for (const auto& word : guess.command) out += "    - " + yaml_text(word) + "\n";
  if (!metric.expressions.empty()) {
    out +=
        "  # The numbers in what it prints, by regular expressions with one group each. Printing a JSON line a step,\n"
        "  # {\"step\": 0, \"loss\": 0.5}, is surer.\n  metrics:\n";
    for (const auto& [name, expression] : metric.expressions)
      if (name == metric.name) out += fmt::format("    {}: {}\n", yaml_text(name), yaml_text(expression));
  }
  out +=
      "\n# What may vary. Other domains: uniform, log_uniform, integer, log_int, choice, ordinal, normal, grid, "
      "…\nspace:\n";
  std::size_t widest = 0;
  for (const auto& parameter : guess.space) widest = std::max(widest, parameter.name.size() + parameter.domain.size());
  for (const auto& parameter : guess.space) {
    const std::string entry = fmt::format("{}: {}", parameter.name, parameter.domain);
    out += fmt::format("  {:<{}}  # {}\n", entry, std::min<std::size_t>(widest + 2, 70),
                       detail::terminal::printable(parameter.comment));
  }
  for (const auto& left : guess.left) out += "  # left as it is: " + detail::terminal::printable(left) + "\n";
  out += "\n";
  out += metric.comment.empty()
             ? "# CHANGE THIS: the name under which the command reports what is tuned, in a JSON line a "
               "step such as\n# {\"step\": 0, \"loss\": 0.5}, and which way it is better (min or max).\n"
             : metric.comment + "\n";
  out += fmt::format("metric: {}\nmode: {}\n\n", yaml_text(metric.name), metric.mode == Mode::minimize ? "min" : "max");
  const std::size_t samples = std::clamp<std::size_t>(15 * guess.space.size(), 30, 200);
  out += fmt::format("# How many configurations are tried.\nsamples: {}\n", samples);
  if (guess.steps && *guess.steps > 1)
    out += fmt::format(
        "# Bad trials end early: they are compared after 1, 3, 9, … reports. max_steps is the reports of a "
        "whole\n# training, here as many as the command was asked for.\nschedule: {{type: asha, max_steps: "
        "{}, grace_period: 1, reduction_factor: 3}}\n",
        *guess.steps);
  else
    out +=
        "# Bad trials end early, where each reports more than once. max_steps: the reports of a whole training.\n"
        "# schedule: {type: asha, max_steps: 27, grace_period: 1, reduction_factor: 3}\n";
  out += "# What each trial takes of the machine; as many run at once as there is room for.\nresources: {cpus: 1}\n";
  out +=
      "# failures: {max: 1}              # try a trial that failed once more\n"
      "# executor: {type: ssh, hosts: [lab1, lab2]}\n";
  return out;
}

void write_file(const InitArguments& arguments, const std::string& text) {
  const int mode = O_WRONLY | O_CREAT | O_CLOEXEC | (arguments.force ? O_TRUNC : O_EXCL);
  const detail::Descriptor file(::open(arguments.output.c_str(), mode, 0666));
  if (!file && errno == EEXIST)
    fail(Errc::usage, "'{}' is there already: name another file by -o, or write over it by --force", arguments.output);
  const auto refuse = [&] {
    fail(Errc::usage, "cannot write '{}': {}", arguments.output, std::generic_category().message(errno));
  };
  if (!file) refuse();
  for (std::string_view rest = text; !rest.empty();) {
    const auto n = ::write(file.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) refuse();
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

int init(const InitArguments& arguments) {
  auto words = arguments.command;
  if (!words.empty() && words.front() == "--") words.erase(words.begin());
  if (words.empty() || words.front().empty())
    fail(Errc::usage, "name a command: hypertune init -- python3 train.py --lr 0.01");
  InitArguments asked = arguments;
  asked.command = words;
  std::error_code ignored;
  if (!arguments.force && fs::exists(arguments.output, ignored))
    fail(Errc::usage, "'{}' is there already: name another file by -o, or write over it by --force", arguments.output);
  const auto timeout = parse_duration(arguments.timeout);
  if (!timeout || !(*timeout > 0))
    fail(Errc::usage, "--timeout takes a duration such as 30s, not '{}'", arguments.timeout);
  if (process::program_file(words.front()).empty())
    fail(Errc::usage, "there is no program '{}' that may be run", words.front());
  CommandHelp help;
  ProbedReports reports;
  if (arguments.probe) {
    help = probe_help(words, *timeout);
    reports = probe_reports(words, *timeout);
  }
  const Guess guess = guess_from(words, help);
  if (guess.space.empty())
    fail(Errc::usage,
         "no option of the command has a value that could vary: give it as you would run it, with its values, such as "
         "hypertune init -- python3 train.py --lr 0.01");
  const Metric metric = metric_of(reports);
  const std::string text = file_text(asked, guess, metric);
  sweep_from_yaml(load_yaml_text(text, arguments.output), false);  // write only a file that can be read
  write_file(asked, text);
  fmt::print("{}: {} parameter{}", arguments.output, guess.space.size(), guess.space.size() == 1 ? "" : "s");
  for (const auto& parameter : guess.space)
    fmt::print("{} {}", &parameter == guess.space.data() ? ":" : ",", parameter.name);
  fmt::print("\n");
  if (!reports.failure.empty()) detail::say("hypertune: --probe: " + detail::terminal::printable(reports.failure));
  if (metric.comment.empty())
    fmt::print("Name the metric in it ('{}' stands there now{}), then: hypertune check {} --run\n", metric.name,
               arguments.probe ? "; none was found in what the command printed" : "",
               detail::shell_quote(arguments.output));
  else
    fmt::print("It tunes {} ({}). Next: hypertune check {} --run\n", metric.name,
               metric.mode == Mode::minimize ? "min" : "max", detail::shell_quote(arguments.output));
  return exit_done;
}

}  // namespace hypertune::inline v0::command
