// Ray Tune's folders: one for each trial, with params.json and result.json, which has one line for each result. What
// became of the trials is only in the experiment's newest experiment_state-*.json, as JSON texts within JSON.
#include "study.hpp"

#include <hypertune/detail/json_read.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace hypertune::inline v0::detail::import {

namespace {

namespace fs = std::filesystem;

// The keys that Ray itself adds to each result.
const std::set<std::string, std::less<>> ray_keys{"timesteps_total",
                                                  "episodes_total",
                                                  "training_iteration",
                                                  "trial_id",
                                                  "experiment_id",
                                                  "date",
                                                  "timestamp",
                                                  "time_this_iter_s",
                                                  "time_total_s",
                                                  "pid",
                                                  "hostname",
                                                  "node_ip",
                                                  "time_since_restore",
                                                  "timesteps_since_restore",
                                                  "iterations_since_restore",
                                                  "done",
                                                  "should_checkpoint",
                                                  "checkpoint_dir_name",
                                                  "warmup_time",
                                                  "experiment_tag"};

// What the experiment's state has about a trial.
struct RayState {
  std::string folder, status;           // the status: PENDING, RUNNING, PAUSED, TERMINATED or ERROR
  bool began = false;                   // it was started at least once
  std::optional<bool> done;             // of its last result; none: there is none
  std::map<std::string, double> until;  // its stop criteria: it is stopped at a result that has as much of one
};

// What the results in a file say about the trial's end.
struct RayEnd {
  bool done = false;      // the last result: Ray stopped it there. A function that returned leaves no such result.
  bool function = false;  // the trainable is a function, not a class
  std::map<std::string, double> last;
};

// Joins the names of nested values with '/', as Ray does.
template <class Take>
void flatten(const boost::json::object& object, const std::string& prefix, const Take& take) {
  for (const auto& [key, value] : object) {
    const std::string name = prefix + std::string(key);
    if (value.is_object())
      flatten(value.get_object(), name + "/", take);
    else
      take(name, value);
  }
}

std::optional<double> metric(const boost::json::value& value) {
  return value.is_bool() ? std::optional<double>(value.get_bool() ? 1 : 0) : number(value);
}

// A text that is the JSON of an object, or such an object.
boost::json::object object_within(const boost::json::value& value, const std::string& where) {
  const auto inner = value.is_string() ? parse_json(value.get_string(), where) : value;
  return inner.is_object() ? inner.get_object() : boost::json::object();
}

// `entry`: a pair of the trial and what changes while it runs (since Ray 2.5), or both in one.
RayState read_state(const boost::json::value& entry, const std::string& where) {
  boost::json::object trial, run;
  if (!entry.is_array())
    trial = run = object_within(entry, where);
  else if (!entry.get_array().empty())
    trial = object_within(entry.get_array().front(), where), run = object_within(entry.get_array().back(), where);
  RayState state;
  state.folder = text_in(trial, "relative_logdir");
  if (state.folder.empty()) state.folder = fs::path(text_in(trial, "logdir")).filename().string();
  state.status = text_in(trial, "status");
  const auto* start = run.if_contains("start_time");
  state.began = start == nullptr || !start->is_null();
  for (const char* key : {"last_result", "_last_result"})
    if (const auto* result = object_in(run, key); result != nullptr && !result->empty())
      state.done = flag_in(*result, "done");
  if (const auto* until = object_in(trial, "stopping_criterion"))
    flatten(*until, "", [&](const std::string& name, const boost::json::value& value) {
      if (const auto bound = metric(value)) state.until[name] = *bound;
    });
  return state;
}

// The state of all trials of the newest run in the folder. A run that was killed may have left half a file: then what
// an earlier run left holds no information about its trials, and there is none.
std::vector<RayState> read_states(const fs::path& folder) {
  std::string newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("experiment_state-") && name.ends_with(".json")) newest = std::max(newest, name);
  }
  if (newest.empty()) return {};
  const std::string where = (folder / newest).string();
  std::vector<RayState> states;
  try {
    const auto value = parse_json(detail::read_file(where).value_or(""), where);
    for (const char* key : {"trial_data", "checkpoints"})
      if (const auto* list = array_in(value, key))
        for (const auto& entry : *list) states.push_back(read_state(entry, where));
  } catch (const Error& error) {
    if (error.code() != Errc::input) throw;
    return {};
  }
  return states;
}

void add_result(ForeignTrial& trial, const boost::json::object& result, RayEnd& end) {
  ForeignReport report;
  report.step = trial.reports.empty() ? 0 : trial.reports.back().step + 1;
  end = {flag_in(result, "done"), result.contains("checkpoint_dir_name"), {}};
  flatten(result, "", [&](const std::string& name, const boost::json::value& value) {
    if (const auto real = metric(value)) end.last[name] = *real;
  });
  const auto real = [&](const char* key) {
    const auto found = end.last.find(key);
    return found == end.last.end() ? std::nullopt : std::optional(found->second);
  };
  if (const auto step = real("training_iteration"); step && *step >= 1 && *step < std::numeric_limits<int>::max())
    report.step = static_cast<int>(*step) - 1;
  // Steps that were repeated after a restart are in the file twice: the later ones count.
  while (!trial.reports.empty() && trial.reports.back().step >= report.step) trial.reports.pop_back();
  report.time = real("timestamp");
  if (report.time && !trial.started) trial.started = *report.time - real("time_total_s").value_or(0);
  if (report.time) trial.ended = report.time;
  for (const auto& [key, value] : result) {
    if (key == "config" || ray_keys.contains(std::string_view(key))) continue;
    const auto take = [&](const std::string& name, const boost::json::value& each) {
      if (const auto number = metric(each)) report.metrics.emplace_back(name, *number);
    };
    if (value.is_object())
      flatten(value.get_object(), std::string(key) + "/", take);
    else
      take(std::string(key), value);
  }
  trial.reports.push_back(std::move(report));
}

