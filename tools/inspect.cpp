// status, results, best, export: show what is in an experiment's folder, also while the experiment runs.
#include "commands.hpp"
#include "cost.hpp"
#include "kubernetes_driver.hpp"
#include "terminal_text.hpp"

#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/analysis.hpp>
#include <hypertune/record/arrow_export.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/record/detail/json_text.hpp>
#include <hypertune/record/optuna_export.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/record/trace_export.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

using detail::terminal::printable;

void print(std::string_view text) {
  fmt::print("{}", text);
  if (!text.ends_with('\n')) fmt::print("\n");
}

bool several_objectives(const Results& results) { return results.experiment().objectives.size() > 1; }

std::string front_json(const Results& results) {
  std::string text;
  for (const TrialId id : pareto_front(results))
    text += (text.empty() ? "[" : ",\n ") + results.json(results.trial(id));
  return (text.empty() ? "[" : text) + "]";
}

// The trials that no other trial beats in all objectives, with the values that decide it; at most `most` of them, 0:
// all.
void print_front(const Results& results, const std::string& format, std::size_t most = 0) {
  if (format == "csv") fail(Errc::usage, "--pareto is printed as table or json, not csv");
  if (format == "json") return print(front_json(results));
  const auto front = pareto_front(results);
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (most > 0 && i == most) {
      fmt::print("… and {} more: hypertune best DIR\n", front.size() - most);
      break;
    }
    const TrialResult trial = results.trial(front[i]);
    std::string line = fmt::format("trial {} ", trial.trial);
    for (const auto& objective : results.experiment().objectives)
      if (const double* value = find_metric(trial.metrics, objective.metric))
        line += fmt::format(" {}={:.6g}", printable(objective.metric), *value);
    print_line(line + "  " + printable(fmt::to_string(trial.params)));
  }
}

WhyAnswer ask_what_waits(const std::string& directory, const std::vector<TrialResult>& trials) {
  std::vector<TrialId> numbers;
  for (const auto& trial : trials) numbers.push_back(trial.trial);
  constexpr double patience = 3;  // status must not hang if the driver does
  return ask_why(directory, std::move(numbers), patience);
}

constexpr std::size_t max_waiting = 5;  // most waiting trials that are shown

// The first waiting trials, and how many wait in all.
std::pair<std::vector<TrialResult>, std::size_t> waiting_of(const Results& results) {
  std::vector<TrialResult> first;
  std::size_t waiting = 0;
  for (const auto& trial : results.trials()) {
    if (trial.state != TrialState::pending && trial.state != TrialState::paused) continue;
    if (++waiting <= max_waiting) first.push_back(trial);
  }
  return {std::move(first), waiting};
}

// The first trials in the state running. The driver may report that they still wait for their hosts.
std::vector<TrialResult> first_running(const Results& results) {
  constexpr std::size_t most = 100;
  std::vector<TrialResult> first;
  for (const auto& trial : results.trials())
    if (trial.state == TrialState::running && first.size() < most) first.push_back(trial);
  return first;
}

std::string how_to_resume(const std::string& directory) {
  if (belongs_to_job()) return "its job goes on with it; where that has ended, `hypertune submit --kubernetes` does";
  std::string options = detail::read_file(std::filesystem::path(directory) / options_file).value_or("");
  options = options.substr(0, options.find('\n'));
  return "go on with --resume --output " + detail::shell_quote(directory) +
         (options.empty() ? "" : " " + printable(options));
}

std::string why_waiting(const TrialResult& trial, const WhyAnswer& waits, bool running, const std::string& directory) {
  if (!running) return "no driver runs: " + how_to_resume(directory);
  if (const auto reason = waits.reasons.find(trial.trial); reason != waits.reasons.end()) return reason->second;
  if (waits.paused) return std::string(experiment_paused_text) + ": it waits for `hypertune continue`";
  return trial.state == TrialState::paused ? "it waits for the scheduler to choose it, or for `hypertune continue`"
                                           : "it waits for room among the trials that run";
}

