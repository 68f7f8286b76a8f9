// Names of metrics that have another meaning in some places: definitions.
#pragma once

#include <hypertune/trial/attributes.hpp>
#include <hypertune/trial/metric_name.hpp>

namespace hypertune::inline v0::detail {

std::string refused_name(std::string_view metric) {
  if (!has_control(metric)) return "";
  std::string shown(metric.substr(0, 100));
  for (char& c : shown)
    if (is_control(c)) c = '?';
  return detail::format("the name of the metric '{}' has control characters ('?'), such as a line break", shown);
}

std::string reserved_in_report_lines(std::string_view metric) {
  if (auto why = refused_name(metric); !why.empty()) return why;
  const std::string_view means = metric == "step"         ? "the number of its step"
                                 : metric == "checkpoint" ? "the checkpoint that was saved"
                                                          : "";
  if (means.empty()) return "";
  return detail::format("no metric can be called '{}', as that is how a report's line calls {}: take another name{}",
                        metric, means, metric == "step" ? " (epoch, say)" : "");
}

std::string metric_key(std::string_view metric) {
  std::string_view core = metric;
  while (core.starts_with("metrics_")) core.remove_prefix(8);
  return core == "step" ? "metrics_" + std::string(metric) : std::string(metric);
}

}  // namespace hypertune::inline v0::detail
