// Results: what an experiment has found, from its Journal or from records as they come.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/feasibility.hpp>
#include <hypertune/record/journal_lock.hpp>
#include <hypertune/record/journal_reader.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/trial_data.hpp>
#include <hypertune/record/trial_result.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune {

/// How Results::table() looks.
struct TableOptions {
  std::size_t rows = 0;   ///< at most so many trials, the best ones; 0: all
  std::size_t width = 0;  ///< of the terminal: long cells are cut, then columns left out at the right; 0: unlimited
};

/// What an experiment has found: a few hundred bytes per trial and nothing per report. A value; not thread-safe.
///
/// These rules hold wherever a trial is judged: a report that is NaN or infinite is never the best one, a trial that
/// failed for good is never the best one (its earlier reports still stand in the table), and where metrics have bounds
/// (Options::constraints), a report or trial that breaks one is never better than one that keeps them all; among those
/// that break them, the one that does so least is best. A bounded metric that a report lacks has its last value, or,
/// before there is one, its first.
class Results {
 public:
  Results() = default;
  /// Empty; add() fills it, history() reads from `directory`.
  explicit Results(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Reads the experiment in `directory`, also while it runs. Errors as JournalReader's.
  static Results read(const std::filesystem::path& directory) {
    Results results(directory);
    results.update();
    return results;
  }

  /// Reads what came since, from the directory given at construction.
  void update() {
    JournalReader reader(directory());
    reader.read([this](const Record& record) { add(record); }, info_.records + 1);
    if (stale_) {  // the constraints have changed: earlier reports are judged by them, too
      Results anew(directory());
      anew.judge_by(info_.constraints, info_.records);
      reader.read([&](const Record& record) { anew.add(record); }, 1);
      *this = std::move(anew);
    }
    // A driver that was killed could not write down that its trials run no more.
    if (!driver_of(directory())) nothing_runs();
  }

  /// Takes in the next record.
  void add(const Record& record);
  /// Judges all reports by these constraints, whatever the records up to number `until` say. Before the first add().
  void judge_by(std::vector<MetricBound> constraints, std::int64_t until) {
    info_.constraints = std::move(constraints);
    judged_until_ = until;
  }

  const ExperimentInfo& experiment() const { return info_; }
  std::size_t size() const { return trials_.size(); }  ///< number of trials
  bool empty() const { return trials_.empty(); }

  /// All trials by number: a range of TrialResult, each made when it is looked at. Valid as long as these Results.
  class Trials;
  Trials trials() const;
  /// One trial; Error of kind `usage` if there is none of this number.
  TrialResult trial(TrialId id) const {
    const auto* data = find(id);
    if (data == nullptr) fail(Errc::usage, "there is no trial {} (there are {})", id, trials_.size());
    return result(*data, first_objective());
  }

  /// The trial with the best report of the first objective. Error of kind `experiment` when there is none yet.
  TrialResult best() const {
    const Objective objective = first_objective();
    if (auto found = find_best(objective)) return std::move(*found);
    fail(Errc::experiment, "no trial has a result: none reported a finite '{}' ({}){}", objective.metric, counts_text(),
         last_cause());
  }
  /// The trial with the best report of any metric; its `best` is of that metric. The mode may be left out for an
  /// objective. Errors: `usage` for a metric that no trial reported, or without a mode; `experiment`.
  TrialResult best(std::string_view metric, std::optional<Mode> mode = std::nullopt) const {
    for (const auto& objective : info_.objectives)
      if (objective.metric == metric && !mode) mode = objective.mode;
    if (!name_of(metric))
      fail(Errc::usage, "no trial reported a metric '{}'; reported were: {}", metric, fmt::join(names_, ", "));
    if (!mode) fail(Errc::usage, "'{}' is no objective: say whether to minimize or to maximize it (Mode::…)", metric);
    if (auto found = find_best({std::string(metric), *mode})) return std::move(*found);
    fail(Errc::experiment, "no trial reported a finite '{}' ({})", metric, counts_text());
  }
  /// As best(), or nullopt where there is none.
  std::optional<TrialResult> find_best() const { return find_best(first_objective()); }
  std::optional<TrialResult> find_best(const Objective& objective) const;

  /// The best report of `objective` that a trial has; nullopt: none that is finite.
  std::optional<BestReport> best_report(TrialId trial, const Objective& objective) const {
    const auto* data = find(trial);
    return data == nullptr ? std::nullopt : best_of(*data, objective);
  }

  /// Trial numbers by the first objective, best first (those that meet the constraints before all others), then those
  /// without a result. At most `limit` (0: all).
  std::vector<TrialId> ranked(std::size_t limit = 0) const;

  std::size_t count(TrialState state) const { return counts_[static_cast<std::size_t>(state)]; }
  std::int64_t failures(Blame blame) const { return failures_[static_cast<std::size_t>(blame)]; }
  /// Names of all metrics reported, in the order of their first appearance.
  const std::vector<std::string>& metrics() const { return names_; }

  /// Calls `visitor(const Record&)` with each report of a trial, in order, from the Journal.
  template <class Visitor>
  void history(TrialId trial, Visitor&& visitor) const {
    const auto* data = find(trial);
    if (data == nullptr) fail(Errc::usage, "there is no trial {} (there are {})", trial, trials_.size());
    JournalReader(directory()).history(trial, std::forward<Visitor>(visitor), data->first_record, data->last_record);
  }

  /// The trials as an aligned table, best first.
  std::string table(const TableOptions& options = {}) const;
  /// One line per trial with a header (RFC 4180): trial, state, steps, best_step, best_<objective>, …, params_<name>,
  /// …, metrics_<name> (of the last report), …, failures, cause, duration in seconds.
  std::string csv() const;
  /// A list with an object per trial, by number: trial, state, params, steps, metrics (of the last report), best
  /// ({"step": …, "<objective>": …} or null), failures, cause (or null), and with `history` every report. Numbers that
  /// JSON cannot write are the strings "NaN", "Infinity", "-Infinity".
  std::string json(bool history = false) const {
    std::string out;
    write_json([&](std::string_view text) { out += text; }, history);
    return out;
  }
  /// The object of one trial, as json() lists it.
  std::string json(const TrialResult& result) const;
  /// As json(), but in pieces to `sink(std::string_view)`: nothing is held that grows with the reports of all trials.
  template <class Sink>
  void write_json(const Sink& sink, bool history) const;

  const std::filesystem::path& directory() const {
    if (directory_.empty())
      fail(Errc::usage, "these results were not read from a folder: use Results::read(directory)");
    return directory_;
  }

 private:
  using TrialData = detail::TrialData;

  Objective first_objective() const { return info_.objectives.empty() ? Objective{} : info_.objectives.front(); }
  TrialResult at(std::size_t index) const { return result(trials_.at(index), first_objective()); }
  std::vector<std::string> param_names() const;
  std::string counts_text() const;
  std::string last_cause() const;
  TrialResult result(const TrialData& data, const Objective& objective) const;
  std::optional<BestReport> best_of(const TrialData& data, const Objective& objective) const {
    const auto name = name_of(objective.metric);
    const auto* metric = name ? data.metric(*name) : nullptr;
    if (metric == nullptr || !metric->has_best()) return std::nullopt;
    return BestReport{objective.metric, metric->best_step(objective.mode), metric->best(objective.mode)};
  }
  std::optional<std::uint32_t> name_of(std::string_view name) const {
    for (std::size_t i = 0; i < names_.size(); ++i)
      if (names_[i] == name) return static_cast<std::uint32_t>(i);
    return std::nullopt;
  }
  std::uint32_t intern(const std::string& name) {
    if (const auto found = name_of(name)) return *found;
    names_.push_back(name);
    return static_cast<std::uint32_t>(names_.size() - 1);
  }

  // Trials are numbered 0, 1, 2, …, so that the number is nearly always the index.
  const TrialData* find(TrialId id) const {
    if (id >= 0 && static_cast<std::size_t>(id) < trials_.size() && trials_[static_cast<std::size_t>(id)].id == id)
      return &trials_[static_cast<std::size_t>(id)];
    const auto at = std::lower_bound(trials_.begin(), trials_.end(), id,
                                     [](const TrialData& trial, TrialId value) { return trial.id < value; });
    return at != trials_.end() && at->id == id ? &*at : nullptr;
  }
  TrialData* find(TrialId id) { return const_cast<TrialData*>(std::as_const(*this).find(id)); }

  void set_state(TrialData& trial, TrialState state) {
    --counts_[static_cast<std::size_t>(trial.state)];
    ++counts_[static_cast<std::size_t>(state)];
    trial.state = state;
  }
  void nothing_runs() {
    if (count(TrialState::running) == 0) return;
    for (auto& trial : trials_)
      if (trial.state == TrialState::running) set_state(trial, TrialState::pending);
  }

  void take(const record::ExperimentStarted& event, Seconds time);
  void take(const record::ExperimentEnded& event, Seconds time);
  void take(const record::TrialCreated& event, Seconds time);
  void take(TrialData& trial, const record::TrialStarted& event, Seconds time);
  void take(TrialData& trial, const record::TrialReported& event, Seconds time);
  void take(TrialData& trial, const record::TrialCheckpointed& event, Seconds time);
  void take(TrialData& trial, const record::CheckpointDropped& event, Seconds time);
  void take(TrialData& trial, const record::TrialPaused& event, Seconds time);
  void take(TrialData& trial, const record::AttemptFailed& event, Seconds time);
  void take(TrialData& trial, const record::TrialEnded& event, Seconds time);

  std::filesystem::path directory_;
  std::int64_t judged_until_ = 0;  // records up to this one say nothing about constraints
  bool stale_ = false;             // some reports were judged by other constraints than the present ones
  ExperimentInfo info_;
  std::deque<TrialData> trials_;  // by id; a deque, as a vector that doubles would hold half as much again
  std::vector<std::string> names_;
  std::array<std::size_t, 6> counts_{};
  std::array<std::int64_t, 3> failures_{};
};

class Results::Trials {
 public:
  class Iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using iterator_category = std::input_iterator_tag;
    using value_type = TrialResult;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = TrialResult;
    Iterator() = default;
    Iterator(const Results* results, std::size_t index) : results_(results), index_(index) {}
    TrialResult operator*() const { return results_->at(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) { return {results_, index_++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const Results* results_ = nullptr;
    std::size_t index_ = 0;
  };

  explicit Trials(const Results* results) : results_(results) {}
  Iterator begin() const { return {results_, 0}; }
  Iterator end() const { return {results_, results_->size()}; }
  std::size_t size() const { return results_->size(); }
  bool empty() const { return results_->empty(); }
  /// The `index`-th trial, from 0.
  TrialResult operator[](std::size_t index) const { return results_->at(index); }

 private:
  const Results* results_;
};
inline Results::Trials Results::trials() const { return Trials(this); }

inline void Results::add(const Record& record) {
  info_.records = record.sequence;
  info_.updated = record.time;
  std::visit(
      [&]<class Event>(const Event& event) {
        if constexpr (requires(TrialData& trial) { take(trial, event, record.time); }) {
          TrialData* trial = find(event.trial);
          if (trial == nullptr) return;  // never created: the record is not this program's
          trial->last_record = record.sequence;
          take(*trial, event, record.time);
        } else if constexpr (requires { take(event, record.time); }) {
          take(event, record.time);
        }
      },
      record.what);
}

inline void Results::take(const record::ExperimentStarted& event, Seconds time) {
  if (info_.starts == 0) {
    info_.name = event.name;
    info_.seed = event.seed;
    info_.started = time;
  }
  ++info_.starts;
  if (!event.objectives.empty()) info_.objectives = event.objectives;
  if (info_.records > judged_until_ && event.constraints != info_.constraints) {
    stale_ = info_.reports > 0;
    info_.constraints = event.constraints;
  }
  info_.space = event.space;
  info_.searcher = event.searcher;
  info_.scheduler = event.scheduler;
  info_.executor = event.executor;
  info_.samples = event.samples;
  info_.ended.reset();
  info_.interrupted = false;
  info_.why.clear();
  nothing_runs();
}
inline void Results::take(const record::ExperimentEnded& event, Seconds time) {
  info_.ended = time;
  info_.interrupted = event.interrupted;
  info_.why = event.why;
  nothing_runs();
}
inline void Results::take(const record::TrialCreated& event, Seconds time) {
  if (find(event.trial) != nullptr) return;
  TrialData trial;
  trial.id = event.trial;
  trial.first_record = trial.last_record = info_.records;
  trial.created = time;
  trial.known = event.known;
  detail::Encoder(trial.configuration).put(event.point, event.params);
  trial.configuration.shrink_to_fit();
  ++counts_[static_cast<std::size_t>(trial.state)];
  const auto at = std::upper_bound(trials_.begin(), trials_.end(), trial.id,
                                   [](TrialId id, const TrialData& other) { return id < other.id; });
  trials_.insert(at, std::move(trial));
}
inline void Results::take(TrialData& trial, const record::TrialStarted&, Seconds time) {
  set_state(trial, TrialState::running);
  ++trial.attempts;
  if (std::isnan(trial.started)) trial.started = time;
}
inline void Results::take(TrialData& trial, const record::TrialReported& event, Seconds) {
  ++info_.reports;
  if (trial.state == TrialState::pending && !trial.known) set_state(trial, TrialState::running);
  double violation = 0;
  if (!info_.constraints.empty()) {
    const bool learnt = detail::update_excesses(trial.excesses, info_.constraints, event.metrics);
    violation = detail::violation(trial.excesses, info_.constraints);
    if (learnt)  // … and holds for what came before it was known
      for (auto& metric : trial.metrics)
        if (std::isinf(metric.violation)) metric.violation = violation;
  }
  for (const auto& [name, value] : event.metrics) trial.report(event.step, intern(name), value, violation);
  trial.steps = event.step + 1;
}
inline void Results::take(TrialData& trial, const record::TrialCheckpointed& event, Seconds) {
  auto kept = trial.kept();
  kept.push_back(event.checkpoint);
  trial.keep(kept);
}
inline void Results::take(TrialData& trial, const record::CheckpointDropped& event, Seconds) {
  auto kept = trial.kept();
  std::erase_if(kept, [&](const CheckpointInfo& info) { return info.name == event.checkpoint.name; });
  trial.keep(kept);
}
inline void Results::take(TrialData& trial, const record::TrialPaused&, Seconds) {
  set_state(trial, TrialState::paused);
}
inline void Results::take(TrialData& trial, const record::AttemptFailed& event, Seconds) {
  ++trial.failures[static_cast<std::size_t>(event.cause.blame)];
  ++failures_[static_cast<std::size_t>(event.cause.blame)];
  trial.cause = std::make_shared<const Cause>(event.cause);
  set_state(trial, TrialState::pending);  // or its end follows
}
inline void Results::take(TrialData& trial, const record::TrialEnded& event, Seconds time) {
  set_state(trial, event.state);
  trial.ended = time;
  if (event.cause)
    trial.cause = std::make_shared<const Cause>(*event.cause);
  else if (event.state != TrialState::failed)
    trial.cause.reset();  // what made it restart is over
}

inline TrialResult Results::result(const TrialData& data, const Objective& objective) const {
  TrialResult result;
  result.trial = data.id;
  result.state = data.state;
  std::tie(result.point, result.params) = detail::Decoder(data.configuration).configuration();
  result.steps = data.steps;
  for (const auto& metric : data.metrics)
    if (metric.last_step == data.steps - 1) result.metrics.emplace_back(names_[metric.name], metric.last);
  result.best = best_of(data, objective);
  if (const auto name = name_of(objective.metric); name && result.best && !info_.constraints.empty())
    if (const double violation = data.metric(*name)->violation; std::isfinite(violation))
      result.feasible = violation == 0;
  std::copy(data.failures.begin(), data.failures.end(), result.failures.begin());
  if (data.cause) result.cause = *data.cause;
  result.attempts = data.attempts;
  result.known = data.known;
  result.created = data.created;
  if (!std::isnan(data.started)) result.started = data.started;
  if (!std::isnan(data.ended)) result.ended = data.ended;
  result.checkpoints = data.kept();
  result.first_record = data.first_record;
  result.last_record = data.last_record;
  return result;
}

inline std::optional<TrialResult> Results::find_best(const Objective& objective) const {
  const auto name = name_of(objective.metric);
  if (!name) return std::nullopt;
  const TrialData* best = nullptr;
  double best_loss = 0, best_violation = 0;
  for (const auto& trial : trials_) {
    const auto* metric = trial.state == TrialState::failed ? nullptr : trial.metric(*name);
    if (metric == nullptr || !metric->has_best()) continue;
    const double loss = objective.mode == Mode::minimize ? metric->min : -metric->max;
    if (best == nullptr || detail::better(metric->violation, loss, best_violation, best_loss)) {
      best = &trial;
      best_loss = loss;
      best_violation = metric->violation;
    }
  }
  if (best == nullptr) return std::nullopt;
  return result(*best, objective);
}

inline std::vector<TrialId> Results::ranked(std::size_t limit) const {
  struct Entry {
    bool ranks;
    double violation, loss;
    TrialId id;
    bool operator<(const Entry& other) const {
      if (ranks != other.ranks) return ranks;
      if (violation != other.violation) return violation < other.violation;
      return loss != other.loss ? loss < other.loss : id < other.id;
    }
  };
  const Objective objective = first_objective();
  const auto name = name_of(objective.metric);
  std::vector<Entry> entries;
  entries.reserve(trials_.size());
  for (const auto& trial : trials_) {
    const auto* metric = name && trial.state != TrialState::failed ? trial.metric(*name) : nullptr;
    const bool ranks = metric != nullptr && metric->has_best();
    const double sign = objective.mode == Mode::minimize ? 1 : -1;
    entries.push_back(
        {ranks, ranks ? metric->violation : 0, ranks ? sign * metric->best(objective.mode) : worst_loss, trial.id});
  }
  const std::size_t size = limit == 0 ? entries.size() : std::min(limit, entries.size());
  std::partial_sort(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(size), entries.end());
  std::vector<TrialId> ids;
  ids.reserve(size);
  for (std::size_t i = 0; i < size; ++i) ids.push_back(entries[i].id);
  return ids;
}

inline std::vector<std::string> Results::param_names() const {
  std::vector<std::string> names;
  for (const auto& data : trials_) {
    std::size_t at = 0;  // keeps the order of the space where trials differ in what is active
    for (const auto& [name, value] : detail::Decoder(data.configuration).configuration().second) {
      const auto found = std::find(names.begin(), names.end(), name);
      if (found == names.end())
        names.insert(names.begin() + static_cast<std::ptrdiff_t>(at++), name);
      else
        at = static_cast<std::size_t>(found - names.begin()) + 1;
    }
  }
  return names;
}

inline std::string Results::counts_text() const {
  std::string text;
  for (int i = 0; i <= static_cast<int>(TrialState::failed); ++i)
    if (const auto state = static_cast<TrialState>(i); count(state) > 0)
      text += detail::format("{}{} {}", text.empty() ? "" : ", ", count(state), to_string(state));
  return text.empty() ? "no trials" : text;
}
inline std::string Results::last_cause() const {
  const TrialData* last = nullptr;
  for (const auto& trial : trials_)
    if (trial.cause && trial.state == TrialState::failed && (last == nullptr || trial.last_record > last->last_record))
      last = &trial;
  return last == nullptr ? "" : detail::format("; the last failure, of trial {}: {}", last->id, last->cause->text);
}

}  // namespace hypertune

#include <hypertune/record/results_export.hpp>
#include <hypertune/record/results_table.hpp>
