// cuBLAS as a stand-in: matrices by columns, as the documentation of cublasGemmEx says.
#include "support/cuda/stand_in.hpp"

#include <hypertune/train/element.hpp>

#include <cublas_v2.h>

#include <atomic>
#include <cstddef>

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

std::atomic<int> handles{0};

float at(const void* matrix, cudaDataType type, std::size_t index) {
  return type == CUDA_R_16F ? static_cast<float>(static_cast<const hypertune::Half*>(matrix)[index])
                            : static_cast<const float*>(matrix)[index];
}

}  // namespace

namespace stand_in {
int held_blas() { return handles; }
}  // namespace stand_in

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  ++handles;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  --handles;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }  // sums are in float
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void* alpha, const void* a, cudaDataType a_type, int lda, const void* b,
                            cudaDataType b_type, int ldb, const void* beta, void* c, cudaDataType c_type, int ldc,
                            cublasComputeType_t, cublasGemmAlgo_t) {
  const int rows_of_a = transa == CUBLAS_OP_N ? m : k, rows_of_b = transb == CUBLAS_OP_N ? k : n;
  if (lda < rows_of_a || ldb < rows_of_b || ldc < m) return CUBLAS_STATUS_INVALID_VALUE;
  const float alpha_value = *static_cast<const float*>(alpha), beta_value = *static_cast<const float*>(beta);
  stand_in::run_in_stream(handle->stream, [=] {
    const auto index = [](bool transposed, int row, int column, int leading) {
      return transposed
                 ? static_cast<std::size_t>(row) * static_cast<std::size_t>(leading) + static_cast<std::size_t>(column)
                 : static_cast<std::size_t>(column) * static_cast<std::size_t>(leading) + static_cast<std::size_t>(row);
    };
    for (int column = 0; column < n; ++column)
      for (int row = 0; row < m; ++row) {
        float sum = 0;
        for (int i = 0; i < k; ++i)
          sum += at(a, a_type, index(transa != CUBLAS_OP_N, row, i, lda)) *
                 at(b, b_type, index(transb != CUBLAS_OP_N, i, column, ldb));
        const std::size_t place = index(false, row, column, ldc);
        const float value = alpha_value * sum + (beta_value == 0 ? 0 : beta_value * at(c, c_type, place));
        if (c_type == CUDA_R_16F)
          static_cast<hypertune::Half*>(c)[place] = hypertune::Half(value);
        else
          static_cast<float*>(c)[place] = value;
      }
  });
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
