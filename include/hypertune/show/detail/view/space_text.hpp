// Parses what an experiment's record says about its space and its schedule, for display.
#pragma once

#include <hypertune/show/detail/view/experiment_view.hpp>
#include <hypertune/show/detail/view/json_writer.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::view {

/// A parameter as described by the text of a space: `lr: {log_uniform: [0.0001, 0.1]}`.
struct Parameter {
  std::string name;
  std::string kind = "text";  ///< float, int, choice, ordinal, bool, text or fixed
  bool log = false;
  double low = unknown, high = unknown;
  std::vector<std::string> choices;  ///< as JSON
};

/// `line` is the part after the name, `{log_uniform: [0.0001, 0.1]}`. Whatever it does not determine is not changed.
void read_domain(std::string_view line, Parameter& parameter);
/// The parameters of all trials, in the order of the columns.
std::vector<Parameter> parameters_of(const ExperimentView& view);
void put_parameters(JsonWriter& out, const ExperimentView& view);

/// Whether the schedule compares trials at rungs.
bool has_rungs(const ExperimentView& view);
/// Seconds until all samples have ended, at the pace so far; NaN if not known.
double seconds_left(const ExperimentView& view);

}  // namespace hypertune::inline v0::view
