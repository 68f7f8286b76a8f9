// RecordedCurves: the learning curves of an experiment, with how long each report took.
#pragma once

#include <hypertune/detail/linkage.hpp>
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

/// What is known of one trial. Reports are in the order of their steps.
struct RecordedTrial {
  /// How it came to its last report.
  enum class End : std::uint8_t {
    by_itself,  ///< the program had no more to do: nothing follows
    failed,     ///< for good
    cut,        ///< it was stopped, was complete by the schedule's limit of steps, or runs still: more could follow
  };
  TrialId trial = -1;
  std::vector<int> steps;        ///< of each report, from 0, rising
  std::vector<Seconds> seconds;  ///< that each report took, without the start of its attempt
  std::vector<double> values;    ///< of each report the objectives', then the bounded metrics'; NaN: none
  End end = End::cut;
  std::string cause;  ///< of a failed one
  /// Of one that ended by itself or failed: from its last report, or the start of its last attempt, to its end.
  Seconds to_end = 0;
};

/// When the best result so far of the first objective was another one.
struct Improvement {
  Seconds seconds = 0;     ///< since the experiment began, without the time between drivers
  std::int64_t steps = 0;  ///< that all trials together had done
  TrialId trial = -1;
  double value = 0;
};

/// All of an experiment's curves: a few tens of bytes a report. A value.
class RecordedCurves {
 public:
  /// Reads the experiment in `directory`, also while it runs. Errors as JournalReader's, and `usage` where there is no
  /// curve, or trials took over the states of others (a population): what they would have been alone is not known.
  static RecordedCurves read(const std::filesystem::path& directory);

  const std::string& name() const { return start_.name; }
  /// As it was last started or resumed.
  const record::ExperimentStarted& start() const { return start_; }
  const std::vector<Objective>& objectives() const { return start_.objectives; }
  const std::vector<MetricBound>& constraints() const { return start_.constraints; }
  /// By number, without those that were never run.
  const std::vector<RecordedTrial>& trials() const { return trials_; }
  std::size_t width() const { return objectives().size() + constraints().size(); }  ///< values of a report
  std::span<const double> report(const RecordedTrial& trial, std::size_t index) const {
    return std::span(trial.values).subspan(index * width(), width());
  }

  /// The values of a report by their names, as far as they are known.
  Metrics metrics(std::span<const double> values) const;

  int most_at_once() const { return most_at_once_; }  ///< trials that ran at the same time
  Seconds startup() const { return startup_; }        ///< until an attempt's first step began, the median
  Seconds usual_step() const { return usual_step_; }  ///< seconds a report, the median of the trials' medians
  Seconds elapsed() const { return elapsed_; }        ///< without the time between drivers
  Seconds busy() const;                               ///< of all reports together
  std::int64_t steps() const;                         ///< that all trials have done
  /// The steps at which any trial reported, rising.
  const std::vector<int>& grid() const { return grid_; }
  /// What the experiment itself found, when.
  const std::vector<Improvement>& improvements() const { return improvements_; }

 private:
  class Reader;

  record::ExperimentStarted start_;
  std::vector<RecordedTrial> trials_;
  std::vector<int> grid_;
  std::vector<Improvement> improvements_;
  int most_at_once_ = 0;
  Seconds startup_ = 0, usual_step_ = 0, elapsed_ = 0;
};

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/tune/impl/recorded_curves.hpp>
#endif
