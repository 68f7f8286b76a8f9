#include "commands.hpp"
#include "cost.hpp"
#include "executors.hpp"
#include "kubernetes_driver.hpp"
#include "local_trials.hpp"
#include "shell_words.hpp"
#include "sweep_file.hpp"
#include "terminal_text.hpp"
#include "trackers.hpp"

#include <hypertune/cluster/executor.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/replace_file.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/detail/host_faults.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/trial/detail/metric_units.hpp>
#include <hypertune/tune/detail/experiment_directory.hpp>
#include <hypertune/tune/tuner.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <ios>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

std::int64_t whole_number(const std::string& text, std::string_view option) {
  const auto number = detail::parse_number<std::int64_t>(text);
  if (!number || *number < 1) fail(Errc::usage, "{} takes a whole number from 1, not '{}'", option, text);
  return *number;
}

// "N" trials in all, or "+N" more than the experiment has.
std::int64_t samples(const std::string& text, bool resume, const std::filesystem::path& directory,
                     std::int64_t combinations) {
  if (text.empty() || text.front() != '+') return whole_number(text, "--samples");
  if (!resume) fail(Errc::usage, "--samples {} means more than there are: it goes with --resume", text);
  const std::int64_t more = whole_number(text.substr(1), "--samples");
  const Results results = Results::read(directory);
  std::int64_t created = 0;
  for (const auto& trial : results.trials()) created += trial.known ? 0 : 1;
  return created / combinations + more;  // one sample includes all combinations of a grid
}

// Adds --executor as an assignment before those of --set. It replaces the file's `executor` if that has another type,
// whose options would not fit.
std::vector<std::string> with_executor(const RunArguments& arguments) {
  auto set = arguments.set;
  if (arguments.executor.empty()) return set;
  std::string says = "local";
  const Node root = load_yaml_file(arguments.file);
  if (const auto executor = root.find("executor"))
    says = executor->is_map() ? executor->get("type", says) : executor->as<std::string>();
  if (says != arguments.executor) set.insert(set.begin(), "executor={type: " + arguments.executor + "}");
  return set;
}

// The options that override the file.
std::vector<std::string> overriding(const RunArguments& arguments, const Options& options) {
  std::vector<std::string> words;
  if (!arguments.executor.empty()) words.push_back("--executor " + arguments.executor);
  if (!arguments.samples.empty())
    words.push_back(fmt::format("--samples {}", *options.samples));  // for +N, the resulting number
  for (const auto& assignment : arguments.set) words.push_back("--set " + detail::shell_quote(assignment));
  return words;
}

// The command that continues the experiment: the same file, with the options that override it.
std::vector<std::string> resume_command(const RunArguments& arguments, const Options& options) {
  std::vector<std::string> words{"hypertune run " + detail::shell_quote(arguments.file), "--resume",
                                 "--output " + detail::shell_quote(options.output.string())};
  for (auto& word : overriding(arguments, options)) words.push_back(std::move(word));
  return words;
}

// Keeps these options in the experiment's folder, for what `status` says of going on.
struct KeepOptions {
  std::string text;
  void on_open(const std::filesystem::path& directory) const {
    std::error_code ignored;
    if (text.empty())
      std::filesystem::remove(directory / options_file, ignored);
    else
      detail::replace_file(directory / options_file, text + '\n');
  }
};

