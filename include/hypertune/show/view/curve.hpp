// Curve: a metric of a trial over its steps, in bounded memory.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::view {

struct CurvePoint {
  std::int32_t step = 0;  ///< from 0
  float time = 0;         ///< seconds since the trial's first start
  double value = 0;
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

/// A sample of at most `limit` reports, in order: the first one, the last one, the least and the greatest finite ones,
/// and between them every n-th one, with an n that doubles whenever there is no more room.
class Curve {
 public:
  explicit Curve(std::uint32_t metric) : metric_(metric) {}

  /// `limit`: 8 or more; it may be lower than at the call before.
  void add(const CurvePoint& point, std::size_t limit) {
    const bool finite = std::isfinite(point.value);
    const bool least = finite && (least_ == none || point.value < points_[least_].value);
    const bool greatest = finite && (greatest_ == none || point.value > points_[greatest_].value);
    if (!points_.empty() && passing_) {
      const auto last = static_cast<std::uint16_t>(points_.size() - 1);
      // Only there as it was the last one; so is a best one that no longer is.
      if ((least_ != last || least) && (greatest_ != last || greatest)) points_.pop_back();
    }
    passing_ = seen_ % stride_ != 0;
    ++seen_;
    if (points_.size() == points_.capacity()) points_.reserve(points_.size() < 4 ? 4 : points_.size() * 3 / 2 + 1);
    points_.push_back(point);
    const auto at = static_cast<std::uint16_t>(points_.size() - 1);
    if (least) least_ = at;
    if (greatest) greatest_ = at;
    while (points_.size() > limit) thin();
  }

  std::uint32_t metric() const { return metric_; }
  std::uint32_t seen() const { return seen_; }  ///< reports, of which this is a sample
  const std::vector<CurvePoint>& points() const { return points_; }
  const CurvePoint* least() const { return least_ == none ? nullptr : &points_[least_]; }
  const CurvePoint* greatest() const { return greatest_ == none ? nullptr : &points_[greatest_]; }

 private:
  static constexpr std::uint16_t none = std::numeric_limits<std::uint16_t>::max();

  void thin() {
    std::size_t out = 0;
    auto least = none, greatest = none;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (i % 2 != 0 && i + 1 != points_.size() && i != least_ && i != greatest_) continue;
      if (i == least_) least = static_cast<std::uint16_t>(out);
      if (i == greatest_) greatest = static_cast<std::uint16_t>(out);
      points_[out++] = points_[i];
    }
    points_.resize(out);
    least_ = least;
    greatest_ = greatest;
    stride_ *= 2;
    passing_ = true;
  }

  std::uint32_t metric_;
  std::uint32_t seen_ = 0;
  std::uint32_t stride_ = 1;
  std::uint16_t least_ = none, greatest_ = none;
  bool passing_ = false;  // the last one is not an n-th one
  std::vector<CurvePoint> points_;
};

}  // namespace hypertune::inline v0::view