// Prints a sentence for each of the first waiting trials.
void print_waiting(const std::vector<TrialResult>& first, std::size_t waiting, const WhyAnswer& waits, bool running,
                   const std::string& directory) {
  for (const auto& trial : first) {
    const bool paused = trial.state == TrialState::paused;
    const std::string why = why_waiting(trial, waits, running, directory);
    const bool says_paused = paused && why.starts_with("paused ");
    const bool held = trial.state == TrialState::running;
    std::string line = !held
                           ? fmt::format("trial {} is {}{}", trial.trial,
                                         says_paused ? "" : to_string(trial.state) + std::string(": "), printable(why))
                           : fmt::format("trial {} has not begun: {}", trial.trial, printable(why));
    if (trial.cause) line += fmt::format(" (its last attempt: {})", printable(trial.cause->text));
    print_line(line);
  }
  if (waiting > first.size()) fmt::print("… and {} more that wait\n", waiting - first.size());
}

// The trial that was stopped last, and why.
void print_last_stopped(const Results& results) {
  std::optional<TrialResult> last;
  for (const auto& trial : results.trials())
    if (trial.state == TrialState::stopped && trial.cause && (!last || trial.last_record > last->last_record))
      last = trial;
  if (last) print_line(fmt::format("last stopped: trial {}: {}", last->trial, printable(last->cause->text)));
}

}  // namespace

void print_best(const Results& results) {
  if (several_objectives(results)) {
    if (const auto front = pareto_front(results); !front.empty()) {
      fmt::print("best, beaten by no other trial in all objectives ({}):\n", front.size());
      print_front(results, "table", 10);
    }
  } else if (const auto best = results.find_best()) {
    print_line(fmt::format("best: {}", *best));
  }
}

namespace {

void print_attributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes) fmt::print("{}: {}\n", printable(name), printable(to_string(value)));
}

}  // namespace

bool is_paused(const std::string& directory) { return ask_what_waits(directory, {}).paused; }

const char* state_of(const ExperimentInfo& info, bool driven, const std::string& exit_reason, bool paused) {
  if (info.ended) return info.interrupted ? "interrupted" : "ended";
  return driven ? paused ? "paused" : "running" : !exit_reason.empty() ? "failed" : "killed";
}

void refuse_sweep(const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) return;
  const Node root = load_yaml_file(file);
  if (!root.is_map() || !(root.has("trial") || root.has("space"))) return;
  fail(Errc::usage, "'{}' is a sweep: name the folder of its experiment, such as runs/{}; `hypertune list` shows them",
       file, root.has("name") ? root.get("name", std::string()) : std::filesystem::path(file).stem().string());
}

