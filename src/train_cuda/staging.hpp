// Copies buffers in host memory to the device and back, in pieces.
#pragma once

#include "cuda_objects.hpp"

#include <hypertune/train/communicator.hpp>

#include <cstddef>
#include <cstdint>

namespace hypertune::inline v0::detail {

/// Whether the memory is on the device (or managed). Error of kind `usage` if it is on another device.
bool on_device(const void* memory, int device);

/// A part of an operation that fits into the staging memory: elements [begin, begin + count) of each rank's share.
struct Piece {
  std::size_t begin = 0, count = 0;
};

/// Device memory through which pieces are copied, and pinned host memory of the same size.
class Staging {
 public:
  Staging() = default;
  explicit Staging(std::size_t bytes)
      : bytes_(bytes), device_(allocate_on_device(bytes)), pinned_(allocate_pinned(bytes)) {}

  /// The number of elements of each rank's share in a piece. Error of kind `usage` if there is no room for even one.
  std::size_t piece(const collective::Operation& operation, int ranks) const;

  /// staged(): the piece as an operation on the device's memory. load() puts its input there without waiting; store()
  /// queues the copy of its output to pinned memory; when that is done, unload() copies it to the user's buffer.
  collective::Operation staged(const collective::Operation& operation, Piece piece) const;
  void load(const collective::Operation& operation, Piece piece, int ranks, int rank, cudaStream_t stream);
  void store(const collective::Operation& operation, Piece piece, int ranks, cudaStream_t stream);
  void unload(const collective::Operation& operation, Piece piece, int ranks);

 private:
  void to_device(std::size_t offset, const void* from, std::size_t bytes, cudaStream_t stream);
  std::byte* device(std::size_t offset = 0) const { return static_cast<std::byte*>(device_.get()) + offset; }
  std::byte* pinned(std::size_t offset = 0) const { return static_cast<std::byte*>(pinned_.get()) + offset; }

  std::size_t bytes_ = 0;
  DeviceMemory device_;
  PinnedMemory pinned_;
};

}  // namespace hypertune::inline v0::detail
