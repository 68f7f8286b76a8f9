// Finds the last digits of a minimum that has been found.
#pragma once

#include <hypertune/detail/lbfgs.hpp>
#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/detail/gp/history.hpp>
#include <hypertune/search/detail/gp/quadratic.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The trials nearest to a given one, among those that differ from it only in continuous parameters.
struct Neighbourhood {
  struct Trial {
    const Record* record;
    double distance;  // the greatest difference of a feature
  };
  std::vector<std::size_t> free;  // the features that differ
  std::vector<Trial> trials;

  Neighbourhood(const History& history, std::size_t epoch, const Encoding& encoding, const Record& center) {
    const auto& dimensions = encoding.dimensions();
    std::vector<std::uint8_t> moves(encoding.features(), 0);
    for (std::size_t k = 0; k < dimensions.size(); ++k)
      if (dimensions[k].kind == Encoding::Kind::continuous && is_active(center.point[dimensions[k].index])) {
        free.push_back(k);
        moves[k] = 1;
      }
    for (std::size_t i = epoch; i < history.ended.size(); ++i) {
      const Record& record = history.ended[i];
      if (!std::isfinite(record.standing())) continue;
      double distance = 0;
      bool differs = false;  // in a feature that is not free
      for (std::size_t k = 0; k < moves.size(); ++k) {
        const double away = std::fabs(record.features[k] - center.features[k]);
        differs = differs || (moves[k] == 0 && away != 0);
        distance = std::max(distance, away);
      }
      if (!differs) trials.push_back({&record, distance});
    }
  }
  /// Keeps the nearest `count` trials. False if there are fewer.
  bool keep(std::size_t count) {
    if (trials.size() < count) return false;
    hypertune::detail::stable_sort(trials.begin(), trials.end(),
                                   [](const Trial& a, const Trial& b) { return a.distance < b.distance; });
    trials.resize(count);
    return true;
  }
};

/// The minimum of a quadratic through the trials nearest to the best one, as a suggestion for the last digits once a
/// minimum was found. A Gaussian process of the whole space distinguishes losses only down to its noise, some 1e-8 of
/// the spread of losses. The error of a quadratic falls with the third power of the distance, so that few steps gain
/// what many suggestions of the Gaussian process do not (Conn, Scheinberg and Vicente, "Introduction to derivative-free
/// optimization", 2009, chapters 4 and 10). Returns the features; discrete parameters stay unchanged. nullopt if there
/// are too few trials, or more than 20 continuous parameters (the work grows with the sixth power of their number), or
/// the gain would be within rounding.
inline std::optional<std::vector<double>> polish(const History& history, std::size_t epoch, const Encoding& encoding,
                                                 std::size_t best) {
  const Record& center = history.ended[best];
  Neighbourhood near(history, epoch, encoding, center);
  const std::size_t d = near.free.size(), used = Quadratic::terms(d) + d / 2 + 1;
  if (d == 0 || d > 20 || !near.keep(used)) return std::nullopt;
  const double radius = near.trials.back().distance;
  double scale = 0;
  for (const auto& trial : near.trials) scale = std::max(scale, trial.record->standing() - center.standing());
  if (!(radius > 1e-9) || !(scale > 0)) return std::nullopt;

  Matrix points(used, d);
  std::vector<double> values(used), weights(used);
  for (std::size_t i = 0; i < used; ++i) {
    const auto& [record, distance] = near.trials[i];
    for (std::size_t k = 0; k < d; ++k)
      points(i, k) = (record->features[near.free[k]] - center.features[near.free[k]]) / radius;
    values[i] = (record->standing() - center.standing()) / scale;
    weights[i] = std::pow(std::max(distance / radius, 1e-3), -3);  // the inverse of the model's error at that distance
  }
  const Quadratic model(points, values, weights);

  std::vector<double> lower(d), upper(d), step(d, 0.0);  // in units of the radius: not outside of the known trials
  for (std::size_t k = 0; k < d; ++k) {
    const double at = center.features[near.free[k]];
    lower[k] = std::max(-1.0, (0 - at) / radius);
    upper[k] = std::min(1.0, (1 - at) / radius);
  }
  const double gain = -minimise(model, step, lower, upper,
                                {.evaluations = 200, .tolerance = 1e-13, .progress = 1e-12, .first_step = 1});
  const double rounding = 4 * std::numeric_limits<double>::epsilon() * std::fabs(center.standing());
  if (!(gain * scale > rounding)) return std::nullopt;
  std::vector<double> features = center.features;
  for (std::size_t k = 0; k < d; ++k)
    features[near.free[k]] = std::clamp(features[near.free[k]] + radius * step[k], 0.0, 1.0);
  return features;
}

}  // namespace hypertune::inline v0::detail::gp
