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

/// A sample of at most `limit` reports, in order: the first one, the last one, the smallest and the largest finite
/// ones, and every n-th one between them, where n doubles whenever the sample is full.
class Curve {
 public:
  explicit Curve(std::uint32_t metric) : metric_(metric) {}

  /// `limit`: at least 8; it may be lower than in the previous call.
  void add(const CurvePoint& point, std::size_t limit) {
    const bool finite = std::isfinite(point.value);
    const bool least = finite && (least_ == none || point.value < points_[least_].value);
    const bool greatest = finite && (greatest_ == none || point.value > points_[greatest_].value);
    if (!points_.empty() && passing_) {  // it was kept only as the last one
      const auto last = static_cast<std::uint16_t>(points_.size() - 1);
      if (least_ != last && greatest_ != last) points_.pop_back();
    }
    // A former smallest or largest one is removed as well, if it was kept only for that.
    if (least && least_passing_ && least_ != greatest_) remove(least_);
    if (greatest && greatest_passing_ && greatest_ != least_) remove(greatest_);
    passing_ = seen_ % stride_ != 0;
    ++seen_;
    if (points_.size() == points_.capacity()) points_.reserve(points_.size() < 4 ? 4 : points_.size() * 3 / 2 + 1);
    points_.push_back(point);
    const auto at = static_cast<std::uint16_t>(points_.size() - 1);
    if (least) {
      least_ = at;
      least_passing_ = passing_;
    }
    if (greatest) {
      greatest_ = at;
      greatest_passing_ = passing_;
    }
    while (points_.size() > limit) thin();
  }

  std::uint32_t metric() const { return metric_; }
  std::uint32_t seen() const { return seen_; }  ///< number of reports, of which this is a sample
  const std::vector<CurvePoint>& points() const { return points_; }
  const CurvePoint* least() const { return least_ == none ? nullptr : &points_[least_]; }
  const CurvePoint* greatest() const { return greatest_ == none ? nullptr : &points_[greatest_]; }

 private:
  static constexpr std::uint16_t none = std::numeric_limits<std::uint16_t>::max();

  void remove(std::uint16_t at) {
    points_.erase(points_.begin() + at);
    for (auto* other : {&least_, &greatest_})
      if (*other != none && *other > at) --*other;
  }

  // Removes every second of the n-th points. Points kept for another reason stay and are not counted; otherwise the
  // distances around them would grow.
  void thin() {
    std::size_t out = 0, nth = 0;
    auto least = none, greatest = none;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const bool is_least = i == least_, is_greatest = i == greatest_, is_last = i + 1 == points_.size();
      const bool passing = (is_least && least_passing_) || (is_greatest && greatest_passing_) || (is_last && passing_);
      if (!passing && nth++ % 2 != 0) {
        if (!is_least && !is_greatest && !is_last) continue;
        least_passing_ |= is_least;
        greatest_passing_ |= is_greatest;
        passing_ |= is_last;
      }
      if (is_least) least = static_cast<std::uint16_t>(out);
      if (is_greatest) greatest = static_cast<std::uint16_t>(out);
      points_[out++] = points_[i];
    }
    points_.resize(out);
    least_ = least;
    greatest_ = greatest;
    stride_ *= 2;
  }

  std::uint32_t metric_;
  std::uint32_t seen_ = 0;
  std::uint32_t stride_ = 1;
  std::uint16_t least_ = none, greatest_ = none;
  bool passing_ = false;  // the last point is not an n-th one
  bool least_passing_ = false, greatest_passing_ = false;
  std::vector<CurvePoint> points_;
};

}  // namespace hypertune::inline v0::view
