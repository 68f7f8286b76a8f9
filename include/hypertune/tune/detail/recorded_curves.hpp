// RecordedCurves: the learning curves of an experiment, with the duration of each step.
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/trial/report.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// The recorded curve of one trial. Reports are in the order of their steps.
struct RecordedTrial {
  /// Why its last report is the last one.
  enum class End : std::uint8_t {
    by_itself,  ///< the program had finished: nothing could follow
    failed,     ///< it failed for good
    cut,        ///< stopped, completed by the schedule's limit of steps, or still running: more could follow
  };
  TrialId trial = -1;
  std::vector<int> steps;        ///< step of each report, from 0, ascending
  std::vector<Seconds> seconds;  ///< duration of the work for each report, without the startup of its attempt
  std::vector<double> values;    ///< of each report: the objectives, then the bounded metrics; NaN: not reported
  End end = End::cut;
  std::string cause;  ///< the error, if it failed
  /// If it ended by itself or failed: seconds from its last report, or from the start of its last attempt, to its end.
  Seconds to_end = 0;
};

/// An improvement of the best result so far, by the first objective.
struct Improvement {
  Seconds seconds = 0;     ///< since the experiment began, without the time between drivers
  std::int64_t steps = 0;  ///< steps that all trials together had done
  TrialId trial = -1;
  double value = 0;
};

/// All learning curves of an experiment: a few tens of bytes per report. A value.
class RecordedCurves {
 public:
  /// Reads the experiment in `directory`, even while it runs. Throws the errors of JournalReader, and `usage` if there
  /// is no curve, or if trials took over the states of others (population-based training): how they would have done
  /// alone is not known.
  static RecordedCurves read(const std::filesystem::path& directory);

  const std::string& name() const { return start_.name; }
  /// The record of the last start or resumption, with the objectives and constraints of the first start.
  const record::ExperimentStarted& start() const { return start_; }
  const std::vector<Objective>& objectives() const { return start_.objectives; }
  const std::vector<MetricBound>& constraints() const { return start_.constraints; }
  /// By number, without trials that have neither reported nor failed.
  const std::vector<RecordedTrial>& trials() const { return trials_; }
  std::size_t width() const { return objectives().size() + constraints().size(); }  ///< number of values of a report
  std::span<const double> report(const RecordedTrial& trial, std::size_t index) const {
    return std::span(trial.values).subspan(index * width(), width());
  }

  /// The values of a report with their names. Bounded metrics without a value are left out.
  Metrics metrics(std::span<const double> values) const;

  int max_at_once() const { return max_at_once_; }    ///< trials that ran at the same time
  Seconds startup() const { return startup_; }        ///< median duration of an attempt's startup
  Seconds usual_step() const { return usual_step_; }  ///< seconds per report: the median of the trials' medians
  Seconds elapsed() const { return elapsed_; }        ///< seconds, without the time between drivers
  Seconds busy() const;                               ///< duration of all reports and ends together
  std::int64_t steps() const;                         ///< steps of all trials together
  /// The steps at which any trial reported, ascending.
  const std::vector<int>& grid() const { return grid_; }
  /// The improvements that the experiment itself has made.
  const std::vector<Improvement>& improvements() const { return improvements_; }

 private:
  class Reader;

  record::ExperimentStarted start_;
  std::vector<RecordedTrial> trials_;
  std::vector<int> grid_;
  std::vector<Improvement> improvements_;
  int max_at_once_ = 0;
  Seconds startup_ = 0, usual_step_ = 0, elapsed_ = 0;
};

}  // namespace hypertune::inline v0
