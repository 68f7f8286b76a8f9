// The average number of things over the parts of a time span.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0::view {

/// How many things there were on average in each of `parts` equal parts of a time span. The numbers at single moments
/// would make a gap of a millisecond between two trials look as wide as a part.
class Average {
 public:
  Average(double from, double to, std::size_t parts)
      : from_(from), to_(to), width_((to - from) / static_cast<double>(parts)), whole_(parts + 1), partly_(parts + 1) {}

  void add(double start, double stop) {
    start = std::max(start, from_);
    stop = std::min(stop, to_);
    if (!(stop > start) || !(width_ > 0)) return;
    const std::size_t first = part(start), last = part(stop);
    if (first == last) {
      partly_[first] += stop - start;
      return;
    }
    partly_[first] += begin(first + 1) - start;
    partly_[last] += stop - begin(last);
    ++whole_[first + 1];
    --whole_[last];
  }
  double begin(std::size_t i) const { return from_ + width_ * static_cast<double>(i); }
  /// One number for each part, and the last one again for the end of the span.
  std::vector<double> take() const {
    std::vector<double> out;
    std::int64_t whole = 0;
    for (std::size_t i = 0; i + 1 < whole_.size(); ++i) {
      whole += whole_[i];
      const double partly = width_ > 0 ? partly_[i] / width_ : 0;
      out.push_back(std::round((static_cast<double>(whole) + partly) * 1000) / 1000);
    }
    out.push_back(out.empty() ? 0 : out.back());
    return out;
  }

 private:
  std::size_t part(double time) const {
    return std::min(static_cast<std::size_t>((time - from_) / width_), partly_.size() - 1);
  }

  double from_, to_, width_;
  std::vector<std::int64_t> whole_;  // how many more cover this whole part than the previous one
  std::vector<double> partly_;       // seconds covered by those that begin or end in the part
};

}  // namespace hypertune::inline v0::view
