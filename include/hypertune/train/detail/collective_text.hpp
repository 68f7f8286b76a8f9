// Text about collectives for messages, and a comparison: whether two ranks ask for the same one.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/train/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

constexpr const char* to_string(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::mean: return "mean";
    case Reduction::min: return "min";
    case Reduction::max: return "max";
  }
  return "unknown";
}

constexpr const char* to_string(ElementType type) {
  switch (type) {
    case ElementType::float32: return "float32";
    case ElementType::float64: return "float64";
    case ElementType::float16: return "float16";
    case ElementType::bfloat16: return "bfloat16";
    case ElementType::int32: return "int32";
    case ElementType::int64: return "int64";
    case ElementType::uint8: return "uint8";
  }
  return "unknown";
}

namespace detail {

/// The parameters of a collective that must be equal on all ranks.
struct CollectiveShape {
  std::uint64_t count = 0;
  std::int32_t root = 0;
  std::uint8_t kind = 0;  ///< the index in collective::Operation
  ElementType type = {};
  Reduction reduction = {};
  friend bool operator==(const CollectiveShape&, const CollectiveShape&) = default;
};

inline CollectiveShape shape_of(const collective::Operation& operation) {
  CollectiveShape shape;
  shape.kind = static_cast<std::uint8_t>(operation.index());
  std::visit(
      [&](const auto& o) {
        if constexpr (requires { o.count; }) shape.count = o.count, shape.type = o.type;
        if constexpr (requires { o.root; }) shape.root = o.root;
        if constexpr (requires { o.reduction; }) shape.reduction = o.reduction;
      },
      operation);
  return shape;
}

/// "all_reduce of 1000 float32 (sum)"
inline std::string describe(const CollectiveShape& shape) {
  switch (shape.kind) {
    case 0:
      return fmt::format("all_reduce of {} {} ({})", shape.count, to_string(shape.type), to_string(shape.reduction));
    case 1: return fmt::format("broadcast of {} {} from rank {}", shape.count, to_string(shape.type), shape.root);
    case 2: return fmt::format("all_gather of {} {}", shape.count, to_string(shape.type));
    case 3:
      return fmt::format("reduce_scatter of {} {} ({})", shape.count, to_string(shape.type),
                         to_string(shape.reduction));
    case 4: return "barrier";
    default: return "an unknown collective";
  }
}

/// "rank 3", "ranks 1, 2 and 5"
inline std::string describe_ranks(const std::vector<int>& ranks) {
  if (ranks.empty()) return "no rank";
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (i != 0) text += i + 1 == ranks.size() ? " and " : ", ";
    text += fmt::format("{}", ranks[i]);
  }
  return text;
}

/// A copy for another thread, which shares no data. (Copies of std::runtime_error share a reference-counted text, whose
/// counter ThreadSanitizer cannot see.)
inline GroupError own_copy(const GroupError& error) { return {error.kind(), std::string(error.what()), error.ranks()}; }

inline std::string late_text(const std::vector<int>& ranks, double timeout, const CollectiveShape& shape) {
  return fmt::format("{} did not come to {} within {} s", describe_ranks(ranks), describe(shape), timeout);
}

/// Checks that the root is a rank; otherwise the backends would wait for a rank that does not exist.
inline void check_root(const collective::Operation& operation, int size) {
  const auto* broadcast = std::get_if<collective::Broadcast>(&operation);
  if (broadcast != nullptr && (broadcast->root < 0 || broadcast->root >= size))
    fail(Errc::usage, "broadcast from rank {} of {} ranks: the first is 0", broadcast->root, size);
}

}  // namespace detail
}  // namespace hypertune::inline v0
