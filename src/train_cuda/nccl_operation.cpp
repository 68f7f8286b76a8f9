// Part of hypertune::train_cuda.
#include "nccl_operation.hpp"

#include "staging.hpp"

#include <hypertune/error.hpp>

#include <type_traits>
#include <variant>

namespace hypertune::inline v0::detail {

using namespace collective;

namespace {

ncclDataType_t nccl_type(ElementType type) {
  switch (type) {
    case ElementType::float32: return ncclFloat32;
    case ElementType::float64: return ncclFloat64;
    case ElementType::float16: return ncclFloat16;
    case ElementType::bfloat16: return ncclBfloat16;
    case ElementType::int32: return ncclInt32;
    case ElementType::int64: return ncclInt64;
    case ElementType::uint8: break;
  }
  return ncclUint8;
}
ncclRedOp_t nccl_operation(Reduction reduction) {
  switch (reduction) {
    case Reduction::mean: return ncclAvg;
    case Reduction::min: return ncclMin;
    case Reduction::max: return ncclMax;
    case Reduction::sum: break;
  }
  return ncclSum;
}

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

}  // namespace

ncclResult_t launch(const Operation& operation, void* barrier, ncclComm_t comm, cudaStream_t stream) {
  return std::visit(
      [&](const auto& o) {
        using O = std::remove_cvref_t<decltype(o)>;
        if constexpr (std::is_same_v<O, AllReduce>)
          return ncclAllReduce(o.data, o.data, o.count, nccl_type(o.type), nccl_operation(o.reduction), comm, stream);
        else if constexpr (std::is_same_v<O, Broadcast>)
          return ncclBroadcast(o.data, o.data, o.count, nccl_type(o.type), o.root, comm, stream);
        else if constexpr (std::is_same_v<O, AllGather>)
          return ncclAllGather(o.mine, o.all, o.count, nccl_type(o.type), comm, stream);
        else if constexpr (std::is_same_v<O, ReduceScatter>)
          return ncclReduceScatter(o.all, o.mine, o.count, nccl_type(o.type), nccl_operation(o.reduction), comm,
                                   stream);
        else
          return ncclAllReduce(barrier, barrier, 1, ncclUint8, ncclMax, comm, stream);
      },
      operation);
}

std::size_t count_of(const Operation& operation) {
  return std::visit(
      [](const auto& o) -> std::size_t {
        if constexpr (requires { o.count; })
          return o.count;
        else
          return 1;
      },
      operation);
}
void* after_of(const Operation& operation) {
  return std::visit(
      [](const auto& o) -> void* {
        if constexpr (requires { o.after; })
          return o.after;
        else
          return nullptr;
      },
      operation);
}

bool in_device_memory(const Operation& operation, int device) {
  const auto both = [&](const void* one, const void* other, std::size_t count) {
    const bool here = on_device(one, device);
    if (count != 0 && here != on_device(other, device))
      fail(Errc::usage, "one buffer of a collective is in the memory of device {}, and the other in host memory",
           device);
    return here;
  };
  return std::visit(
      Overloaded{[](const Barrier&) { return true; }, [&](const AllGather& o) { return both(o.mine, o.all, o.count); },
                 [&](const ReduceScatter& o) { return both(o.all, o.mine, o.count); },
                 [&](const auto& o) { return on_device(o.data, device); }},
      operation);
}

}  // namespace hypertune::inline v0::detail
