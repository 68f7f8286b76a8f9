// The observations that a Gaussian process is fitted to.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/detail/gp/history.hpp>
#include <hypertune/search/detail/gp/inputs.hpp>
#include <hypertune/search/detail/gp/transform.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// Combines the losses of several objectives into one: the augmented Chebyshev norm with random weights, relative to
/// their ranges (Knowles, "ParEGO: A Hybrid Algorithm With On-Line Landscape Approximation for Expensive Multiobjective
/// Optimization Problems", IEEE Transactions on Evolutionary Computation 2006).
inline std::vector<double> scalarised(const std::vector<std::vector<double>>& losses, std::size_t objectives,
                                      Rng& rng) {
  std::vector<double> weights(objectives), result(losses.size());
  double sum = 0;
  for (double& w : weights) sum += w = -std::log(std::max(1e-12, uniform01(rng)));  // uniform on the simplex
  std::vector<std::vector<double>> scaled(objectives);
  for (std::size_t k = 0; k < objectives; ++k) {
    std::vector<double> finite;
    for (const auto& l : losses)
      if (std::isfinite(l[k])) finite.push_back(std::clamp(l[k], -1e100, 1e100));
    if (finite.empty()) finite.push_back(0);
    std::sort(finite.begin(), finite.end());
    const double low = finite.front(), middle = finite[finite.size() / 2];
    const double unit = middle > low ? middle - low : finite.back() > low ? finite.back() - low : 1;
    for (const auto& l : losses) {
      const double z = std::isfinite(l[k]) ? (std::clamp(l[k], -1e100, 1e100) - low) / unit : l[k] < 0 ? 0 : 1e3;
      scaled[k].push_back(std::log1p(std::clamp(z, 0.0, 1e3)));
    }
  }
  for (std::size_t i = 0; i < losses.size(); ++i) {
    double largest = 0, total = 0;
    for (std::size_t k = 0; k < objectives; ++k) {
      const double y = weights[k] / sum * scaled[k][i];
      largest = std::max(largest, y);
      total += y;
    }
    result[i] = largest + 0.05 * total;
  }
  return result;
}

struct Data {
  Inputs inputs;
  std::vector<double> losses;   // of one objective, or several combined
  std::vector<std::size_t> of;  // index of the ended trial
};

/// The source of the data: the trials that have ended since the search (re)started, at most `local` of them at a time.
struct Source {
  const History& history;
  const Encoding& encoding;
  std::size_t epoch = 0, local = 250, objectives = 1;

  const Record& record(std::size_t i) const { return history.ended[epoch + i]; }

  /// The data of the first `count` trials. Several objectives are combined with weights from `rng`.
  Data data(std::size_t count, Rng* rng) const {
    Data result{Inputs(encoding.categorical()), {}, {}};
    std::vector<std::vector<double>> losses;
    for (const std::size_t i : choose(count)) {
      result.inputs.add(record(i).features);
      losses.push_back(record(i).losses);
      result.of.push_back(epoch + i);
    }
    if (objectives > 1 && rng != nullptr)
      result.losses = scalarised(losses, objectives, *rng);
    else
      for (const auto& l : losses) result.losses.push_back(l.front());
    return result;
  }

  /// The known values of a learnt constraint for the trials in `all`; empty if none are known.
  std::pair<Inputs, std::vector<double>> constraint(const Data& all, std::size_t constraint) const {
    std::pair<Inputs, std::vector<double>> result{Inputs(encoding.categorical()), {}};
    for (const std::size_t i : all.of) {
      const Record& r = history.ended[i];
      if (constraint >= r.constraints.size() || !(r.constraints[constraint] == r.constraints[constraint])) continue;
      result.first.add(r.features);
      result.second.push_back(r.constraints[constraint]);
    }
    result.second = transform_constraint(result.second);
    return result;
  }

 private:
  // All trials, or, if there are too many, the best and those nearest to the best: a fifth and four fifths of `local`.
  std::vector<std::size_t> choose(std::size_t count) const {
    std::vector<std::size_t> chosen(count);
    for (std::size_t i = 0; i < count; ++i) chosen[i] = i;
    if (count <= local) return chosen;
    hypertune::detail::stable_sort(chosen.begin(), chosen.end(), [&](std::size_t a, std::size_t b) {
      return record(a).standing() < record(b).standing();
    });
    const auto kept = chosen.begin() + static_cast<std::ptrdiff_t>(local / 5);
    const std::vector<double>& center = record(chosen.front()).features;
    std::vector<double> distance(count, 0.0);
    for (auto i = kept; i != chosen.end(); ++i) {
      const auto& x = record(*i).features;
      for (std::size_t k = 0; k < x.size(); ++k) {
        const double d = x[k] - center[k];
        distance[*i] += encoding.categorical()[k] != 0 ? (d == 0 ? 0 : 0.25) : d * d;
      }
    }
    hypertune::detail::stable_sort(kept, chosen.end(),
                                   [&](std::size_t a, std::size_t b) { return distance[a] < distance[b]; });
    chosen.resize(local);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
  }
};

}  // namespace hypertune::inline v0::detail::gp
