// Small dense linear algebra for models: Cholesky factors that grow, triangular solves, symmetric eigenproblems.
//
// Why not Eigen: its headers add 1.5 to 3 s to the compile time of every file that includes hypertune, and without
// optimisation its expression templates are 30 times slower, so that a user's debug build would wait for its searcher.
// Here everything is loops over raw pointers in a few kernels. Reductions use the vector types of g++ and clang,
// because neither may reorder a plain sum of doubles. With g++ the hot functions are optimised in debug builds, too
// (HYPERTUNE_HOT: measured 2 to 4 times faster at -O0).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#if defined(__GNUC__) && !defined(__clang__)
#define HYPERTUNE_HOT __attribute__((optimize("O3")))
#else
#define HYPERTUNE_HOT
#endif

namespace hypertune::inline v0::detail {

/// A dense matrix by value, row-major and contiguous.
class Matrix {
 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols, double fill = 0) : rows_(rows), cols_(cols), entries_(rows * cols, fill) {}
  static Matrix identity(std::size_t n) {
    Matrix m(n, n);
    for (std::size_t i = 0; i < n; ++i) m(i, i) = 1;
    return m;
  }

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  double operator()(std::size_t i, std::size_t j) const { return entries_[i * cols_ + j]; }
  double& operator()(std::size_t i, std::size_t j) { return entries_[i * cols_ + j]; }
  const double* row(std::size_t i) const { return entries_.data() + i * cols_; }
  double* row(std::size_t i) { return entries_.data() + i * cols_; }
  std::vector<double>& entries() { return entries_; }
  const std::vector<double>& entries() const { return entries_; }

 private:
  std::size_t rows_ = 0, cols_ = 0;
  std::vector<double> entries_;
};

using Pair [[gnu::vector_size(16)]] = double;
typedef double LoosePair __attribute__((vector_size(16), aligned(8), may_alias));  // at any address; auto drops this

/// The sum of a[i] * b[i].
HYPERTUNE_HOT inline double dot(const double* a, const double* b, std::size_t n) {
  Pair s0{}, s1{}, s2{}, s3{};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const LoosePair* p = reinterpret_cast<const LoosePair*>(a + i);
    const LoosePair* q = reinterpret_cast<const LoosePair*>(b + i);
    s0 += p[0] * q[0];
    s1 += p[1] * q[1];
    s2 += p[2] * q[2];
    s3 += p[3] * q[3];
  }
  s0 = (s0 + s1) + (s2 + s3);
  double sum = s0[0] + s0[1];
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// The dot products of x with four rows at once, so that x is loaded once. Each is summed in the same order whatever
/// the other three rows are.
HYPERTUNE_HOT inline void dot4(const double* x, const double* const* rows, std::size_t n, double* sums) {
  const double *a = rows[0], *b = rows[1], *c = rows[2], *d = rows[3];
  Pair a0{}, b0{}, c0{}, d0{}, a1{}, b1{}, c1{}, d1{};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const LoosePair* p = reinterpret_cast<const LoosePair*>(x + i);
    const Pair p0 = p[0], p1 = p[1];
    const LoosePair* q = reinterpret_cast<const LoosePair*>(a + i);
    a0 += p0 * q[0];
    a1 += p1 * q[1];
    q = reinterpret_cast<const LoosePair*>(b + i);
    b0 += p0 * q[0];
    b1 += p1 * q[1];
    q = reinterpret_cast<const LoosePair*>(c + i);
    c0 += p0 * q[0];
    c1 += p1 * q[1];
    q = reinterpret_cast<const LoosePair*>(d + i);
    d0 += p0 * q[0];
    d1 += p1 * q[1];
  }
  a0 += a1;
  b0 += b1;
  c0 += c1;
  d0 += d1;
  double sa = a0[0] + a0[1], sb = b0[0] + b0[1], sc = c0[0] + c0[1], sd = d0[0] + d0[1];
  for (; i < n; ++i) {
    sa += x[i] * a[i];
    sb += x[i] * b[i];
    sc += x[i] * c[i];
    sd += x[i] * d[i];
  }
  sums[0] = sa;
  sums[1] = sb;
  sums[2] = sc;
  sums[3] = sd;
}

/// y += factor * x; x and y must not overlap.
HYPERTUNE_HOT inline void axpy(double factor, const double* __restrict x, double* __restrict y, std::size_t n) {
  const Pair f = {factor, factor};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const LoosePair* p = reinterpret_cast<const LoosePair*>(x + i);
    LoosePair* q = reinterpret_cast<LoosePair*>(y + i);
    q[0] += f * p[0];
    q[1] += f * p[1];
  }
  for (; i < n; ++i) y[i] += factor * x[i];
}

