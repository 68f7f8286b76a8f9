// The state of an experiment in the text formats that Prometheus reads.
#pragma once

#include <hypertune/record/results.hpp>

#include <cstdint>
#include <string>

namespace hypertune::inline v0 {

enum class Exposition : std::uint8_t {
  prometheus,   ///< text format 0.0.4, which node_exporter's textfile collector also reads
  openmetrics,  ///< OpenMetrics 1.0, for clients that ask for application/openmetrics-text
};

/// The Content-Type of an answer in that format.
constexpr const char* content_type(Exposition format) {
  return format == Exposition::prometheus ? "text/plain; version=0.0.4; charset=utf-8"
                                          : "application/openmetrics-text; version=1.0.0; charset=utf-8";
}

/// The metrics of an experiment, each with the label `experiment` (its name); docs/experiment-folder.md lists them. The
/// text depends only on `results`, not on a clock or a file. There are at most some 40 series, and three for each of at
/// most 100 hosts; further hosts are counted together as `other`. There are none per trial, because the number of
/// trials is not limited.
std::string prometheus_text(const Results& results, Exposition format = Exposition::prometheus);

}  // namespace hypertune::inline v0
