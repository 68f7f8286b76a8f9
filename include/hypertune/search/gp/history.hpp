// What a Gaussian process searcher has been told, and the data it makes of it.
#pragma once

#include <hypertune/search/gp/encoding.hpp>
#include <hypertune/search/gp/model.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace hypertune::detail::gp {

struct Result {
  int steps = 0;
  std::vector<double> losses;  // finite, or worst_loss
};

struct Record {
  Point point;
  std::vector<double> features;
  std::vector<Result> reports{};      // thinned out: steps grow by a quarter at least
  Result last{};                      // what it ended with, or the latest report
  std::vector<double> constraints{};  // NaN: unknown
  bool cut = false;                   // stopped before its end

  /// Its first loss if it went all the way and met the constraints, else the worst.
  double standing() const {
    const bool met = std::none_of(constraints.begin(), constraints.end(), [](double c) { return c > 0; });
    return cut || !met || last.losses.empty() ? worst_loss : last.losses.front();
  }
};

template <class>
class BasicHistory;
using History = BasicHistory<void>;

template <class Lazy>
class BasicHistory {
 public:
  void clear() { *this = {}; }

  void observe(const Observation& o, const Encoding& encoding, std::size_t objectives) {
    if (o.kind == Observation::Kind::started) {
      pending.insert_or_assign(o.trial, Record{o.point, encoding.features(o.point)});
      ++started;
      return;
    }
    const auto found = pending.find(o.trial);
    if (found == pending.end()) return;
    Record& record = found->second;
    if (!o.losses.empty()) {
      record.last.steps = o.steps;
      record.last.losses.assign(objectives, worst_loss);
      for (std::size_t i = 0; i < std::min(objectives, o.losses.size()); ++i)
        if (o.losses[i] < worst_loss) record.last.losses[i] = o.losses[i];
    }
    if (!o.constraints.empty()) record.constraints.assign(o.constraints.begin(), o.constraints.end());
    longest = std::max(longest, o.steps);
    if (o.kind == Observation::Kind::report) {
      if (!o.losses.empty() &&
          (record.reports.empty() || o.steps >= record.reports.back().steps + record.reports.back().steps / 4))
        record.reports.push_back(record.last);
      return;
    }
    if (o.state == TrialState::failed || record.last.losses.empty()) {
      record.last.losses.assign(objectives, worst_loss);  // so that it is not tried again nearby
    } else {
      record.cut = o.state == TrialState::stopped;
      const bool finite =
          std::all_of(record.last.losses.begin(), record.last.losses.end(), [](double y) { return std::isfinite(y); });
      useful += finite ? 1 : 0;
    }
    ended.push_back(std::move(record));
    pending.erase(found);
  }

  std::vector<Record> ended;          // in the order of their ends
  std::map<TrialId, Record> pending;  // started, not ended
  std::size_t started = 0;
  std::size_t useful = 0;  // ended with finite losses
  int longest = 0;         // steps, of any trial
};

/// How far a trial came, from 0 to 1 = all the way: steps on a logarithmic scale.
template <class = void>
double progress(int steps, int longest) {
  return longest <= 0 ? 1 : std::min(1.0, std::log1p(std::max(0, steps)) / std::log1p(longest));
}

}  // namespace hypertune::detail::gp
