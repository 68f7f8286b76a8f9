// The element types of collectives, including the 16-bit floating-point ones.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace hypertune::inline v0 {

/// IEEE 754 binary16, as stored. Arithmetic is done in float.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
  friend bool operator==(const Half&, const Half&) = default;  ///< compares bits: -0 is not 0
};
/// The upper half of a float: 8 bits of exponent, 7 of mantissa. Arithmetic is done in float.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }
  friend bool operator==(const BFloat16&, const BFloat16&) = default;  ///< compares bits
};

enum class ElementType : std::uint8_t { float32, float64, float16, bfloat16, int32, int64, uint8 };

constexpr std::size_t size_of(ElementType type) {
  switch (type) {
    case ElementType::float64:
    case ElementType::int64: return 8;
    case ElementType::float32:
    case ElementType::int32: return 4;
    case ElementType::float16:
    case ElementType::bfloat16: return 2;
    case ElementType::uint8: break;
  }
  return 1;
}

template <class T>
concept Element =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Half> || std::same_as<T, BFloat16> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t> || std::same_as<T, std::uint8_t>;

template <Element T>
constexpr ElementType element_type = std::same_as<T, float>          ? ElementType::float32
                                     : std::same_as<T, double>       ? ElementType::float64
                                     : std::same_as<T, Half>         ? ElementType::float16
                                     : std::same_as<T, BFloat16>     ? ElementType::bfloat16
                                     : std::same_as<T, std::int32_t> ? ElementType::int32
                                     : std::same_as<T, std::int64_t> ? ElementType::int64
                                                                     : ElementType::uint8;

namespace detail {
/// `a` if the sign bit of `chosen` is set, else `b`. Not a conditional expression, for which compilers generate a
/// branch: this way all cases of a conversion are computed, by vector instructions in loops.
constexpr std::uint32_t select(std::int32_t chosen, std::uint32_t a, std::uint32_t b) {
  const auto mask = static_cast<std::uint32_t>(chosen >> 31);
  return (a & mask) | (b & ~mask);
}
}  // namespace detail

inline BFloat16::BFloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int32_t>(word & 0x7fffffffU);
  const std::uint32_t nan = (word >> 16U) | 0x40U;                              // remains a NaN
  const std::uint32_t number = (word + 0x7fffU + ((word >> 16U) & 1U)) >> 16U;  // to nearest, ties to even
  bits = static_cast<std::uint16_t>(detail::select(0x7f800000 - magnitude, nan, number));
}

inline Half::Half(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = word & 0x7fffffffU;
  const auto size = static_cast<std::int32_t>(magnitude);
  // Below 2^-14, in units of 2^-24: the last bits of a float just above 0.5; the addition does the rounding.
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000U;
  const std::uint32_t normal = (magnitude - 0x38000000U + 0xfffU + ((magnitude >> 13U) & 1U)) >> 13U;  // ties to even
  const std::uint32_t nan = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
  std::uint32_t result = detail::select(size - 0x38800000, subnormal, normal);
  result = detail::select(0x477fefff - size, 0x7c00U, result);  // above 65504 after rounding
  result = detail::select(0x7f800000 - size, nan, result);
  bits = static_cast<std::uint16_t>(result | ((word >> 16U) & 0x8000U));
}
inline Half::operator float() const {
  const std::uint32_t magnitude = (bits & 0x7fffU) << 13U;  // exponent and mantissa at their places in a float
  const auto size = static_cast<std::int32_t>(magnitude);
  const std::uint32_t normal = magnitude + 0x38000000U;
  // Without an exponent: the mantissa with the exponent of 2^-14, minus 2^-14.
  const auto subnormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + 0x38800000U) - 0x1p-14F);
  std::uint32_t result = detail::select(size - 0x00800000, subnormal, normal);
  result = detail::select(0x0f7fffff - size, magnitude | 0x7f800000U, result);  // infinity, NaN
  return std::bit_cast<float>(result | ((bits & 0x8000U) << 16U));
}

}  // namespace hypertune::inline v0
