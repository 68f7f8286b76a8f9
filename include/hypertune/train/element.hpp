// The element types that collectives work on, the 16-bit floating-point ones included.
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
  friend bool operator==(const Half&, const Half&) = default;  ///< of the bits: -0 is not 0
};
/// The upper half of a float: 8 bits of exponent, 7 of mantissa. Arithmetic is done in float.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16U); }
  friend bool operator==(const BFloat16&, const BFloat16&) = default;  ///< of the bits
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

inline BFloat16::BFloat16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  if ((word & 0x7fffffffU) > 0x7f800000U) {  // NaN stays one
    bits = static_cast<std::uint16_t>((word >> 16U) | 0x40U);
    return;
  }
  bits = static_cast<std::uint16_t>((word + 0x7fffU + ((word >> 16U) & 1U)) >> 16U);  // to nearest, ties to even
}

inline Half::Half(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((word >> 16U) & 0x8000U);
  const std::uint32_t magnitude = word & 0x7fffffffU;
  if (magnitude >= 0x7f800000U) {  // infinity, or NaN
    bits = static_cast<std::uint16_t>(sign | 0x7c00U |
                                      (magnitude > 0x7f800000U ? 0x200U | ((magnitude >> 13U) & 0x3ffU) : 0U));
  } else if (magnitude >= 0x477ff000U) {  // rounds to more than 65504
    bits = static_cast<std::uint16_t>(sign | 0x7c00U);
  } else if (magnitude < 0x38800000U) {  // below 2^-14: subnormal, in units of 2^-24
    const float units = std::bit_cast<float>(magnitude) * 16777216.0F;
    auto whole = static_cast<std::uint32_t>(units);
    const float rest = units - static_cast<float>(whole);
    if (rest > 0.5F || (rest == 0.5F && (whole & 1U) != 0)) ++whole;
    bits = static_cast<std::uint16_t>(sign | whole);
  } else {
    const std::uint32_t rebased = magnitude - 0x38000000U;
    bits = static_cast<std::uint16_t>(sign | ((rebased + 0xfffU + ((rebased >> 13U) & 1U)) >> 13U));
  }
}
inline Half::operator float() const {
  const std::uint32_t sign = (std::uint32_t{bits} & 0x8000U) << 16U;
  const std::uint32_t exponent = (std::uint32_t{bits} >> 10U) & 0x1fU, mantissa = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13U));
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) / 16777216.0F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
}

}  // namespace hypertune::inline v0
