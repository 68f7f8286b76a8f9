// Results: what an experiment has found, read from its Journal or from records as they come.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/record/detail/host_use.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/record/trial_result.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
struct ResultsState;
struct LineNode;
struct TrialData;
}  // namespace detail

/// Options of Results::table().
struct TableOptions {
  std::size_t rows = 0;  ///< the number of trials to show, the best ones; 0: all
  /// Width in columns, as of a terminal; 0: unlimited. Numbers are rounded and long names and texts are cut to fit.
  /// Columns for which there is no room are placed below the others.
  std::size_t width = 0;
};

/// What an experiment has found. Takes a few hundred bytes per trial and none per report. A value; not thread-safe.
///
/// The same rules hold wherever a trial is judged. A report that is NaN or infinite is never the best one. A trial that
/// failed is never the best one (its earlier reports are still in the table). If metrics have bounds
/// (Options::constraints), a report or trial that breaks one is never better than one that meets them all; among those
/// that break them, the one with the smallest violation is best. If a report lacks a bounded metric, the metric's last
/// value counts, or its first one if there is none before.
class Results {
 public:
  Results() = default;
  /// Empty; add() fills it. history() reads from `directory`.
  explicit Results(std::filesystem::path directory);

  /// Reads the experiment in `directory`, also while it runs. Errors: those of JournalReader.
  static Results read(const std::filesystem::path& directory);

  /// Reads the records that were added since the last read, from the directory given at construction. Errors: those of
  /// JournalReader.
  void update();

  /// Takes in the next record.
  void add(const Record& record);
  /// Judges all reports by these constraints and ignores those in records up to number `until`. To be called before the
  /// first add().
  void judge_by(std::vector<MetricBound> constraints, std::int64_t until);

  const ExperimentInfo& experiment() const;
  std::size_t size() const;  ///< number of trials
  bool empty() const { return size() == 0; }

  /// All trials by number: a range of TrialResult, each made when it is accessed. Valid as long as these Results.
  class Trials;
  Trials trials() const;
  /// One trial; Error of kind `usage` if there is none of this number.
  TrialResult trial(TrialId id) const;

  /// The trial with the best report of the first objective. Error of kind `experiment` if there is none yet.
  TrialResult best() const;
  /// The trial with the best report of any metric; its `best` is of that metric. The mode may be omitted if the metric
  /// is an objective. Errors: `usage` if no trial reported the metric, or if its mode is missing; `experiment` if no
  /// trial has a result.
  TrialResult best(std::string_view metric, std::optional<Mode> mode = std::nullopt) const;
  /// As best(), but nullopt if there is none.
  std::optional<TrialResult> find_best() const;
  std::optional<TrialResult> find_best(const Objective& objective) const;

  /// The best report of `objective` by a trial; nullopt if none is finite. Failed trials have one, too.
  std::optional<BestReport> best_report(TrialId trial, const Objective& objective) const;

  /// Trial numbers by the first objective, the best first (trials that meet the constraints before all others), then
  /// those without a result. At most `limit` (0: all).
  std::vector<TrialId> ranked(std::size_t limit = 0) const;

  std::size_t count(TrialState state) const;
  /// Number of trials that have ended, for whatever reason.
  std::size_t ended() const;
  std::int64_t failures(FailureSource source) const;
  /// What each host did, in the order of their first appearance.
  std::vector<HostUse> hosts() const;
  /// Steps that were done again, because their result was lost with an attempt before it was saved.
  std::int64_t repeated_steps() const;
  /// Names of all metrics reported, in the order of their first appearance.
  const std::vector<std::string>& metrics() const;

  /// Calls `visitor(const Record&)` with each report of a trial, in order, from the Journal.
  void history(TrialId trial, const std::function<void(const Record&)>& visitor) const;

  /// The configurations that led to a trial's present state, from step 0 on. This is one entry, unless the trial took
  /// over the states of others (population based training), whose entries then come first. Replay trains by it again.
  /// Error of kind `usage` if there is no such trial.
  std::vector<ScheduleEntry> schedule(TrialId trial) const;
  /// The same for the state that a trial had at its best report, as in `schedule(best())`: the trial may have taken
  /// over another state since.
  std::vector<ScheduleEntry> schedule(const TrialResult& trial) const;

  /// By how much a trial breaks each constraint, by the last value of each metric: positive if it does, NaN if not
  /// known. Error of kind `usage` if there is no such trial.
  std::vector<double> excesses(TrialId trial) const;

  /// The trials as an aligned table, best first.
  std::string table(const TableOptions& options = {}) const;
  /// A header and one line per trial (RFC 4180): trial, state, steps, best_step, best_<objective>, …, feasible (if
  /// metrics have bounds), params_<name>, …, metrics_<name> (of the last report), …, attributes_<name>, …, failures,
  /// cause, duration (seconds from the first start to the end, without the time between drivers).
  std::string csv() const;
  /// A list with an object per trial, by number: trial, state, params, steps, metrics (of the last report), best
  /// ({"step": …, "<objective>": …} or null), feasible and attributes (if known), failures, cause (or null), and with
  /// `history` every report. Numbers that JSON cannot represent are the strings "NaN", "Infinity", "-Infinity".
  std::string json(bool history = false) const;
  /// The object of one trial, as json() lists it.
  std::string json(const TrialResult& result) const;
  /// As json(), but written to `sink` in pieces: memory does not grow with the reports of all trials.
  void write_json(const std::function<void(std::string_view)>& sink, bool history) const;

  const std::filesystem::path& directory() const;

 private:
  using TrialData = detail::TrialData;

  Objective first_objective() const;
  TrialResult at(std::size_t index) const;
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
  TrialData* find(TrialId id);
  void set_state(TrialData& trial, TrialState state);
  void nothing_runs();
  Seconds elapsed_at(Seconds time) const;

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

  const detail::ResultsState& self() const;
  detail::ResultsState& self();

  detail::Indirect<detail::ResultsState> state_;
};

/// A schedule as a list in JSON (which is also YAML), one entry per line:
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
