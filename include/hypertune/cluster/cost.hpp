// The costs of the machines of a cluster.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::cluster {

/// The machine hours of one node type at one price.
struct CostLine {
  std::string node_type;
  bool spot = false;
  int machines = 0;      ///< all that ever existed
  int running = 0;       ///< those that run now
  double hours = 0;      ///< from launch to termination or now, without the time while stopped
  double price = 0;      ///< per hour; 0: not known
  double on_demand = 0;  ///< the on-demand price per hour; 0: not known
  double cost() const { return hours * price; }
  /// The savings by spot machines compared with on-demand machines for the same hours.
  double saved() const { return spot && price > 0 && on_demand > 0 ? hours * (on_demand - price) : 0; }
};

/// The costs as results show them. Prices come from CLUSTER.yaml.
struct CostReport {
  std::vector<CostLine> lines;  ///< by type, on-demand first
  std::string currency = "USD";

  double hours() const {
    return sum([](const CostLine& line) { return line.hours; });
  }
  double cost() const {
    return sum([](const CostLine& line) { return line.cost(); });
  }
  double saved() const {
    return sum([](const CostLine& line) { return line.saved(); });
  }
  int machines() const {
    int all = 0;
    for (const auto& line : lines) all += line.machines;
    return all;
  }
  /// Whether every hour has a price; if not, cost() is too low.
  bool complete() const {
    return std::all_of(lines.begin(), lines.end(),
                       [](const CostLine& line) { return line.price > 0 || line.hours <= 0; });
  }

  /// Adds the `hours` of one machine.
  void add(const std::string& node_type, bool spot, double hours, double price, double on_demand, bool running) {
    if (!(hours >= 0) || !std::isfinite(hours)) hours = 0;
    auto line = std::find_if(lines.begin(), lines.end(), [&](const CostLine& candidate) {
      return candidate.node_type == node_type && candidate.spot == spot && candidate.price == price;
    });
    if (line == lines.end()) {
      CostLine fresh;
      fresh.node_type = node_type;
      fresh.spot = spot;
      fresh.price = price;
      fresh.on_demand = on_demand;
      line = lines.insert(std::upper_bound(lines.begin(), lines.end(), fresh,
                                           [](const CostLine& a, const CostLine& b) {
                                             return std::pair(a.node_type, a.spot) < std::pair(b.node_type, b.spot);
                                           }),
                          std::move(fresh));
    }
    line->hours += hours;
    ++line->machines;
    if (running) ++line->running;
  }

  /// One line: "3.20 host hours, 1.28 USD, 2.56 USD saved by spot machines".
  std::string summary() const {
    std::string text = fmt::format("{:.2f} host hours", hours());
    if (cost() > 0) text += fmt::format(", {}{:.2f} {}", complete() ? "" : "at least ", cost(), currency);
    if (saved() > 0) text += fmt::format(", {:.2f} {} saved by spot machines", saved(), currency);
    if (cost() == 0 && hours() > 0) text += " (no prices in the cluster's file)";
    return text;
  }

 private:
  template <class F>
  double sum(F part) const {
    double all = 0;
    for (const auto& line : lines) all += part(line);
    return all;
  }
};

}  // namespace hypertune::inline v0::cluster
