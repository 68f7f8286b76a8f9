// stop, pause, continue, resize, add, note: requests to the driver of a running experiment. list: finds experiments.
#include "commands.hpp"

#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/record/journal.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

namespace fs = std::filesystem;
using detail::terminal::printable;

int tell(const ControlAnswer& answer) {
  std::string_view rest = answer.text;
  while (!rest.empty()) {
    const auto line = printable(detail::take_until(rest, '\n'));
    answer.done ? fmt::print("{}\n", line) : detail::say("hypertune: " + line);
  }
  return answer.done ? exit_done : exit_usage;
}

int tell_after_asking(const std::string& directory, const ControlRequest& request) {
  try {
    return tell(ask_driver(directory, request,
                           {.notice = [](const std::string& text) { detail::say("hypertune: " + printable(text)); }}));
  } catch (const Error& error) {
    if (error.code() != Errc::busy) throw;
    detail::say("hypertune: " + printable(error.what()));
    return exit_unanswered;
  }
}

int ask(const ControlArguments& arguments, ControlRequest request) {
  for (const auto& text : arguments.trials) request.trials.push_back(trial_number(text));
  return tell_after_asking(arguments.directory, request);
}

// NAME=VALUE, with the value in YAML.
void take_pair(const std::string& text, const char* what, Params& params) {
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) fail(Errc::usage, "{} is NAME=VALUE, not '{}'", what, text);
  const auto name = text.substr(0, equals);
  if (params.contains(name)) fail(Errc::usage, "'{}' is given twice", name);
  const std::string value = text.substr(equals + 1);
  if (detail::is_beyond_whole(value))
    fail(Errc::usage, "{}={}: whole numbers go from {} to {}; write it in quotes to pass it on as a text", name, value,
         std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  params.set(name, load_yaml_text(value, name).scalar());
}

// Records a note if no driver runs. Opening the Journal takes the experiment's lock. The records get the time of the
// last record, so that the time since then does not count as running time.
ControlAnswer note_offline(const fs::path& directory, const ControlRequest& request) {
  Journal journal = Journal::open(directory);
  const Results results = Results::read(directory);
  ControlAnswer answer;
  std::vector<record::AttributesSet> changes;
  const auto note = [&](TrialId trial, Attributes all, const std::string& whose) {
    auto [changed, line] = detail::noted(whose, std::move(all), request.params);
    answer.text += (answer.text.empty() ? "" : "\n") + line;
    if (!changed.empty()) changes.push_back({trial, std::move(changed)});
  };
  if (request.trials.empty()) note(-1, results.experiment().attributes, "the experiment");
  for (const TrialId trial : request.trials)
    note(trial, results.trial(trial).attributes, fmt::format("trial {}", trial));
  // All or none: errors were thrown before this point.
  for (auto& change : changes) journal.append(results.experiment().updated, std::move(change));
  journal.flush();
  return answer;
}

// Folders of experiments, ordered by name; does not look inside of an experiment.
void find_experiments(const fs::path& folder, int depth, std::vector<fs::path>& found) {
  constexpr int deepest = 6;
  if (has_journal(folder)) {
    found.push_back(folder);
    return;
  }
  if (depth == deepest) return;
  std::error_code ignored;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, ignored))
    if (entry.is_directory(ignored) && !entry.is_symlink(ignored) && !entry.path().filename().string().starts_with('.'))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  for (const auto& path : folders) find_experiments(path, depth + 1, found);
}

}  // namespace

std::vector<fs::path> experiments_below(const fs::path& folder) {
  std::vector<fs::path> found;
  find_experiments(folder, 0, found);
  return found;
}

std::int64_t trial_number(const std::string& text) {
  const auto number = detail::parse_number<std::int64_t>(text);
  if (!number || *number < 0) fail(Errc::usage, "a trial's number is a whole number from 0, not '{}'", text);
  return *number;
}

int stop(const ControlArguments& arguments) {
  using Kind = ControlRequest::Kind;
  if (arguments.now && !arguments.trials.empty())
    fail(Errc::usage, "--now is for the whole experiment: a trial is told to stop at once anyway");
  return ask(arguments, {.kind = !arguments.trials.empty() ? Kind::stop
                                 : arguments.now           ? Kind::leave_now
                                                           : Kind::leave});
}

