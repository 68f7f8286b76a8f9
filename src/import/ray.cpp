// Ray Tune's folders: one for each trial, with params.json and result.json, which has one line for each result.
#include "study.hpp"

#include <hypertune/detail/read_file.hpp>
#include <hypertune/error.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
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

void add_result(ForeignTrial& trial, const boost::json::object& result, bool& done) {
  ForeignReport report;
  report.step = trial.reports.empty() ? 0 : trial.reports.back().step + 1;
  const auto real = [&](const char* key) {
    const auto* found = result.if_contains(key);
    return found == nullptr ? std::nullopt : number(*found);
  };
  if (const auto step = real("training_iteration"); step && *step >= 1 && *step < std::numeric_limits<int>::max())
    report.step = static_cast<int>(*step) - 1;
  // Steps that were repeated after a restart are in the file twice: the later ones count.
  while (!trial.reports.empty() && trial.reports.back().step >= report.step) trial.reports.pop_back();
  report.time = real("timestamp");
  if (report.time && !trial.started) trial.started = *report.time - real("time_total_s").value_or(0);
  if (report.time) trial.ended = report.time;
  const auto* end = result.if_contains("done");
  done = end != nullptr && end->is_bool() && end->get_bool();
  for (const auto& [key, value] : result) {
    if (key == "config" || ray_keys.contains(std::string_view(key))) continue;
    const auto take = [&](const std::string& name, const boost::json::value& each) {
      if (const auto metric = number(each)) report.metrics.emplace_back(name, *metric);
    };
    if (value.is_object())
      flatten(value.get_object(), std::string(key) + "/", take);
    else
      take(std::string(key), value);
  }
  trial.reports.push_back(std::move(report));
}

ForeignTrial read_trial(const fs::path& folder) {
  ForeignTrial trial;
  trial.name = folder.filename().string();
  const auto params =
      parse_json(detail::read_file(folder / "params.json").value_or(""), (folder / "params.json").string());
  if (!params.is_object()) fail(Errc::input, "'{}' is no object", (folder / "params.json").string());
  flatten(params.get_object(), "", [&](const std::string& name, const boost::json::value& value) {
    trial.params.set(name, plain_value(value));
  });
  bool done = false;
  std::ifstream results(folder / "result.json");
  std::string line;
  for (std::size_t at = 1; std::getline(results, line); ++at) {
    if (line.empty()) continue;
    if (results.eof() && line.back() != '}') break;  // an incomplete last line, still being written
    const auto value = parse_json(line, fmt::format("{}:{}", (folder / "result.json").string(), at));
    if (value.is_object()) add_result(trial, value.get_object(), done);
  }
  std::string error = detail::read_file(folder / "error.txt").value_or("");
  while (!error.empty() && (error.back() == '\n' || error.back() == ' ')) error.pop_back();
  if (!error.empty() || fs::exists(folder / "error.pkl")) {
    trial.state = TrialState::failed;
    trial.cause = error.empty() ? "failed in Ray" : error.substr(error.rfind('\n') + 1);
  } else if (done) {
    trial.state = TrialState::completed;
  } else if (!trial.reports.empty()) {  // ended from outside; Ray does not record by whom
    trial.state = TrialState::stopped;
    trial.cause = "ended in Ray before it was done";
  }
  return trial;
}

}  // namespace

ForeignStudy read_ray(const fs::path& folder, const ImportOptions& options) {
  std::vector<fs::path> folders;
  if (fs::exists(folder / "params.json")) folders.push_back(folder);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && fs::exists(entry.path() / "params.json")) folders.push_back(entry.path());
  if (folders.empty())
    fail(Errc::input, "'{}' has no results of Ray Tune: no folder in it has a params.json", folder.string());
  std::sort(folders.begin(), folders.end());
  ForeignStudy out;
  out.name = fs::absolute(folder / "").parent_path().filename().string();
  out.what = fmt::format("'{}' of Ray Tune", out.name);
  out.searcher = "Ray Tune";
  out.name_attribute = "ray_trial";
  std::set<std::string> metrics;
  for (const auto& path : folders) {
    try {
      out.trials.push_back(read_trial(path));
    } catch (const Error& error) {  // for example only half written, because the disk was full
      if (error.code() != Errc::input) throw;
      if (out.damaged++ == 0) out.damage = error.what();
      continue;
    }
    for (const auto& report : out.trials.back().reports)
      for (const auto& [name, value] : report.metrics) metrics.insert(name);
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
