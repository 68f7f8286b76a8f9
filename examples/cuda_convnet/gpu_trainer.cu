// The network on a GPU: each kernel of kernels.hpp over a grid, matrix products by cuBLAS. This is the only file that
// nvcc compiles. It includes no header of hypertune's core, and of hypertune::train only those with plain arithmetic.
#include "cuda_convnet/convnet.hpp"
#include "cuda_convnet/gemm.hpp"

#include <hypertune/train/cuda_gradient_memory.cuh>

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace convnet {

namespace {

template <class Kernel>
__global__ void run(std::size_t count, Kernel kernel) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) kernel(i);
}

template <class T>
constexpr cudaDataType data_type = std::is_same_v<T, __half> ? CUDA_R_16F : CUDA_R_32F;

// All work goes to a stream of its own, so that trials that share the device do not wait for each other.
class GpuBackend {
 public:
  explicit GpuBackend(int device) : device_(device) {
    use();
    stream_ = make_stream();
    blas_ = make_blas(stream_.get());
  }
  void* allocate(std::size_t bytes) {
    use();
    void* memory = nullptr;
    check(cudaMalloc(&memory, bytes), "allocating memory");
    return memory;
  }
  void release(void* memory) { static_cast<void>(cudaFree(memory)); }
  void upload(void* to, const void* from, std::size_t bytes) {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_.get()), "copying to the device");
    check(cudaStreamSynchronize(stream_.get()), "copying to the device");  // the caller may free `from` after this
  }
  void download(void* to, const void* from, std::size_t bytes) const {
    use();
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_.get()), "copying from the device");
    check(cudaStreamSynchronize(stream_.get()), "computing");
  }
  std::shared_ptr<hypertune::GradientMemory> gradient_memory() {
    return std::make_shared<hypertune::CudaGradientMemory>(device_, stream_.get());
  }
  template <class Kernel>
  void for_each(std::size_t count, const Kernel& kernel) {
    constexpr std::size_t threads = 256, max_blocks = 4096;
    if (count == 0) return;
    use();
    const auto blocks = static_cast<unsigned>(std::min((count + threads - 1) / threads, max_blocks));
    run<<<blocks, threads, 0, stream_.get()>>>(count, kernel);
    check(cudaGetLastError(), "starting a kernel");
  }
  template <class T, class Out>
  void multiply(bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k, const T* a, const T* b, Out* c) {
    use();
    gemm_by_rows(blas_.get(), ta, tb, m, n, k, a, b, data_type<T>, c, data_type<Out>);
  }

 private:
  void use() const { check(cudaSetDevice(device_), "choosing the device"); }  // the device is a setting of the thread
  int device_;
  Stream stream_;
  Blas blas_;  // destroyed before the stream
};

}  // namespace

std::string no_gpu_because() {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result != cudaSuccess) {
    static_cast<void>(cudaGetLastError());  // clear the error, or the next launch would report it
    return cudaGetErrorString(result);
  }
  return devices > 0 ? "" : "no device is visible";
}
bool built_with_cuda() { return true; }

std::unique_ptr<Trainer> make_gpu_trainer(const Options& options, int device) {
  if (options.half) return std::make_unique<Network<GpuBackend, __half>>(GpuBackend(device), options);
  return std::make_unique<Network<GpuBackend, float>>(GpuBackend(device), options);
}

}  // namespace convnet
