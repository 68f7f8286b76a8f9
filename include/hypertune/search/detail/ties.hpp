// Ties: several trials with exactly the same loss, so that another trial among them would give that loss again.
#pragma once

#include <hypertune/search/searcher.hpp>
#include <hypertune/space/search_space.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

namespace hypertune::inline v0::detail {

/// Three or more trials with equal discrete parameters and bitwise equal losses span a box of the other parameters. A
/// variation within it does not matter (a parameter without effect in a branch, a plateau). For one objective, and
/// completed trials only. Discrete parameters are never part of a box: a function that is symmetric in them has ties
/// around its minimum.
class Ties {
 public:
  Ties() = default;
  explicit Ties(const SearchSpace& space) {
    for (std::size_t d = 0; d < space.size(); ++d) {
      const DomainInfo& info = space.domain(d);
      (info.kind == DomainKind::real && info.options == 0 ? free_ : fixed_).push_back(d);
    }
  }

  void observe(const Observation& o) {
    if (o.kind != Observation::Kind::ended || o.state != TrialState::completed || o.losses.size() != 1 ||
        !std::isfinite(o.loss()) || free_.empty())
      return;
    if (std::any_of(o.constraints.begin(), o.constraints.end(), [](double c) { return c > 0; })) return;
    Box& box = boxes_[key(o.point)][o.loss()];
    if (box.trials == 0) box.lower = box.upper = free(o.point);
    const auto at = free(o.point);
    for (std::size_t i = 0; i < at.size(); ++i) {
      box.lower[i] = std::min(box.lower[i], at[i]);
      box.upper[i] = std::max(box.upper[i], at[i]);
    }
    if (++box.trials == min_trials) any_ = true;
  }
  bool any() const { return any_; }
  /// Whether `point` lies in such a box.
  bool contains(const Point& point) const {
    if (!any_) return false;
    const auto found = boxes_.find(key(point));
    if (found == boxes_.end()) return false;
    const auto at = free(point);
    return std::any_of(found->second.begin(), found->second.end(), [&](const auto& entry) {
      const Box& box = entry.second;
      if (box.trials < min_trials) return false;
      for (std::size_t i = 0; i < at.size(); ++i)
        if (at[i] < box.lower[i] || at[i] > box.upper[i]) return false;
      return true;
    });
  }

 private:
  static constexpr std::size_t min_trials = 3;
  struct Box {
    std::vector<double> lower, upper;
    std::size_t trials = 0;
  };
  // An inactive dimension has a value of its own, below all others.
  std::vector<double> key(const Point& point) const { return of(point, fixed_); }
  std::vector<double> free(const Point& point) const { return of(point, free_); }
  static std::vector<double> of(const Point& point, const std::vector<std::size_t>& dimensions) {
    std::vector<double> result;
    result.reserve(dimensions.size());
    for (const std::size_t d : dimensions) result.push_back(is_active(point[d]) ? point[d] : -HUGE_VAL);
    return result;
  }

  std::vector<std::size_t> free_, fixed_;  // dimensions
  std::map<std::vector<double>, std::map<double, Box>> boxes_;
  bool any_ = false;
};

}  // namespace hypertune::inline v0::detail
