// The network on the CPU: one loop per kernel, and matrix products that compilers can vectorise.
#pragma once

#include <hypertune/train/gradient_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace convnet {

class CpuBackend {
 public:
  void* allocate(std::size_t bytes) { return ::operator new(bytes); }
  void release(void* memory) { ::operator delete(memory); }
  void upload(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  void download(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  std::shared_ptr<hypertune::GradientMemory> gradient_memory() {
    return std::make_shared<hypertune::HostGradientMemory>();
  }
  template <class Kernel>
  void for_each(std::size_t count, const Kernel& kernel) {
    for (std::size_t i = 0; i < count; ++i) kernel(i);
  }

  /// c = op(a) op(b), by rows: op(a) is m x k, op(b) is k x n; `ta`: a is stored as k x m.
  template <class T, class Out>
  void multiply(bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k, const T* a, const T* b, Out* c) {
    if (tb)
      rows_by_rows(m, n, k, a, b, c);
    else
      rows_by_columns(ta, m, n, k, a, b, c);
  }

 private:
  // b is stored as n x k: products of rows. Eight partial sums, because a single sum fixes an order of additions that
  // cannot be vectorised.
  template <class T, class Out>
  static void rows_by_rows(std::size_t m, std::size_t n, std::size_t k, const T* a, const T* b, Out* c) {
    constexpr std::size_t lanes = 8, strip = 1024;  // of a row at a time, so that rows of b stay in the L2 cache
    std::vector<float> products(m * n);
    for (std::size_t begin = 0; begin < k; begin += strip)
      for (std::size_t i = 0; i < m; ++i)
        for (std::size_t j = 0; j < n; ++j) {
          const T *x = a + i * k, *y = b + j * k;
          float sums[lanes] = {};
          std::size_t p = begin;
          const std::size_t end = std::min(begin + strip, k);
          for (; p + lanes <= end; p += lanes)
            for (std::size_t l = 0; l < lanes; ++l)
              sums[l] += static_cast<float>(x[p + l]) * static_cast<float>(y[p + l]);
          float sum = 0;
          for (const float part : sums) sum += part;
          for (; p < end; ++p) sum += static_cast<float>(x[p]) * static_cast<float>(y[p]);
          products[i * n + j] += sum;
        }
    std::transform(products.begin(), products.end(), c, [](float product) { return Out(product); });
  }
  template <class T, class Out>
  static void rows_by_columns(bool ta, std::size_t m, std::size_t n, std::size_t k, const T* a, const T* b, Out* c) {
    constexpr std::size_t strip = 256;  // columns of b at a time; the sums stay in the L1 cache
    float sums[strip];
    for (std::size_t begin = 0; begin < n; begin += strip) {
      const std::size_t width = std::min(strip, n - begin);
      for (std::size_t i = 0; i < m; ++i) {
        std::fill_n(sums, width, 0.0F);
        for (std::size_t p = 0; p < k; ++p) {
          const auto factor = static_cast<float>(ta ? a[p * m + i] : a[i * k + p]);
          const T* row = b + p * n + begin;
          for (std::size_t j = 0; j < width; ++j) sums[j] += factor * static_cast<float>(row[j]);
        }
        for (std::size_t j = 0; j < width; ++j) c[i * n + begin + j] = Out(sums[j]);
      }
    }
  }
};

}  // namespace convnet
