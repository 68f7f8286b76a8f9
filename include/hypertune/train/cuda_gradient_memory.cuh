// CudaGradientMemory: gradients in the memory of a GPU, for DataParallel. Contains kernels, so compile it with nvcc;
// link the CUDA runtime.
#pragma once

#include <hypertune/train/cuda_check.cuh>
#include <hypertune/train/gradient_memory.hpp>
#include <hypertune/train/kernels.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace hypertune::inline v0 {

/// All work goes to one stream, that of the backward pass, so that it is ordered after the computation of gradients
/// that are `ready()`. take_squares() and download() wait for that stream, the other functions do not. Throws the
/// exceptions of cuda_check(). Makes `device` the current device of the thread.
///
///     DataParallel gradients(communicator, {.memory = std::make_shared<CudaGradientMemory>(device, stream)});
///     gradients.add(std::span(device_pointer, count));
class CudaGradientMemory final : public GradientMemory {
 public:
  /// `stream` must outlive this object.
  CudaGradientMemory(int device, cudaStream_t stream) : device_(device), stream_(stream) {
    use();
    uploaded_ = event();
    staged_ = pinned(staged_bytes_);  // now: later the allocation might wait for the device
    sums_ = allocate((max_parts + folded_parts + 1) * sizeof(double));
    clear();
  }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    use();
    void* made = nullptr;
    // Not from a pool (cudaMallocAsync): NCCL lets the GPUs of one process access each other's buffers, which pools do
    // not allow.
    if (bytes != 0) check(cudaMalloc(&made, bytes), "allocating memory");
    return std::shared_ptr<void>(made, [](void* memory) { static_cast<void>(cudaFree(memory)); });
  }
  void combine(std::span<const GradientPiece> pieces, double factor, ElementType type) override {
    visit(type, [&]<class T>(T*) {
      for_each(pieces, [&](const GradientPiece& p) {
        return kernels::Combine<T>{static_cast<T*>(p.to), static_cast<const T*>(p.from), factor,
                                   static_cast<const T*>(p.plus)};
      });
    });
  }
  void divide(std::span<const GradientPiece> pieces, double divisor, ElementType type) override {
    square(pieces, true, divisor, type);
  }
  void add_squares(std::span<const GradientPiece> pieces, ElementType type) override { square(pieces, false, 1, type); }
  double take_squares() override {
    run(folded_parts, kernels::FoldSums{parts(), max_parts, folded_parts, folded()});
    run(1, kernels::FoldSums{folded(), folded_parts, 1, total()});
    double sum = 0;
    download(&sum, total(), sizeof sum);
    clear();
    return sum;
  }
  /// Copies through pinned memory, so that it waits only for the previous upload, which is usually done long before.
  void upload(void* to, const void* from, std::size_t bytes) override {
    use();
    if (bytes == 0) return;
    check(cudaEventSynchronize(uploaded_.get()), "copying to the device");
    if (bytes > staged_bytes_) {
      staged_ = pinned(bytes);
      staged_bytes_ = bytes;
    }
    std::memcpy(staged_.get(), from, bytes);
    check(cudaMemcpyAsync(to, staged_.get(), bytes, cudaMemcpyHostToDevice, stream_), "copying to the device");
    check(cudaEventRecord(uploaded_.get(), stream_), "recording an event");
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copying from the device");
    check(cudaStreamSynchronize(stream_), "computing with gradients");
  }
  void* stream() override { return stream_; }

 private:
  // Number of partial sums: as many as threads run at once on a large device. take_squares() adds them up.
  static constexpr std::size_t max_parts = std::size_t{1} << 18U, folded_parts = 512, threads = 256;

  static void check(cudaError_t result, const char* doing) { cuda_check(result, doing); }
  void use() const { check(cudaSetDevice(device_), "choosing the device"); }  // the device is a setting of the thread

  template <class Body>
  static void visit(ElementType type, const Body& body) {
    if (type == ElementType::float32) body(static_cast<float*>(nullptr));
    if (type == ElementType::float64) body(static_cast<double*>(nullptr));
    if (type == ElementType::float16) body(static_cast<__half*>(nullptr));
    if (type == ElementType::bfloat16) body(static_cast<__nv_bfloat16*>(nullptr));
  }
  static std::shared_ptr<void> pinned(std::size_t bytes) {
    void* made = nullptr;
    check(cudaHostAlloc(&made, bytes, cudaHostAllocDefault), "allocating pinned memory");
    return std::shared_ptr<void>(made, [](void* memory) { static_cast<void>(cudaFreeHost(memory)); });
  }
  static std::shared_ptr<CUevent_st> event() {
    cudaEvent_t made = nullptr;
    check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "making an event");
    return std::shared_ptr<CUevent_st>(made, [](cudaEvent_t event) { static_cast<void>(cudaEventDestroy(event)); });
  }
  template <class Kernel>
  void run(std::size_t count, const Kernel& kernel);
  /// One launch for many pieces. Kernels of one index touch only their own data, whatever the piece.
  template <class MakeKernel>
  void for_each(std::span<const GradientPiece> pieces, const MakeKernel& make, std::size_t max_indices = SIZE_MAX);

  double* parts() const { return static_cast<double*>(sums_.get()); }
  double* folded() const { return parts() + max_parts; }
  double* total() const { return folded() + folded_parts; }
  void clear() { check(cudaMemsetAsync(parts(), 0, max_parts * sizeof(double), stream_), "clearing a sum"); }

  void square(std::span<const GradientPiece> pieces, bool divides, double divisor, ElementType type) {
    visit(type, [&]<class T>(T*) {
      for_each(
          pieces,
          [&](const GradientPiece& p) {
            return kernels::DivideAndSquare<T>{divides ? static_cast<T*>(p.to) : nullptr,
                                               static_cast<const T*>(p.from),
                                               divisor,
                                               p.count,
                                               std::min(p.count, max_parts),
                                               parts()};
          },
          max_parts);
    });
  }

  int device_;
  cudaStream_t stream_;
  std::shared_ptr<void> sums_;    ///< the partial sums, the folded sums, and the total
  std::shared_ptr<void> staged_;  ///< pinned: data on its way to the device
  std::size_t staged_bytes_ = 4096;
  std::shared_ptr<CUevent_st> uploaded_;
};

