// 16-bit floats against arithmetic in double.
#include "support/test.hpp"

#include <hypertune/train/element.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ht = hypertune;

namespace {

/// By definition: sign, 5 bits of exponent, 10 of mantissa.
double value_of(ht::Half half) {
  const int sign = half.bits >> 15, exponent = half.bits >> 10 & 31, mantissa = half.bits & 1023;
  const double size = exponent == 31  ? (mantissa != 0 ? std::nan("") : std::numeric_limits<double>::infinity())
                      : exponent == 0 ? std::ldexp(mantissa, -24)
                                      : std::ldexp(1024 + mantissa, exponent - 25);
  return sign != 0 ? -size : size;
}
double value_of(ht::BFloat16 value) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{value.bits} << 16U));
}

template <class T>
T bits(std::uint32_t pattern) {
  T value;
  value.bits = static_cast<std::uint16_t>(pattern);
  return value;
}

/// All patterns go to float and back; what lies between two neighbours goes to the nearer one, the even one if both
/// are.
template <class T>
void check(double largest, double past_largest) {
  int wrong = 0;
  for (std::uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const T value = bits<T>(pattern);
    const auto number = static_cast<float>(value);
    if (std::isnan(value_of(value))) {
      wrong += !std::isnan(number) || !std::isnan(static_cast<float>(T(number)));
      continue;
    }
    wrong += static_cast<double>(number) != value_of(value) || !(T(number) == value);
    // The next one away from zero.
    const double here = value_of(value), next = value_of(bits<T>(pattern + 1));
    if (!std::isfinite(here) || !std::isfinite(next) || (pattern & 0x7fff) == 0x7fff) continue;
    const double middle = (here + next) / 2;
    const auto exact = static_cast<float>(middle);
    if (static_cast<double>(exact) != middle) continue;  // subnormal bfloat16: no float lies between
    wrong += !(T(exact) == bits<T>(pattern % 2 == 0 ? pattern : pattern + 1));
    wrong += !(T(std::nextafter(exact, static_cast<float>(here))) == value);
    wrong += !(T(std::nextafter(exact, static_cast<float>(next))) == bits<T>(pattern + 1));
  }
  CHECK(wrong == 0);
  const auto limit = static_cast<float>((largest + past_largest) / 2);
  for (const float sign : {1.0F, -1.0F}) {
    CHECK(std::isinf(static_cast<float>(T(sign * limit))));
    CHECK(static_cast<double>(static_cast<float>(T(sign * std::nextafter(limit, 0.0F)))) ==
          static_cast<double>(sign) * largest);
    CHECK(std::isinf(static_cast<float>(T(sign * std::numeric_limits<float>::infinity()))));
    CHECK(std::signbit(static_cast<float>(T(sign * 1e-45F))) == (sign < 0));
  }
}

}  // namespace

TEST_CASE("float16 is what IEEE 754 says") { check<ht::Half>(65504, 65536); }
TEST_CASE("bfloat16 is a float's upper half, rounded to nearest") {
  check<ht::BFloat16>(std::ldexp(255, 120), std::ldexp(1, 128));
}
