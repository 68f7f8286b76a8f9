// Results as a text table. Included by impl/results.hpp.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/detail/text_table.hpp>
#include <hypertune/record/impl/results_state.hpp>
#include <hypertune/record/results.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

std::string Results::table(const TableOptions& options) const {
  const auto params = param_names(), attributes = attribute_names();
  const bool any_failure = std::any_of(self().trials.begin(), self().trials.end(),
                                       [](const TrialData& trial) { return trial.failure_count() > 0; });
  const bool any_cause = std::any_of(self().trials.begin(), self().trials.end(),
                                     [](const TrialData& trial) { return trial.cause != nullptr; });
  using detail::terminal::Cell;
  std::vector<detail::terminal::TextTable::Column> columns{{"trial", true}, {"state"}, {"steps", true}};
  for (const auto& objective : self().info.objectives) columns.push_back({objective.metric, true, 8});
  if (!self().info.objectives.empty()) columns.push_back({"at step", true});
  if (!self().info.constraints.empty()) columns.push_back({"feasible"});
  for (const auto& name : params) columns.push_back({name, true, 6});
  for (const auto& name : attributes) columns.push_back({name, false, 32});
  if (any_failure) columns.push_back({"failures", true});
  if (any_cause) columns.push_back({"cause", false, 64});
  detail::terminal::TextTable table(columns);
  for (const TrialId id : ranked(options.rows)) {
    const TrialResult trial = this->trial(id);
    std::vector<Cell> row{id, to_string(trial.state), std::int64_t{trial.steps}};
    for (const auto& objective : self().info.objectives) {
      const auto best = best_report(id, objective);
      row.push_back(best ? Cell(best->value, 6) : "-");
    }
    if (!self().info.objectives.empty()) row.push_back(trial.best ? Cell(std::int64_t{trial.best->step}) : "-");
    if (!self().info.constraints.empty()) row.push_back(!trial.feasible ? "-" : *trial.feasible ? "yes" : "no");
    for (const auto& name : params) row.push_back(Cell::of(trial.params.find(name), 5));
    for (const auto& name : attributes) {
      constexpr std::size_t widest = 80;  // a text may have thousands of bytes; --format json and csv have all of it
      const Value* value = trial.attributes.find(name);
      const auto* text = value == nullptr ? nullptr : std::get_if<std::string>(value);
      if (text != nullptr && text->size() > widest)
        row.emplace_back(detail::terminal::elide(detail::terminal::printable(*text), widest));
      else
        row.push_back(Cell::of(value, 5));
    }
    if (any_failure) row.push_back(std::int64_t{trial.failure_count()});
    if (any_cause) row.push_back(trial.cause ? trial.cause->text : "");
    table.add(std::move(row));
  }
  return table.text(options.width);
}

}  // namespace hypertune::inline v0
