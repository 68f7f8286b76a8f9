// Report: the named metrics of a trial at a step.
#pragma once

#include <hypertune/trial/attributes.hpp>

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Metrics by name, in the order given. Values may be NaN or infinite.
using Metrics = std::vector<std::pair<std::string, double>>;

/// The value of the first metric of this name; nullptr if there is none.
const double* find_metric(const Metrics& metrics, std::string_view name);

/// One report. `step` counts from 0. If the trial does not set it, the runner does: it is the step after the last one.
struct Report {
  Metrics metrics;
  std::optional<int> step;
  Attributes attributes;  ///< of the trial, from now on
  /// Set by a runner of programs: the program has ended, so that nothing is saved by giving the trial up here. It goes on
  /// to its last report, the scheduler's limit of steps, or a stop condition.
  bool over = false;
  /// Set by a runner of programs: what it has seen of the program that the user should know; said once.
  std::string remark = {};
  /// Set by a runner of programs: by metric, the unit that the program prints behind its numbers, if none is named. Once
  /// for each metric of an attempt.
  std::vector<std::pair<std::string, std::string>> units = {};

  Report() noexcept;
  explicit Report(Metrics values);
  Report(const Report& other);
  Report(Report&& other) noexcept;
  Report& operator=(const Report& other);
  Report& operator=(Report&& other) noexcept;
  ~Report();

  /// Sets the step of this report. A step at or before the last recorded one counts as a repetition after a restart,
  /// and not again. Errors as of require_step().
  Report at(int s) &&;
  /// Sets an attribute of the trial with this report: `co_yield ht::report("loss", loss).with("phase", "warm-up")`.
  /// The last value of each name is kept; a text of more than 4,096 bytes is cut. Error of kind `usage` for an empty
  /// name, or one of more than 128 bytes or with control characters.
  Report with(std::string name, Value value) &&;
  /// Error of kind `usage` unless the step is from 0 to the largest int minus 1: the number of steps done must fit into
  /// an int.
  static void require_step(int step);
};

namespace detail {
inline void append_metrics(Metrics&) {}
template <class... More>
void append_metrics(Metrics& metrics, std::string name, double value, More&&... more) {
  metrics.emplace_back(std::move(name), value);
  append_metrics(metrics, std::forward<More>(more)...);
}
}  // namespace detail

/// `co_yield report("accuracy", 0.93)`
Report report(std::string name, double value);

/// `report({{"accuracy", 0.93}, {"loss", 0.2}})`. Not within a co_yield: g++ 12 does not compile a braced list there.
Report report(std::initializer_list<std::pair<std::string, double>> metrics);

/// `co_yield report("accuracy", 0.93, "loss", 0.2)`: several metrics, as alternating names and values.
template <class... More>
  requires(sizeof...(More) >= 2 && sizeof...(More) % 2 == 0)
Report report(std::string name, double value, More&&... more) {
  Metrics metrics;
  metrics.reserve(1 + sizeof...(More) / 2);
  metrics.emplace_back(std::move(name), value);
  detail::append_metrics(metrics, std::forward<More>(more)...);
  return Report(std::move(metrics));
}

}  // namespace hypertune::inline v0
