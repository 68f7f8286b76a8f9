// ReportJoin: makes reports of the metrics that expressions find in lines.
#pragma once

#include <hypertune/trial/report.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hypertune::inline v0::local {

/// What expressions have found in one line.
struct FoundMetrics {
  Metrics metrics = {};
  std::optional<int> step = {};
  bool error_stream = false;  ///< the line was on standard error
  bool stays = true;          ///< false: the program has written over it
  bool drawn = false;         ///< as of OutputLine
  std::uint64_t row = 0;      ///< as of OutputLine
};

/// A report that is complete.
struct JoinedReport {
  Metrics metrics;
  std::optional<int> step;
};

/// The metrics of one line belong to one report. Those of different lines are joined as long as they complete each
/// other: a report is made when it has every metric, when a later line has one of its metrics again or another step, or
/// at the end. A report needs one of the objectives; without them, values are dropped.
///
/// The updates of one line are one line: of each metric its last value there counts. A value that the program has
/// written over gives way to one that stays in a later line, completes the values of later lines only when their report
/// is made, and is made a report of its own when it is written over in a later line again. A bar among several that are
/// drawn at once may move to another line to stay: once a metric has stayed in one of these lines, those of its values
/// there that are written over do not count.
///
/// A metric that was found on standard output is not taken from standard error any more.
class ReportJoin {
 public:
  /// `count`: of the metrics for which there are expressions.
  ReportJoin(std::size_t count, std::vector<std::string> objectives)
      : count_(count), objectives_(std::move(objectives)) {}

  /// Adds the reports that this line makes to `ready`.
  void add(FoundMetrics found, std::deque<JoinedReport>& ready);
  /// Makes a report of what is there: at the end of the output, or because time has passed.
  void flush(std::deque<JoinedReport>& ready);

  /// Whether a value that stays has been found: then the program ends its lines.
  bool any_stays() const { return any_stays_; }

 private:
  void choose_stream(FoundMetrics& found);

  std::size_t count_;
  std::vector<std::string> objectives_;
  Metrics kept_, passing_;         // of the next report: values that stay, and such that were written over
  std::uint64_t passing_row_ = 0;  // of the latter
  bool passing_stream_ = false;
  std::optional<int> step_;
  std::map<std::string, bool> on_error_stream_;  // where each metric is found
  std::set<std::string> drawn_stay_;             // metrics that have stayed in a line of several that are drawn
  bool any_stays_ = false;
};

}  // namespace hypertune::inline v0::local
