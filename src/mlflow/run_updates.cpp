#include "run_updates.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/detail/json_writer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace hypertune::inline v0::detail::mlflow {

namespace {

// MLflow's limits: of the length of a key, a parameter and a tag, and of the entries of one log-batch request.
constexpr std::size_t longest_key = 250, longest_param = 6000, longest_tag = 5000;
constexpr std::size_t max_entries = 1000, max_params = 100, max_tags = 100;

std::int64_t millis(Seconds time) { return std::isfinite(time) ? std::llround(time * 1000) : 0; }

void put_pairs(JsonWriter& body, const char* name, const auto& begin, const auto& end) {
  if (begin == end) return;
  body.key(name).begin_array();
  for (auto it = begin; it != end; ++it)
    body.begin_object().member("key", it->first).member("value", it->second).end_object();
  body.end_array();
}

// A hash of the whole name keeps names different that have the same shortened form. It is the same in each run, because
// a resumed experiment continues with the same keys.
std::string name_digest(std::string_view name) { return "-" + ContentHash::of(name).substr(0, 8); }

std::string readable_key(std::string_view name) {
  std::string out = cut(name, longest_key);
  for (char& c : out) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      std::string_view("_-. :/").find(c) != std::string_view::npos;
    if (!fine) c = '_';
  }
  // MLflow uses it as a path, which must stay below its folder.
  if (out.empty() || out.front() == '/' || out.front() == '.' || out.back() == '/' ||
      out.find("//") != std::string::npos || out.find("/.") != std::string::npos)
    for (char& c : out)
      if (c == '/' || c == '.') c = '_';
  return out.empty() ? "_" : out;
}

}  // namespace

std::string key_text(std::string_view name) {
  std::string out = readable_key(name);
  if (out == name) return out;
  const std::string digest = name_digest(name);
  return cut(out, longest_key - digest.size()) + digest;
}

std::string cut(std::string_view text, std::size_t bytes) { return std::string(text.substr(0, utf8_cut(text, bytes))); }

struct Take {
  RunUpdates& all;
  const Record& record;

  RunUpdate& run(TrialId trial) const {
    const auto [found, added] = all.runs_.try_emplace(trial);
    if (added) {
      found->second.name = trial == parent_run ? "experiment" : fmt::format("trial {}", trial);
      found->second.created = millis(record.time);
    }
    return found->second;
  }
  void tag(TrialId trial, const std::string& name, const std::string& value) const {
    run(trial).tags[name] = cut(value, longest_tag);
  }