int status(const std::string& directory, const std::string& format) {
  const Results results = Results::read(directory);
  const auto& info = results.experiment();
  const bool ended = info.ended.has_value();
  const auto driver = driver_of(directory);
  const std::string exit_reason = ended || driver ? "" : exit_reason_of(directory);
  const bool runs = driver && !ended;
  auto [waiting, count] = waiting_of(results);
  auto asked = waiting;
  const auto running = first_running(results);
  asked.insert(asked.end(), running.begin(), running.end());
  const std::string wake = runs ? how_to_wake(*driver) : std::string();
  const std::string stopped =
      wake.empty() ? wake : fmt::format("the driver's process is stopped: {} lets it go on", wake);
  const WhyAnswer waits = runs && stopped.empty() ? ask_what_waits(directory, asked) : WhyAnswer();
  for (const auto& trial : running)  // their hosts are not there yet
    if (waits.reasons.contains(trial.trial) && waiting.size() < max_waiting) waiting.push_back(trial);
  const char* state = state_of(info, driver.has_value(), exit_reason, waits.paused);
  const auto best = results.find_best();
  if (format == "json") {
    boost::json::object counts;
    for (int s = 0; s <= static_cast<int>(TrialState::failed); ++s)
      counts[to_string(static_cast<TrialState>(s))] = results.count(static_cast<TrialState>(s));
    boost::json::object object{
        {"name", info.name},         {"state", state},   {"search", info.searcher}, {"schedule", info.scheduler},
        {"executor", info.executor}, {"trials", counts}, {"samples", info.samples}, {"planned", info.planned},
        {"reports", info.reports}};
    object["why"] = !exit_reason.empty() ? exit_reason
                    : !info.why.empty()  ? info.why
                    : !stopped.empty()   ? stopped
                                         : waits.nothing_runs;
    boost::json::array first;
    for (const auto& trial : waiting)
      first.push_back(boost::json::object{{"trial", trial.trial},
                                          {"state", to_string(trial.state)},
                                          {"why", why_waiting(trial, waits, runs, directory)}});
    object["waiting"] = std::move(first);
    boost::json::array aside;
    for (const auto& host : results.hosts())
      if (!host.excluded_why.empty())
        aside.push_back(boost::json::object{{"host", host.host}, {"why", host.excluded_why}});
    object["hosts_aside"] = std::move(aside);
    // Append what is JSON already, instead of parsing it: Boost.JSON may round the last digit.
    std::string text = boost::json::serialize(object);
    text.pop_back();
    hypertune::detail::append_json_object(text += ",\"attributes\":", info.attributes);
    if (several_objectives(results)) text += ",\"front\":" + front_json(results);
    text +=
        fmt::format(",\"best\":{},\"cost\":{}}}", best ? results.json(*best) : "null", cost_json(directory, results));
    print(text);
    return exit_done;
  }
  fmt::print("{}: {}", printable(info.name), state);
  if (driver && !ended && driver->pid > 0) fmt::print(" (process {})", driver->pid);
  if (const auto& why = !exit_reason.empty() ? exit_reason : !info.why.empty() ? info.why : stopped; !why.empty())
    fmt::print(": {}", printable(why));
  fmt::print("\n{} trial{}", results.size(), results.size() == 1 ? "" : "s");
  for (int s = 0; s <= static_cast<int>(TrialState::failed); ++s)
    if (const auto n = results.count(static_cast<TrialState>(s)); n > 0)
      fmt::print(", {} {}", n, to_string(static_cast<TrialState>(s)));
  fmt::print("; {} reports in {:.1f} s\n", info.reports, info.elapsed);
  fmt::print("search {}, schedule {}, executor {}\n", printable(info.searcher), printable(info.scheduler),
             printable(info.executor));
  print_attributes(info.attributes);
  print_best(results);
  print_last_stopped(results);
  if (const auto cost = cost_line(directory, results); !cost.empty()) fmt::print("{}\n", cost);
  for (const auto& host : results.hosts())
    if (!host.excluded_why.empty())
      fmt::print("host {} is set aside: {}\n", printable(host.host), printable(host.excluded_why));
  print_waiting(waiting, count, waits, runs, directory);
  if (!waits.nothing_runs.empty()) print_line(printable(waits.nothing_runs));
  if (!ended && !driver)
    fmt::print("its driver {}: {}\n", exit_reason.empty() ? "was killed" : "ended with that error",
               how_to_resume(directory));
  return exit_done;
}

std::vector<std::string> words_of(const ResultsArguments& arguments) {
  std::vector<std::string> words{"results", "experiment", "--format", arguments.format};
  for (const auto& [given, word] :
       {std::pair(arguments.history, "--history"), std::pair(arguments.cost, "--cost"),
        std::pair(arguments.pareto, "--pareto"), std::pair(arguments.importance, "--importance")})
    if (given) words.emplace_back(word);
  if (arguments.rows > 0) words.insert(words.end(), {"--rows", fmt::to_string(arguments.rows)});
  return words;
}

