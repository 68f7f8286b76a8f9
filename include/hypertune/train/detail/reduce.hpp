// Reduces elements of several ranks, for the backends that reduce on the CPU.
#pragma once

#include <hypertune/train/communicator.hpp>
#include <hypertune/train/element.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace hypertune::inline v0::detail {

/// Calls `f(std::type_identity<T>{})` for the C++ type of `type`.
template <class F>
decltype(auto) with_element(ElementType type, F&& f) {
  switch (type) {
    case ElementType::float32: return f(std::type_identity<float>{});
    case ElementType::float64: return f(std::type_identity<double>{});
    case ElementType::float16: return f(std::type_identity<Half>{});
    case ElementType::bfloat16: return f(std::type_identity<BFloat16>{});
    case ElementType::int32: return f(std::type_identity<std::int32_t>{});
    case ElementType::int64: return f(std::type_identity<std::int64_t>{});
    case ElementType::uint8: break;
  }
  return f(std::type_identity<std::uint8_t>{});
}

template <class T>
inline constexpr bool is_16_bit_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

/// 16-bit floats are computed in float; a mean of integers needs room for the sum.
template <class T, Reduction R>
using Accumulated =
    std::conditional_t<is_16_bit_float<T>, float,
                       std::conditional_t<std::is_integral_v<T> && R == Reduction::mean, std::int64_t, T>>;

template <class A>
bool is_nan(A value) {
  if constexpr (std::is_floating_point_v<A>)
    return std::isnan(value);
  else
    return false;
}

/// Sums of integers wrap around, like unsigned ones. The result is NaN if any rank has NaN, whatever the order.
template <Reduction R, class A>
A combined(A a, A b) {
  if constexpr (R == Reduction::min) {
    return b < a || is_nan(b) ? b : a;
  } else if constexpr (R == Reduction::max) {
    return a < b || is_nan(b) ? b : a;
  } else if constexpr (std::is_integral_v<A>) {
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return a + b;
  }
}

template <class A>
A divided(A sum, int size) {
  return static_cast<A>(sum / static_cast<A>(size));
}

/// Block size: loops with a constant number of iterations over a local array are vectorised by compilers.
inline constexpr std::size_t reduced_at_once = 256;

template <class T, Reduction R>
void combine_block(T* out, const T* a, const T* b, std::size_t count) {
  using A = std::conditional_t<is_16_bit_float<T>, float, T>;
  std::array<A, reduced_at_once> sums;
  const auto turn = [&](std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) sums[i] = combined<R>(static_cast<A>(a[i]), static_cast<A>(b[i]));
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(sums[i]);
  };
  for (; count >= reduced_at_once; count -= reduced_at_once) {
    turn(reduced_at_once);
    out += reduced_at_once, a += reduced_at_once, b += reduced_at_once;
  }
  turn(count);
}

/// out[i] = a[i] combined with b[i]; `out` may be `a` or `b`. For a mean this is the sum: call divide() at the end.
inline void combine(ElementType type, Reduction reduction, void* out, const void* a, const void* b, std::size_t count) {
  with_element(type, [&]<class T>(std::type_identity<T>) {
    T* const to = static_cast<T*>(out);
    const T *const first = static_cast<const T*>(a), *const second = static_cast<const T*>(b);
    switch (reduction) {
      case Reduction::sum:
      case Reduction::mean: return combine_block<T, Reduction::sum>(to, first, second, count);
      case Reduction::min: return combine_block<T, Reduction::min>(to, first, second, count);
      case Reduction::max: return combine_block<T, Reduction::max>(to, first, second, count);
    }
  });
}

/// Turns sums into means. Integers are rounded towards zero.
inline void divide(ElementType type, void* data, std::size_t count, int size) {
  with_element(type, [&]<class T>(std::type_identity<T>) {
    T* const values = static_cast<T*>(data);
    using A = std::conditional_t<is_16_bit_float<T>, float, T>;
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(divided(static_cast<A>(values[i]), size));
  });
}

template <class T, Reduction R>
void combine_ranks(std::span<const void* const> inputs, std::span<void* const> outputs, std::size_t begin,
                   std::size_t end) {
  using A = Accumulated<T, R>;
  std::array<A, reduced_at_once> sums;
  const auto turn = [&](std::size_t at, std::size_t n) {
    const T* const first = static_cast<const T*>(inputs[0]) + at;
    for (std::size_t i = 0; i < n; ++i) sums[i] = static_cast<A>(first[i]);
    for (const void* const input : inputs.subspan(1)) {
      const T* const next = static_cast<const T*>(input) + at;
      for (std::size_t i = 0; i < n; ++i) sums[i] = combined<R>(sums[i], static_cast<A>(next[i]));
    }
    if constexpr (R == Reduction::mean) {
      const int size = static_cast<int>(inputs.size());
      for (std::size_t i = 0; i < n; ++i) sums[i] = divided(sums[i], size);
    }
    for (void* const output : outputs) {
      T* const to = static_cast<T*>(output) + at;
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<T>(sums[i]);
    }
  };
  for (; end - begin >= reduced_at_once; begin += reduced_at_once) turn(begin, reduced_at_once);
  turn(begin, end - begin);
}

/// Reduces elements `begin` to `end` of all inputs, in the order of ranks, into each output. Outputs may be inputs.
inline void combine(ElementType type, Reduction reduction, std::span<const void* const> inputs,
                    std::span<void* const> outputs, std::size_t begin, std::size_t end) {
  with_element(type, [&]<class T>(std::type_identity<T>) {
    switch (reduction) {
      case Reduction::sum: return combine_ranks<T, Reduction::sum>(inputs, outputs, begin, end);
      case Reduction::mean: return combine_ranks<T, Reduction::mean>(inputs, outputs, begin, end);
      case Reduction::min: return combine_ranks<T, Reduction::min>(inputs, outputs, begin, end);
      case Reduction::max: return combine_ranks<T, Reduction::max>(inputs, outputs, begin, end);
    }
  });
}

}  // namespace hypertune::inline v0::detail
