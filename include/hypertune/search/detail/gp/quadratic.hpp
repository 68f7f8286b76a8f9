// Least squares, and quadratic models fitted by them.
#pragma once

#include <hypertune/detail/linear.hpp>

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The c that minimises |A c - y|, by modified Gram-Schmidt (Golub and Van Loan, "Matrix Computations", 5.3.5). y has
/// one value per row of A. A column that depends linearly on those before it gets coefficient zero.
inline std::vector<double> least_squares(const Matrix& a, std::vector<double> y) {
  const std::size_t rows = a.rows(), cols = a.cols();
  Matrix q(cols, rows), r(cols, cols);  // Q is transposed, so that its columns are contiguous
  std::vector<double> c(cols);
  for (std::size_t j = 0; j < cols; ++j) {
    double* column = q.row(j);
    for (std::size_t i = 0; i < rows; ++i) column[i] = a(i, j);
    const double before = std::sqrt(dot(column, column, rows));
    for (std::size_t k = 0; k < j; ++k) {
      r(k, j) = dot(q.row(k), column, rows);
      axpy(-r(k, j), q.row(k), column, rows);
    }
    r(j, j) = std::sqrt(dot(column, column, rows));
    if (!(r(j, j) > 1e-12 * before)) r(j, j) = 0;
    for (std::size_t i = 0; i < rows; ++i) column[i] = r(j, j) == 0 ? 0 : column[i] / r(j, j);
    c[j] = dot(column, y.data(), rows);
    axpy(-c[j], column, y.data(), rows);
  }
  for (std::size_t j = cols; j-- > 0;) {
    for (std::size_t k = j + 1; k < cols; ++k) c[j] -= r(j, k) * c[k];
    c[j] = r(j, j) == 0 ? 0 : c[j] / r(j, j);
  }
  return c;
}

/// A polynomial of degree two in `dimensions` variables.
class Quadratic {
 public:
  static std::size_t terms(std::size_t dimensions) { return 1 + dimensions + dimensions * (dimensions + 1) / 2; }

  /// The least-squares fit to `values` at the rows of `points`; errors are multiplied by the weights.
  Quadratic(const Matrix& points, const std::vector<double>& values, const std::vector<double>& weights)
      : dimensions_(points.cols()) {
    Matrix a(points.rows(), terms(dimensions_));
    std::vector<double> y(points.rows());
    for (std::size_t i = 0; i < points.rows(); ++i) {
      const double *x = points.row(i), weight = weights[i];
      double* entry = a.row(i);
      *entry++ = weight;
      for (std::size_t k = 0; k < dimensions_; ++k) *entry++ = weight * x[k];
      for (std::size_t k = 0; k < dimensions_; ++k)
        for (std::size_t l = 0; l <= k; ++l) *entry++ = weight * x[k] * x[l];
      y[i] = weight * values[i];
    }
    coefficients_ = least_squares(a, std::move(y));
  }

  double operator()(const std::vector<double>& x, std::vector<double>& gradient) const {
    const double* c = coefficients_.data();
    double value = *c++;
    for (std::size_t k = 0; k < dimensions_; ++k) {
      gradient[k] = *c;
      value += *c++ * x[k];
    }
    for (std::size_t k = 0; k < dimensions_; ++k)
      for (std::size_t l = 0; l <= k; ++l, ++c) {
        value += *c * x[k] * x[l];
        gradient[k] += *c * x[l];
        gradient[l] += *c * x[k];
      }
    return value;
  }

 private:
  std::size_t dimensions_;
  std::vector<double> coefficients_;  // 1, x_k, then x_k x_l for l <= k
};

}  // namespace hypertune::inline v0::detail::gp
