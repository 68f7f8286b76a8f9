// Parzen estimators: definitions.
#pragma once

#include <hypertune/detail/linear.hpp>
#include <hypertune/search/detail/parzen.hpp>
#include <hypertune/space/detail/model.hpp>
#include <hypertune/space/detail/normal.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hypertune::inline v0::detail {

/// A draw from a normal distribution truncated to [0, 1].
double truncated_normal(double mean, double sd, Rng& rng) {
  for (int i = 0; i < 4; ++i) {
    const double x = mean + sd * normal_quantile(std::clamp(uniform01(rng), 0x1p-60, 1 - 0x1p-53));
    if (x >= 0 && x <= 1) return x;
  }
  const double low = normal_cdf(-mean / sd);
  const double high = normal_cdf((1 - mean) / sd);
  const double p = std::clamp(std::lerp(low, high, uniform01(rng)), 0x1p-60, 1 - 0x1p-53);
  return std::clamp(mean + sd * normal_quantile(p), 0.0, 1.0);
}

/// Adds the exponents of n normal kernels.
HYPERTUNE_HOT inline void add_normal(double x, const double* centers, const double* scales, double* terms,
                                     std::size_t n) {
  for (std::size_t k = 0; k < n; ++k) {
    const double z = (x - centers[k]) * scales[k];
    terms[k] -= 0.5 * z * z;
  }
}

ParzenSpace::ParzenSpace(const SearchSpace& space) {
  // In units of a cell. With 0.6, 40 % of a kernel at the middle of a cell lie in the neighbouring cells. With much
  // less, all good trials soon agree on a value next to the right one, and no candidate differs only in it.
  constexpr double least_of_cell = 0.6;
  for (std::size_t d = 0; d < space.size(); ++d) {
    const DomainInfo& info = space.domain(d);
    if (info.kind == DomainKind::constant || info.kind == DomainKind::derived || info.options == 1) continue;
    ParzenDimension dimension;
    dimension.at = d;
    const auto& model_dimension = space.model().dimensions[d];
    if (info.kind == DomainKind::categorical) {
      dimension.kind = ParzenDimension::Kind::categorical;
      dimension.options = info.options;
    } else if (info.options > 0 && info.options <= max_cells) {
      dimension.kind = ParzenDimension::Kind::lattice;
      dimension.options = info.options;
      const bool listed = info.kind == DomainKind::ordinal;
      for (std::size_t i = 0; i < info.options; ++i) {
        const double x = listed ? static_cast<double>(i) : info.lower + static_cast<double>(i) * info.quantum;
        dimension.middles.push_back(model_dimension.probability(x));
      }
      dimension.edges.push_back(0);
      for (std::size_t i = 0; i + 1 < info.options; ++i) {
        const double x = listed ? static_cast<double>(i) : info.lower + static_cast<double>(i) * info.quantum;
        const auto [low, high] = model_dimension.cell(x);
        dimension.edges.push_back(high > low ? high : (dimension.middles[i] + dimension.middles[i + 1]) / 2);
      }
      dimension.edges.push_back(1);
      dimension.least = least_of_cell / static_cast<double>(info.options);
    } else if (info.options > 0) {
      dimension.least = least_of_cell / static_cast<double>(info.options);
    }
    conditional_ = conditional_ || space.conditional(d);
    dimensions_.push_back(std::move(dimension));
  }
}

void ParzenSpace::to_model(const SearchSpace& space, const Point& point, double* row) const {
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const auto& dimension = dimensions_[d];
    const double x = point[dimension.at];
    if (!is_active(x)) {
      row[d] = inactive;
    } else if (dimension.kind == ParzenDimension::Kind::categorical) {
      row[d] = std::clamp(std::round(x), 0.0, static_cast<double>(dimension.options - 1));
    } else {
      const double u = space.model().dimensions[dimension.at].probability(x);
      row[d] = dimension.kind == ParzenDimension::Kind::lattice ? static_cast<double>(cell(dimension, u)) : u;
    }
  }
}

