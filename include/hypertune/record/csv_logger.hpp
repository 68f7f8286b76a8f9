// progress.csv: the reports of each trial as a table.
#pragma once

#include <hypertune/detail/replace_file.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/detail/csv_line.hpp>
#include <hypertune/record/detail/log_files.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/trial/metric_name.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

inline void append_csv_name(std::string& out, std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += field;
    return;
  }
  out += '"';
  for (const char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

/// The offset after the rows of `text`, from `begin` on, that are complete and of steps before `step`; the first other
/// row ends them.
inline std::size_t csv_rows_end(std::string_view text, std::size_t begin, int step) {
  while (true) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return begin;
    int row = 0;
    const auto [rest, error] = std::from_chars(text.data() + begin, text.data() + end, row);
    if (error != std::errc() || *rest != ',' || row >= step) return begin;
    begin = end + 1;
  }
}

}  // namespace detail

/// A Callback that writes `trials/<id>/progress.csv`: one line per report with `step` (from 0), `time` (seconds, by the
/// executor's clock) and the metrics in the order of their first appearance. Where a metric is called `time`, the column
/// with the seconds is `timestamp` (or `timestamp_`, … if a metric has that name too); a metric called `step` has the
/// column `metrics_step`. A metric that first appears later gets a new column, and the file is rewritten once. A metric that a report lacks is an empty field. NaN and infinity are `nan`, `inf` and `-inf`, which
/// pandas, R and C's strtod can read.
///
/// After a resume the files continue where they ended, whatever state a kill left them in: half-written lines are cut
/// off, committed reports that were not yet written are added, and none is repeated. Files are written at the end of
/// each batch and are not kept open. Memory: about 100 bytes per trial that has not ended.
class CsvLogger {
 public:
  void on_open(const std::filesystem::path& directory) { logs_.open(directory); }
  void on_record(const Record& record) {
    logs_.follow(record, [&](const Record& r) { add(r); });
  }
  void on_batch_end() {
    if (!logs_.opened()) return;
    flush();
    logs_.save_position();
  }
  std::string name() const { return "csv"; }

 private:
  using Columns = std::vector<std::string>;
  struct Trial {
    std::shared_ptr<const Columns> columns;  // trials with the same metrics share them
    std::string rows;                        // not written yet
    bool fresh = false;                      // created in this run: an existing file is not this trial's
    bool header = false;                     // the file has a header line
    bool ended = false;
    bool changed = false;  // is in changed_
  };

  void add(const Record& record) {
    if (const auto* report = std::get_if<record::TrialReported>(&record.what)) {
      add(*report, record.time);
    } else if (const auto* created = std::get_if<record::TrialCreated>(&record.what)) {
      Trial& trial = logs_.trials()[created->trial] = {};
      trial.fresh = true;
    } else if (const auto* ended = std::get_if<record::TrialEnded>(&record.what)) {
      if (const auto found = logs_.trials().find(ended->trial); found != logs_.trials().end()) {
        found->second.ended = true;
        logs_.note(ended->trial, found->second);
      }
    }
  }

  void add(const record::TrialReported& report, Seconds time) {
    Trial& trial = logs_.trials()[report.trial];
    if (!trial.columns) begin(report, trial);
    logs_.note(report.trial, trial);
    if (auto wider = widened(*trial.columns, report.metrics)) {
      if (trial.header || !trial.rows.empty()) {
        write(report.trial, trial);
        rewrite(report.trial, trial.columns->size(), *wider);
      }
      trial.columns = shared(std::move(*wider));
    }
    const std::size_t before = trial.rows.size();
    trial.rows += detail::format("{},{}", report.step, time);
    std::size_t guess = 0;
    for (const std::string& column : *trial.columns) {
      trial.rows += ',';
      // Usually the metrics of a report have the order of the columns.
      const double* value = guess < report.metrics.size() && report.metrics[guess].first == column
                                ? &report.metrics[guess].second
                                : find_metric(report.metrics, column);
      if (value != nullptr) trial.rows += detail::format("{}", *value);
      ++guess;
    }
    trial.rows += '\n';
    pending_ += trial.rows.size() - before;
    if (pending_ > (std::size_t{4} << 20U)) flush();  // catching up with the Journal may add many
  }

