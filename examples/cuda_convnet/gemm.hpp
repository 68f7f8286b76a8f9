// Products of row-major matrices by cuBLAS, which expects column-major ones. A row-major matrix read by columns is the
// transposed matrix, so that c = a b becomes c' = b' a'.
#pragma once

#include "cuda_convnet/cuda_owner.hpp"

#include <cstddef>

namespace convnet {

/// op(a) is m x k, op(b) is k x n; `ta`: a is stored as k x m. Sums are accumulated in float.
inline void gemm_by_rows(cublasHandle_t blas, bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k,
                         const void* a, const void* b, cudaDataType type, void* c, cudaDataType out_type) {
  const float one = 1, zero = 0;
  const auto i = [](std::size_t value) { return static_cast<int>(value); };
  check(cublasGemmEx(blas, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, i(n), i(m), i(k), &one, b,
                     type, i(tb ? k : n), a, type, i(ta ? m : k), &zero, c, out_type, i(n), CUBLAS_COMPUTE_32F,
                     CUBLAS_GEMM_DEFAULT),
        "multiplying matrices");
}

}  // namespace convnet
