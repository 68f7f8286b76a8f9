// GradientMemory: the arithmetic that DataParallel does on gradients, in the memory where they are.
#pragma once

#include <hypertune/train/element.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0 {

/// The element types of gradients.
template <class T>
concept FloatElement =
    std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Half> || std::same_as<T, BFloat16>;

/// A view of elements whose type is known at run time. Does not own them.
struct TensorView {
  void* data = nullptr;
  std::size_t count = 0;
  ElementType type = {};

  TensorView() = default;
  TensorView(void* first, std::size_t elements, ElementType of) : data(first), count(elements), type(of) {}
  template <Element T, std::size_t N>
  TensorView(std::span<T, N> elements)  // implicit like a span
      : TensorView(elements.data(), elements.size(), element_type<T>) {}
  std::size_t bytes() const { return count * size_of(type); }
};

/// The pointers of one gradient in a call of GradientMemory.
struct GradientPiece {
  void* to = nullptr;
  const void* from = nullptr;
  const void* plus = nullptr;
  std::size_t count = 0;
};

/// The memory that gradients are in. A class with virtual functions, as a program chooses its device at run time.
/// Called by one thread at a time. For floating-point types only. Each call rounds its results once to the type (to 16
/// bits by way of float), independent of the alignment, so that all ranks get the same bits.
class GradientMemory {
 public:
  virtual ~GradientMemory() = default;
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
  /// to = factor * from + plus, element by element. `from` and `plus` may be null (zeros); either may equal `to`.
  virtual void combine(std::span<const GradientPiece> pieces, double factor, ElementType type) = 0;
  /// to = from / divisor; `to` may equal `from`. Adds the squares of the results to the sum of squares.
  virtual void divide(std::span<const GradientPiece> pieces, double divisor, ElementType type) = 0;
  /// Adds the squares of `from` to the sum of squares.
  virtual void add_squares(std::span<const GradientPiece> pieces, ElementType type) = 0;
  /// Returns the sum of squares since the last call, and resets it. It is added in double, in an order that depends
  /// only on the calls and counts. Infinite or NaN if an element is. The only function besides download() that waits
  /// for a device.
  virtual double take_squares() = 0;
  /// Copies bytes to and from host memory, which may be reused when the call returns.
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
  /// Passed as `after` with each collective on this memory: the stream to which the calls above add their work.
  virtual void* stream() { return nullptr; }
};

/// Gradients in host memory.
class HostGradientMemory final : public GradientMemory {
 public:
  std::shared_ptr<void> allocate(std::size_t bytes) override {
    return std::make_unique<std::byte[]>(bytes);  // aligned for any element
  }
  void combine(std::span<const GradientPiece> pieces, double factor, ElementType type) override {
    for_each(pieces, type, [&]<class T>(const GradientPiece& p, T) { combine_of<T>(p, factor); });
  }
  void divide(std::span<const GradientPiece> pieces, double divisor, ElementType type) override {
    for_each(pieces, type, [&]<class T>(const GradientPiece& p, T) { sum_ += divide_of<T>(p, divisor); });
  }
  void add_squares(std::span<const GradientPiece> pieces, ElementType type) override {
    for_each(pieces, type, [&]<class T>(const GradientPiece& p, T) {
      sum_ += squares(p.count, [in = static_cast<const T*>(p.from)](std::size_t i) { return wide(in[i]); });
    });
  }
  double take_squares() override { return std::exchange(sum_, 0); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override { upload(to, from, bytes); }

 private:
  static void for_each(std::span<const GradientPiece> pieces, ElementType type, const auto& body) {
    for (const GradientPiece& piece : pieces) {
      if (type == ElementType::float32) body(piece, float{});
      if (type == ElementType::float64) body(piece, double{});
      if (type == ElementType::float16) body(piece, Half{});
      if (type == ElementType::bfloat16) body(piece, BFloat16{});
    }
  }
  template <class T>
  static double wide(T value) {
    if constexpr (std::is_floating_point_v<T>)
      return value;
    else
      return static_cast<double>(static_cast<float>(value));
  }
  template <class T>
  static T narrow(double value) {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<T>(value);
    else
      return T(static_cast<float>(value));
  }
  template <class T>
  static double divide_of(const GradientPiece& piece, double divisor) {
    T* out = static_cast<T*>(piece.to);
    const T* in = static_cast<const T*>(piece.from);
    if (std::is_same_v<T, double>)
      return squares(piece.count, [&](std::size_t i) { return wide(out[i] = narrow<T>(wide(in[i]) / divisor)); });
    // For the shorter types, a product in double that is rounded is as exact as the quotient, and several times faster.
    const double factor = 1 / divisor;
    return squares(piece.count, [&](std::size_t i) { return wide(out[i] = narrow<T>(wide(in[i]) * factor)); });
  }
  template <class T>
  static void combine_of(const GradientPiece& piece, double factor) {
    T* out = static_cast<T*>(piece.to);
    const T* in = static_cast<const T*>(piece.from);
    const T* add = static_cast<const T*>(piece.plus);
    const std::size_t count = piece.count;
    if (in == nullptr && add == nullptr) {
      for (std::size_t i = 0; i < count; ++i) out[i] = T{};
    } else if (in == nullptr) {
      if (out != add && count != 0) std::memmove(out, add, count * sizeof(T));
    } else if (add == nullptr) {
      multiply(out, in, factor, count);
    } else {
      for (std::size_t i = 0; i < count; ++i) out[i] = narrow<T>(wide(in[i]) * factor + wide(add[i]));
    }
  }
  template <class T>
  static void multiply(T* out, const T* in, double factor, std::size_t count) {
    if constexpr (std::is_same_v<T, float>)
      if (const auto exact = static_cast<float>(factor); static_cast<double>(exact) == factor) {
        for (std::size_t i = 0; i < count; ++i) out[i] = in[i] * exact;  // the same bits as below, in half the time
        return;
      }
    for (std::size_t i = 0; i < count; ++i) out[i] = narrow<T>(wide(in[i]) * factor);
  }
  /// Eight partial sums, which the compiler can vectorise without changing the result.
  static double squares(std::size_t count, const auto& value) {
    std::array<double, 8> sums = {};
    const std::size_t rest = count % sums.size(), whole = count - rest;
    for (std::size_t i = 0; i < whole; i += sums.size())
      for (std::size_t lane = 0; lane < sums.size(); ++lane) {
        const double x = value(i + lane);
        sums[lane] += x * x;
      }
    for (std::size_t lane = 0; lane < rest; ++lane) {
      const double x = value(whole + lane);
      sums[lane] += x * x;
    }
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }

  double sum_ = 0;
};

}  // namespace hypertune::inline v0
