// The answers to the page's requests, as JSON: functions of an ExperimentView.
#pragma once

#include <hypertune/show/detail/view/experiment_view.hpp>
#include <hypertune/show/detail/view/json_writer.hpp>
#include <hypertune/show/detail/view/query.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::view {

/// The maximum size of an answer, in bytes.
inline constexpr std::size_t max_answer = 1'000'000;

/// A column of the table of trials, as a request names it: trial, state, steps, value, duration, failures, started,
/// params.NAME, or a metric. `params.@2` is the third parameter, `@0` the first metric.
struct Field {
  enum class Kind { trial, state, steps, value, duration, failures, started, param, metric };
  Kind kind = Kind::trial;
  std::size_t param = 0;
  std::uint32_t metric = 0;
};
/// Error of kind `input` if there is no such column.
Field field_of(const ExperimentView& view, std::string_view name);
/// A metric by its name or index; the first objective's if `name` is empty. Error of kind `input` if there is none.
std::uint32_t metric_of(const ExperimentView& view, const std::string& name);
/// Writes the value of a field for the trial at an index of rows().
void put_field(JsonWriter& out, const ExperimentView& view, const Field& field, std::size_t place);

/// Writes "version", and "reading" while there are more records to be read.
void put_version(JsonWriter& out, const ExperimentView& view);
void put_number(JsonWriter& out, std::string_view name, double value);  ///< null for NaN
void put_counts(JsonWriter& out, const ExperimentView& view);
/// Writes the row of a trial as in the page's tables.
void put_row(JsonWriter& out, const ExperimentView& view, const TrialRow& row, bool all = false);
/// Texts of experiments are cut to this size in answers with many of them.
inline constexpr std::size_t max_text = 2000;
std::string_view shortened(std::string_view text, std::size_t most = max_text);

/// Indices in rows() of the trials that a filter selects, in ascending order.
std::vector<std::size_t> filtered(const ExperimentView& view, const std::string& filter);
/// Selects `most` of these: the best ones (a tenth), and a sample that does not depend on the order; in order.
std::vector<std::size_t> sampled(const ExperimentView& view, std::vector<std::size_t> places, std::size_t most);
/// The indices of the trials that rank, the best first; at most `most`.
std::vector<std::size_t> best_places(const ExperimentView& view, const std::vector<std::size_t>& of, std::size_t most);

/// Facts that only the server knows; asked for when needed.
struct Surroundings {
  std::function<std::string()> cost;  ///< JSON or "null"
  std::function<std::string(const std::vector<TrialId>&, std::vector<std::pair<TrialId, std::string>>&)> why_waiting;
};

std::string summary_answer(const ExperimentView& view, const Surroundings& around);
std::string trials_answer(const ExperimentView& view, const Query& query);
std::string best_answer(const ExperimentView& view, const Query& query);
std::string curves_answer(const ExperimentView& view, const Query& query);
std::string rungs_answer(const ExperimentView& view);
std::string points_answer(const ExperimentView& view, const Query& query);
std::string importance_answer(const ExperimentView& view, const Query& query);
std::string edf_answer(const ExperimentView& view, const Query& query);
std::string front_answer(const ExperimentView& view, const Query& query);
std::string timeline_answer(const ExperimentView& view, const Query& query);
std::string lineage_answer(const ExperimentView& view);
std::string now_answer(const ExperimentView& view, const Surroundings& around);
std::string config_answer(const ExperimentView& view, const Query& query);

}  // namespace hypertune::inline v0::view
