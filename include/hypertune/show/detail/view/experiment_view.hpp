// ExperimentView: what a page shows of an experiment, computed from its records as they come.
#pragma once

#include <hypertune/record/results.hpp>
#include <hypertune/show/detail/view/columns.hpp>
#include <hypertune/show/detail/view/curve.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hypertune::inline v0::view {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// What is stored for a trial in addition to its Results, so that a table can be filtered and sorted without them.
struct TrialRow {
  TrialId id = -1;
  TrialState state = TrialState::pending;
  bool changed = true;  ///< since the fields below were taken from the Results
  bool moved = true;    ///< its parameters have changed as well
  std::int32_t steps = 0;
  std::int32_t attempts = 0, failures = 0;
  std::int32_t open = -1;  ///< index of the piece that runs; -1: none
  std::uint32_t host = 0;  ///< where it ran last, an index into the hosts' names; 0: nowhere
  double value = unknown;  ///< the best value of the first objective
  std::int32_t at_step = -1;
  bool admitted = false;                                      ///< whether it may be the best: ExperimentInfo::admits()
  double created = 0, started = unknown, reported = unknown;  ///< times of its records
  double duration = unknown;
  std::vector<Curve> curves;

  const Curve* curve(std::uint32_t metric) const {
    for (const auto& one : curves)
      if (one.metric() == metric) return &one;
    return nullptr;
  }
};

/// A period that a trial spent on one slot of a host.
struct Piece {
  enum class End : std::uint8_t { running, completed, paused, failed, preempted, lost, stopped };
  TrialId trial = -1;
  std::int32_t attempt = 0, from_step = 0, to_step = 0;
  std::uint32_t lane = 0;
  End end = End::running;
  double start = 0, stop = 0;
};
const char* to_string(Piece::End end);

/// A slot of a host. Only slots on which a trial has run are known.
struct Lane {
  std::uint32_t host = 0;
  std::uint32_t slot = 0;
  std::int64_t piece = -1;  ///< index of the piece that runs there; -1: none
};

struct HostChange {
  std::uint32_t host = 0;
  bool gained = false;
  double time = 0;
  std::string why;
};

/// A trial that was stopped at a rung, according to its scheduler's message.
struct Cut {
  TrialId trial = -1;
  std::int32_t rung_steps = 0, step = 0;
  double value = unknown, needed = unknown;
};

/// A trial that took over the state of another one.
struct Takeover {
  TrialId trial = -1, donor = -1;
  std::int32_t step = 0;
  double time = 0;
  std::string changes;  ///< JSON: {name: [old, new]}
};

/// An improvement of the first objective, at the time of its report.
struct Improvement {
  double time = 0;
  TrialId trial = -1;
  double value = 0;
};

/// The state of an experiment beyond its records.
struct ExperimentStatus {
  /// As in `hypertune status` (running, paused, ended, interrupted, failed, killed), or "reading": not known yet.
  std::string state = "running";
  std::string why;  ///< a reason in words, if there is one
};

/// Takes every record of an experiment, in order. It contains Results, which implement the rules, and for each trial a
/// few hundred bytes more: a sample of each curve, where and when it ran. Reports are not stored. A value; not
/// thread-safe.
class ExperimentView {
 public:
  explicit ExperimentView(std::filesystem::path directory) : results_(std::move(directory)) {}

  void add(const Record& record);
  /// To be called after the last available record. `driven`: whether there is a driver (no trial runs without one).
  /// Also lets the Results read again if they have to.
  void settle(bool driven);
  /// Updates the rows from the Results. To be called before the rows are used.
  void refresh();

  const Results& results() const { return results_; }
  std::int64_t version() const { return version_; }
  std::size_t size() const { return rows_.size(); }
  const std::vector<TrialRow>& rows() const { return rows_; }
  const TrialRow* row(TrialId id) const;
  const ParamColumns& params() const { return params_; }
  std::optional<std::uint32_t> metric(std::string_view name) const;
  /// The objective of this metric; nullopt if it is not an objective.
  std::optional<Objective> objective(std::string_view metric) const;