/// (x, y) := (c x - s y, s x + c y); x and y must not overlap.
HYPERTUNE_HOT inline void rotate(double c, double s, double* __restrict x, double* __restrict y, std::size_t n) {
  const Pair cc = {c, c}, ss = {s, s};
  std::size_t i = 0;
  for (; i + 2 <= n; i += 2) {
    LoosePair* p = reinterpret_cast<LoosePair*>(x + i);
    LoosePair* q = reinterpret_cast<LoosePair*>(y + i);
    const Pair a = *p, b = *q;
    *p = cc * a - ss * b;
    *q = ss * a + cc * b;
  }
  for (; i < n; ++i) {
    const double a = x[i], b = y[i];
    x[i] = c * a - s * b;
    y[i] = s * a + c * b;
  }
}

/// A lower Cholesky factor, L L' = A, of a symmetric positive definite matrix. Rows can be appended in O(n^2). Its rows
/// are stored one after the other.
class Cholesky {
 public:
  Cholesky() = default;

  /// Factors `a`, of which only the lower triangle is read. If it is not positive definite (because of rounding or
  /// duplicate points), increasing amounts are added to the diagonal: from 1e-10 of its mean to `most` of it. nullopt
  /// if even that is not enough, or an entry is not finite.
  static std::optional<Cholesky> of(const Matrix& a, double most = 1e-3) {
    const std::size_t n = a.rows();
    double mean = 0;
    for (std::size_t i = 0; i < n; ++i) mean += a(i, i) / static_cast<double>(n);
    if (!std::isfinite(mean)) return std::nullopt;
    Cholesky result;
    for (double jitter = 0; jitter <= most * 1.001; jitter = jitter == 0 ? 1e-10 : jitter * 10)
      if (result.factor(a, jitter * mean)) return result;
    return std::nullopt;
  }

  std::size_t size() const { return n_; }
  const double* row(std::size_t i) const { return packed_.data() + i * (i + 1) / 2; }  ///< L(i, 0) … L(i, i)
  double operator()(std::size_t i, std::size_t j) const { return j > i ? 0 : row(i)[j]; }
  double jitter() const { return jitter_; }  ///< the amount that was added to the diagonal of A

