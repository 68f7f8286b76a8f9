// DomainInfo: what searchers know about a domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hypertune::inline v0 {

enum class DomainKind : std::uint8_t {
  real,         ///< any number in [lower, upper]
  integer,      ///< whole numbers (or multiples of `quantum`) in [lower, upper]
  ordinal,      ///< options 0 … options-1 in a meaningful order
  categorical,  ///< options 0 … options-1 without order (also booleans)
  constant,     ///< one value
  derived,      ///< computed from other parameters and a random draw: opaque to models
};

/// What models know about a domain. All coordinates are in the domain's own units.
struct DomainInfo {
  DomainKind kind = DomainKind::real;
  double lower = 0;                 ///< smallest coordinate
  double upper = 1;                 ///< largest coordinate
  bool log = false;                 ///< uniform in the logarithm
  double quantum = 0;               ///< coordinates are lower + k * quantum; 0: not quantised
  std::size_t options = 0;          ///< number of distinct values; 0 if uncountable
  bool grid = false;                ///< every value is tried, not a sample of them
  std::optional<double> mean = {};  ///< a normal prior (of the logarithm if `log`); lower and upper may be infinite
  std::optional<double> sd = {};    ///< its standard deviation
};

}  // namespace hypertune::inline v0