  // The first report of a trial in this run. Keeps the valid part of the trial's file.
  void begin(const record::TrialReported& report, Trial& trial) {
    const auto path = logs_.file(report.trial);
    Columns columns;
    if (trial.fresh) {
      detail::remove_trial_file(path);
    } else if (const std::string text = detail::read_whole(path); !text.empty()) {
      if (const auto header = detail::csv_line(text)) {
        columns = columns_of(header->first, report.metrics, path);
        detail::append_to(path, {}, detail::csv_rows_end(text, header->second, report.step));
        if (text.substr(0, header->second) != this->header(columns)) rewrite(report.trial, columns.size(), columns);
        trial.header = true;
      } else {
        detail::remove_trial_file(path);
      }
    }
    trial.columns = shared(std::move(columns));
  }

  static std::optional<Columns> widened(const Columns& columns, const Metrics& metrics) {
    std::optional<Columns> wider;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      const Columns& known = wider ? *wider : columns;
      if (i < known.size() && known[i] == metrics[i].first) continue;
      if (std::find(known.begin(), known.end(), metrics[i].first) != known.end()) continue;
      if (!wider) wider = columns;
      wider->push_back(metrics[i].first);
    }
    return wider;
  }

  std::shared_ptr<const Columns> shared(Columns columns) {
    if (!latest_ || *latest_ != columns) latest_ = std::make_shared<const Columns>(std::move(columns));
    return latest_;
  }

  // The metrics of a file's columns. `next`: those of the report that follows.
  static Columns columns_of(const std::vector<std::string>& names, const Metrics& next,
                            const std::filesystem::path& path) {
    if (names.size() < 2 || names[0] != "step" || (names[1] != "time" && !names[1].starts_with("timestamp")))
      fail(Errc::corrupt, "'{}' was not written by hypertune: move it away", path.string());
    Columns columns;
    for (std::size_t i = 2; i < names.size(); ++i) {
      const bool by_earlier_version = names[1] == "time" && names[i] == "metrics_time" && !find_metric(next, names[i]);
      columns.push_back(by_earlier_version ? "time" : detail::metric_of_key(names[i]));
    }
    return columns;
  }

  static std::string header(const Columns& columns) {
    std::string time = "time";
    while (std::find(columns.begin(), columns.end(), time) != columns.end()) time += time == "time" ? "stamp" : "_";
    std::string line = "step," + time;
    for (const std::string& column : columns) detail::append_csv_name(line += ',', detail::metric_key(column));
    return line += '\n';
  }

  void write(TrialId id, Trial& trial) {
    if (trial.rows.empty()) return;
    const auto path = logs_.file(id);
    if (trial.header)
      detail::append_to(path, trial.rows);
    else
      detail::append_to(path, header(*trial.columns) + trial.rows);
    trial.header = true;
    trial.rows = std::string();
  }

  void rewrite(TrialId id, std::size_t old_columns, const Columns& columns) {
    const auto path = logs_.file(id);
    const std::string text = detail::read_whole(path);
    const auto old_header = detail::csv_line(text);
    if (!old_header) fail(Errc::io, "'{}' was changed by something else while it was being written", path.string());
    const std::string padding(columns.size() - old_columns, ',');
    std::string wide = header(columns);
    for (std::size_t begin = old_header->second; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      ((wide += std::string_view(text).substr(begin, end - begin)) += padding) += '\n';
      begin = end + 1;
    }
    detail::replace_file(path, wide);
  }

  void flush() {
    logs_.flush([this](TrialId id, Trial& trial) { write(id, trial); });
    pending_ = 0;
  }

  detail::TrialLogs<Trial> logs_{"progress.csv", ".progress-csv"};
  std::shared_ptr<const Columns> latest_;
  std::size_t pending_ = 0;
};

static_assert(Callback<CsvLogger>);

}  // namespace hypertune::inline v0