// The last line of each failure in error.txt, which begins with "Failure # 1 (occurred at …)". The file stays there if
// the trial is tried again, and when that succeeds.
std::vector<std::string> failures(const std::string& text) {
  std::vector<std::string> causes;
  bool first = true;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line); first = false) {
    if (first || line.starts_with("Failure # ")) causes.emplace_back();
    if (line.find_first_not_of(" \r") != std::string::npos) causes.back() = line;
  }
  return causes;
}

// Without a state: of an incomplete copy of the folder.
std::string guessed_status(const RayEnd& end, bool any_failure) {
  if (any_failure && !end.done) return "ERROR";
  return end.done ? "TERMINATED" : "RUNNING";
}

ForeignTrial read_trial(const fs::path& folder, const RayState* state) {
  ForeignTrial trial;
  trial.name = folder.filename().string();
  const auto params =
      parse_json(detail::read_file(folder / "params.json").value_or(""), (folder / "params.json").string());
  if (!params.is_object()) fail(Errc::input, "'{}' is no object", (folder / "params.json").string());
  flatten(params.get_object(), "", [&](const std::string& name, const boost::json::value& value) {
    trial.params.set(name, plain_value(value));
  });
  RayEnd end;
  std::ifstream results(folder / "result.json");
  std::string line;
  for (std::size_t at = 1; std::getline(results, line); ++at) {
    if (line.empty()) continue;
    if (results.eof() && line.back() != '}') break;  // an incomplete last line, still being written
    const auto value = parse_json(line, fmt::format("{}:{}", (folder / "result.json").string(), at));
    if (value.is_object()) add_result(trial, value.get_object(), end);
  }
  trial.retried = failures(detail::read_file(folder / "error.txt").value_or(""));
  const bool any_failure = !trial.retried.empty() || fs::exists(folder / "error.pkl");
  const std::string status = state != nullptr ? state->status : guessed_status(end, any_failure);
  const auto stopped = [&](std::string cause) {
    trial.state = TrialState::stopped;
    trial.cause = std::move(cause);
  };
  if (status == "ERROR") {
    trial.state = TrialState::failed;
    trial.cause = "failed in Ray";
    if (!trial.retried.empty()) {
      if (!trial.retried.back().empty()) trial.cause = trial.retried.back();
      trial.retried.pop_back();
    }
  } else if (status == "TERMINATED" && end.done) {
    std::string reached;
    if (state != nullptr)
      for (const auto& [name, bound] : state->until)
        if (const auto last = end.last.find(name); last != end.last.end() && last->second >= bound)
          reached = fmt::format("{} reached {} (asked for {})", name, last->second, bound);
    if (!reached.empty())
      stopped(std::move(reached));
    else if (end.function)
      stopped(fmt::format("{}Ray Tune: by its scheduler or a stopper", record::stopped_by));
    else  // a class can also say so itself
      stopped("done in Ray Tune: by itself, its scheduler or a stopper");
  } else if (status == "TERMINATED" && state->done.value_or(true)) {
    if (state->began || !trial.reports.empty()) trial.state = TrialState::completed;
  } else if (!trial.reports.empty()) {
    stopped(fmt::format("{}the end of Ray Tune's run", record::stopped_by));
  }
  return trial;
}

}  // namespace

ForeignStudy read_ray(const fs::path& folder, const ImportOptions& options) {
  const bool single = fs::exists(folder / "params.json");
  std::set<std::string> folders;  // that are there
  const fs::path experiment = single ? fs::absolute(folder / "").parent_path().parent_path() : folder;
  if (single) folders.insert(fs::absolute(folder / "").parent_path().filename().string());
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(experiment, ignored))
    if (!single && entry.is_directory(ignored) && fs::exists(entry.path() / "params.json"))
      folders.insert(entry.path().filename().string());
  if (folders.empty())
    fail(Errc::input, "'{}' has no results of Ray Tune: no folder in it has a params.json", folder.string());
  ForeignStudy out;
  out.name = fs::absolute(folder / "").parent_path().filename().string();
  out.what = fmt::format("'{}' of Ray Tune", out.name);
  out.searcher = "Ray Tune";
  out.name_attribute = "ray_trial";
  std::map<std::string, RayState> states;
  for (RayState& state : read_states(experiment)) {
    if (!single && !folders.contains(state.folder)) out.trials.emplace_back();  // it never began
    states.insert_or_assign(state.folder, std::move(state));
  }
  std::set<std::string> metrics;
  for (const auto& name : folders) {
    const auto state = states.find(name);
    if (!single && !states.empty() && state == states.end()) {
      ++out.earlier;
      continue;
    }
    try {
      out.trials.push_back(read_trial(experiment / name, state == states.end() ? nullptr : &state->second));
    } catch (const Error& error) {  // for example only half written, because the disk was full
      if (error.code() != Errc::input) throw;
      if (out.damaged++ == 0) out.damage = error.what();
      continue;
    }
    for (const auto& report : out.trials.back().reports)
      for (const auto& [metric, value] : report.metrics) metrics.insert(metric);
  }
  if (options.metric.empty() || !options.mode)
    fail(Errc::usage, "Ray does not write down what was tuned: name it with --metric and --mode (reported were: {})",
         fmt::join(metrics, ", "));
  if (!metrics.contains(options.metric))
    fail(Errc::usage, "no trial of '{}' reported '{}'; reported were: {}", folder.string(), options.metric,
         fmt::join(metrics, ", "));
  out.objectives = {{options.metric, *options.mode}};
  return out;
}

}  // namespace hypertune::inline v0::detail::import
