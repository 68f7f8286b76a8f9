// CudaGradientMemory: gradients in the memory of a GPU, for DataParallel. For nvcc, as it has kernels; link the CUDA
// runtime.
#pragma once

#include <hypertune/train/gradient_memory.hpp>
#include <hypertune/train/kernels.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace hypertune::inline v0 {

/// All work goes to one stream: that of the backward pass, so that gradients are final where they are `ready()`.
/// take_squares(), download() and upload() wait for that stream; combine(), divide() and add_squares() do not.
/// std::runtime_error says what CUDA says. Makes `device` the current one of the thread.
///
///     DataParallel gradients(communicator, {.memory = std::make_shared<CudaGradientMemory>(device, stream)});
///     gradients.add(std::span(device_pointer, count));
class CudaGradientMemory final : public GradientMemory {
 public:
  /// `stream` outlives this object.
  CudaGradientMemory(int device, cudaStream_t stream) : device_(device), stream_(stream) {
    sums_ = allocate((most_parts + folded_parts + 1) * sizeof(double));
    clear();
  }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    use();
    void* made = nullptr;
    // Not of a pool (cudaMallocAsync): NCCL lets the GPUs of one process read each other's buffers, which a pool
    // forbids.
    if (bytes != 0) check(cudaMalloc(&made, bytes), "allocating memory");
    return std::shared_ptr<void>(made, [](void* memory) { static_cast<void>(cudaFree(memory)); });
  }
  void combine(void* to, const void* from, double factor, const void* plus, std::size_t count,
               ElementType type) override {
    visit(type, [&]<class T>(T*) {
      for_each(count, kernels::Combine<T>{static_cast<T*>(to), static_cast<const T*>(from), factor,
                                          static_cast<const T*>(plus)});
    });
  }
  void divide(void* to, const void* from, double divisor, std::size_t count, ElementType type) override {
    square(to, from, divisor, count, type);
  }
  void add_squares(const void* data, std::size_t count, ElementType type) override {
    square(nullptr, data, 1, count, type);
  }
  double take_squares() override {
    for_each(folded_parts, kernels::FoldSums{parts(), most_parts, folded_parts, folded()});
    for_each(1, kernels::FoldSums{folded(), folded_parts, 1, total()});
    double sum = 0;
    download(&sum, total(), sizeof sum);
    clear();
    return sum;
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copying to the device");
    check(cudaStreamSynchronize(stream_), "copying to the device");  // `from` may be gone when this returns
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copying from the device");
    check(cudaStreamSynchronize(stream_), "computing with gradients");
  }
  void* stream() override { return stream_; }

 private:
  // Of partial sums: as many as threads run at once on a large device. They are put together once, by take_squares().
  static constexpr std::size_t most_parts = std::size_t{1} << 18U, folded_parts = 512;

  static void check(cudaError_t result, const char* doing) {
    if (result != cudaSuccess)
      throw std::runtime_error(std::string("CUDA: ") + doing + ": " + cudaGetErrorString(result));
  }
  void use() const { check(cudaSetDevice(device_), "choosing the device"); }  // of this thread

  template <class Body>
  static void visit(ElementType type, const Body& body) {
    if (type == ElementType::float32) body(static_cast<float*>(nullptr));
    if (type == ElementType::float64) body(static_cast<double*>(nullptr));
    if (type == ElementType::float16) body(static_cast<__half*>(nullptr));
    if (type == ElementType::bfloat16) body(static_cast<__nv_bfloat16*>(nullptr));
  }
  template <class Kernel>
  void for_each(std::size_t count, const Kernel& kernel);

  double* parts() const { return static_cast<double*>(sums_.get()); }
  double* folded() const { return parts() + most_parts; }
  double* total() const { return folded() + folded_parts; }
  void clear() { check(cudaMemsetAsync(parts(), 0, most_parts * sizeof(double), stream_), "clearing a sum"); }

  void square(void* to, const void* from, double divisor, std::size_t count, ElementType type) {
    if (count == 0) return;
    const std::size_t threads = std::min(count, most_parts);
    visit(type, [&]<class T>(T*) {
      for_each(threads, kernels::DivideAndSquare<T>{static_cast<T*>(to), static_cast<const T*>(from), divisor, count,
                                                    threads, parts()});
    });
  }

  int device_;
  cudaStream_t stream_;
  std::shared_ptr<void> sums_;  ///< partial ones, what they are folded to, and their sum
};

namespace detail {
template <class Kernel>
__global__ void gradient_kernel(std::size_t count, Kernel kernel) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) kernel(i);
}
}  // namespace detail

template <class Kernel>
void CudaGradientMemory::for_each(std::size_t count, const Kernel& kernel) {
  constexpr std::size_t threads = 256, most_blocks = 4096;
  if (count == 0) return;
  use();
  const auto blocks = static_cast<unsigned>(std::min((count + threads - 1) / threads, most_blocks));
  detail::gradient_kernel<<<blocks, threads, 0, stream_>>>(count, kernel);
  check(cudaGetLastError(), "starting a kernel");
}

}  // namespace hypertune::inline v0
