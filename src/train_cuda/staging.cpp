// Part of hypertune::train_cuda.
#include "staging.hpp"

#include <hypertune/error.hpp>

#include <cstring>
#include <type_traits>
#include <variant>

namespace hypertune::inline v0::detail {

namespace {

using namespace collective;

// The number of shares that an operation reads and writes: a gather reads one and writes all, a reduce-scatter the
// opposite. In the staging memory the smaller side comes first; all-reduce and broadcast are done in place.
struct Shares {
  std::size_t read, written, room;
};
Shares shares_of(const Operation& operation, std::size_t ranks) {
  if (std::holds_alternative<AllGather>(operation)) return {1, ranks, ranks + 1};
  if (std::holds_alternative<ReduceScatter>(operation)) return {ranks, 1, ranks + 1};
  return {1, 1, 1};
}

template <class Use>
auto with_buffers(const Operation& operation, Use use) {  // calls use(read, written, operation)
  using Result = decltype(use(static_cast<const std::byte*>(nullptr), static_cast<std::byte*>(nullptr), AllReduce{}));
  return std::visit(
      [&](const auto& o) -> Result {
        using O = std::remove_cvref_t<decltype(o)>;
        if constexpr (std::is_same_v<O, AllReduce> || std::is_same_v<O, Broadcast>)
          return use(static_cast<const std::byte*>(o.data), static_cast<std::byte*>(o.data), o);
        else if constexpr (std::is_same_v<O, AllGather>)
          return use(static_cast<const std::byte*>(o.mine), static_cast<std::byte*>(o.all), o);
        else if constexpr (std::is_same_v<O, ReduceScatter>)
          return use(static_cast<const std::byte*>(o.all), static_cast<std::byte*>(o.mine), o);
        else
          fail(Errc::usage, "a barrier has no buffers");
      },
      operation);
}

}  // namespace

bool on_device(const void* memory, int device) {
  cudaPointerAttributes attributes{};
  const cudaError_t result = cudaPointerGetAttributes(&attributes, memory);
  if (result == cudaErrorInvalidValue) {  // the result of older drivers for unknown memory
    static_cast<void>(cudaGetLastError());
    return false;
  }
  check_cuda(result, "asking where a buffer is");
  if (attributes.type == cudaMemoryTypeManaged) return true;
  if (attributes.type != cudaMemoryTypeDevice) return false;
  if (attributes.device != device)
    fail(Errc::usage, "a buffer is in the memory of device {}; this communicator's device is {}", attributes.device,
         device);
  return true;
}

std::size_t Staging::piece(const Operation& operation, int ranks) const {
  return with_buffers(operation, [&](const auto*, auto*, const auto& o) {
    const std::size_t room = shares_of(operation, static_cast<std::size_t>(ranks)).room * size_of(o.type);
    if (room > bytes_)
      fail(Errc::usage, "NcclOptions::staging is {} bytes; one element of each of {} ranks needs {}", bytes_, ranks,
           room);
    return bytes_ / room;
  });
}

Operation Staging::staged(const Operation& operation, Piece piece) const {
  return std::visit(
      [&](auto o) -> Operation {
        using O = std::remove_cvref_t<decltype(o)>;
        if constexpr (!std::is_same_v<O, Barrier>) {
          o.count = piece.count;
          o.after = nullptr;
        }
        if constexpr (std::is_same_v<O, AllReduce> || std::is_same_v<O, Broadcast>) {
          o.data = device();
        } else if constexpr (std::is_same_v<O, AllGather>) {
          o.mine = device();
          o.all = device(piece.count * size_of(o.type));
        } else if constexpr (std::is_same_v<O, ReduceScatter>) {
          o.mine = device();
          o.all = device(piece.count * size_of(o.type));
        }
        return o;
      },
      operation);
}

void Staging::to_device(std::size_t offset, const void* from, std::size_t bytes, cudaStream_t stream) {
  std::memcpy(pinned(offset), from, bytes);
  check_cuda(cudaMemcpyAsync(device(offset), pinned(offset), bytes, cudaMemcpyHostToDevice, stream),
             "copying to the device");
}

void Staging::load(const Operation& operation, Piece piece, int ranks, int rank, cudaStream_t stream) {
  with_buffers(operation, [&](const std::byte* read, auto*, const auto& o) {
    if constexpr (requires { o.root; })
      if (o.root != rank) return;
    const std::size_t size = size_of(o.type), bytes = piece.count * size;
    const auto shares = shares_of(operation, static_cast<std::size_t>(ranks));
    const std::size_t offset = shares.read > 1 ? bytes : 0;  // a reduce-scatter's output comes first
    for (std::size_t i = 0; i < shares.read; ++i)
      to_device(offset + i * bytes, read + (i * o.count + piece.begin) * size, bytes, stream);
  });
}

void Staging::store(const Operation& operation, Piece piece, int ranks, cudaStream_t stream) {
  with_buffers(operation, [&](auto*, auto*, const auto& o) {
    const std::size_t bytes = piece.count * size_of(o.type);
    const auto shares = shares_of(operation, static_cast<std::size_t>(ranks));
    const std::size_t offset = shares.written > 1 ? bytes : 0;
    check_cuda(cudaMemcpyAsync(pinned(), device(offset), shares.written * bytes, cudaMemcpyDeviceToHost, stream),
               "copying from the device");
  });
}

void Staging::unload(const Operation& operation, Piece piece, int ranks) {
  with_buffers(operation, [&](auto*, std::byte* written, const auto& o) {
    const std::size_t size = size_of(o.type), bytes = piece.count * size;
    const auto shares = shares_of(operation, static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < shares.written; ++i)
      std::memcpy(written + (i * o.count + piece.begin) * size, pinned(i * bytes), bytes);
  });
}

}  // namespace hypertune::inline v0::detail