void ParzenEstimator::fit(const ParzenSpace& space, std::span<const double* const> rows,
                          std::span<const double> weights, const ParzenOptions& options) {
  space_ = &space;
  kernels_ = rows.size();
  const std::size_t dims = space.size();
  double total = options.prior;
  for (const double w : weights) total += w;
  log_weights_.resize(kernels_);
  for (std::size_t k = 0; k < kernels_; ++k)  // most are equal
    log_weights_[k] = k > 0 && weights[k] == weights[k - 1] ? log_weights_[k - 1] : std::log(weights[k] / total);
  log_prior_ = std::log(options.prior / total);
  cumulative_.resize(kernels_);
  double sum = 0;
  for (std::size_t k = 0; k < kernels_; ++k) cumulative_[k] = sum += weights[k] / total;
  centers_.assign(kernels_ * dims, inactive);
  scales_.assign(kernels_ * dims, 0);
  constants_.assign(kernels_ * dims, 0);
  tables_.resize(dims);
  typical_.assign(dims, 0);
  same_.assign(dims, 0);
  other_.assign(dims, 0);
  for (std::size_t d = 0; d < dims; ++d) {
    for (std::size_t k = 0; k < kernels_; ++k) centers_[d * kernels_ + k] = rows[k][d];
    if (space[d].kind == ParzenDimension::Kind::categorical) {
      const double n = static_cast<double>(space[d].options);
      same_[d] = std::log((1 - options.flip) * n + options.flip);
      other_[d] = std::log(options.flip);
    } else {
      fit_number(d, options);
    }
  }
  if (!space.conditional()) {
    bases_ = log_weights_;
    for (std::size_t d = 0; d < dims; ++d)
      for (std::size_t k = 0; k < kernels_; ++k) bases_[k] += constants_[d * kernels_ + k];
  }
  flip_ = options.flip;
  terms_.resize(kernels_);
}

/// Sets terms_ of the kernels from `begin` to `end`: the logarithm of what each adds to the density.
void ParzenEstimator::weigh(const double* row, std::size_t begin, std::size_t end) const {
  const ParzenSpace& space = *space_;
  const auto& bases = space.conditional() ? log_weights_ : bases_;
  std::copy(bases.begin() + static_cast<std::ptrdiff_t>(begin), bases.begin() + static_cast<std::ptrdiff_t>(end),
            terms_.begin() + static_cast<std::ptrdiff_t>(begin));
  for (std::size_t d = 0; d < space.size(); ++d) {
    const double x = row[d];
    if (!is_active(x)) continue;
    const double* centers = centers_.data() + d * kernels_;
    const double* scales = scales_.data() + d * kernels_;
    if (space[d].kind == ParzenDimension::Kind::continuous) {
      if (!space.conditional()) {
        add_normal(x, centers + begin, scales + begin, terms_.data() + begin, end - begin);
        continue;
      }
      const double* constants = constants_.data() + d * kernels_;
      for (std::size_t k = begin; k < end; ++k) {
        if (!is_active(centers[k])) continue;
        const double z = (x - centers[k]) * scales[k];
        terms_[k] += constants[k] - 0.5 * z * z;
      }
    } else if (space[d].kind == ParzenDimension::Kind::lattice) {
      const double* table = tables_[d].data() + static_cast<std::size_t>(x) * kernels_;
      for (std::size_t k = begin; k < end; ++k) terms_[k] += table[k];
    } else {
      for (std::size_t k = begin; k < end; ++k)
        if (is_active(centers[k])) terms_[k] += centers[k] == x ? same_[d] : other_[d];
    }
  }
}

double ParzenEstimator::log_density(const double* row, double enough) const {
  constexpr double negligible = -36;
  if (log_prior_ >= enough) return std::numeric_limits<double>::infinity();
  if (std::isfinite(enough)) {  // adds up the kernels, the first ones first, until they are enough
    constexpr std::size_t at_once = 32;
    double sum = std::exp(log_prior_ - enough);
    for (std::size_t begin = 0; begin < kernels_; begin += at_once) {
      const std::size_t end = std::min(kernels_, begin + at_once);
      weigh(row, begin, end);
      for (std::size_t k = begin; k < end; ++k) {
        if (terms_[k] >= enough) return std::numeric_limits<double>::infinity();
        if (terms_[k] > enough + negligible) sum += std::exp(terms_[k] - enough);
      }
      if (sum >= 1) return std::numeric_limits<double>::infinity();
    }
  } else {
    weigh(row, 0, kernels_);
  }
  double most = log_prior_;
  for (std::size_t k = 0; k < kernels_; ++k) most = std::max(most, terms_[k]);
  double sum = std::exp(log_prior_ - most);
  for (std::size_t k = 0; k < kernels_; ++k)
    if (terms_[k] > most + negligible) sum += std::exp(terms_[k] - most);
  return most + std::log(sum);
}

void ParzenEstimator::sample(Rng& rng, double* row) const {
  const double u = uniform01(rng);
  const auto at = std::lower_bound(cumulative_.begin(), cumulative_.end(), u);
  const auto k = static_cast<std::size_t>(at - cumulative_.begin());
  for (std::size_t d = 0; d < space_->size(); ++d) row[d] = coordinate(d, k, 1, rng);
}

