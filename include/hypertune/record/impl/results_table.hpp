// Results as a table for people. Included by impl/results.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/json_text.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/show/text_width.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune {

namespace detail {

/// Columns of text, aligned. A terminal shows one place per character (wide ones aside); what is not printable() is
/// shown as '?', so that no cell can break the table or the terminal.
class TextTable {
 public:
  struct Column {
    std::string title;
    bool right = false;        // numbers
    std::size_t smallest = 0;  // may be cut down to this many places; 0: never cut
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
    std::vector<std::string> titles;
    for (const auto& column : columns_) titles.push_back(column.title);
    add(std::move(titles));
  }

  void add(std::vector<std::string> cells) {
    for (auto& cell : cells) cell = terminal::printable(cell);
    rows_.push_back(std::move(cells));
  }

  /// `width` 0: as wide as it gets.
  std::string text(std::size_t width) const {
    std::vector<std::size_t> widths(columns_.size());
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], places(row[i]));
    const std::size_t shown = width == 0 ? columns_.size() : fit(widths, width);
    std::string out;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < shown; ++i) {
        if (i > 0) line += "  ";
        const std::string cell = cut(row[i], widths[i]);
        const std::string padding(widths[i] - places(cell), ' ');
        columns_[i].right ? (line += padding) += cell : (line += cell) += padding;
      }
      if (shown < columns_.size()) line += " …";
      line.erase(line.find_last_not_of(' ') + 1);
      (out += line) += '\n';
    }
    return out;
  }

 private:
  static std::size_t places(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }
  static std::string cut(const std::string& text, std::size_t width) {
    if (places(text) <= width) return text;
    std::string out;
    std::size_t used = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if ((text[i] & 0xC0) != 0x80 && ++used >= width) break;
      out += text[i];
    }
    return out + "…";
  }

  // Cuts the widest cells that may be cut; then leaves out columns at the right. How many are shown.
  std::size_t fit(std::vector<std::size_t>& widths, std::size_t width) const {
    std::size_t shown = columns_.size();
    const auto total = [&] {
      std::size_t sum = shown < columns_.size() ? 2 : 0;
      for (std::size_t i = 0; i < shown; ++i) sum += widths[i] + (i > 0 ? 2 : 0);
      return sum;
    };
    while (total() > width) {
      std::size_t widest = shown;
      for (std::size_t i = 0; i < shown; ++i)
        if (columns_[i].smallest > 0 && widths[i] > columns_[i].smallest &&
            (widest == shown || widths[i] > widths[widest]))
          widest = i;
      if (widest < shown)
        --widths[widest];
      else if (shown > 1)
        --shown;
      else
        break;
    }
    return shown;
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace detail

template <class Lazy>
std::string BasicResults<Lazy>::table(const TableOptions& options) const {
  const auto params = param_names();
  const bool any_failure = failures_ != std::array<std::int64_t, 3>{};
  const bool any_cause =
      std::any_of(trials_.begin(), trials_.end(), [](const TrialData& trial) { return trial.cause != nullptr; });
  std::vector<detail::TextTable::Column> columns{{"trial", true}, {"state"}, {"steps", true}};
  for (const auto& objective : info_.objectives) columns.push_back({objective.metric, true, 8});
  if (!info_.objectives.empty()) columns.push_back({"at step", true});
  if (!info_.constraints.empty()) columns.push_back({"feasible"});
  for (const auto& name : params) columns.push_back({name, true, 6});
  if (any_failure) columns.push_back({"failures", true});
  if (any_cause) columns.push_back({"cause", false, 12});
  detail::TextTable table(columns);
  for (const TrialId id : ranked(options.rows)) {
    const TrialResult trial = this->trial(id);
    std::vector<std::string> row{detail::format("{}", id), to_string(trial.state), detail::format("{}", trial.steps)};
    for (const auto& objective : info_.objectives) {
      const auto best = best_report(id, objective);
      row.push_back(best ? detail::format("{:.6g}", best->value) : "-");
    }
    if (!info_.objectives.empty()) row.push_back(trial.best ? detail::format("{}", trial.best->step) : "-");
    if (!info_.constraints.empty()) row.push_back(!trial.feasible ? "-" : *trial.feasible ? "yes" : "no");
    for (const auto& name : params) {
      const Value* value = trial.params.find(name);
      const double* real = value == nullptr ? nullptr : std::get_if<double>(value);
      row.push_back(value == nullptr ? "-" : real != nullptr ? detail::format("{:.5g}", *real) : to_string(*value));
    }
    if (any_failure) row.push_back(detail::format("{}", trial.failure_count()));
    if (any_cause) row.push_back(trial.cause ? trial.cause->text : "");
    table.add(std::move(row));
  }
  return table.text(options.width);
}

}  // namespace hypertune