int pause(const ControlArguments& arguments) { return ask(arguments, {.kind = ControlRequest::Kind::pause}); }

int proceed(const ControlArguments& arguments) { return ask(arguments, {.kind = ControlRequest::Kind::proceed}); }

int resize(const ControlArguments& arguments) {
  return ask(arguments,
             {.kind = ControlRequest::Kind::resize, .params = {{"workers", std::int64_t{arguments.workers}}}});
}

int add(const ControlArguments& arguments) {
  ControlRequest request{.kind = ControlRequest::Kind::add};
  for (const auto& text : arguments.params) take_pair(text, "a parameter", request.params);
  return ask(arguments, std::move(request));
}

int note(const ControlArguments& arguments) {
  ControlRequest request{.kind = ControlRequest::Kind::note};
  for (const auto& text : arguments.params) {
    const auto digits = text.find_first_not_of("+-");
    const bool number =
        digits <= 1 && text.find_first_not_of("0123456789", digits) == std::string::npos;  // with or without a sign
    if (number)
      request.trials.push_back(trial_number(text));
    else if (text.find('=') == std::string::npos)
      request.params.set(text, true);
    else
      take_pair(text, "an attribute", request.params);
  }
  if (request.params.empty()) fail(Errc::usage, "what is to be noted? NAME=VALUE, or a name alone for a tag");
  for (const auto& [name, value] : request.params) detail::require_attribute_name(name);
  if (!has_journal(arguments.directory)) fail(Errc::usage, "there is no experiment in '{}'", arguments.directory);
  return driver_of(arguments.directory) ? tell_after_asking(arguments.directory, request)
                                        : tell(note_offline(arguments.directory, request));
}

int list(const std::string& directory, const std::string& format) {
  if (!fs::is_directory(directory)) fail(Errc::usage, "there is no folder '{}'", directory);
  const auto found = experiments_below(directory);
  boost::json::array all;
  struct Row {
    std::string folder, state, trials, best;
  };
  std::vector<Row> rows{{"folder", "state", "trials", "best"}};
  for (const auto& path : found) {
    try {
      const Results results = Results::read(path);
      const auto& info = results.experiment();
      const bool driven = driver_of(path).has_value();
      const bool runs = driven && !info.ended;
      const char* state =
          state_of(info, driven, info.ended || driven ? "" : exit_reason_of(path), runs && is_paused(path.string()));
      const auto best = results.find_best();
      boost::json::object object{{"folder", path.string()},  {"name", info.name},
                                 {"state", state},           {"trials", results.size()},
                                 {"ended", results.ended()}, {"samples", info.samples},
                                 {"planned", info.planned},  {"failed", results.count(TrialState::failed)}};
      object["best"] = best ? boost::json::parse(results.json(*best)) : boost::json::value();
      all.push_back(std::move(object));
      rows.push_back({path.string(), state,
                      fmt::format("{}/{}", results.ended(),
                                  info.planned > 0 ? info.planned : static_cast<std::int64_t>(results.size())),
                      best && best->best
                          ? fmt::format("{}={:.6g} (trial {})", best->best->metric, best->best->value, best->trial)
                          : "-"});
    } catch (const Error& error) {
      all.push_back(boost::json::object{{"folder", path.string()}, {"error", error.what()}});
      rows.push_back({path.string(), "unreadable", "-", error.what()});
    }
  }
  if (format == "json") {
    fmt::print("{}\n", boost::json::serialize(all));
    return exit_done;
  }
  if (found.empty()) {
    fmt::print("no experiment in '{}'\n", printable(directory));
    return exit_done;
  }
  std::size_t first = 0, second = 0, third = 0;
  for (auto& row : rows) {
    row.folder = printable(row.folder);
    first = std::max(first, row.folder.size());
    second = std::max(second, row.state.size());
    third = std::max(third, row.trials.size());
  }
  for (const auto& row : rows)
    fmt::print("{:<{}}  {:<{}}  {:>{}}  {}\n", row.folder, first, row.state, second, row.trials, third,
               printable(row.best));
  return exit_done;
}

}  // namespace hypertune::inline v0::command