double ParzenEstimator::coordinate(std::size_t d, std::size_t k, double factor, Rng& rng) const {
  const auto& dimension = (*space_)[d];
  if (k < kernels_ && !is_active(centers_[d * kernels_ + k])) {
    const std::size_t start = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(kernels_));
    std::size_t other = kernels_;
    for (std::size_t i = 0; i < kernels_ && other == kernels_; ++i)
      if (is_active(centers_[d * kernels_ + (start + i) % kernels_])) other = (start + i) % kernels_;
    k = other;
  }
  if (k >= kernels_) {
    const double u = uniform01(rng);
    if (dimension.kind == ParzenDimension::Kind::continuous) return u;
    if (dimension.kind == ParzenDimension::Kind::lattice) return static_cast<double>(ParzenSpace::cell(dimension, u));
    return std::floor(u * static_cast<double>(dimension.options));
  }
  const double center = centers_[d * kernels_ + k];
  if (dimension.kind == ParzenDimension::Kind::categorical) {
    if (uniform01(rng) >= flip_ * factor) return center;
    return std::floor(uniform01(rng) * static_cast<double>(dimension.options));
  }
  const double middle =
      dimension.kind == ParzenDimension::Kind::lattice ? dimension.middles[static_cast<std::size_t>(center)] : center;
  const double u = truncated_normal(middle, std::max(factor / scales_[d * kernels_ + k], dimension.least), rng);
  return dimension.kind == ParzenDimension::Kind::continuous ? u : static_cast<double>(ParzenSpace::cell(dimension, u));
}

double ParzenEstimator::nearby(std::size_t d, double x, double factor, Rng& rng) const {
  const auto& dimension = (*space_)[d];
  if (dimension.kind == ParzenDimension::Kind::categorical) return x;
  constexpr double unknown = 0.1;  // the bandwidth if no kernel has the dimension
  const double sd = std::max((typical_[d] > 0 ? typical_[d] : unknown) * factor, dimension.least);
  if (dimension.kind == ParzenDimension::Kind::continuous) return truncated_normal(x, sd, rng);
  const double middle = dimension.middles[static_cast<std::size_t>(x)];
  return static_cast<double>(ParzenSpace::cell(dimension, truncated_normal(middle, sd, rng)));
}

void ParzenEstimator::fit_number(std::size_t d, const ParzenOptions& options) {
  const auto& dimension = (*space_)[d];
  const bool lattice = dimension.kind == ParzenDimension::Kind::lattice;
  double* centers = centers_.data() + d * kernels_;
  double* scales = scales_.data() + d * kernels_;
  double* constants = constants_.data() + d * kernels_;
  const auto middle = [&](std::size_t k) {
    return lattice ? dimension.middles[static_cast<std::size_t>(centers[k])] : centers[k];
  };
  order_.clear();
  for (std::size_t k = 0; k < kernels_; ++k)
    if (is_active(centers[k])) order_.emplace_back(middle(k), k);
  const double n = static_cast<double>(order_.size());
  if (order_.empty()) {
    if (lattice) tables_[d].assign(dimension.options * kernels_, 0);
    return;
  }
  const double least = std::max({options.least, dimension.least, options.widths.empty() ? 0.0 : options.widths[d]});
  if (options.neighbours) {
    std::sort(order_.begin(), order_.end());
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const double left = i == 0 ? order_[i].first : order_[i].first - order_[i - 1].first;
      const double right = i + 1 == order_.size() ? 1 - order_[i].first : order_[i + 1].first - order_[i].first;
      scales[order_[i].second] = 1 / std::clamp(options.factor * std::max(left, right), least, 1.0);
    }
  } else {
    double mean = 0, square = 0;
    for (const auto& [x, k] : order_) mean += x / n;
    for (const auto& [x, k] : order_) square += (x - mean) * (x - mean);
    const double sd = std::sqrt((square + 1.0 / 12) / (n + 1));  // includes one draw from the uniform distribution
    for (const auto& [x, k] : order_) scales[k] = 1 / std::clamp(options.factor * sd, least, 1.0);
  }
  typical_[d] = 1 / scales[order_[order_.size() / 2].second];
  if (lattice) tables_[d].assign(dimension.options * kernels_, 0);
  double known_scale = 0, known_mass = 0, known_constant = 0;  // those of the kernel before: many are equal
  for (const auto& [x, k] : order_) {
    const double scale = scales[k];
    const double low = -x * scale;
    const double high = (1 - x) * scale;
    const double mass = (high > 6 ? 1.0 : normal_cdf(high)) - (low < -6 ? 0.0 : normal_cdf(low));
    if (!lattice) {
      if (scale != known_scale || mass != known_mass) {
        known_scale = scale;
        known_mass = mass;
        known_constant = std::log(scale / mass) - 0.91893853320467274178;
      }
      constants[k] = known_constant;
      continue;
    }
    double before = normal_cdf(low);
    for (std::size_t i = 0; i < dimension.options; ++i) {
      const double after = normal_cdf((dimension.edges[i + 1] - x) * scale);
      const double width = dimension.edges[i + 1] - dimension.edges[i];
      tables_[d][i * kernels_ + k] = std::log(std::max((after - before) / mass, 1e-100) / width);
      before = after;
    }
  }
}

}  // namespace hypertune::inline v0::detail
