// The library's own linear algebra against Eigen, where that is installed.
#if __has_include(<Eigen/Dense>)
#include "support/test.hpp"

#include <hypertune/detail/linear.hpp>
#include <hypertune/random.hpp>

#include <Eigen/Dense>

using namespace hypertune;
using namespace hypertune::detail;

namespace {

double between(Rng& rng, double low, double high) { return low + (high - low) * uniform01(rng); }

Eigen::MatrixXd random_matrix(Rng& rng, std::size_t rows, std::size_t cols) {
  Eigen::MatrixXd m(rows, cols);
  for (auto& x : m.reshaped()) x = between(rng, -1, 1);
  return m;
}
/// Symmetric positive definite, with eigenvalues between 1 and `condition`.
Eigen::MatrixXd random_definite(Rng& rng, std::size_t n, double condition) {
  const Eigen::MatrixXd q = Eigen::HouseholderQR<Eigen::MatrixXd>(random_matrix(rng, n, n)).householderQ();
  Eigen::VectorXd values(n);
  for (auto& x : values) x = std::pow(condition, uniform01(rng));
  const Eigen::MatrixXd a = q * values.asDiagonal() * q.transpose();
  return (a + a.transpose()) / 2;
}
Matrix ours(const Eigen::MatrixXd& m) {
  Matrix result(static_cast<std::size_t>(m.rows()), static_cast<std::size_t>(m.cols()));
  for (std::size_t i = 0; i < result.rows(); ++i)
    for (std::size_t j = 0; j < result.cols(); ++j)
      result(i, j) = m(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
  return result;
}
Eigen::MatrixXd theirs(const Matrix& m) {
  Eigen::MatrixXd result(m.rows(), m.cols());
  for (std::size_t i = 0; i < m.rows(); ++i)
    for (std::size_t j = 0; j < m.cols(); ++j)
      result(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = m(i, j);
  return result;
}
Eigen::MatrixXd theirs(const Cholesky& c) {
  Eigen::MatrixXd result =
      Eigen::MatrixXd::Zero(static_cast<Eigen::Index>(c.size()), static_cast<Eigen::Index>(c.size()));
  for (std::size_t i = 0; i < c.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) result(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) = c(i, j);
  return result;
}
double distance(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return a.size() == 0 ? 0 : (a - b).cwiseAbs().maxCoeff();
}

}  // namespace

TEST_CASE("the kernels agree with plain sums at every length") {
  Rng rng(1);
  for (std::size_t n = 0; n < 40; ++n) {
    const Eigen::MatrixXd m = random_matrix(rng, 5, n);
    const Matrix rows = ours(m);
    // Eigen 3.4 adds to a null pointer for a row without columns.
    const Eigen::VectorXd expected = n == 0 ? Eigen::VectorXd::Zero(5) : Eigen::VectorXd(m * m.row(0).transpose());
    const double* const four[4] = {rows.row(1), rows.row(2), rows.row(3), rows.row(4)};
    double sums[4];
    dot4(rows.row(0), four, n, sums);
    for (std::size_t k = 0; k < 4; ++k) {
      REQUIRE(dot(rows.row(0), rows.row(k + 1), n) == Approx(expected(static_cast<Eigen::Index>(k) + 1)).margin(1e-14));
      REQUIRE(sums[k] == Approx(expected(static_cast<Eigen::Index>(k) + 1)).margin(1e-14));
    }
    Matrix changed = rows, turned = rows;
    axpy(0.7, changed.row(1), changed.row(2), n);
    rotate(0.6, 0.8, turned.row(1), turned.row(2), n);
    if (n == 0) continue;  // as above
    REQUIRE(distance(theirs(changed).row(2), m.row(2) + 0.7 * m.row(1)) < 1e-15);
    REQUIRE(distance(theirs(turned).row(1), 0.6 * m.row(1) - 0.8 * m.row(2)) < 1e-15);
    REQUIRE(distance(theirs(turned).row(2), 0.8 * m.row(1) + 0.6 * m.row(2)) < 1e-15);
  }
}

TEST_CASE("a Cholesky factor, its solves, determinant and inverse agree with Eigen's") {
  Rng rng(2);
  for (std::size_t n = 0; n < 45; ++n) {
    const Eigen::MatrixXd a = random_definite(rng, n, 1e4);
    const auto factor = Cholesky::of(ours(a));
    REQUIRE(factor);
    REQUIRE(factor->jitter() == 0);
    const Eigen::MatrixXd l = a.llt().matrixL();
    REQUIRE(distance(theirs(*factor), l) < 1e-10);
    if (n == 0) continue;
    REQUIRE(factor->log_determinant() == Approx(2 * l.diagonal().array().log().sum()).margin(1e-9));
    REQUIRE(distance(theirs(factor->inverse()), a.inverse()) < 1e-8);
    const Eigen::MatrixXd b = random_matrix(rng, 7, n);  // rows are right-hand sides
    Matrix lower = ours(b), upper = ours(b);
    factor->solve_lower(lower);
    factor->solve_upper(upper);
    REQUIRE(distance(l * theirs(lower).transpose(), b.transpose()) < 1e-9);
    REQUIRE(distance(l.transpose() * theirs(upper).transpose(), b.transpose()) < 1e-9);
    const Matrix rows = ours(b);
    std::vector<double> one(rows.row(0), rows.row(0) + n);
    factor->solve(one);
    REQUIRE(distance(a * Eigen::Map<Eigen::VectorXd>(one.data(), static_cast<Eigen::Index>(n)), b.row(0).transpose()) <
            1e-8);
  }
}

TEST_CASE("a factor to which rows are appended is the factor of the whole") {
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    const auto n = static_cast<std::size_t>(between(rng, 1, 40));
    const Eigen::MatrixXd a = random_definite(rng, n, 1e3);
    const auto start = static_cast<std::size_t>(between(rng, 0, static_cast<double>(n)));
    const auto head = static_cast<Eigen::Index>(start);
    auto factor = Cholesky::of(ours(a.topLeftCorner(head, head)));
    REQUIRE(factor);
    const Matrix all = ours(a);
    for (std::size_t i = start; i < n; ++i) REQUIRE(factor->append({all.row(i), i + 1}));
    const Eigen::MatrixXd l = a.llt().matrixL();
    REQUIRE(distance(theirs(*factor), l) < 1e-10);
  }
}

TEST_CASE("singular matrices are helped by jitter, and others refused") {
  Matrix twins(3, 3, 1.0);  // three times the same point
  const auto factor = Cholesky::of(twins);
  REQUIRE(factor);
  REQUIRE(factor->jitter() > 0);
  REQUIRE(factor->jitter() < 1e-8);
  const Eigen::MatrixXd l = theirs(*factor);
  REQUIRE(distance(l * l.transpose(), theirs(twins)) < 1e-8);
  Cholesky single = *Cholesky::of(Matrix(1, 1, 1.0));
  const std::vector<double> again = {1.0, 1.0};
  REQUIRE_FALSE(single.append(again));
  REQUIRE(single.size() == 1);
  REQUIRE(single(0, 0) == 1);
  Matrix indefinite = Matrix::identity(2);
  indefinite(1, 0) = indefinite(0, 1) = 2;
  REQUIRE_FALSE(Cholesky::of(indefinite));
  Matrix nan = Matrix::identity(3);
  nan(2, 1) = std::numeric_limits<double>::quiet_NaN();
  REQUIRE_FALSE(Cholesky::of(nan));
  nan(2, 1) = 0;
  nan(0, 0) = std::numeric_limits<double>::infinity();
  REQUIRE_FALSE(Cholesky::of(nan));
}

TEST_CASE("eigenvalues and eigenvectors agree with Eigen's") {
  Rng rng(4);
  const auto check = [](const Eigen::MatrixXd& a) {
    const auto result = symmetric_eigen(ours(a));
    REQUIRE(result);
    const auto n = a.rows();
    const Eigen::Map<const Eigen::VectorXd> values(result->values.data(), n);
    const double size = std::max(1e-300, a.size() == 0 ? 0.0 : a.cwiseAbs().maxCoeff());
    const double slack = 1e-13 * static_cast<double>(n + 1);
    const Eigen::MatrixXd v = theirs(result->vectors);
    REQUIRE(distance(v * v.transpose(), Eigen::MatrixXd::Identity(n, n)) < slack);
    REQUIRE(distance(v.transpose() * values.asDiagonal() * v / size, a / size) < slack);
    REQUIRE(std::is_sorted(result->values.begin(), result->values.end()));
    if (n > 0)
      REQUIRE(distance(values / size, Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(a).eigenvalues() / size) < slack);
  };
  for (std::size_t n = 0; n < 60; n += n < 12 ? 1 : 7) {
    const Eigen::MatrixXd m = random_matrix(rng, n, n);
    check(m + m.transpose());
    check(random_definite(rng, n, 1e14));  // as a CMA-ES's covariance late in its life
    check(m.leftCols(std::min<Eigen::Index>(2, m.cols())) *
          m.leftCols(std::min<Eigen::Index>(2, m.cols())).transpose());
    check(Eigen::MatrixXd::Identity(static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n)) * 3);
    check((m + m.transpose()) * 1e200);
    check((m + m.transpose()) * 1e-200);
  }
  check(Eigen::MatrixXd::Zero(4, 4));
  check(Eigen::Vector4d(4, 1, 3, 2).asDiagonal().toDenseMatrix());
  Matrix bad = Matrix::identity(2);
  bad(0, 1) = bad(1, 0) = std::numeric_limits<double>::quiet_NaN();
  REQUIRE_FALSE(symmetric_eigen(bad));
}

#endif