// What the table does not show: how many more trials there are, and why trials failed, as failed trials come last.
void print_summary_below_table(const Results& results, std::size_t rows, const std::string& directory) {
  if (results.size() > rows)
    fmt::print("… {} more: hypertune results {}\n", results.size() - rows, detail::shell_quote(directory));
  if (results.count(TrialState::failed) == 0) return;
  struct Failures {
    std::string cause;  // of the first
    std::size_t count = 0;
    bool differ = false;  // in numbers or paths
  };
  std::map<std::string, Failures> by_key;
  for (const auto& trial : results.trials()) {
    if (trial.state != TrialState::failed) continue;
    const Cause cause = trial.cause.value_or(Cause{.text = "no cause is known"});
    auto& same = by_key[fault_key(cause)];
    if (same.count++ == 0) same.cause = cause.text;
    same.differ = same.differ || same.cause != cause.text;
  }
  std::vector<Failures> causes;
  for (auto& [key, failures] : by_key) causes.push_back(std::move(failures));
  detail::stable_sort(causes.begin(), causes.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  constexpr std::size_t most = 3, max_width = 120;
  std::string line;
  for (std::size_t i = 0; i < std::min(most, causes.size()); ++i)
    line += fmt::format("{}{} ({}{})", i == 0 ? "" : ", ",
                        detail::terminal::elide(detail::terminal::printable(causes[i].cause), max_width),
                        causes[i].count, causes[i].differ ? ", with different values" : "");
  if (causes.size() > most) line += fmt::format(", and {} other causes", causes.size() - most);
  print_line(fmt::format("{} failed: {}", results.count(TrialState::failed), line));
}

// The first line of a trial's log in which the value of this metric was refused, and why; empty if there is none.
std::string refused_line(const std::string& log, const std::string& metric) {
  const std::string words = fmt::format("what the expression for '{}' finds is no number that is sure: ", metric);
  const auto at = log.find(words);
  if (at == std::string::npos) return "";
  const auto begin = log.rfind('\n', at) + 1;  // npos + 1 is 0
  std::string why = log.substr(at + words.size(), log.find('\n', at) - at - words.size());
  std::string line;
  if (log.substr(begin, at - begin).find("the line above") != std::string::npos && begin > 1) {
    const auto above = log.rfind('\n', begin - 2) + 1;
    line = "'" + log.substr(above, begin - 1 - above) + "'";
  } else {
    const auto open = log.find('\'', begin);
    line = log.substr(open, log.find("' is not taken", open) + 1 - open);
  }
  return fmt::format("the first line refused is {}: {}", line, why);
}

// Names the expressions whose metric no trial has reported. That of a tuned one is the cause of its trials' failure.
void print_unread_metrics(const Sweep& sweep, const Results& results) {
  constexpr std::size_t max_trials = 100, max_bytes = std::size_t{1} << 20U;
  const auto objectives = objectives_of(sweep.options);
  const auto& reported = results.metrics();
  std::string text;
  for (const auto& [name, pattern] : sweep.trial->metrics) {
    if (reported.empty() || std::find(reported.begin(), reported.end(), name) != reported.end() ||
        std::any_of(objectives.begin(), objectives.end(),
                    [&, &name = name](const auto& o) { return o.metric == name; }))
      continue;
    std::string why;
    for (std::size_t i = 0; i < std::min(results.size(), max_trials) && why.empty(); ++i) {
      std::ifstream in(results.directory() / "trials" / std::to_string(results.trials()[i].trial) / "log",
                       std::ios::binary);
      std::string log(max_bytes, '\0');
      in.read(log.data(), static_cast<std::streamsize>(log.size()));
      log.resize(static_cast<std::size_t>(in.gcount()));
      why = refused_line(log, name);
    }
    text += fmt::format("{}'{}' was never read: {}", text.empty() ? "" : "; ", name,
                        why.empty() ? "its expression matches no line that was printed" : why);
  }
  if (!text.empty()) print_line(detail::terminal::printable(text));
}

// Names the metrics whose values trials have printed in different units.
void print_differing_units(const Results& results) {
  for (const auto& [name, value] : results.experiment().attributes)
    if (const auto* text = std::get_if<std::string>(&value); text != nullptr && detail::says_units_differ(name, *text))
      print_line(detail::terminal::printable(fmt::format("{}: {}", name, *text)));
}

}  // namespace

