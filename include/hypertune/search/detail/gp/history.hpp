// The observations of a Gaussian process searcher, and the data that it makes of them.
#pragma once

#include <hypertune/search/detail/gp/encoding.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// Whether no learnt constraint is known to be violated.
inline bool met(const std::vector<double>& constraints) {
  return std::none_of(constraints.begin(), constraints.end(), [](double c) { return c > 0; });
}

struct Record {
  Point point;
  std::vector<double> features;
  std::vector<double> losses{};       // the final ones, or the latest report; finite, or worst_loss
  std::vector<double> constraints{};  // NaN: unknown
  bool cut = false;                   // stopped before its end
  std::size_t subject = 0;

  /// Its first loss if it completed and met the constraints, else the worst.
  double standing() const { return cut || !met(constraints) || losses.empty() ? worst_loss : losses.front(); }
};

/// A trial, running or ended, in the order of the starts.
struct Subject {
  TrialId trial = 0;
  Point point;
  std::vector<double> features;
  std::vector<double> constraints{};
  int reached = 0;  // steps of its latest Arrival
};

/// The losses of a trial after some number of steps.
struct Arrival {
  static constexpr int whole = std::numeric_limits<int>::max();  // steps: completed or failed
  std::size_t subject = 0;
  int steps = 0;
  std::vector<double> losses;
};

class History {
 public:
  void clear() { *this = {}; }

  void observe(const Observation& o, const Encoding& encoding, std::size_t objectives) {
    if (o.kind == Observation::Kind::started) {
      Record record{o.point, encoding.features(o.point)};
      record.subject = subjects.size();
      subjects.push_back({o.trial, o.point, record.features});
      pending.insert_or_assign(o.trial, std::move(record));
      ++started;
      return;
    }
    const auto found = pending.find(o.trial);
    if (found == pending.end()) return;
    Record& record = found->second;
    Subject& subject = subjects[record.subject];
    if (!o.losses.empty()) {
      record.losses.assign(objectives, worst_loss);
      for (std::size_t i = 0; i < std::min(objectives, o.losses.size()); ++i)
        if (o.losses[i] < worst_loss) record.losses[i] = o.losses[i];
    }
    if (!o.constraints.empty()) {
      record.constraints.assign(o.constraints.begin(), o.constraints.end());
      subject.constraints = record.constraints;
    }
    const auto arrive = [&](int steps) {
      subject.reached = steps;
      arrivals.push_back({record.subject, steps, record.losses});
    };
    if (o.kind == Observation::Kind::report) {  // thinned out: only if steps have grown by at least a quarter
      if (o.losses.empty() || o.steps <= subject.reached + subject.reached / 4) return;
      reporting += subject.reached == 0 ? 1 : 0;
      arrive(o.steps);
      return;
    }
    reporting -= subject.reached > 0 ? 1 : 0;
    if (o.state == TrialState::failed || record.losses.empty()) {
      record.losses.assign(objectives, worst_loss);  // so that nothing close to it is tried again
    } else {
      record.cut = o.state == TrialState::stopped;
      cut += record.cut ? 1 : 0;
      const bool finite =
          std::all_of(record.losses.begin(), record.losses.end(), [](double y) { return std::isfinite(y); });
      useful += finite ? 1 : 0;
    }
    const int steps = record.cut ? std::max(1, o.steps) : Arrival::whole;
    if (steps > subject.reached) arrive(steps);
    ended.push_back(std::move(record));
    pending.erase(found);
  }

  std::vector<Record> ended;          // in the order in which they ended
  std::map<TrialId, Record> pending;  // started and not ended
  std::size_t started = 0;
  std::size_t useful = 0;     // ended with finite losses
  std::size_t cut = 0;        // stopped early
  std::size_t reporting = 0;  // pending, with at least one report
  std::vector<Subject> subjects;
  std::vector<Arrival> arrivals;
};

}  // namespace hypertune::inline v0::detail::gp
