// Real tables, read and split into folds, and what learns from them: kernel ridge regression and boosted trees, written
// small. Plain C++ on Eigen; knows nothing of hypertune.
#pragma once

#include <Eigen/Dense>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tables {

struct Table {
  Eigen::MatrixXd x;  ///< a row per case
  Eigen::VectorXd y;
};

/// The last column is what is to be learnt, unless `target` names another one.
inline Table load(const std::string& file, int target = -1) {
  std::ifstream in(file);
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(in, line);) {
    std::vector<double> row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stod(cell));
    if (!rows.empty() && row.size() != rows.front().size())
      throw std::runtime_error(file + ":" + std::to_string(rows.size() + 1) + ": not as many cells as above");
    rows.push_back(std::move(row));
  }
  if (rows.empty()) throw std::runtime_error("cannot read the table " + file);
  const auto columns = static_cast<Eigen::Index>(rows.front().size());
  const Eigen::Index aim = target < 0 ? columns - 1 : target;
  Table table{Eigen::MatrixXd(static_cast<Eigen::Index>(rows.size()), columns - 1),
              Eigen::VectorXd(static_cast<Eigen::Index>(rows.size()))};
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(7);  // the files are sorted by class: folds are made of a fixed disorder
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (Eigen::Index c = 0, k = 0; c < columns; ++c) {
      const double value = rows[order[i]][static_cast<std::size_t>(c)];
      if (c == aim)
        table.y(static_cast<Eigen::Index>(i)) = value;
      else
        table.x(static_cast<Eigen::Index>(i), k++) = value;
    }
  return table;
}

/// Columns of mean 0 and variance 1.
inline Eigen::MatrixXd standardised(Eigen::MatrixXd x) {
  for (Eigen::Index c = 0; c < x.cols(); ++c) {
    x.col(c).array() -= x.col(c).mean();
    x.col(c) /= std::max(1e-12, std::sqrt(x.col(c).squaredNorm() / static_cast<double>(x.rows())));
  }
  return x;
}

/// Rows are in fold `i % folds`: those of `fold`, or all others.
inline std::vector<Eigen::Index> rows_of(Eigen::Index rows, int folds, int fold, bool inside) {
  std::vector<Eigen::Index> chosen;
  for (Eigen::Index i = 0; i < rows; ++i)
    if ((i % folds == fold) == inside) chosen.push_back(i);
  return chosen;
}

struct KernelRidge {
  enum class Kernel : std::uint8_t { gauss, laplace, polynomial } kernel = Kernel::gauss;
  double penalty = 1e-3;
  double length = 3;  ///< of gauss and laplace
  int degree = 2;     ///< of polynomial, and what is added before the power
  double offset = 1;

  double operator()(const Eigen::VectorXd& a, const Eigen::VectorXd& b) const {
    switch (kernel) {
      case Kernel::gauss: return std::exp(-(a - b).squaredNorm() / (2 * length * length));
      case Kernel::laplace: return std::exp(-(a - b).lpNorm<1>() / length);
      default: return std::pow(a.dot(b) / static_cast<double>(a.size()) + offset, degree);
    }
  }
  /// The root of the mean squared error over the folds.
  double error(const Table& table, int folds) const {
    const Eigen::Index n = table.x.rows();
    Eigen::MatrixXd k(n, n);
    const Eigen::MatrixXd columns = table.x.transpose();
    for (Eigen::Index i = 0; i < n; ++i)
      for (Eigen::Index j = 0; j <= i; ++j) k(i, j) = k(j, i) = (*this)(columns.col(i), columns.col(j));
    double squares = 0;
    for (int fold = 0; fold < folds; ++fold) {
      const auto in = rows_of(n, folds, fold, false), out = rows_of(n, folds, fold, true);
      Eigen::MatrixXd own = k(in, in);
      own.diagonal().array() += penalty;
      const Eigen::VectorXd y = table.y(in);
      const double mean = y.mean();
      const Eigen::VectorXd weights = own.ldlt().solve((y.array() - mean).matrix());
      squares += ((k(out, in) * weights).array() + mean - table.y(out).array()).square().sum();
    }
    const double result = std::sqrt(squares / static_cast<double>(n));
    return std::isfinite(result) ? std::min(result, 100.0) : 100.0;
  }
};

/// Gradient boosting of trees over binned columns, with the logistic loss and second-order splits as in XGBoost.
struct BoostedTrees {
  int trees = 50, depth = 3;
  double rate = 0.1, penalty = 1, least_weight = 1, rows = 1, columns = 1;  ///< the last two: shares used by each tree

