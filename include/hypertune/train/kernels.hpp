// The arithmetic of gradients, for CPUs and GPUs. Each struct does the work of one index; a loop or a kernel's grid
// runs over the indices. Plain C++, for nvcc's front end too. Sums are in double.
#pragma once

#include <cstddef>

#ifdef __CUDACC__
#define HYPERTUNE_HD __host__ __device__
#else
#define HYPERTUNE_HD
#endif

namespace hypertune::inline v0::kernels {

/// Converts a gradient's element for computations, and back. Rounds once, to 16-bit types by way of float. `T`: float,
/// double, or a 16-bit type.
template <class T>
struct Wide {
  HYPERTUNE_HD static double of(T value) { return static_cast<double>(static_cast<float>(value)); }
  HYPERTUNE_HD static T narrow(double value) { return T(static_cast<float>(value)); }
};
template <>
struct Wide<float> {
  HYPERTUNE_HD static double of(float value) { return static_cast<double>(value); }
  HYPERTUNE_HD static float narrow(double value) { return static_cast<float>(value); }
};
template <>
struct Wide<double> {
  HYPERTUNE_HD static double of(double value) { return value; }
  HYPERTUNE_HD static double narrow(double value) { return value; }
};
/// to = factor * from + plus. `from` and `plus` may be null; either may equal `to`. Index: the elements.
template <class T>
struct Combine {
  T* to;
  const T* from;
  double factor;
  const T* plus;
  HYPERTUNE_HD void operator()(std::size_t i) const {
    if (from == nullptr)
      to[i] = plus == nullptr ? Wide<T>::narrow(0) : plus[i];
    else
      to[i] = Wide<T>::narrow(plus == nullptr ? Wide<T>::of(from[i]) * factor
                                              : Wide<T>::of(from[i]) * factor + Wide<T>::of(plus[i]));
  }
};
/// to = from / divisor (if `to` is not null); adds the squares of the results to partial sums. Types shorter than
/// double are multiplied by the reciprocal, as on the CPU: as exact as the quotient, and faster. Index: the parts.
template <class T>
struct DivideAndSquare {
  T* to;
  const T* from;
  double divisor;
  std::size_t count, parts;
  double* sums;
  HYPERTUNE_HD void operator()(std::size_t part) const {
    const double factor = 1 / divisor;
    double sum = sums[part];
    for (std::size_t i = part; i < count; i += parts) {  // neighbouring threads read neighbouring elements
      T value = from[i];
      if (to != nullptr)
        to[i] = value =
            Wide<T>::narrow(sizeof(T) == sizeof(double) ? Wide<T>::of(value) / divisor : Wide<T>::of(value) * factor);
      sum += Wide<T>::of(value) * Wide<T>::of(value);
    }
    sums[part] = sum;
  }
};
/// Sums of elements that are `parts` apart. Index: the parts.
struct FoldSums {
  const double* from;
  std::size_t count, parts;
  double* to;
  HYPERTUNE_HD void operator()(std::size_t part) const {
    double sum = 0;
    for (std::size_t i = part; i < count; i += parts) sum += from[i];
    to[part] = sum;
  }
};

}  // namespace hypertune::inline v0::kernels
