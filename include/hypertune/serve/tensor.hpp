// Tensors as a served model takes and gives them: named, typed, row-major, with the types of the Open Inference Protocol.
#pragma once

#include <hypertune/error.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// The type of a tensor's elements. `fp16` is IEEE binary16; `bytes` has texts of any length.
enum class Datatype : std::uint8_t {
  boolean,
  uint8,
  uint16,
  uint32,
  uint64,
  int8,
  int16,
  int32,
  int64,
  fp16,
  fp32,
  fp64,
  bytes,
};

namespace detail {
struct DatatypeEntry {
  std::string_view name;  ///< in the protocol
  std::size_t size;       ///< bytes of an element; 0: it varies
};
inline constexpr std::array<DatatypeEntry, 13> datatypes{{{"BOOL", 1},
                                                          {"UINT8", 1},
                                                          {"UINT16", 2},
                                                          {"UINT32", 4},
                                                          {"UINT64", 8},
                                                          {"INT8", 1},
                                                          {"INT16", 2},
                                                          {"INT32", 4},
                                                          {"INT64", 8},
                                                          {"FP16", 2},
                                                          {"FP32", 4},
                                                          {"FP64", 8},
                                                          {"BYTES", 0}}};
}  // namespace detail

/// Its name in the protocol, as "FP32".
constexpr std::string_view to_string(Datatype type) {
  return detail::datatypes.at(static_cast<std::size_t>(type)).name;
}
/// The bytes of an element; 0 for Datatype::bytes.
constexpr std::size_t size_of(Datatype type) { return detail::datatypes.at(static_cast<std::size_t>(type)).size; }
/// The type of this name; nullopt: there is none.
constexpr std::optional<Datatype> datatype_from(std::string_view name) {
  for (std::size_t i = 0; i < detail::datatypes.size(); ++i)
    if (detail::datatypes[i].name == name) return static_cast<Datatype>(i);
  return std::nullopt;
}

/// The Datatype of a C++ type of elements.
template <class T>
consteval Datatype datatype_of() {
  static_assert(std::is_arithmetic_v<T>, "a tensor has elements of an arithmetic type, or texts");
  if constexpr (std::same_as<T, bool>) {
    return Datatype::boolean;
  } else if constexpr (std::floating_point<T>) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "there is no datatype for long double");
    return sizeof(T) == 4 ? Datatype::fp32 : Datatype::fp64;
  } else {
    constexpr std::size_t power = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return static_cast<Datatype>(static_cast<std::size_t>(std::is_signed_v<T> ? Datatype::int8 : Datatype::uint8) +
                                 power);
  }
}

using TensorShape = std::vector<std::int64_t>;

/// The product of the extents; nullopt if one is negative, or the product is above 2^62.
constexpr std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape) {
  std::uint64_t product = 1;
  bool empty = false;
  for (const std::int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    if (extent == 0) continue;
    if (product > (std::uint64_t{1} << 62U) / static_cast<std::uint64_t>(extent)) return std::nullopt;
    product *= static_cast<std::uint64_t>(extent);
  }
  return empty ? 0 : product;
}

/// An array of elements of one type. A value.
struct Tensor {
  std::string name;
  Datatype datatype = Datatype::fp32;
  TensorShape shape;  ///< the extents; empty: one element
  /// The elements in row-major order, as the protocol's binary form has them: little-endian, a byte for each boolean; of
  /// `bytes`, each text after its size as 4 bytes.
  std::string data;

  /// A tensor with these elements. Error of kind `usage` if their number is not the shape's.
  template <class T>
  static Tensor of(std::string name, TensorShape shape, std::span<const T> values) {
    Tensor tensor{std::move(name), datatype_of<T>(), std::move(shape), {}};
    tensor.require_count(values.size());
    tensor.data.resize(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(tensor.data.data(), values.data(), tensor.data.size());
    return tensor;
  }
  template <class T>
  static Tensor of(std::string name, TensorShape shape, const std::vector<T>& values) {
    return of(std::move(name), std::move(shape), std::span<const T>(values));
  }
  /// A tensor of texts. Errors as of of().
  static Tensor of_texts(std::string name, TensorShape shape, std::span<const std::string> texts);

  /// Its elements. Valid as long as the tensor is unchanged. Error of kind `usage` if they are of another type.
  template <class T>
  std::span<const T> values() const {
    if (datatype != datatype_of<T>())
      fail(Errc::usage, "the tensor '{}' has elements of {}, not {}", name, to_string(datatype),
           to_string(datatype_of<T>()));
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
  /// The elements of a tensor of texts. Errors: `usage` (another type), `corrupt` (`data` is no such list).
  std::vector<std::string_view> texts() const;

  /// The number of elements by its shape; 0 if that is impossible.
  std::uint64_t count() const { return element_count(shape).value_or(0); }
  /// The first extent: how many examples a batch has; 1 if there is none.
  std::int64_t rows() const { return shape.empty() ? 1 : shape.front(); }

  friend bool operator==(const Tensor& a, const Tensor& b) = default;

  /// Error of kind `usage` if `given` is not the number of elements of its shape.
  void require_count(std::size_t given) const {
    const auto wanted = element_count(shape);
    if (!wanted || *wanted != given)
      fail(Errc::usage, "the tensor '{}' is given {} elements, which its shape does not have", name, given);
  }
};

/// What a model says of one of its inputs or outputs.
struct TensorSpec {
  std::string name;
  Datatype datatype = Datatype::fp32;
  TensorShape shape;  ///< -1: any extent
  friend bool operator==(const TensorSpec& a, const TensorSpec& b) = default;
};

/// What a model takes and gives.
struct Signature {
  std::vector<TensorSpec> inputs, outputs;
  friend bool operator==(const Signature& a, const Signature& b) = default;

  /// Whether several requests may be answered as one batch: there are inputs and outputs, and the first extent of each is
  /// -1.
  bool batches() const {
    const auto open = [](const std::vector<TensorSpec>& specs) {
      for (const auto& spec : specs)
        if (spec.shape.empty() || spec.shape.front() != -1) return false;
      return !specs.empty();
    };
    return open(inputs) && open(outputs);
  }
};

}  // namespace hypertune::inline v0
