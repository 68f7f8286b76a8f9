// Source: what a chart asks for of one experiment, answered by the page's API.
#pragma once

#include "../dashboard/api.hpp"
#include "plot.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::plot {

namespace json = boost::json;

using Names = std::vector<std::string>;
using Column = json::array;

/// The value if it is a finite number, and above 0 for a logarithmic axis.
std::optional<double> fit(const json::value& value, bool log = false);
/// A member of an object; null if there is none.
const json::value& at(const json::value& object, std::string_view name);
/// A text; "" for other values.
std::string_view text(const json::value& value);
bool is_true(const json::value& value);
/// The elements of a list; none for other values.
const json::array& list(const json::value& value);
/// A number; -1 for other values.
inline double real(const json::value& value) { return fit(value).value_or(-1); }

bool contains(const Names& names, std::string_view name);
/// For messages: at most 30 names, shortened.
std::string listed(const Names& names);

/// Trials by columns.
struct Table {
  std::vector<double> trial;
  Names state;
  std::map<std::string, Column, std::less<>> columns;
  explicit Table(const json::value& answer);
  const Column& of(const std::string& field) const { return columns.at(field); }
};

class Source {
 public:
  /// Error of kind `input` if the experiment cannot be read, or lacks a metric or parameter that the picture names.
  Source(const dashboard::Api& api, const Picture& picture, std::string experiment);

  json::value get(const std::string& path, std::vector<std::pair<std::string, std::string>> parameters = {}) const;
  /// A sample of the trials, with these parameters and metrics (or "duration"). Fails if there are none.
  Table points(const Names& parameters, const Names& metrics_wanted) const;

  std::string name() const { return std::string(text(at(summary, "name"))); }
  std::string mode_of(const std::string& name) const;
  std::string field_of_metric(const std::string& name) const;
  std::string field_of_parameter(const std::string& name) const;
  const json::value& parameter(const std::string& name) const { return described_.at(name); }
  bool has(std::string_view what) const { return is_true(at(at(summary, "has"), what)); }
  /// The best trial, if there is one objective.
  std::optional<double> best() const;

  /// The parameters that were asked for, or the most important ones; at least `least`, at most `most`.
  Names chosen(std::size_t most, std::size_t least = 1) const;
  /// Fails unless there is a metric with values.
  void reported() const;
  /// Fails unless some of the values can be drawn.
  void drawable(const Column& values, bool log, const std::string& of) const;
  void drawable(const Column& values) const { drawable(values, picture.log, metric); }

  const Picture& picture;
  json::value summary;
  Names objectives, metrics, varied;  ///< names; `varied`: parameters
  std::string metric;                 ///< "": there is none
  bool least_is_best = true;

 private:
  std::string experiment_;
  const dashboard::Api& api_;
  std::map<std::string, std::string> modes_;
  Names parameters_;
  std::map<std::string, json::value> described_;
};

}  // namespace hypertune::inline v0::plot
