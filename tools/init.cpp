#include "init.hpp"

#include "commands.hpp"
#include "init_guess.hpp"
#include "init_metrics.hpp"
#include "init_probe.hpp"
#include "init_words.hpp"
#include "shell_words.hpp"

#include <hypertune/config/sweep.hpp>
#include <hypertune/detail/descriptor.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/sleep_for.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/detail/units.hpp>
#include <hypertune/process/program_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

namespace {

struct Metric {
  std::string name = "loss";
  Mode mode = Mode::minimize;
  std::string comment;
  std::string expression;              // empty: from JSON lines
  std::string unit;                    // of the expression
  std::string settings;                // other lines of `trial`
  bool sure = false;                   // it was found
  std::optional<std::size_t> reports;  // of a whole run, if one was seen
};

Metric metric_of(const std::vector<FoundMetric>& found, const ProbedRun& run, const std::vector<std::string>& words) {
  Metric metric;
  const FoundMetric* best = metric_to_tune(found, words);
  // Codes of solvers; 1 and 2 are errors, and those from 126 on the system's. Without a metric it may have failed, except
  // with those of SAT solvers.
  const int code = run.status && WIFEXITED(*run.status) ? WEXITSTATUS(*run.status) : 0;
  if (best != nullptr ? code > 2 && code < 126 : code == 10 || code == 20)
    metric.settings +=
        fmt::format("  # The command ended so when it was run. Was that a success?\n  success: [0, {}]\n", code);
  if (best == nullptr) {
    std::vector<std::string> same;
    constexpr std::size_t few = 5;
    for (const auto& one : found)
      if (one.constant() && mode_of_found(one) && same.size() < few) same.push_back(one.name);
    if (!same.empty())
      metric.comment = fmt::format("# It prints {} too, which {} the same in all runs.\n", fmt::join(same, ", "),
                                   same.size() == 1 ? "was" : "were");
    return metric;
  }
  metric.sure = true;
  metric.name = best->name;
  metric.mode = mode_of_found(*best).value_or(Mode::minimize);
  const bool each = is_score(*best) || improves(*best);
  if (run.status) metric.reports = each ? best->values.front().size() : 1;
  if (!best->json) {
    metric.expression = best->expression(found);
    metric.unit = best->unit();
  }
  const std::size_t reports = best->values.front().size();
  if (run.kept_back && each && reports > 1)
    metric.settings +=
        "  # All that it printed came at its end. To a terminal it may print line by line.\n  output: line\n";
  if (!each && reports > 1)
    metric.settings += "  # Of a speed, a time and the like what is printed last counts.\n  report: last\n";
  std::vector<std::string> names;
  constexpr std::size_t most = 12;
  for (const auto& one : found)
    if (one.json == best->json && !one.constant() && !is_counter(one) && !one.echo() && names.size() < most)
      names.push_back(one.name);
  if (std::find(names.begin(), names.end(), metric.name) == names.end()) names.push_back(metric.name);
  metric.comment =
      fmt::format("# The command reports {}. Is {} the one, and the direction?", fmt::join(names, ", "), metric.name);
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

// After the program that the command is about, or its script.
std::string name_of(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  if (const auto script = started_by(words).script) {
    const auto commands = shell_commands(command[*script]);
    words.clear();
    for (const auto& one : commands)
      if (words.empty() && one.front().text != "cd")
        for (const auto& word : one) words.push_back(word.text);
  }
  if (words.empty()) return "sweep";
  const Started started = started_by(words);
  const std::string& word = words[std::max(started.program + 1, started.arguments) - 1];
  const std::string name = word.find(' ') == std::string::npos ? fs::path(word).stem().string() : std::string();
  std::string out;
  for (const char c : name)
    if ((static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_' ||
        c == '-')
      out += c;
  return out.empty() ? "sweep" : out;
}

std::size_t samples_of(const Guess& guess) { return std::clamp<std::size_t>(15 * guess.space.size(), 30, 200); }

// What the trials will take of the disk; empty if that is little.
std::string disk_text(const Guess& guess) {
  constexpr double little = 0x1p20;
  if (guess.writes < little) return {};
  const std::size_t samples = samples_of(guess);
  return fmt::format("a run wrote up to {} into the trial's folder, which is kept: up to {} for {} trials",
                     detail::size_text(guess.writes), detail::size_text(guess.writes * static_cast<double>(samples)),
                     samples);
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
  for (const auto& note : guess.notes) out += "  # " + detail::terminal::printable(note) + "\n";
  if (const auto disk = disk_text(guess); !disk.empty()) out += "  # By --probe " + disk + ".\n";
  if (!metric.expression.empty())
    out += fmt::format(
        "  # The number in what it prints, by a regular expression with one group. Printing a JSON line a step,\n"
        "  # {{\"step\": 0, \"loss\": 0.5}}, is surer.\n  metrics:\n    {}: {}\n",
        yaml_text(metric.name),
        metric.unit.empty() ? yaml_text(metric.expression)
                            : fmt::format("{{match: {}, unit: {}}}", yaml_text(metric.expression), metric.unit));
  out += metric.settings;
  out +=
      "\n# What may vary. Other domains: uniform, log_uniform, integer, log_int, choice, ordinal, normal, grid, "
      "…\nspace:\n";
  std::size_t widest = 0;
  for (const auto& parameter : guess.space)
    widest = std::max(widest, parameter.name.size() + parameter.domain.text().size());
  for (const auto& parameter : guess.space) {
    const std::string entry = fmt::format("{}: {}", parameter.name, parameter.domain.text());
    out += fmt::format("  {:<{}}  # {}\n", entry, std::min<std::size_t>(widest + 2, 70),
                       detail::terminal::printable(parameter.comment));
  }
  for (const auto& left : guess.left) out += "  # left as it is: " + detail::terminal::printable(left) + "\n";
  out += "\n";
  out += !metric.sure ? metric.comment +
                            "# CHANGE THIS: the name under which the command reports what is tuned, in a JSON line a "
                            "step such as\n# {\"step\": 0, \"loss\": 0.5}, and which way it is better (min or max).\n"
                      : metric.comment + "\n";
  out += fmt::format("metric: {}\nmode: {}\n\n", yaml_text(metric.name), metric.mode == Mode::minimize ? "min" : "max");
  out += fmt::format("# How many configurations are tried.\nsamples: {}\n", samples_of(guess));
  // What a run has reported counts before what the command was asked for.
  const std::size_t steps = metric.reports ? *metric.reports : static_cast<std::size_t>(guess.steps.value_or(0));
  if (steps > 1)
    out += fmt::format(
        "# Bad trials end early: they are compared after 1, 3, 9, … reports. max_steps is the reports of a whole\n"
        "# training, here as many as the command {}.\nschedule: {{type: asha, max_steps: {}, grace_period: 1, "
        "reduction_factor: 3}}\n",
        metric.reports ? "made when it was run" : "was asked for", steps);
  else if (!metric.reports)
    out +=
        "# Bad trials end early, where each reports more than once. max_steps: the reports of a whole training.\n"
        "# schedule: {type: asha, max_steps: 27, grace_period: 1, reduction_factor: 3}\n";
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  out += "# What each trial takes of the machine; as many run at once as there is room for.\n";
  if (!guess.shared.empty())
    out += fmt::format("# One at a time, because each writes {}.\nconcurrency: 1\n",
                       detail::terminal::printable(fmt::format("{}", fmt::join(guess.shared, ", "))));
  out += fmt::format("resources: {{cpus: {}}}\n", std::min(guess.threads.value_or(1), cores));
  out +=
      "# failures: {max_retries: 1}      # try a trial that failed once more\n"
      "# executor: {type: ssh, hosts: [lab1, lab2]}\n";
  return out;
}

// A guess that leaves more as it is, with the ranges that were tried for what remains.
Guess without(const Guess& tried, Guess less) {
  for (auto& parameter : less.space)
    for (const auto& one : tried.space)
      if (one.name == parameter.name) parameter = one;
  less.notes = tried.notes;
  less.shared = tried.shared;
  less.writes = tried.writes;
  for (const auto& [from, to] : tried.moved) move_file(less, from, to);
  return less;
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

// A time that no file which exists already can have: files have the time of a clock that advances every few milliseconds.
timespec next_tick() {
  timespec first{}, now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &first);
  do {
    detail::sleep_for({}, 0.001);
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  } while (now.tv_sec == first.tv_sec && now.tv_nsec == first.tv_nsec);
  return now;
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
  Helps helps;
  if (arguments.probe) helps = probe_help(words, *timeout);
  Guess guess = guess_from(words, helps);
  if (guess.space.empty())
    fail(Errc::usage,
         "no option of the command has a value that could vary: give it as you would run it, with its values, such as "
         "hypertune init -- python3 train.py --lr 0.01");
  MetricFinder finder;
  ProbedRun probed;
  if (arguments.probe) {
    const timespec begin = next_tick();
    std::map<std::string, std::string> given;
    for (const auto& parameter : guess.space) given[parameter.name] = parameter.given;
    probed = probe_command(words, *timeout, finder, given);
    Pinned pinned;
    try_ends({words, probed, begin, *timeout}, guess, pinned, finder);
    if (!pinned.empty()) guess = without(guess, guess_from(words, helps, pinned));
  }
  const Metric metric = metric_of(finder.found(), probed, words);
  const std::string text = file_text(asked, guess, metric);
  sweep_from_yaml(load_yaml_text(text, arguments.output), false);  // write only a file that can be read
  write_file(asked, text);
  fmt::print("{}: {} parameter{}", arguments.output, guess.space.size(), guess.space.size() == 1 ? "" : "s");
  for (const auto& parameter : guess.space)
    fmt::print("{} {}", &parameter == guess.space.data() ? ":" : ",", parameter.name);
  fmt::print("\n");
  if (arguments.probe && !probed.status && !metric.sure)
    detail::say(
        fmt::format("hypertune: --probe: the command was ended after {:.3g} s, and {}: give it longer by --timeout",
                    probed.took, probed.silent ? "had printed nothing" : "no metric was found in what it had printed"));
  if (const auto disk = disk_text(guess); !disk.empty()) fmt::print("--probe: {}\n", disk);
  if (!probed.failure.empty()) detail::say("hypertune: --probe: " + detail::terminal::printable(probed.failure));
  if (!metric.sure)
    fmt::print("Name the metric in it ('{}' stands there now{}), then: hypertune check {} --run\n", metric.name,
               arguments.probe ? "; none was found in what the command printed" : "",
               detail::shell_quote(arguments.output));
  else
    fmt::print("It tunes {} ({}). Next: hypertune check {} --run\n", metric.name,
               metric.mode == Mode::minimize ? "min" : "max", detail::shell_quote(arguments.output));
  return exit_done;
}

}  // namespace hypertune::inline v0::command