  /// Mean log loss over the folds, of labels 0 and 1.
  double error(const Table& table, int folds) const {
    const auto bins = binned(table.x);
    double sum = 0;
    for (int fold = 0; fold < folds; ++fold) sum += fold_loss(table, bins, folds, fold);
    return sum / static_cast<double>(table.x.rows());
  }

 private:
  static constexpr int max_bins = 24;
  using Bins = std::vector<std::vector<std::uint8_t>>;  // by column, then row

  static Bins binned(const Eigen::MatrixXd& x) {
    Bins bins(static_cast<std::size_t>(x.cols()));
    for (Eigen::Index c = 0; c < x.cols(); ++c) {
      std::vector<double> sorted(x.col(c).data(), x.col(c).data() + x.rows()), edges;
      std::sort(sorted.begin(), sorted.end());
      for (int b = 1; b < max_bins; ++b)
        edges.push_back(sorted[sorted.size() * static_cast<std::size_t>(b) / max_bins]);
      edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
      for (Eigen::Index i = 0; i < x.rows(); ++i)
        bins[static_cast<std::size_t>(c)].push_back(
            static_cast<std::uint8_t>(std::upper_bound(edges.begin(), edges.end(), x(i, c)) - edges.begin()));
    }
    return bins;
  }

  double fold_loss(const Table& table, const Bins& bins, int folds, int fold) const {
    const auto n = static_cast<std::size_t>(table.x.rows());
    std::vector<double> score(n, 0.0), gradient(n), hessian(n);
    std::vector<std::size_t> training;
    for (std::size_t i = 0; i < n; ++i)
      if (static_cast<int>(i) % folds != fold) training.push_back(i);
    std::mt19937_64 random(static_cast<std::uint64_t>(fold) + 1);
    const auto chance = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
    for (int tree = 0; tree < trees; ++tree) {
      for (std::size_t i = 0; i < n; ++i) {
        const double p = 1 / (1 + std::exp(-score[i]));
        gradient[i] = p - table.y(static_cast<Eigen::Index>(i));
        hessian[i] = std::max(p * (1 - p), 1e-16);
      }
      std::vector<std::size_t> sample, everyone(n), some;
      for (const std::size_t i : training)
        if (chance() < rows) sample.push_back(i);
      for (std::size_t c = 0; c < bins.size(); ++c)
        if (chance() < columns) some.push_back(c);
      std::iota(everyone.begin(), everyone.end(), std::size_t{0});
      if (!sample.empty() && !some.empty()) grow(bins, some, gradient, hessian, sample, everyone, depth, score);
    }
    double loss = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (static_cast<int>(i) % folds != fold) continue;
      const double margin = table.y(static_cast<Eigen::Index>(i)) > 0.5 ? score[i] : -score[i];
      loss += margin > 0 ? std::log1p(std::exp(-margin)) : -margin + std::log1p(std::exp(margin));
    }
    return loss;
  }

  // Splits `sample` where it gains most, and `everyone` with it; a leaf adds to the scores of `everyone` in it.
  void grow(const Bins& bins, const std::vector<std::size_t>& some, const std::vector<double>& gradient,
            const std::vector<double>& hessian, const std::vector<std::size_t>& sample,
            const std::vector<std::size_t>& everyone, int left, std::vector<double>& score) const {
    double g = 0, h = 0;
    for (const std::size_t i : sample) {
      g += gradient[i];
      h += hessian[i];
    }
    double most = 1e-9;
    std::size_t column = 0;
    int edge = -1;
    for (const std::size_t c : left > 0 ? some : std::vector<std::size_t>{}) {
      double gs[max_bins] = {}, hs[max_bins] = {};
      for (const std::size_t i : sample) {
        gs[bins[c][i]] += gradient[i];
        hs[bins[c][i]] += hessian[i];
      }
      double gl = 0, hl = 0;
      for (int b = 0; b + 1 < max_bins; ++b) {
        gl += gs[b];
        hl += hs[b];
        if (hl < least_weight || h - hl < least_weight) continue;
        const double gain = gl * gl / (hl + penalty) + (g - gl) * (g - gl) / (h - hl + penalty) - g * g / (h + penalty);
        if (gain > most) {
          most = gain;
          column = c;
          edge = b;
        }
      }
    }
    if (edge < 0) {
      const double value = -rate * g / (h + penalty);
      for (const std::size_t i : everyone) score[i] += value;
      return;
    }
    const auto part = [&](const std::vector<std::size_t>& all, bool low) {
      std::vector<std::size_t> result;
      for (const std::size_t i : all)
        if ((bins[column][i] <= edge) == low) result.push_back(i);
      return result;
    };
    grow(bins, some, gradient, hessian, part(sample, true), part(everyone, true), left - 1, score);
    grow(bins, some, gradient, hessian, part(sample, false), part(everyone, false), left - 1, score);
  }
};

}  // namespace tables