int results(const ResultsArguments& arguments) {
  const Results results = Results::read(arguments.directory);
  if (arguments.history && arguments.format != "json")
    fail(Errc::usage, "--history goes with --format json: nothing else has room for each report");
  if (arguments.importance) {
    const auto shares = importance(results);
    if (std::none_of(shares.begin(), shares.end(), [](const Importance& one) { return one.share > 0; }))
      fail(Errc::usage,
           "what explains the results cannot be told: it takes several trials whose results and parameters differ");
    for (const auto& parameter : shares)
      fmt::print("{:>6.1f} %  {}\n", 100 * parameter.share, printable(parameter.name));
    return exit_done;
  }
  if (arguments.pareto) {
    print_front(results, arguments.format);
    return exit_done;
  }
  if (arguments.cost && arguments.format != "json")
    fail(Errc::usage, "--cost goes with --format json: the table ends with it anyway");
  if (arguments.format == "json") {
    if (arguments.cost) fmt::print("{{\"cost\":{},\"trials\":", cost_json(arguments.directory, results));
    results.write_json([](std::string_view piece) { fmt::print("{}", piece); }, arguments.history);
    fmt::print("{}\n", arguments.cost ? "}" : "");
  } else if (arguments.format == "csv") {
    print(results.csv());
  } else {
    print(results.table({.rows = arguments.rows, .width = terminal_width()}));
    if (const auto cost = cost_line(arguments.directory, results); !cost.empty()) fmt::print("{}\n", cost);
  }
  return exit_done;
}

int best(const std::string& directory, const std::string& format) {
  const Results results = Results::read(directory);
  const auto best = results.best();  // throws if there is none, with the reason
  if (several_objectives(results))
    print_front(results, format);
  else if (format == "json")
    print(results.json(best));
  else
    print_line(fmt::to_string(best)), print_attributes(best.attributes);
  return exit_done;
}

int export_results(const ExportArguments& arguments) {
  if (arguments.format == "arrow") {
    if (arguments.output.empty())
      fail(Errc::usage, "reports.arrow and trials.arrow are written into a folder: name it with --output");
#ifdef HYPERTUNE_HAS_ARROW
    export_arrow(arguments.directory, arguments.output);
    detail::say(fmt::format("hypertune: wrote {0}/reports.arrow and {0}/trials.arrow", arguments.output));
    return exit_done;
#else
    fail(Errc::usage, "this hypertune was built without FlatBuffers (libflatbuffers-dev), which Arrow's files need");
#endif
  }
  if (arguments.format == "optuna") {
    if (arguments.output.empty()) fail(Errc::usage, "an Optuna storage is a file: name it with --output");
    export_optuna(arguments.directory, arguments.output);
    detail::say(fmt::format("hypertune: wrote {}; open it with: optuna-dashboard sqlite:///{}", arguments.output,
                            arguments.output));
    return exit_done;
  }
  std::ofstream file;
  if (!arguments.output.empty()) {
    std::error_code ignored;  // as for the other formats; if this fails, opening the file will fail
    const auto folder = std::filesystem::path(arguments.output).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    file.open(arguments.output);
    if (!file) fail(Errc::usage, "cannot write '{}'", arguments.output);
  }
  const auto out = [&](std::string_view piece) {
    if (file.is_open())
      file << piece;
    else
      fmt::print("{}", piece);
  };
  const auto done = [&] {
    if (file.is_open() && !file.flush()) fail(Errc::io, "cannot write '{}': is the disk full?", arguments.output);
    if (file.is_open()) detail::say(fmt::format("hypertune: wrote {}", arguments.output));
    return exit_done;
  };
  if (arguments.format == "trace") {
    export_trace(arguments.directory, out);
    return done();
  }
  const Results results = Results::read(arguments.directory);
  if (arguments.schedule)
    out(schedule_json(arguments.trial < 0 ? results.schedule(results.best()) : results.schedule(arguments.trial)));
  else if (arguments.format == "json")
    results.write_json(out, true);
  else
    out(arguments.format == "table" ? results.table() : results.csv());
  return done();
}

}  // namespace hypertune::inline v0::command
