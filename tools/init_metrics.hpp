// Finds the metrics in what a command prints, and the one to tune.
#pragma once

#include <hypertune/record/record.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

/// A number that a command prints under a name, in one or more runs.
struct FoundMetric {
  std::string name;                         ///< as a metric's name: valid_1_auc for "valid_1's auc"
  std::string printed;                      ///< as it is printed
  std::string before, after;                ///< an expression for it: what stands before and after the number
  bool alone = true;                        ///< nothing follows the number at once but a space or the end of a sentence
  std::set<std::string> units;              ///< what follows the number at once: "%", "k"
  std::set<std::string> apart;              ///< a unit after a space: "ms"
  std::vector<std::vector<double>> values;  ///< of each run, in their order
  std::size_t order = 0;                    ///< of its last value in the first run, among all
  bool json = false;                        ///< a member of JSON lines
  bool grouped = false;                     ///< a whole number was printed with a comma for the thousands: 1,234
  bool weak = false;                        ///< only spaces are between name and number, and the name says nothing
  bool amount = false;  ///< of what was done in a given time: "hashing for 1s: 5000 blocks in 1.01s"
  std::optional<std::set<std::string>> repeats;  ///< the parameters whose value it had in each run

  /// The expression for trial.metrics. Its group is the whole number as it is printed. It matches none of `others`.
  std::string expression(const std::vector<FoundMetric>& others) const;
  /// What it is counted in, as trial.metrics names it: seconds, bytes, percent or count. Empty: that need not be said.
  std::string unit() const;
  /// Whether it only shows a parameter: that has its name, and it had its value in each run.
  bool echo() const;
  /// Whether it is the same in all that was printed, of at least two values.
  bool constant() const;
};

/// Collects the metrics of one or more runs.
class MetricFinder {
 public:
  /// `parameters`: the values with which the command runs.
  void begin_run(const std::map<std::string, std::string>& parameters);
  /// `reports`: the line may be a report in JSON; returns whether it is one.
  bool add_line(std::string_view line, bool reports);
  const std::vector<FoundMetric>& found() const { return found_; }
  /// Whether the latest run has printed a metric.
  bool reported(std::size_t metric) const {
    const auto& values = found_[metric].values;
    return values.size() == runs_ && !values.back().empty();
  }

 private:
  FoundMetric& metric(const std::string& name, bool json);
  void add(FoundMetric& metric, double value);

  std::vector<FoundMetric> found_;
  std::map<std::pair<std::string, bool>, std::size_t> places_;
  std::size_t runs_ = 0, order_ = 0;
  std::vector<std::pair<std::string, double>> parameters_;  // of this run, those that are numbers
};

/// The metric to tune: of held-out data rather than of training, a score rather than a loss, these rather than speeds
/// and times; none that is always the same, or only repeats the command (`words`) or a parameter. JSON lines come first. nullptr:
/// none may be meant.
const FoundMetric* metric_to_tune(const std::vector<FoundMetric>& found, const std::vector<std::string>& words);

/// Whether a metric judges what has been learned or found, so that each of its values is a step towards that.
bool is_score(const FoundMetric& metric);

/// Whether it says where a learner is, or what it was told.
bool is_counter(const FoundMetric& metric);

/// Whether the values of a run only became better, in several steps: that of a search, of which each counts. What speeds
/// and times do says nothing.
bool improves(const FoundMetric& metric);

/// The direction in which a metric is better, by its name; also of times and sizes.
std::optional<Mode> mode_of_found(const FoundMetric& metric);

}  // namespace hypertune::inline v0::command