int run(const RunArguments& arguments) {
  const auto set = with_executor(arguments);
  Sweep sweep = load_sweep(arguments.file, set, false);
  add_trackers(sweep);
  Options& options = sweep.options;
  if (!arguments.output.empty()) options.output = arguments.output;
  options.resume = arguments.resume;
  options.retry_failed = arguments.retry_failed;
  if (arguments.plain) options.display = Display::plain;
  if (arguments.quiet) options.display = Display::quiet;
  if (arguments.dashboard) options.dashboard = dashboard_of_run(arguments.port);
  if (arguments.resume) {
    const auto directory = experiment_directory(options);
    if (!has_journal(directory)) fail(Errc::usage, "'{}' holds no experiment to resume", directory.string());
    detail::say_which_is_resumed(options, directory);
    options.output = directory;
  }
  const bool samples_set = std::any_of(arguments.set.begin(), arguments.set.end(),
                                       [](const auto& text) { return text.starts_with("samples="); });
  if (!arguments.samples.empty()) {
    options.samples =
        samples(arguments.samples, arguments.resume, options.output, trials_per_sample(sweep.space, options.search));
  } else if (arguments.resume && !samples_set && options.samples > 0) {
    // The file does not know of an earlier --samples +N; that number of samples still counts.
    const auto last = JournalReader(options.output).last_start();
    const auto recorded = last ? last->samples / trials_per_sample(sweep.space, options.search) : 0;
    if (recorded > options.samples) {
      if (!arguments.quiet)
        detail::say(fmt::format(
            "hypertune: {} samples were asked for before, {} by the file: it goes on to {} (--samples {} says "
            "otherwise)",
            recorded, *options.samples, recorded, *options.samples));
      options.samples = recorded;
    }
  }
  if (!arguments.resume) require_bounded(sweep);
  options.command = typed(sweep.trial->command);
  options.callbacks.emplace_back(KeepOptions{fmt::format("{}", fmt::join(overriding(arguments, options), " "))});
  options.progress_csv = true;
  options.handle_signals = options.exit_if_stuck = true;
  const auto program = program_of(sweep, program_is_here(sweep));
  options.executor = executor_of(sweep, arguments.file, set);

  const int allowed_failures = options.max_failed_trials;
  std::optional<Results> ended;
  begin_as_driver();
  try {
    ended = Tuner(sweep.space, program, options).run();
  } catch (const cluster::InterruptedEarly& error) {
    detail::say(fmt::format("hypertune: {}", error.what()));
    return exit_interrupted;
  }
  const Results& results = *ended;
  const auto directory = options.output = results.directory();

  // With no reader (a closed terminal), the exit code has the result.
  constexpr std::size_t rows = 20;
  std::fputs(results.table({.rows = rows, .width = terminal_width()}).c_str(), stdout);
  print_summary_below_table(results, rows, directory.string());
  print_unread_metrics(sweep, results);
  print_differing_units(results);
  if (const auto cost = cost_line(directory, results); !cost.empty()) std::fputs((cost + "\n").c_str(), stdout);
  std::fflush(stdout);
  if (results.experiment().interrupted && belongs_to_job()) {
    detail::say("hypertune: interrupted, all is saved; the job goes on with it, unless it was ended");
    return exit_interrupted;
  }
  if (results.experiment().interrupted) {
    detail::say(with_command(fmt::format("hypertune: interrupted, all is saved in {}; go on with:", directory.string()),
                             resume_command(arguments, options), terminal_width(STDERR_FILENO)));
    return exit_interrupted;
  }
  if (allowed_failures > 0 && results.count(TrialState::failed) > static_cast<std::size_t>(allowed_failures)) {
    detail::say(fmt::format("hypertune: the experiment failed: {} trials failed, {} are allowed",
                            results.count(TrialState::failed), allowed_failures));
    return exit_failed;
  }
  const auto best = results.find_best();
  if (!best) {
    std::string why = "no trial has a result";
    try {
      results.best();
    } catch (const Error& error) { why = error.what(); }
    detail::say("hypertune: the experiment failed: " + detail::terminal::printable(why));
    return exit_failed;
  }
  print_best(results);
  fmt::print("results: {}\n", directory.string());
  return exit_done;
}

}  // namespace hypertune::inline v0::command