  /// Extends A by one row and column: `a` holds A(n, 0) … A(n, n-1), A(n, n). The same jitter is added. Returns false,
  /// and changes nothing, if A would no longer be positive definite.
  bool append(std::span<const double> a) {
    const std::size_t at = packed_.size();
    packed_.insert(packed_.end(), a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n_ + 1));
    double* last = packed_.data() + at;
    forward(packed_.data(), n_, last);
    const double square = last[n_] + jitter_ - dot(last, last, n_);
    // Below this, rounding alone decides its sign.
    if (!(square > 4 * std::numeric_limits<double>::epsilon() * std::fabs(last[n_]))) {
      packed_.resize(at);
      return false;
    }
    last[n_] = std::sqrt(square);
    ++n_;
    return true;
  }

  double log_determinant() const {  ///< of A
    double sum = 0;
    for (std::size_t i = 0; i < n_; ++i) sum += std::log(row(i)[i]);
    return 2 * sum;
  }

  /// b := L^-1 b
  void solve_lower(std::span<double> b) const { forward(packed_.data(), n_, b.data()); }
  /// b := L'^-1 b
  void solve_upper(std::span<double> b) const { backward(packed_.data(), n_, b.data()); }
  /// b := A^-1 b
  void solve(std::span<double> b) const {
    solve_lower(b);
    solve_upper(b);
  }
  /// Each row of b, of size() columns, is a right-hand side.
  void solve_lower(Matrix& b) const {
    std::size_t i = 0;
    for (; i + 4 <= b.rows(); i += 4) {
      double* const rows[4] = {b.row(i), b.row(i + 1), b.row(i + 2), b.row(i + 3)};
      forward4(packed_.data(), 0, n_, rows);
    }
    for (; i < b.rows(); ++i) forward(packed_.data(), n_, b.row(i));
  }
  void solve_upper(Matrix& b) const {
    for (std::size_t i = 0; i < b.rows(); ++i) backward(packed_.data(), n_, b.row(i));
  }

  /// A^-1, both triangles.
  Matrix inverse() const {
    // Row a of t is column a of L^-1, zero before a; then A^-1(a, b) = sum over i >= max(a, b) of t(a, i) t(b, i).
    Matrix t(n_ + 3, n_);  // with spare rows for the last block of four
    for (std::size_t a = 0; a < n_; a += 4) {
      double* const rows[4] = {t.row(a), t.row(a + 1), t.row(a + 2), t.row(a + 3)};
      for (std::size_t k = 0; k < 4 && a + k < n_; ++k) rows[k][a + k] = 1;
      forward4(packed_.data(), a, n_, rows);
    }
    Matrix inverse(n_, n_);
    double sums[4];
    for (std::size_t a = 0; a < n_; ++a) {
      std::size_t b = 0;
      for (; b + 4 <= a + 1; b += 4) {
        const double* const rows[4] = {t.row(b) + a, t.row(b + 1) + a, t.row(b + 2) + a, t.row(b + 3) + a};
        dot4(t.row(a) + a, rows, n_ - a, sums);
        for (std::size_t k = 0; k < 4; ++k) inverse(a, b + k) = inverse(b + k, a) = sums[k];
      }
      for (; b <= a; ++b) inverse(a, b) = inverse(b, a) = dot(t.row(a) + a, t.row(b) + a, n_ - a);
    }
    return inverse;
  }

 private:
  bool factor(const Matrix& a, double jitter) {
    n_ = a.rows();
    jitter_ = jitter;
    packed_.resize(n_ * (n_ + 1) / 2);
    double* out = packed_.data();
    for (std::size_t i = 0; i < n_; ++i) {
      std::memcpy(out, a.row(i), (i + 1) * sizeof(double));
      out[i] += jitter;
      out += i + 1;
    }
    return factor_packed(packed_.data(), n_);
  }

  HYPERTUNE_HOT static bool factor_packed(double* packed, std::size_t n) {
    for (std::size_t i = 0; i < n; i += 4) {  // four rows at a time
      const std::size_t count = n - i < 4 ? n - i : 4;
      double* rows[4];
      for (std::size_t k = 0; k < count; ++k) rows[k] = packed + (i + k) * (i + k + 1) / 2;
      std::size_t begin = 0;
      if (count == 4) {
        double sums[4];
        for (; begin < i; ++begin) {
          const double* other = packed + begin * (begin + 1) / 2;
          dot4(other, rows, begin, sums);
          const double scale = 1 / other[begin];
          for (std::size_t k = 0; k < 4; ++k) rows[k][begin] = (rows[k][begin] - sums[k]) * scale;
        }
      }
      for (std::size_t k = 0; k < count; ++k) {
        double* row = rows[k];
        const std::size_t last = i + k;
        for (std::size_t j = begin; j < last; ++j) {
          const double* other = packed + j * (j + 1) / 2;
          row[j] = (row[j] - dot(row, other, j)) / other[j];
        }
        const double square = row[last] - dot(row, row, last);
        if (!(square > 4 * std::numeric_limits<double>::epsilon() * std::fabs(row[last])) || !(square < 1e300))
          return false;
        row[last] = std::sqrt(square);
      }
    }
    return true;
  }

  HYPERTUNE_HOT static void forward(const double* packed, std::size_t n, double* b) {
    const double* row = packed;
    for (std::size_t i = 0; i < n; ++i) {
      b[i] = (b[i] - dot(row, b, i)) / row[i];
      row += i + 1;
    }
  }
  // Four right-hand sides, all of which are zero before `from`.
  HYPERTUNE_HOT static void forward4(const double* packed, std::size_t from, std::size_t n, double* const* b) {
    double sums[4];
    const double* const starts[4] = {b[0] + from, b[1] + from, b[2] + from, b[3] + from};
    for (std::size_t i = from; i < n; ++i) {
      const double* row = packed + i * (i + 1) / 2;
      dot4(row + from, starts, i - from, sums);
      for (std::size_t k = 0; k < 4; ++k) b[k][i] = (b[k][i] - sums[k]) / row[i];
    }
  }
  HYPERTUNE_HOT static void backward(const double* packed, std::size_t n, double* b) {
    for (std::size_t i = n; i-- > 0;) {
      const double* row = packed + i * (i + 1) / 2;
      b[i] /= row[i];
      axpy(-b[i], row, b, i);
    }
  }

  std::size_t n_ = 0;
  double jitter_ = 0;
  std::vector<double> packed_;
};

/// A = sum over k of values[k] v v', where v is row k of `vectors`.
struct SymmetricEigen {
  std::vector<double> values;  ///< ascending
  Matrix vectors;              ///< orthonormal rows
};

