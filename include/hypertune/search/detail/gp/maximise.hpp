// Maximises an acquisition function.
#pragma once

#include <hypertune/detail/lbfgs.hpp>
#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/random.hpp>
#include <hypertune/search/detail/gp/acquisition.hpp>
#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/detail/sobol_sequence.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The part of the unit cube to search, by dimension of the encoding. Unordered dimensions are not bounded.
struct Box {
  std::vector<double> lower, upper;
};

/// A global search (a shifted Sobol sequence, and steps of many sizes from the best known points), then ascents from
/// the best candidates: by gradient in the continuous dimensions and option by option in the others, alternately.
class Maximiser {
 public:
  struct Effort {
    std::size_t broad = 512, near = 256;  ///< candidates evaluated
    std::size_t ascents = 5;
    int evaluations = 40;  ///< at most, per ascent by gradient
    int neighbours = 400;  ///< tried option by option, in total
  };

  Maximiser(const Encoding& encoding, const SobolSequence& sequence, const Acquisition& acquisition, const Box& box,
            Rng& rng)
      : encoding_(encoding), sequence_(sequence), acquisition_(acquisition), box_(box), rng_(rng) {}

  /// The candidates found, best first; empty if nothing feasible was found. `known`: good points to start from, best
  /// first.
  std::vector<Candidate> run(const std::vector<Candidate>& known, const Effort& effort) {
    std::vector<Candidate> candidates = broad(effort.broad);
    const std::size_t from_broad = candidates.size();
    near(known, effort.near, candidates);
    acquisition_.evaluate(candidates);
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (candidates[i].value == candidates[i].value) order.push_back(i);
    hypertune::detail::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return candidates[a].value > candidates[b].value;
    });
    std::vector<Candidate> found;
    std::size_t broad_left = (effort.ascents + 1) / 2, near_left = effort.ascents / 2;
    neighbours_left_ = effort.neighbours;
    for (const std::size_t i : order) {
      std::size_t& left = i < from_broad ? broad_left : near_left;
      if (left > 0) {
        --left;
        Candidate c = candidates[i];
        ascend(c, effort.evaluations);
        found.push_back(std::move(c));
      } else if (found.size() < 4 * effort.ascents) {
        found.push_back(candidates[i]);
      } else {
        spare_.push_back(candidates[i]);
      }
    }
    hypertune::detail::stable_sort(found.begin(), found.end(),
                                   [](const Candidate& a, const Candidate& b) { return a.value > b.value; });
    return found;
  }
  /// Further candidates that run() evaluated, best first.
  const std::vector<Candidate>& spare() const { return spare_; }

 private:
  std::vector<Candidate> broad(std::size_t count) {
    const auto& dimensions = encoding_.dimensions();
    std::vector<Candidate> result;
    std::vector<double> shift(dimensions.size());
    for (double& s : shift) s = uniform01(rng_);
    const std::size_t in_sequence = std::min(dimensions.size(), SobolSequence::max_dimensions);
    std::size_t misses = 0;
    for (std::size_t i = 0; result.size() < count && misses < 4 * count; ++i) {
      Candidate c;
      c.unit.assign(encoding_.space().size(), 0.5);
      for (std::size_t k = 0; k < dimensions.size(); ++k) {
        double u = k < in_sequence ? sequence_.at(i + 1, k) + shift[k] : uniform01(rng_);
        if (u >= 1) u -= 1;
        const bool free = dimensions[k].kind == Encoding::Kind::unordered;
        c.unit[dimensions[k].index] = free ? u : std::lerp(box_.lower[k], box_.upper[k], u);
      }
      if (encoding_.complete(c, rng_))
        result.push_back(std::move(c));
      else
        ++misses;
    }
    // The constraints leave little: let the space draw feasible points.
    for (std::size_t i = 0; result.size() < std::min<std::size_t>(count, 32) && i < 32; ++i)
      result.push_back(encoding_.at(encoding_.space().sample(rng_)));
    if (acquisition_.prior_weight > 0)
      for (std::size_t i = 0; i < count / 4; ++i) result.push_back(encoding_.at(encoding_.space().sample_prior(rng_)));
    return result;
  }

  void near(const std::vector<Candidate>& known, std::size_t count, std::vector<Candidate>& result) {
    const auto& dimensions = encoding_.dimensions();
    if (known.empty() || dimensions.empty()) return;
    const double size = static_cast<double>(dimensions.size());
    for (std::size_t i = 0; i < count; ++i) {
      Candidate c = known[i % known.size()];
      const double change = std::max(1.0, std::min(20.0, std::ceil(size * uniform01(rng_)))) / size;
      const double scale = std::pow(10.0, -3 + 2.7 * uniform01(rng_));
      const auto always = static_cast<std::size_t>(uniform01(rng_) * size);
      for (std::size_t k = 0; k < dimensions.size(); ++k) {
        double& u = c.unit[dimensions[k].index];
        if (dimensions[k].kind != Encoding::Kind::unordered) u = std::clamp(u, box_.lower[k], box_.upper[k]);
        if (k != always && uniform01(rng_) >= change) continue;
        if (dimensions[k].kind == Encoding::Kind::unordered)
          u = uniform01(rng_);
        else if (dimensions[k].kind == Encoding::Kind::continuous)
          u = std::clamp(u + scale * normal_quantile(std::max(1e-12, uniform01(rng_))), box_.lower[k], box_.upper[k]);
        else
          u = std::clamp(u + std::max(scale, 1.0 / static_cast<double>(dimensions[k].options)) *
                                 normal_quantile(std::max(1e-12, uniform01(rng_))),
                         box_.lower[k], box_.upper[k]);
      }
      if (encoding_.complete(c, rng_)) result.push_back(std::move(c));
    }
  }

  void ascend(Candidate& c, int evaluations) {
    for (int round = 0; round < 4; ++round) {
      const double before = c.value;
      slide(c, evaluations);
      if (!hop(c)) break;
      if (!(c.value > before + 1e-6)) break;
    }
  }

  // Ascends in the continuous dimensions.
  void slide(Candidate& c, int evaluations) {
    const auto& dimensions = encoding_.dimensions();
    std::vector<std::size_t> moving;
    std::vector<double> x, lower, upper, slope;
    for (std::size_t k = 0; k < dimensions.size(); ++k) {
      const std::size_t d = dimensions[k].index;
      if (dimensions[k].kind != Encoding::Kind::continuous || !is_active(c.point[d])) continue;
      moving.push_back(k);
      x.push_back(c.unit[d]);
      lower.push_back(std::min(box_.lower[k], c.unit[d]));
      upper.push_back(std::max(box_.upper[k], c.unit[d]));
    }
    if (moving.empty()) return;
    Candidate next = c;
    const auto loss = [&](const std::vector<double>& at, std::vector<double>& gradient) {
      for (std::size_t i = 0; i < moving.size(); ++i) next.unit[dimensions[moving[i]].index] = at[i];
      if (!encoding_.complete(next, rng_)) return std::numeric_limits<double>::infinity();
      next.value = acquisition_.evaluate(next, &slope);
      if (!(std::fabs(next.value) < 1e300)) return std::numeric_limits<double>::infinity();
      for (std::size_t i = 0; i < moving.size(); ++i) gradient[i] = -slope[moving[i]];
      if (acquisition_.prior_weight > 0) add_prior_slope(next, moving, gradient);
      if (next.value > c.value) c = next;
      return -next.value;
    };
    minimise(loss, x, lower, upper,
             {.evaluations = evaluations, .tolerance = 1e-5, .progress = 1e-7, .first_step = 0.05});
  }
  void add_prior_slope(const Candidate& c, const std::vector<std::size_t>& moving, std::vector<double>& gradient) {
    Candidate beside = c;
    for (std::size_t i = 0; i < moving.size(); ++i) {
      double& u = beside.unit[encoding_.dimensions()[moving[i]].index];
      const double at = u, step = at < 0.5 ? 1e-6 : -1e-6;
      u = at + step;
      beside.point = encoding_.space().from_unit(beside.unit, rng_);
      gradient[i] -= (acquisition_.prior(beside.point) - acquisition_.prior(c.point)) / step;
      u = at;
    }
  }

  // Improves the discrete dimensions one after the other. Returns whether anything improved.
  bool hop(Candidate& c) {
    bool moved = false;
    const auto& dimensions = encoding_.dimensions();
    for (std::size_t k = 0; k < dimensions.size(); ++k) {
      const auto& dimension = dimensions[k];
      if (dimension.kind == Encoding::Kind::continuous || !is_active(c.point[dimension.index])) continue;
      if (neighbours_left_ <= 0) break;
      std::vector<Candidate> others;
      const std::size_t now = encoding_.option_of(dimension, c.point[dimension.index]);
      const auto offer = [&](std::size_t option) {
        Candidate other = c;
        other.unit[dimension.index] = encoding_.unit_of(dimension, option);
        if (encoding_.complete(other, rng_)) others.push_back(std::move(other));
      };
      if (dimension.kind == Encoding::Kind::ordered) {
        for (std::size_t step = 1; step < dimension.options; step *= 2) {
          if (now >= step && allowed(k, now - step)) offer(now - step);
          if (now + step < dimension.options && allowed(k, now + step)) offer(now + step);
        }
      } else if (dimension.options <= max_options) {
        for (std::size_t option = 0; option < dimension.options; ++option)
          if (option != now) offer(option);
      } else {
        for (std::size_t i = 0; i < max_options; ++i) {
          const auto option = static_cast<std::size_t>(uniform01(rng_) * static_cast<double>(dimension.options));
          if (option != now) offer(option);
        }
      }
      neighbours_left_ -= static_cast<int>(others.size());
      acquisition_.evaluate(others);
      for (Candidate& other : others)
        if (other.value > c.value + 1e-9) {
          c = std::move(other);
          moved = true;
        }
    }
    return moved;
  }
  bool allowed(std::size_t k, std::size_t option) const {
    const double u = encoding_.unit_of(encoding_.dimensions()[k], option);
    return u >= box_.lower[k] && u <= box_.upper[k];
  }

  static constexpr std::size_t max_options = 24;

  const Encoding& encoding_;
  const SobolSequence& sequence_;
  const Acquisition& acquisition_;
  const Box& box_;
  Rng& rng_;
  int neighbours_left_ = 0;
  std::vector<Candidate> spare_;
};

}  // namespace hypertune::inline v0::detail::gp
