// Explore: a configuration near another one, as population based training needs it.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/space/search_space.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The dimensions of a space that population based training may change: those named, or all except constant, derived
/// and grid ones. Error of kind `usage` for a name that the space does not have, or that cannot change.
std::vector<std::size_t> mutable_dimensions(const SearchSpace& space, const std::vector<std::string>& names,
                                            const char* who);

/// A number times `factor`, within its domain. A number on a lattice moves by at least one cell; 0, which a factor does
/// not change, moves by a part of its domain.
double perturbed(const DomainInfo& info, double x, double factor);

/// `from` with each of `dimensions` resampled with probability `resample`, else multiplied by `factor` or divided by
/// about as much (1.2 or 0.8 in the paper: 1 + f or 1 - f with f = factor - 1). Ordered options move to a neighbour,
/// unordered ones stay. The result meets the space's constraints; if 100 draws do not, it is `from` itself.
Point explored(const SearchSpace& space, const Point& from, const std::vector<std::size_t>& dimensions, double resample,
               double factor, Rng& rng);

}  // namespace hypertune::inline v0::detail
