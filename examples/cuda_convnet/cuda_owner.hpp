// Owning types for CUDA and cuBLAS handles; errors become exceptions.
#pragma once

#include <hypertune/train/cuda_check.cuh>

#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace convnet {

inline void check(cudaError_t result, const char* what) { hypertune::cuda_check(result, what); }
inline void check(cublasStatus_t result, const char* what) {
  if (result != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string("cuBLAS: ") + what + ": status " + std::to_string(static_cast<int>(result)));
}

/// Owns a handle; `destroy` releases it.
template <class T, auto destroy>
class Owner {
 public:
  Owner() = default;
  explicit Owner(T value) : value_(value) {}
  Owner(Owner&& other) noexcept : value_(std::exchange(other.value_, T{})) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Owner() {
    if (value_) static_cast<void>(destroy(value_));
  }
  T get() const { return value_; }

 private:
  T value_ = {};
};
using Stream = Owner<cudaStream_t, cudaStreamDestroy>;
using Blas = Owner<cublasHandle_t, cublasDestroy>;

inline Stream make_stream() {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "making a stream");
  return Stream(made);
}
inline Blas make_blas(cudaStream_t stream) {
  cublasHandle_t made = nullptr;
  check(cublasCreate(&made), "starting");
  Blas blas(made);
  check(cublasSetStream(made, stream), "choosing the stream");
  // Partial sums are float for 16-bit matrices too.
  check(cublasSetMathMode(made, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION), "choosing the arithmetic");
  return blas;
}

}  // namespace convnet
