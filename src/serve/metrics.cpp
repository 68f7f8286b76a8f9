#include "metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace hypertune::inline v0::serving {

namespace {

/// A label's value: in quotes, as the text format escapes it.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

void head(std::string& out, const char* name, const char* type, const char* help) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
}

}  // namespace

void Histogram::put(std::string& out, const std::string& name, const std::string& labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    fmt::format_to(std::back_inserter(out), "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, below);
  }
  fmt::format_to(std::back_inserter(out), "{0}_sum{{{1}}} {2}\n{0}_count{{{1}}} {3}\n", name, labels, sum_, count_);
}

double Histogram::quantile(double share) const {
  const double wanted = share * static_cast<double>(count_);
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < bounds_.size(); ++i) {
    const double before = static_cast<double>(below);
    below += counts_[i];
    if (counts_[i] == 0 || static_cast<double>(below) < wanted) continue;
    const double low = i == 0 ? 0 : bounds_[i - 1];
    return low + (bounds_[i] - low) * (wanted - before) / static_cast<double>(counts_[i]);
  }
  return count_ == 0 ? 0 : bounds_.back();
}

std::string prometheus_text(const Metrics& metrics, const Gauges& gauges) {
  std::string out;
  const auto line = std::back_inserter(out);
  const std::string model = "model=" + quoted(gauges.model);
  head(out, "hypertune_serve_requests_total", "counter", "Inference requests answered, by HTTP status.");
  for (const auto& [status, count] : metrics.requests)
    fmt::format_to(line, "hypertune_serve_requests_total{{{},code=\"{}\"}} {}\n", model, status, count);
  head(out, "hypertune_serve_request_seconds", "histogram", "Seconds from a request to its answer, with status 200.");
  metrics.latency.put(out, "hypertune_serve_request_seconds", model);
  head(out, "hypertune_serve_batch_rows", "histogram", "Rows of a batch.");
  metrics.batch_rows.put(out, "hypertune_serve_batch_rows", model);
  head(out, "hypertune_serve_batch_seconds", "histogram", "Seconds that a batch took.");
  metrics.batch_seconds.put(out, "hypertune_serve_batch_seconds", model);
  const auto by_version = [&](const char* name, const char* help, const auto& of) {
    head(out, name, "gauge", help);
    for (const auto& version : gauges.versions)
      fmt::format_to(line, "{}{{{},version={},state=\"{}\"}} {}\n", name, model, quoted(version.version), version.state,
                     of(version));
  };
  by_version("hypertune_serve_replicas", "Replicas that are ready.", [](const auto& v) { return v.replicas; });
  by_version("hypertune_serve_queued_requests", "Requests that wait for a replica.",
             [](const auto& v) { return v.waiting; });
  by_version("hypertune_serve_ongoing_requests", "Requests that are not answered yet.",
             [](const auto& v) { return v.ongoing; });
  head(out, "hypertune_serve_connections", "gauge", "Open connections.");
  fmt::format_to(line, "hypertune_serve_connections{{{}}} {}\n", model, gauges.connections);
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    head(out, name, "counter", help);
    fmt::format_to(line, "{}{{{}}} {}\n", name, model, value);
  };
  counter("hypertune_serve_replicas_lost_total", "Replicas that died or hung.", metrics.replicas_lost);
  counter("hypertune_serve_swaps_total", "Versions that took over from another one.", metrics.swaps);
  counter("hypertune_serve_rejected_versions_total", "Versions that could not begin or failed validation.",
          metrics.rejected_versions);
  return out;
}

}  // namespace hypertune::inline v0::serving
