// ExperimentView: what a page shows of an experiment, from its records as they come.
#pragma once

#include <hypertune/record/results.hpp>
#include <hypertune/show/view/columns.hpp>
#include <hypertune/show/view/curve.hpp>

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

/// What is kept of a trial beside its Results: rows of a table that can be filtered and sorted without a look at them.
struct TrialRow {
  TrialId id = -1;
  TrialState state = TrialState::pending;
  bool changed = true;  ///< since what follows was taken from the Results
  bool moved = true;    ///< its parameters have changed, too
  std::int32_t steps = 0;
  std::int32_t attempts = 0, failures = 0;
  std::int32_t open = -1;  ///< the piece that runs; -1: none
  std::uint32_t host = 0;  ///< where it ran last, a place among the hosts' names; 0: it has not
  double value = unknown;  ///< the best one of the first objective
  std::int32_t at_step = -1;
  double violation = 0;                                       ///< 1 where it breaks a constraint on metrics
  double created = 0, started = unknown, reported = unknown;  ///< times of its records
  double duration = unknown;
  std::vector<Curve> curves;

  const Curve* curve(std::uint32_t metric) const {
    for (const auto& one : curves)
      if (one.metric() == metric) return &one;
    return nullptr;
  }
};

/// A time that a trial spent on one slot of a host.
struct Piece {
  enum class End : std::uint8_t { running, completed, paused, failed, preempted, lost, stopped };
  TrialId trial = -1;
  std::int32_t attempt = 0, from_step = 0, to_step = 0;
  std::uint32_t lane = 0;
  End end = End::running;
  double start = 0, stop = 0;
};
const char* to_string(Piece::End end);

/// A slot of a host, as far as trials show which there are.
struct Lane {
  std::uint32_t host = 0;
  std::uint32_t slot = 0;
  std::int64_t piece = -1;  ///< what runs there; -1: nothing
};

struct HostChange {
  std::uint32_t host = 0;
  bool gained = false;
  double time = 0;
  std::string why;
};

/// A trial that was cut at a rung, by its scheduler's words.
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

/// An improvement of the first objective, as it was reported.
struct Improvement {
  double time = 0;
  TrialId trial = -1;
  double value = 0;
};

/// How an experiment stands beyond its records.
struct Standing {
  /// As `hypertune status` says (running, paused, ended, interrupted, failed, killed), or "reading", not known yet.
  std::string state = "running";
  std::string why;  ///< in words, where there is something to say
};

/// Fed with every record of an experiment, in order. It holds Results, which have the rules, and for each trial a few
/// hundred bytes more: a sample of each curve, where and when it ran. Reports are not kept. A value; not thread-safe.
class ExperimentView {
 public:
  explicit ExperimentView(std::filesystem::path directory) : results_(std::move(directory)) {}

  void add(const Record& record);
  /// After the last record there is: what follows from there being a driver or none (no trial runs without one), and
  /// what Results have to read again.
  void settle(bool driven);
  /// Brings the rows up to date with the Results: before they are looked at.
  void refresh();

  const Results& results() const { return results_; }
  std::int64_t version() const { return version_; }
  std::size_t size() const { return rows_.size(); }
  const std::vector<TrialRow>& rows() const { return rows_; }
  const TrialRow* row(TrialId id) const;
  const ParamColumns& params() const { return params_; }
  std::optional<std::uint32_t> metric(std::string_view name) const;
  /// The objective of this metric; nullopt: it is none.
  std::optional<Objective> objective(std::string_view metric) const;

  /// What a trial counts with for a metric: the best report of an objective, the last one of any other. NaN: none.
  double value(const TrialRow& row, std::uint32_t metric) const;
  /// Whether a trial's value can be the best: it has not failed, and meets the constraints.
  static bool ranks(const TrialRow& row) {
    return row.state != TrialState::failed && row.violation == 0 && row.value - row.value == 0;
  }
  bool maximises() const;

  const std::vector<Piece>& pieces() const { return pieces_; }
  /// Why a piece ended as it did, where that is known and not too long ago.
  std::string_view cause(std::size_t piece) const {
    const auto found = causes_.find(piece);
    return found == causes_.end() ? std::string_view() : std::string_view(found->second);
  }
  const std::vector<Lane>& lanes() const { return lanes_; }
  const std::vector<HostChange>& host_changes() const { return host_changes_; }
  const std::string& host_name(std::uint32_t host) const { return hosts_[host]; }
  std::size_t hosts() const { return hosts_.size(); }  ///< the first one is nobody's
  const std::vector<Cut>& cuts() const { return cuts_; }
  const std::vector<Takeover>& takeovers() const { return takeovers_; }
  const std::vector<Improvement>& improvements() const { return improvements_; }
  double now() const { return results_.experiment().updated; }

  Standing standing;                 ///< set by who follows the experiment
  std::int64_t journal_records = 0;  ///< how many there are to be read; 0: not known

 private:
  // Bounds of what grows with an experiment that nobody has foreseen.
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
  std::unordered_map<std::size_t, std::string> causes_;  // of pieces
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
