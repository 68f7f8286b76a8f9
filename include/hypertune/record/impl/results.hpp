// Implementation of Results: taking in records and answering queries.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/detail/feasibility.hpp>
#include <hypertune/record/detail/host_ledger.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/record/detail/planned_trials.hpp>
#include <hypertune/record/detail/text_table.hpp>
#include <hypertune/record/detail/trial_data.hpp>
#include <hypertune/record/impl/results_state.hpp>
#include <hypertune/record/results.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::detail {

std::vector<CheckpointInfo> TrialData::kept() const {
  std::vector<CheckpointInfo> list;
  for (Decoder in(checkpoints); !in.at_end();) list.push_back(in.checkpoint());
  return list;
}

void TrialData::keep(const std::vector<CheckpointInfo>& list) {
  checkpoints.clear();
  for (const auto& info : list) Encoder(checkpoints).put(info);
  checkpoints.shrink_to_fit();
}

}  // namespace hypertune::inline v0::detail

namespace hypertune::inline v0 {

Results Results::read(const std::filesystem::path& directory) {
  Results results(directory);
  results.update();
  return results;
}

void Results::update() {
  JournalReader reader(directory());
  reader.read([this](const Record& record) { add(record); }, self().info.records + 1);
  if (self().stale) {  // the constraints have changed: earlier reports are judged by the new ones, too
    Results anew(directory());
    anew.judge_by(self().info.constraints, self().info.records);
    reader.read([&](const Record& record) { anew.add(record); }, 1);
    *this = std::move(anew);
  }
  // A driver that was killed could not record that its trials no longer run.
  if (!driver_of(directory())) nothing_runs();
}

const detail::ResultsState& Results::self() const { return state_.or_default(); }

detail::ResultsState& Results::self() { return state_.made(); }

const ExperimentInfo& Results::experiment() const { return self().info; }

std::size_t Results::size() const { return self().trials.size(); }

std::optional<TrialResult> Results::find_best() const { return find_best(first_objective()); }

const std::vector<std::string>& Results::metrics() const { return self().names; }

auto Results::find(TrialId id) -> TrialData* { return const_cast<TrialData*>(std::as_const(*this).find(id)); }

TrialResult Results::trial(TrialId id) const {
  const auto* data = find(id);
  if (data == nullptr) fail(Errc::usage, "there is no trial {} (there are {})", id, self().trials.size());
  return result(*data, first_objective());
}

TrialResult Results::best() const {
  const Objective objective = first_objective();
  if (auto found = find_best(objective)) return std::move(*found);
  const auto name = name_of(objective.metric);
  const bool any = name && std::any_of(self().trials.begin(), self().trials.end(), [&](const TrialData& trial) {
                     const auto* metric = trial.metric(*name);
                     return metric != nullptr && metric->has_best();
                   });
  const std::string why = any ? detail::format("all that reported a finite '{}' have failed", objective.metric)
                              : detail::format("none reported a finite '{}'", objective.metric);
  fail(Errc::experiment, "no trial has a result: {} ({}){}{}", why, counts_text(), last_cause(), how_to_go_on());
}

TrialResult Results::best(std::string_view metric, std::optional<Mode> mode) const {
  for (const auto& objective : self().info.objectives)
    if (objective.metric == metric && !mode) mode = objective.mode;
  if (!name_of(metric))
    fail(Errc::usage, "no trial reported a metric '{}'; reported were: {}", metric, fmt::join(self().names, ", "));
  if (!mode) fail(Errc::usage, "'{}' is no objective: say whether to minimize or to maximize it (Mode::…)", metric);
  if (auto found = find_best({std::string(metric), *mode})) return std::move(*found);
  fail(Errc::experiment, "no trial reported a finite '{}' ({})", metric, counts_text());
}

void Results::history(TrialId trial, const std::function<void(const Record&)>& visitor) const {
  const auto* data = find(trial);
  if (data == nullptr) fail(Errc::usage, "there is no trial {} (there are {})", trial, self().trials.size());
  JournalReader(directory()).history(trial, visitor, data->first_record, data->last_record);
}

const std::filesystem::path& Results::directory() const {
  if (self().directory.empty())
    fail(Errc::usage, "these results were not read from a folder: use Results::read(directory)");
  return self().directory;
}

std::optional<BestReport> Results::best_of(const TrialData& data, const Objective& objective) const {
  const auto name = name_of(objective.metric);
  const auto* metric = name ? data.metric(*name) : nullptr;
  if (metric == nullptr || !metric->has_best()) return std::nullopt;
  return BestReport{objective.metric, metric->best_step(objective.mode), metric->best(objective.mode)};
}
std::optional<std::uint32_t> Results::name_of(std::string_view name) const {
  for (std::size_t i = 0; i < self().names.size(); ++i)
    if (self().names[i] == name) return static_cast<std::uint32_t>(i);
  return std::nullopt;
}
std::uint32_t Results::intern(const std::string& name) {
  if (const auto found = name_of(name)) return *found;
  self().names.push_back(name);
  return static_cast<std::uint32_t>(self().names.size() - 1);
}

// Trials are numbered 0, 1, 2, …, so that the number is nearly always the index.
auto Results::find(TrialId id) const -> const TrialData* {
  if (id >= 0 && static_cast<std::size_t>(id) < self().trials.size() &&
      self().trials[static_cast<std::size_t>(id)].id == id)
    return &self().trials[static_cast<std::size_t>(id)];
  const auto at = std::lower_bound(self().trials.begin(), self().trials.end(), id,
                                   [](const TrialData& trial, TrialId value) { return trial.id < value; });
  return at != self().trials.end() && at->id == id ? &*at : nullptr;
}

void Results::set_state(TrialData& trial, TrialState state) {
  self().counts.move(trial.state, state);
  trial.state = state;
}
void Results::nothing_runs() {
  if (count(TrialState::running) == 0) return;
  for (auto& trial : self().trials)
    if (trial.state == TrialState::running) set_state(trial, TrialState::pending);
}

std::vector<HostUse> Results::hosts() const { return self().ledger ? self().ledger->hosts() : std::vector<HostUse>(); }
std::int64_t Results::repeated_steps() const { return self().ledger ? self().ledger->repeated_steps() : 0; }

void Results::add(const Record& record) {
  self().info.records = record.sequence;
  self().info.updated = record.time;
  if (!self().ledger) self().ledger = detail::Indirect(detail::HostLedger());
  self().ledger->add(record);
  detail::visit(
      [&]<class Event>(const Event& event) {
        if constexpr (std::is_same_v<Event, record::AttributesSet>) {
          take(event, record.time);
        } else if constexpr (requires(TrialData& trial) { take(trial, event, record.time); }) {
          TrialData* trial = find(event.trial);
          if (trial == nullptr) return;  // never created: the record is not this program's
          trial->last_record = record.sequence;
          take(*trial, event, record.time);
        } else if constexpr (requires { take(event, record.time); }) {
          take(event, record.time);
        }
      },
      record.what);
  self().info.elapsed = elapsed_at(record.time);
}

void Results::take(const record::ExperimentStarted& event, Seconds time) {
  self().earlier = self().info.elapsed;
  self().session_start = time;
  if (self().info.starts == 0) {
    self().info.seed = event.seed;
    self().info.started = time;
  }
  ++self().info.starts;
  self().info.name = event.name;
  if (!event.objectives.empty()) self().info.objectives = event.objectives;
  if (self().info.records > self().judged_until && event.constraints != self().info.constraints) {
    self().stale = self().info.reports > 0;
    self().info.constraints = event.constraints;
  }
  self().info.space = event.space;
  self().info.searcher = event.searcher;
  self().info.scheduler = event.scheduler;
  self().info.searcher_options = event.searcher_options;
  self().info.scheduler_options = event.scheduler_options;
  self().info.command = event.command;
  self().info.executor = event.executor;
  self().info.samples = event.samples;
  self().planned.add(event);
  self().info.planned = self().planned.count();
  self().info.ended.reset();
  self().info.interrupted = false;
  self().info.why.clear();
  nothing_runs();
}
void Results::take(const record::ExperimentEnded& event, Seconds time) {
  self().info.ended = time;
  self().info.interrupted = event.interrupted;
  self().info.why = event.why;
  nothing_runs();
}
void Results::take(const record::TrialCreated& event, Seconds time) {
  if (find(event.trial) != nullptr) return;
  self().planned.add(event);
  self().info.planned = self().planned.count();
  TrialData trial;
  trial.id = event.trial;
  trial.first_record = trial.last_record = self().info.records;
  trial.created = time;
  trial.known = event.known;
  detail::Encoder(trial.configuration).put(event.point, event.params);
  trial.configuration.shrink_to_fit();
  self().counts.add(trial.state);
  const auto at = std::upper_bound(self().trials.begin(), self().trials.end(), trial.id,
                                   [](TrialId id, const TrialData& other) { return id < other.id; });
  self().trials.insert(at, std::move(trial));
}
void Results::take(const record::AttributesSet& event, Seconds) {
  if (event.trial >= 0 && find(event.trial) == nullptr) return;  // never created: the record is not this program's
  Attributes& all = event.trial < 0 ? self().info.attributes : self().attributes[event.trial];
  for (const auto& [name, value] : event.attributes) all.set(name, value);
}
void Results::take(TrialData& trial, const record::TrialStarted&, Seconds time) {
  set_state(trial, TrialState::running);
  ++trial.attempts;
  trial.ended = trial.duration = std::numeric_limits<Seconds>::quiet_NaN();  // a trial that had ended goes on
  if (!std::isnan(trial.started)) return;
  trial.started = time;
  trial.started_after = elapsed_at(time);
}
void Results::take(TrialData& trial, const record::TrialReported& event, Seconds) {
  ++self().info.reports;
  if (trial.state == TrialState::pending && !trial.known) set_state(trial, TrialState::running);
  double violation = 0;
  if (!self().info.constraints.empty()) {
    const bool learnt = detail::update_excesses(trial.excesses, self().info.constraints, event.metrics);
    violation = detail::violation(trial.excesses, self().info.constraints);
    if (learnt)  // it also applies to earlier reports
      for (auto& metric : trial.metrics)
        if (std::isinf(metric.violation)) metric.violation = violation;
  }
  for (const auto& [name, value] : event.metrics) trial.report(event.step, intern(name), value, violation);
  trial.steps = event.step + 1;
}
void Results::take(TrialData& trial, const record::TrialCheckpointed& event, Seconds) {
  auto kept = trial.kept();
  kept.push_back(event.checkpoint);
  trial.keep(kept);
}
void Results::take(TrialData& trial, const record::CheckpointDropped& event, Seconds) {
  auto kept = trial.kept();
  std::erase_if(kept, [&](const CheckpointInfo& info) { return info.name == event.checkpoint.name; });
  if (trial.former && trial.former->of(event.checkpoint.name)) {
    auto former = *trial.former;
    std::erase_if(former.saved, [&](const auto& each) { return each.checkpoint == event.checkpoint.name; });
    trial.former = std::make_shared<const detail::FormerLines>(std::move(former));
  }
  trial.keep(kept);
}
void Results::take(TrialData& trial, const record::TrialPaused&, Seconds) { set_state(trial, TrialState::paused); }
void Results::take(TrialData& trial, const record::TrialExploited& event, Seconds) {
  const auto line_of = [](const TrialData& data) {
    return data.line ? data.line : std::make_shared<const detail::LineNode>(0, data.id, data.configuration, nullptr);
  };
  if (find(event.donor) == nullptr) return;  // the record is not this program's
  // The checkpoint may be another trial's, if the donor took it over and has not saved since.
  TrialData* owner = find(event.checkpoint.trial);
  if (owner == nullptr) owner = find(event.donor);
  auto line = owner->former ? owner->former->of(event.checkpoint.name) : nullptr;
  if (!line) line = owner->line = line_of(*owner);  // shared by all trials that take over from it

  auto former = trial.former ? *trial.former : detail::FormerLines{};
  const auto best = self().info.objectives.empty() ? std::nullopt : best_of(trial, self().info.objectives.front());
  if (best && !(former.best && former.best->value == best->value && former.best->step == best->step))
    former.best = {line_of(trial), best->value, best->step};
  for (const auto& own : trial.kept())
    if (!former.of(own.name)) former.saved.push_back({own.name, trial.line = line_of(trial)});
  trial.former = std::make_shared<const detail::FormerLines>(std::move(former));
  trial.configuration.clear();
  detail::Encoder(trial.configuration).put(event.point, event.params);
  trial.configuration.shrink_to_fit();
  trial.line =
      std::make_shared<const detail::LineNode>(event.checkpoint.steps, trial.id, trial.configuration, std::move(line));
}
std::vector<ScheduleEntry> Results::schedule(TrialId id) const {
  const auto* data = find(id);
  if (data == nullptr) fail(Errc::usage, "there is no trial {} (there are {})", id, self().trials.size());
  return schedule(*data, data->line.get());
}
std::vector<ScheduleEntry> Results::schedule(const TrialResult& trial) const {
  if (!trial.best) return schedule(trial.trial);
  const auto* data = find(trial.trial);
  if (data == nullptr) fail(Errc::usage, "there is no trial {} (there are {})", trial.trial, self().trials.size());
  const auto* before = data->former && data->former->best ? &*data->former->best : nullptr;
  const bool since = before != nullptr && before->value == trial.best->value && before->step == trial.best->step;
  auto entries = schedule(*data, since ? before->line.get() : data->line.get());
  std::erase_if(entries, [&](const ScheduleEntry& entry) { return entry.from_step > trial.best->step; });
  return entries;
}
std::vector<double> Results::excesses(TrialId id) const {
  const auto* data = find(id);
  if (data == nullptr) fail(Errc::usage, "there is no trial {} (there are {})", id, self().trials.size());
  auto excesses = data->excesses;
  excesses.resize(self().info.constraints.size(), detail::unknown_excess);
  return excesses;
}
std::vector<ScheduleEntry> Results::schedule(const TrialData& data, const detail::LineNode* line) const {
  std::vector<ScheduleEntry> entries;
  const auto add = [&](int from, TrialId trial, const std::string& configuration) {
    entries.push_back({from, detail::Decoder(configuration).configuration().second, trial});
  };
  if (line == nullptr) add(0, data.id, data.configuration);
  // From new to old: an ancestor counts only up to the step at which its state was taken over.
  int before = std::numeric_limits<int>::max();
  for (const auto* node = line; node != nullptr; node = node->parent.get())
    if (node->from < before) add(before = node->from, node->trial, node->configuration);
  std::reverse(entries.begin(), entries.end());
  return entries;
}
void Results::take(TrialData& trial, const record::AttemptFailed& event, Seconds) {
  if (record::is_tried_again(event)) {  // not counted as a failure
    trial.cause.reset();
    return set_state(trial, TrialState::pending);
  }
  if (!event.doubted) {
    ++trial.failures[static_cast<std::size_t>(event.cause.source)];
    ++self().failures[static_cast<std::size_t>(event.cause.source)];
    if (event.cause.source == FailureSource::infrastructure && self().ledger->on_lost_host(event.trial)) ++trial.lost;
  }
  trial.cause = std::make_shared<const Cause>(event.cause);
  set_state(trial, TrialState::pending);  // unless the record of its end follows
}
void Results::take(TrialData& trial, const record::TrialEnded& event, Seconds time) {
  set_state(trial, event.state);
  trial.ended = time;
  if (!std::isnan(trial.started)) trial.duration = std::max(0.0, elapsed_at(time) - trial.started_after);
  if (event.cause)
    trial.cause = std::make_shared<const Cause>(*event.cause);
  else if (event.state != TrialState::failed)
    trial.cause.reset();  // a cause of an earlier retry no longer matters
}

TrialResult Results::result(const TrialData& data, const Objective& objective) const {
  TrialResult result;
  result.trial = data.id;
  result.state = data.state;
  std::tie(result.point, result.params) = detail::Decoder(data.configuration).configuration();
  result.steps = data.steps;
  for (const auto& metric : data.metrics)
    if (metric.last_step == data.steps - 1) result.metrics.emplace_back(self().names[metric.name], metric.last);
  result.best = best_of(data, objective);
  if (const auto name = name_of(objective.metric); name && result.best && !self().info.constraints.empty())
    if (const double violation = data.metric(*name)->violation; std::isfinite(violation))
      result.feasible = violation == 0;
  static_cast<FailureCounts&>(result) = data;
  if (data.cause) result.cause = *data.cause;
  result.attempts = data.attempts;
  result.known = data.known;
  result.created = data.created;
  if (!std::isnan(data.started)) result.started = data.started;
  if (!std::isnan(data.ended)) result.ended = data.ended;
  if (!std::isnan(data.duration)) result.duration = data.duration;
  result.checkpoints = data.kept();
  if (const auto noted = self().attributes.find(data.id); noted != self().attributes.end())
    result.attributes = noted->second;
  result.first_record = data.first_record;
  result.last_record = data.last_record;
  return result;
}

std::optional<TrialResult> Results::find_best(const Objective& objective) const {
  const auto name = name_of(objective.metric);
  if (!name) return std::nullopt;
  const TrialData* best = nullptr;
  detail::ResultRank least;
  for (const auto& trial : self().trials)
    if (const auto rank = trial.rank(*name, objective.mode); rank < least) {
      best = &trial;
      least = rank;
    }
  if (best == nullptr) return std::nullopt;
  return result(*best, objective);
}

std::vector<TrialId> Results::ranked(std::size_t limit) const {
  const Objective objective = first_objective();
  const auto name = name_of(objective.metric);
  std::vector<std::pair<detail::ResultRank, TrialId>> entries;
  entries.reserve(self().trials.size());
  for (const auto& trial : self().trials)
    entries.emplace_back(name ? trial.rank(*name, objective.mode) : detail::ResultRank{}, trial.id);
  const std::size_t size = limit == 0 ? entries.size() : std::min(limit, entries.size());
  std::partial_sort(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(size), entries.end());
  std::vector<TrialId> ids;
  ids.reserve(size);
  for (std::size_t i = 0; i < size; ++i) ids.push_back(entries[i].second);
  return ids;
}

std::vector<std::string> Results::param_names() const {
  std::vector<std::string> names;
  for (const auto& data : self().trials)
    detail::terminal::merge_names(names, detail::Decoder(data.configuration).configuration().second);
  return names;
}

std::vector<std::string> Results::attribute_names() const {
  std::vector<std::string> names;
  for (const auto& [trial, attributes] : self().attributes) detail::terminal::merge_names(names, attributes);
  return names;
}

std::string Results::counts_text() const {
  std::string text;
  for (int i = 0; i <= static_cast<int>(TrialState::failed); ++i)
    if (const auto state = static_cast<TrialState>(i); count(state) > 0)
      text += detail::format("{}{} {}", text.empty() ? "" : ", ", count(state), to_string(state));
  return text.empty() ? "no trials" : text;
}
// If the experiment is not over, there may be a result later.
std::string Results::how_to_go_on() const {
  if (self().info.starts == 0 || (self().info.ended && !self().info.interrupted)) return "";
  if (self().directory.empty() || driver_of(self().directory)) return "; it has not come to its end yet";
  return detail::format("; it {}: go on with .resume = true and .output = \"{}\" (hypertune run: --resume --output {})",
                        self().info.interrupted ? "was interrupted" : "has not come to its end",
                        self().directory.string(), detail::shell_quote(self().directory.string()));
}
std::string Results::last_cause() const {
  const TrialData* last = nullptr;
  for (const auto& trial : self().trials)
    if (trial.cause && trial.state == TrialState::failed && (last == nullptr || trial.last_record > last->last_record))
      last = &trial;
  return last == nullptr ? "" : detail::format("; the last failure, of trial {}: {}", last->id, last->cause->text);
}

Results::Results(std::filesystem::path directory) { self().directory = std::move(directory); }

void Results::judge_by(std::vector<MetricBound> constraints, std::int64_t until) {
  self().info.constraints = std::move(constraints);
  self().judged_until = until;
}

std::optional<BestReport> Results::best_report(TrialId trial, const Objective& objective) const {
  const auto* data = find(trial);
  return data == nullptr ? std::nullopt : best_of(*data, objective);
}

std::size_t Results::count(TrialState state) const { return static_cast<std::size_t>(self().counts[state]); }

std::size_t Results::ended() const { return static_cast<std::size_t>(self().counts.ended()); }

std::int64_t Results::failures(FailureSource source) const { return self().failures[static_cast<std::size_t>(source)]; }

Objective Results::first_objective() const {
  return self().info.objectives.empty() ? Objective{} : self().info.objectives.front();
}

TrialResult Results::at(std::size_t index) const { return result(self().trials.at(index), first_objective()); }

Seconds Results::elapsed_at(Seconds time) const { return self().earlier + std::max(0.0, time - self().session_start); }

}  // namespace hypertune::inline v0

#include <hypertune/record/impl/results_export.hpp>
#include <hypertune/record/impl/results_table.hpp>