  /// The value that represents a trial for a metric: the best report of an objective, the last one of any other metric.
  /// NaN: none.
  double value(const TrialRow& row, std::uint32_t metric) const;
  /// Whether a trial's value can be the best: it is finite, and the trial has not failed and meets the constraints.
  static bool ranks(const TrialRow& row) { return row.admitted && row.value - row.value == 0; }
  bool maximises() const;

  const std::vector<Piece>& pieces() const { return pieces_; }
  /// Why a piece ended as it did, if that is known. Only a limited number of causes is kept.
  std::string_view cause(std::size_t piece) const {
    const auto found = causes_.find(piece);
    return found == causes_.end() ? std::string_view() : std::string_view(found->second);
  }
  const std::vector<Lane>& lanes() const { return lanes_; }
  const std::vector<HostChange>& host_changes() const { return host_changes_; }
  const std::string& host_name(std::uint32_t host) const { return hosts_[host]; }
  std::size_t hosts() const { return hosts_.size(); }  ///< host 0 stands for no host
  const std::vector<Cut>& cuts() const { return cuts_; }
  const std::vector<Takeover>& takeovers() const { return takeovers_; }
  const std::vector<Improvement>& improvements() const { return improvements_; }
  double now() const { return results_.experiment().updated; }

  ExperimentStatus status;           ///< set by whoever follows the experiment
  std::int64_t journal_records = 0;  ///< number of records to be read; 0: not known

 private:
  // Limits of what grows with an experiment, so that no experiment can fill the memory.
  static constexpr std::size_t max_points = 8'000'000, max_pieces = 2'000'000, max_cuts = 200'000,
                               max_takeovers = 200'000, max_changes = 20'000, max_improvements = 20'000,
                               max_causes = 20'000;

  TrialRow* find(TrialId id) { return const_cast<TrialRow*>(std::as_const(*this).row(id)); }
  void touch(TrialRow& row);
  void touch_all();
  std::uint32_t host(const std::string& name);
  void begin(TrialRow& row, Attempt attempt, int step, const std::string& host, Seconds time);
  void end(TrialRow& row, Piece::End how, Seconds time, std::string_view why = {});
  void end_all(Piece::End how, Seconds time);
  std::size_t curve_limit() const;

  void take(const record::ExperimentStarted& event, Seconds time);
  void take(const record::ExperimentEnded& event, Seconds time);
  void take(const record::TrialCreated& event, Seconds time);
  void take(const record::TrialStarted& event, Seconds time);
  void take(const record::TrialResized& event, Seconds time);
  void take(const record::TrialReported& event, Seconds time);
  void take(const record::TrialPaused& event, Seconds time);
  void take(const record::TrialExploited& event, Seconds time);
  void take(const record::AttemptFailed& event, Seconds time);
  void take(const record::TrialEnded& event, Seconds time);
  void take(const record::HostGained& event, Seconds time);
  void take(const record::HostLost& event, Seconds time);
  void take(const record::AttributesSet& event, Seconds time);
  void take(const auto&, Seconds) {}

  Results results_;
  std::int64_t version_ = 0;
  std::vector<TrialRow> rows_;  // by id
  std::vector<std::size_t> changed_;
  ParamColumns params_;
  std::unordered_map<std::string, std::uint32_t> metrics_;
  std::vector<std::string> hosts_{std::string()};
  std::unordered_map<std::string, std::uint32_t> host_index_;
  std::vector<Piece> pieces_;
  std::unordered_map<std::size_t, std::string> causes_;  // by piece
  std::vector<Lane> lanes_;
  std::vector<HostChange> host_changes_;
  std::vector<Cut> cuts_;
  std::vector<Takeover> takeovers_;
  std::vector<Improvement> improvements_;
  std::size_t points_ = 0;
  double last_time_ = 0;
  bool restarted_ = false;  // perhaps with other constraints
};

}  // namespace hypertune::inline v0::view