namespace detail {
/// As many kernels as fit into the arguments of a launch (4 KiB).
template <class Kernel>
struct KernelBatch {
  static constexpr std::size_t most = 48;
  Kernel kernels[most];
  std::size_t counts[most];
  std::size_t size;
};
template <class Kernel>
__global__ void gradient_kernel(std::size_t count, Kernel kernel) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) kernel(i);
}
template <class Kernel>
__global__ void gradient_kernels(const __grid_constant__ KernelBatch<Kernel> batch) {  // not copied by each thread
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t k = 0; k < batch.size; ++k)
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < batch.counts[k]; i += step)
      batch.kernels[k](i);
}
inline unsigned blocks_of(std::size_t count, std::size_t threads) {
  constexpr std::size_t max_blocks = 4096;
  return static_cast<unsigned>(std::min((count + threads - 1) / threads, max_blocks));
}
}  // namespace detail

template <class Kernel>
void CudaGradientMemory::run(std::size_t count, const Kernel& kernel) {
  use();
  detail::gradient_kernel<<<detail::blocks_of(count, threads), threads, 0, stream_>>>(count, kernel);
  check(cudaGetLastError(), "starting a kernel");
}

template <class MakeKernel>
void CudaGradientMemory::for_each(std::span<const GradientPiece> pieces, const MakeKernel& make,
                                  std::size_t max_indices) {
  using Batch = detail::KernelBatch<std::remove_cvref_t<decltype(make(pieces.front()))>>;
  static_assert(sizeof(Batch) <= 4096);
  use();
  for (std::size_t i = 0; i < pieces.size();) {
    Batch batch = {};
    std::size_t most = 0;
    for (; i < pieces.size() && batch.size < Batch::most; ++i) {
      if (pieces[i].count == 0) continue;
      batch.kernels[batch.size] = make(pieces[i]);
      batch.counts[batch.size] = std::min(pieces[i].count, max_indices);
      most = std::max(most, batch.counts[batch.size++]);
    }
    if (most == 0) continue;
    detail::gradient_kernels<<<detail::blocks_of(most, threads), threads, 0, stream_>>>(batch);
    check(cudaGetLastError(), "starting a kernel");
  }
}

}  // namespace hypertune::inline v0
