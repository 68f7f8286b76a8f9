// What a collective makes of the buffers of all ranks, element by element, in the order of the ranks.
#pragma once

#include <hypertune/train/element.hpp>

#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace stand_in {

using Bytes = std::vector<std::byte>;

enum class Kind { all_reduce, broadcast, all_gather, reduce_scatter };
struct Call {
  Kind kind = {};
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;
  ncclDataType_t type = {};
  ncclRedOp_t operation = {};
  int root = 0;
};

inline std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    default: return 8;
  }
}

template <class T, class Wide>
Bytes reduce_as(const std::vector<Bytes>& inputs, std::size_t count, ncclRedOp_t operation) {
  Bytes result(count * sizeof(T));
  for (std::size_t i = 0; i < count; ++i) {
    Wide sum{};
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      T element;
      std::memcpy(&element, inputs[rank].data() + i * sizeof(T), sizeof(T));
      const auto value = static_cast<Wide>(element);
      if (rank == 0)
        sum = value;
      else if (operation == ncclMax)
        sum = std::max(sum, value);
      else if (operation == ncclMin)
        sum = std::min(sum, value);
      else
        sum += value;
    }
    if (operation == ncclAvg) sum /= static_cast<Wide>(inputs.size());
    const T out = static_cast<T>(sum);
    std::memcpy(result.data() + i * sizeof(T), &out, sizeof(T));
  }
  return result;
}

inline Bytes reduce(const std::vector<Bytes>& inputs, std::size_t count, ncclDataType_t type, ncclRedOp_t operation) {
  using namespace hypertune;
  switch (type) {
    case ncclFloat32: return reduce_as<float, float>(inputs, count, operation);
    case ncclFloat64: return reduce_as<double, double>(inputs, count, operation);
    case ncclFloat16: return reduce_as<Half, float>(inputs, count, operation);
    case ncclBfloat16: return reduce_as<BFloat16, float>(inputs, count, operation);
    case ncclInt32: return reduce_as<std::int32_t, std::int32_t>(inputs, count, operation);
    case ncclInt64: return reduce_as<std::int64_t, std::int64_t>(inputs, count, operation);
    default: return reduce_as<std::uint8_t, std::uint32_t>(inputs, count, operation);
  }
}

/// What this rank gets.
inline Bytes result_of(const Call& call, const std::vector<Bytes>& inputs, int rank) {
  const std::size_t bytes = call.count * size_of(call.type);
  if (call.kind == Kind::broadcast) return inputs[static_cast<std::size_t>(call.root)];
  if (call.kind == Kind::all_reduce) return reduce(inputs, call.count, call.type, call.operation);
  Bytes all;
  if (call.kind == Kind::all_gather) {
    for (const Bytes& input : inputs) all.insert(all.end(), input.begin(), input.end());
    return all;
  }
  std::vector<Bytes> shares;
  for (const Bytes& input : inputs) {
    const auto begin = input.begin() + static_cast<std::ptrdiff_t>(bytes * static_cast<std::size_t>(rank));
    shares.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(bytes));
  }
  return reduce(shares, call.count, call.type, call.operation);
}

}  // namespace stand_in