  void operator()(const record::ExperimentStarted& e) const {
    RunUpdate& parent = run(parent_run);
    if (!e.name.empty()) parent.name = e.name;
    parent.status = "RUNNING";
    parent.ended.reset();
    std::string objectives;
    for (const auto& objective : e.objectives)
      objectives += fmt::format("{}{} {}", objectives.empty() ? "" : ", ", to_string(objective.mode), objective.metric);
    // They are tags, because a later start may have other values, and parameters cannot be changed.
    for (const auto& [name, value] : {std::pair<const char*, std::string>("hypertune.search", e.searcher),
                                      {"hypertune.schedule", e.scheduler},
                                      {"hypertune.executor", e.executor},
                                      {"hypertune.samples", fmt::to_string(e.samples)},
                                      {"hypertune.seed", fmt::to_string(e.seed)},
                                      {"hypertune.objectives", objectives},
                                      {"hypertune.space", e.space}})
      tag(parent_run, name, value);
  }
  void operator()(const record::ExperimentEnded& e) const {
    run(parent_run).status = e.interrupted ? "KILLED" : "FINISHED";
    run(parent_run).ended = millis(record.time);
    if (!e.why.empty()) tag(parent_run, "hypertune.why", e.why);
  }
  void operator()(const record::TrialCreated& e) const {
    for (const auto& [name, value] : e.params)
      run(e.trial).params.emplace_back(key_text(name), cut(to_string(value), longest_param));
    if (e.known) tag(e.trial, "hypertune.known", "true");
    tag(e.trial, "hypertune.state", "pending");
  }
  void operator()(const record::TrialStarted& e) const {
    tag(e.trial, "hypertune.state", "running");
    tag(e.trial, "hypertune.host", e.host);
    tag(e.trial, "hypertune.workers", fmt::to_string(e.others.size() + 1));
    if (e.attempt == 0) return;
    run(e.trial).status = "RUNNING";  // it may have ended before
    run(e.trial).ended.reset();
  }
  void operator()(const record::TrialResized& e) const {
    tag(e.trial, "hypertune.workers", fmt::to_string(e.workers.size()));
  }
  void operator()(const record::TrialReported& e) const {
    for (const auto& [name, value] : e.metrics)
      run(e.trial).metrics.push_back({key_text(name), value, millis(record.time), e.step});
  }
  void operator()(const record::TrialPaused& e) const { tag(e.trial, "hypertune.state", "paused"); }
  void operator()(const record::TrialExploited& e) const {
    // A run's own parameters cannot be changed.
    tag(e.trial, "hypertune.params", JsonWriter(JsonFor::file).pairs(e.params).take());
    tag(e.trial, "hypertune.donor", fmt::to_string(e.donor));
  }
  void operator()(const record::AttemptFailed& e) const {
    tag(e.trial, "hypertune.failure", e.cause.text);
    tag(e.trial, "hypertune.state", "pending");
  }
  void operator()(const record::TrialEnded& e) const {
    run(e.trial).status = e.state == TrialState::failed ? "FAILED" : "FINISHED";
    run(e.trial).ended = millis(record.time);
    tag(e.trial, "hypertune.state", to_string(e.state));
    if (e.cause) tag(e.trial, "hypertune.cause", e.cause->text);
  }
  void operator()(const record::AttributesSet& e) const {
    for (const auto& [name, value] : e.attributes)
      tag(e.trial < 0 ? parent_run : e.trial, key_text(name), to_string(value));
  }
  void operator()(const record::TrialCheckpointed& e) const { tag(e.trial, "hypertune.checkpoint", e.checkpoint.name); }
  void operator()(const record::CheckpointDropped&) const {}
  void operator()(const record::HostGained&) const {}
  void operator()(const record::HostLost&) const {}
  void operator()(const record::WorkersRequested&) const {}
};

void RunUpdates::add(const Record& record) { detail::visit(Take{*this, record}, record.what); }

std::vector<std::string> log_batches(const std::string& run, const RunUpdate& update) {
  std::vector<std::string> bodies;
  auto param = update.params.begin();
  auto tag = update.tags.begin();
  auto metric = update.metrics.begin();
  while (param != update.params.end() || tag != update.tags.end() || metric != update.metrics.end()) {
    JsonWriter body(JsonFor::file);
    body.begin_object().member("run_id", run);
    const auto some_params = std::min<std::ptrdiff_t>(max_params, update.params.end() - param);
    put_pairs(body, "params", param, param + some_params);
    param += some_params;
    auto last_tag = tag;
    std::size_t some_tags = 0;
    for (; last_tag != update.tags.end() && some_tags < max_tags; ++some_tags) ++last_tag;
    put_pairs(body, "tags", tag, last_tag);
    tag = last_tag;
    const auto room = static_cast<std::ptrdiff_t>(max_entries - some_tags) - some_params;
    const auto some = std::min<std::ptrdiff_t>(room, update.metrics.end() - metric);
    if (some > 0) body.key("metrics").begin_array();
    for (const auto last = metric + some; metric != last; ++metric)
      body.begin_object()
          .member("key", metric->key)
          .member("value", metric->value)
          .member("timestamp", metric->time)
          .member("step", metric->step)
          .end_object();
    if (some > 0) body.end_array();
    bodies.push_back(body.end_object().take());
  }
  return bodies;
}

}  // namespace hypertune::inline v0::detail::mlflow
