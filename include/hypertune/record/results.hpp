// Results: what an experiment has found, from its Journal or from records as they come.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/detail/linkage.hpp>
#include <hypertune/record/host_use.hpp>
#include <hypertune/record/planned_trials.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/trial_data.hpp>
#include <hypertune/record/trial_result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
class HostLedger;
}

/// How Results::table() looks.
struct TableOptions {
  std::size_t rows = 0;  ///< at most so many trials, the best ones; 0: all
  /// Of the terminal; 0: unlimited. Numbers are rounded and long names and texts cut to fit; columns for which there is
  /// no room stand below the others.
  std::size_t width = 0;
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
  static Results read(const std::filesystem::path& directory);

  /// Reads what came since, from the directory given at construction.
  void update();

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
  TrialResult trial(TrialId id) const;

  /// The trial with the best report of the first objective. Error of kind `experiment` when there is none yet.
  TrialResult best() const;
  /// The trial with the best report of any metric; its `best` is of that metric. The mode may be left out for an
  /// objective. Errors: `usage` for a metric that no trial reported, or without a mode; `experiment`.
  TrialResult best(std::string_view metric, std::optional<Mode> mode = std::nullopt) const;
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
  std::int64_t failures(FailureSource source) const { return failures_[static_cast<std::size_t>(source)]; }
  /// What each host did, by their first appearance.
  std::vector<HostUse> hosts() const;
  /// Steps that were done again, as what they had led to was lost with an attempt and not yet saved.
  std::int64_t repeated_steps() const;
  /// Names of all metrics reported, in the order of their first appearance.
  const std::vector<std::string>& metrics() const { return names_; }

  /// Calls `visitor(const Record&)` with each report of a trial, in order, from the Journal.
  void history(TrialId trial, const std::function<void(const Record&)>& visitor) const;

  /// The configurations that led to a trial's present state, from step 0 on: one entry, unless it took over the states
  /// of others (population based training); then theirs before it. Replay trains by it again. Error of kind `usage` if
  /// there is no such trial.
  std::vector<ScheduleEntry> schedule(TrialId trial) const;
  /// The same for the state that a trial had at its best report, `schedule(best())`: it may have taken over another's
  /// since.
  std::vector<ScheduleEntry> schedule(const TrialResult& trial) const;

  /// By how much a trial breaks each constraint on metrics, by the last value of each: above 0 it does, NaN: not known.
  std::vector<double> excesses(TrialId trial) const;

  /// The trials as an aligned table, best first.
  std::string table(const TableOptions& options = {}) const;
  /// One line per trial with a header (RFC 4180): trial, state, steps, best_step, best_<objective>, …, params_<name>,
  /// …, metrics_<name> (of the last report), …, attributes_<name>, …, failures, cause, duration (seconds from the first
  /// start to the end, without the time between drivers).
  std::string csv() const;
  /// A list with an object per trial, by number: trial, state, params, steps, metrics (of the last report), best
  /// ({"step": …, "<objective>": …} or null), attributes (where it has any), failures, cause (or null), and with
  /// `history` every report. Numbers that JSON cannot write are the strings "NaN", "Infinity", "-Infinity".
  std::string json(bool history = false) const;
  /// The object of one trial, as json() lists it.
  std::string json(const TrialResult& result) const;
  /// As json(), but in pieces to `sink`: nothing is held that grows with the reports of all trials.
  void write_json(const std::function<void(std::string_view)>& sink, bool history) const;

  const std::filesystem::path& directory() const;

 private:
  using TrialData = detail::TrialData;

  Objective first_objective() const { return info_.objectives.empty() ? Objective{} : info_.objectives.front(); }
  TrialResult at(std::size_t index) const { return result(trials_.at(index), first_objective()); }
  std::vector<std::string> param_names() const;
  std::vector<std::string> attribute_names() const;
  std::string counts_text() const;
  std::string last_cause() const;
  std::string how_to_go_on() const;
  TrialResult result(const TrialData& data, const Objective& objective) const;
  std::vector<ScheduleEntry> schedule(const TrialData& data, const detail::LineNode* line) const;
  std::optional<BestReport> best_of(const TrialData& data, const Objective& objective) const;
  std::optional<std::uint32_t> name_of(std::string_view name) const;
  std::uint32_t intern(const std::string& name);
  const TrialData* find(TrialId id) const;
  TrialData* find(TrialId id) { return const_cast<TrialData*>(std::as_const(*this).find(id)); }
  void set_state(TrialData& trial, TrialState state);
  void nothing_runs();
  Seconds elapsed_at(Seconds time) const { return earlier_ + std::max(0.0, time - session_start_); }

  void take(const record::ExperimentStarted& event, Seconds time);
  void take(const record::ExperimentEnded& event, Seconds time);
  void take(const record::TrialCreated& event, Seconds time);
  void take(const record::AttributesSet& event, Seconds time);
  void take(TrialData& trial, const record::TrialStarted& event, Seconds time);
  void take(TrialData& trial, const record::TrialReported& event, Seconds time);
  void take(TrialData& trial, const record::TrialCheckpointed& event, Seconds time);
  void take(TrialData& trial, const record::CheckpointDropped& event, Seconds time);
  void take(TrialData& trial, const record::TrialPaused& event, Seconds time);
  void take(TrialData& trial, const record::TrialExploited& event, Seconds time);
  void take(TrialData& trial, const record::AttemptFailed& event, Seconds time);
  void take(TrialData& trial, const record::TrialEnded& event, Seconds time);

  std::filesystem::path directory_;
  std::int64_t judged_until_ = 0;  // records up to this one say nothing about constraints
  bool stale_ = false;             // some reports were judged by other constraints than the present ones
  ExperimentInfo info_;
  detail::PlannedTrials planned_;             // of info_.planned
  Seconds earlier_ = 0, session_start_ = 0;   // of info_.elapsed
  std::deque<TrialData> trials_;              // by id; a deque, as a vector that doubles would hold half as much again
  std::map<TrialId, Attributes> attributes_;  // of those that have any
  std::vector<std::string> names_;
  std::array<std::size_t, 6> counts_{};
  std::array<std::int64_t, 3> failures_{};
  detail::Indirect<detail::HostLedger> ledger_;  // made with the first record
};

/// A schedule as a list in JSON (which is YAML, too), an entry a line:
/// `{"from_step": 0, "trial": 3, "params": {"lr": 0.1}}`.
std::string schedule_json(std::span<const ScheduleEntry> schedule);

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
inline auto Results::trials() const -> Trials { return Trials(this); }

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/record/impl/results.hpp>
#endif
