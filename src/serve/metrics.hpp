// Metrics: what is counted of a server, and its text for Prometheus.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace hypertune::inline v0::serving {

/// A histogram with the upper bounds that its maker names; "+Inf" is added.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}
  void add(double value) {
    std::size_t i = 0;
    while (i < bounds_.size() && value > bounds_[i]) ++i;
    ++counts_[i];
    sum_ += value;
    ++count_;
  }
  /// Appends its series, as Prometheus's text format 0.0.4 has them.
  void put(std::string& out, const std::string& name, const std::string& labels) const;
  std::uint64_t count() const { return count_; }
  /// The value below which a share of the values is, as far as the bounds tell; 0 without values.
  double quantile(double share) const;

 private:
  std::span<const double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

inline constexpr std::array<double, 16> seconds_bounds{0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                                       0.2,    0.5,   1,     2,     5,    10,   30,   60};
inline constexpr std::array<double, 10> rows_bounds{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

struct Metrics {
  std::map<int, std::uint64_t> requests;  ///< inference requests that were answered, by HTTP status
  Histogram latency{seconds_bounds};      ///< seconds from a request to its answer, of those with status 200
  Histogram batch_rows{rows_bounds};
  Histogram batch_seconds{seconds_bounds};
  std::uint64_t replicas_lost = 0, swaps = 0, rejected_versions = 0;
};

/// What is read at the moment of asking.
struct Gauges {
  struct OfVersion {
    std::string version, state;
    int replicas = 0;
    std::size_t waiting = 0, ongoing = 0;
  };
  std::string model;
  std::vector<OfVersion> versions;
  std::size_t connections = 0;
};

std::string prometheus_text(const Metrics& metrics, const Gauges& gauges);

}  // namespace hypertune::inline v0::serving
