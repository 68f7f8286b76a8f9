// Sobol: points that fill the space more evenly than chance does.
#pragma once

#include <hypertune/search/searcher.hpp>

#include <boost/random/sobol.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hypertune {

namespace detail {

/// The Sobol sequence in base 2 with the direction numbers of Joe and Kuo (2008), by index: 32 bits a coordinate.
class SobolSequence {
 public:
  static constexpr std::size_t max_dimensions = BOOST_RANDOM_SOBOL_MAX_DIMENSION;
  static constexpr std::uint64_t length = std::uint64_t{1} << 32U;

  SobolSequence() = default;

  /// With scrambling, a random permutation of the digits (Owen 1995) of each dimension, drawn from `seed`.
  SobolSequence(std::size_t dimensions, bool scramble, std::uint64_t seed) : dimensions_(dimensions) {
    if (dimensions == 0) return;
    boost::random::sobol_engine<std::uint32_t, 32> engine(dimensions);
    directions_.resize(bits * dimensions);
    // Boost gives the points in the order of the Gray code: the one at 2^k differs by the k-th direction from the
    // (k-1)-th direction alone.
    for (std::size_t bit = 0; bit < bits; ++bit) {
      engine.seed(static_cast<std::uint32_t>((std::uint64_t{1} << bit) - 1));  // its first point is number 1
      for (std::size_t d = 0; d < dimensions; ++d) {
        const auto value = static_cast<std::uint32_t>(engine());
        directions_[bit * dimensions + d] = bit == 0 ? value : value ^ directions_[(bit - 1) * dimensions + d];
      }
    }
    if (!scramble) return;
    Rng rng = derived_rng(seed, {0x736f626f6cU});
    seeds_.resize(dimensions);
    for (auto& s : seeds_) s = static_cast<std::uint32_t>(rng() >> 32U);
  }

  /// Coordinate d of point `index`, in (0, 1).
  double at(std::uint64_t index, std::size_t d) const {
    std::uint32_t x = 0;
    for (std::size_t bit = 0; bit < bits && (index >> bit) != 0; ++bit)
      if (((index >> bit) & 1U) != 0) x ^= directions_[bit * dimensions_ + d];
    if (!seeds_.empty()) x = reversed(permuted(reversed(x), seeds_[d]));
    return (static_cast<double>(x) + 0.5) * 0x1p-32;
  }

 private:
  static constexpr std::size_t bits = 32;

  static std::uint32_t reversed(std::uint32_t x) {
    x = ((x & 0x55555555U) << 1U) | ((x >> 1U) & 0x55555555U);
    x = ((x & 0x33333333U) << 2U) | ((x >> 2U) & 0x33333333U);
    x = ((x & 0x0f0f0f0fU) << 4U) | ((x >> 4U) & 0x0f0f0f0fU);
    x = ((x & 0x00ff00ffU) << 8U) | ((x >> 8U) & 0x00ff00ffU);
    return (x << 16U) | (x >> 16U);
  }
  /// A hash in which each bit depends on the ones below it alone: on reversed bits this is a nested uniform scrambling
  /// (Laine and Karras 2011; constants by N. Vegdahl).
  static std::uint32_t permuted(std::uint32_t x, std::uint32_t seed) {
    x ^= x * 0x3d20adeaU;
    x += seed;
    x *= (seed >> 16U) | 1U;
    x ^= x * 0x05526c56U;
    x ^= x * 0x53a22864U;
    return x;
  }

  std::size_t dimensions_ = 0;
  std::vector<std::uint32_t> directions_;  // by bit, then dimension
  std::vector<std::uint32_t> seeds_;       // by dimension; empty: not scrambled
};

struct SobolState {
  std::optional<SearchSpace> space;
  SobolSequence sequence;
  std::uint64_t seed = 0;
  std::vector<std::size_t> dimensions;  // those of the space that take a coordinate of the sequence
  std::vector<std::uint64_t> feasible;  // with constraints: indices of the points that meet them, as far as looked
  std::uint64_t looked = 0;
  bool constrained = false;
};

}  // namespace detail

/// A Sobol sequence mapped through the priors of the space, scrambled so that each seed has a sequence of its own with
/// the same evenness: among the first 2^k points each of 2^k equally likely slices of any one dimension has one. Best
/// used with a power of two as the number of samples. Trial k gets the k-th point that meets the space's constraints,
/// whatever has happened before. Dimensions beyond 3667 are drawn at random. Never exhausted.
struct Sobol {
  static constexpr const char* type = "sobol";

  bool scramble = true;

  static void describe(auto& self, auto&& option) {
    option("scramble", self.scramble, "each seed has a sequence of its own");
  }

  detail::SobolState state_{};

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    state_ = {};
    state_.space = space;
    state_.seed = goal.seed;
    for (std::size_t d = 0; d < space.size(); ++d) {
      const auto kind = space.domain(d).kind;
      if (kind == DomainKind::constant || kind == DomainKind::derived) continue;
      if (state_.dimensions.size() < detail::SobolSequence::max_dimensions) state_.dimensions.push_back(d);
    }
    state_.sequence = detail::SobolSequence(state_.dimensions.size(), scramble, goal.seed);
    state_.constrained = !space.model().constraints.empty();
  }

  Suggestion suggest(const Ask& ask) {
    const auto trial = static_cast<std::uint64_t>(ask.trial);
    if (!state_.constrained) return point(trial, ask.rng);
    while (state_.feasible.size() <= trial) {
      const std::uint64_t begin = state_.looked;
      for (bool found = false; !found;) {
        // Hardly anything meets the constraints: let the space itself look, or say so.
        if (state_.looked - begin >= max_misses) return state_.space->sample(ask.rng);
        found = state_.space->feasible(own_point(state_.looked));
        if (found) state_.feasible.push_back(state_.looked);
        ++state_.looked;
      }
    }
    return own_point(state_.feasible[trial]);
  }

  void observe(const Observation&) {}
  static constexpr bool cheap = true;
  static constexpr bool multi_objective = true;  // it reads no loss at all

 private:
  static constexpr std::uint64_t max_misses = 10'000;

  Point own_point(std::uint64_t index) const {
    Rng rng = derived_rng(state_.seed, {index, 0x736f626f6cU});
    return point(index, rng);
  }
  Point point(std::uint64_t index, Rng& rng) const {
    std::vector<double> unit(state_.space->size(), 0.5);
    if (state_.dimensions.size() == detail::SobolSequence::max_dimensions)
      for (double& u : unit) u = uniform01(rng);
    // Without scrambling the very first point is the lower corner, which is no good start: it is left out.
    const std::uint64_t at = (index + (scramble ? 0 : 1)) % detail::SobolSequence::length;
    for (std::size_t i = 0; i < state_.dimensions.size(); ++i) unit[state_.dimensions[i]] = state_.sequence.at(at, i);
    return state_.space->from_unit(unit, rng);
  }
};

}  // namespace hypertune
