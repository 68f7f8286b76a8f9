// IEEE binary16 and double. g++ 12 has no type for it on every machine.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace hypertune::inline v0::serving {

inline double real_from_half(std::uint16_t half) {
  const int sign = (half & 0x8000U) != 0 ? -1 : 1, exponent = (half >> 10U) & 0x1fU, fraction = half & 0x3ffU;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

/// Rounds to the nearest, ties to even. What is too large becomes infinite.
inline std::uint16_t half_from(double real) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(real) ? 0x8000U : 0U);
  if (std::isnan(real)) return 0x7e00U;
  const double size = std::fabs(real);
  if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00U);
  if (size < std::ldexp(1, -14))
    return static_cast<std::uint16_t>(sign | static_cast<unsigned>(std::nearbyint(std::ldexp(size, 24))));
  int exponent = 0;
  const double mantissa = std::frexp(size, &exponent);  // in [0.5, 1)
  // A mantissa that is rounded up to 2048 carries over into the exponent, as it should.
  const auto fraction = static_cast<unsigned>(std::nearbyint(std::ldexp(mantissa, 11)));
  return static_cast<std::uint16_t>(sign | ((static_cast<unsigned>(exponent + 13) << 10U) + fraction));
}

}  // namespace hypertune::inline v0::serving