namespace linear {

// T = W A W' is tridiagonal, W a product of Householder reflections. `diagonal` and `beside` become those of T, and `a`
// becomes W.
inline void tridiagonalise(Matrix& a, std::vector<double>& diagonal, std::vector<double>& beside) {
  const std::size_t n = a.rows();
  diagonal.assign(n, 0);
  beside.assign(n, 0);
  std::vector<double> p(n), factors(n, 0);
  for (std::size_t k = 0; k + 1 < n; ++k) {
    diagonal[k] = a(k, k);
    const std::size_t m = n - k - 1;
    double* v = a.row(k) + k + 1;  // the matrix stays symmetric, so a column below the diagonal is equal to a row
    const double rest = dot(v + 1, v + 1, m - 1);
    if (rest == 0) {
      beside[k] = v[0];
      continue;
    }
    const double norm = std::sqrt(v[0] * v[0] + rest);
    const double alpha = v[0] > 0 ? -norm : norm;
    beside[k] = alpha;
    v[0] -= alpha;
    const double factor = 2 / (v[0] * v[0] + rest);
    factors[k] = factor;
    for (std::size_t i = 0; i < m; ++i) p[i] = factor * dot(a.row(k + 1 + i) + k + 1, v, m);
    axpy(-factor / 2 * dot(p.data(), v, m), v, p.data(), m);
    for (std::size_t i = 0; i < m; ++i) {
      double* row = a.row(k + 1 + i) + k + 1;
      axpy(-v[i], p.data(), row, m);
      axpy(-p[i], v, row, m);
    }
  }
  if (n > 0) diagonal[n - 1] = a(n - 1, n - 1);
  Matrix w = Matrix::identity(n);
  for (std::size_t k = n; k-- > 0;) {
    if (factors[k] == 0) continue;
    const std::size_t m = n - k - 1;
    const double* v = a.row(k) + k + 1;
    for (std::size_t i = k + 1; i < n; ++i) {
      double* row = w.row(i) + k + 1;
      axpy(-factors[k] * dot(row, v, m), v, row, m);
    }
  }
  a = std::move(w);
}

// The eigenvalues of a tridiagonal matrix by implicit QL steps; the rotations are applied to the rows of w. Returns
// false if it does not converge, which requires an entry that is not finite.
inline bool implicit_ql(std::vector<double>& d, std::vector<double>& e, Matrix& w) {
  const std::size_t n = d.size();
  for (std::size_t l = 0; l < n; ++l) {
    for (int step = 0;; ++step) {
      std::size_t m = l;
      while (m + 1 < n && !(std::fabs(e[m]) <=
                            std::numeric_limits<double>::epsilon() * (std::fabs(d[m]) + std::fabs(d[m + 1])) + 1e-300))
        ++m;
      if (m == l) break;
      if (step == 60) return false;
      double g = (d[l + 1] - d[l]) / (2 * e[l]);
      const double r0 = std::hypot(g, 1.0);
      g = d[m] - d[l] + e[l] / (g + (g >= 0 ? r0 : -r0));
      double s = 1, c = 1, p = 0;
      bool split = false;
      for (std::size_t i = m; i-- > l;) {
        const double f = s * e[i], b = c * e[i];
        const double r = std::hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= p;
          e[m] = 0;
          split = true;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        const double t = (d[i] - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        rotate(c, s, w.row(i), w.row(i + 1), n);
      }
      if (split) continue;
      d[l] -= p;
      e[l] = g;
      e[m] = 0;
    }
  }
  return true;
}

}  // namespace linear

/// The eigenvalues and eigenvectors of a symmetric matrix, by Householder tridiagonalisation and implicit QL (Golub and
/// Van Loan, "Matrix Computations", chapter 8). nullopt if an entry is not finite.
inline std::optional<SymmetricEigen> symmetric_eigen(Matrix a) {
  const std::size_t n = a.rows();
  double largest = 0;
  for (const double x : a.entries()) {
    if (!std::isfinite(x)) return std::nullopt;
    largest = std::max(largest, std::fabs(x));
  }
  if (largest == 0) return SymmetricEigen{std::vector<double>(n, 0.0), Matrix::identity(n)};
  for (double& x : a.entries()) x /= largest;  // so that no square over- or underflows
  std::vector<double> values, beside;
  linear::tridiagonalise(a, values, beside);
  if (!linear::implicit_ql(values, beside, a)) return std::nullopt;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return values[i] < values[j] || (values[i] == values[j] && i < j); });
  SymmetricEigen result{std::vector<double>(n), Matrix(n, n)};
  for (std::size_t k = 0; k < n; ++k) {
    result.values[k] = values[order[k]] * largest;
    std::copy_n(a.row(order[k]), n, result.vectors.row(k));
  }
  return result;
}

}  // namespace hypertune::inline v0::detail
