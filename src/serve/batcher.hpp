// Batcher: decides which waiting requests become a batch, and when. No I/O and no clock.
#pragma once

#include "latency_model.hpp"

#include <hypertune/serve/serve_options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hypertune::inline v0::serving {

using RequestId = std::uint64_t;
inline constexpr double never = std::numeric_limits<double>::infinity();

/// A request that waits for a batch.
struct Waiting {
  RequestId id = 0;
  int rows = 1;
  std::uint64_t priority = 1;  ///< lower ones first
  double arrived = 0;          ///< times are in seconds of one clock
  double deadline = never;     ///< the answer is of no use after it
  double expires = never;      ///< it waits no longer than until then
  std::string shape;           ///< only requests of the same may share a batch
  bool alone = false;          ///< it shares no batch: one that it was in has failed
};

/// The requests of one model version. With `by_deadline`, a batch is begun as late as its oldest request's deadline minus
/// its own run time allows, unless it is full (Symphony, arXiv 2308.07470, section 3.2: "deferred batch scheduling"):
/// it has grown as far as it can by then. Without a latency_objective no request waits for others. With `fixed_delay`, a batch is
/// begun at once, or when its oldest request has waited for `max_delay` (Triton's dynamic batcher).
class Batcher {
 public:
  explicit Batcher(const BatchOptions& options, bool batches) : options_(options), batches_(batches) {}

  enum class Added : std::uint8_t { waits, full, late };
  /// `free_at`: when a replica is expected to be free. `late`: the request can no longer meet its deadline. `full`:
  /// max_queued_requests wait already.
  Added add(Waiting request, double now, double free_at) {
    if (waiting_.size() >= static_cast<std::size_t>(options_.max_queued_requests)) return Added::full;
    const bool first = waiting_.empty() && free_at <= now;
    if (!first && std::max(now, free_at) + delivery().mean(request.rows) > request.deadline) return Added::late;
    put(std::move(request));
    return Added::waits;
  }
  /// One whose batch has failed waits again.
  void put_back(Waiting request) { put(std::move(request)); }
  /// Takes out a request whose client is gone. False: it does not wait here.
  bool remove(RequestId id) {
    return std::erase_if(waiting_, [&](const Waiting& one) { return one.id == id; }) > 0;
  }

  struct Step {
    std::vector<Waiting> batch;   ///< to be begun now
    std::vector<RequestId> late;  ///< to be refused now
    double wake = never;          ///< when to ask again, if nothing happens before
  };
  /// What to do now. `idle`: whether a replica is.
  Step next(double now, bool idle) {
    Step step;
    // One that nobody is before is tried, whatever is expected: otherwise nothing would be measured any more.
    const bool first = idle && waiting_.size() == 1;
    std::erase_if(waiting_, [&](const Waiting& one) {
      const bool late = now + (first ? 0 : delivery().mean(one.rows)) > one.deadline || now > one.expires;
      if (late) step.late.push_back(one.id);
      return late;
    });
    if (waiting_.empty()) return step;
    if (!idle) {
      for (const auto& one : waiting_)
        step.wake = std::min({step.wake, one.deadline - delivery().mean(one.rows), one.expires});
      return step;
    }
    const auto [members, rows, full, hurried] = candidates(now);
    const double begin = full ? now : begin_of(members, rows);
    if (begin > now) {
      step.wake = begin;
      for (const auto& one : waiting_) step.wake = std::min(step.wake, one.expires);
      return step;
    }
    for (const std::size_t i : members) step.batch.push_back(std::move(waiting_[i]));
    for (std::size_t i = members.size(); i-- > 0;)
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(members[i]));
    return step;
  }

  /// A batch took so long until its replica had answered.
  void measured(int rows, double seconds) { latency_.add(rows, seconds); }
  /// … and so long until all of its clients had been answered, too, which is what their deadlines are for.
  void delivered(int rows, double seconds) { delivery_.add(rows, seconds); }
  const LatencyModel& latency() const { return latency_; }
  std::size_t size() const { return waiting_.size(); }
  /// All that wait, which then do so no longer.
  std::vector<Waiting> take_all() { return std::exchange(waiting_, {}); }

 private:
  static auto order(const Waiting& one) { return std::tuple(one.priority, one.deadline, one.arrived, one.id); }

  void put(Waiting request) {
    const auto at = std::upper_bound(waiting_.begin(), waiting_.end(), request,
                                     [](const Waiting& a, const Waiting& b) { return order(a) < order(b); });
    waiting_.insert(at, std::move(request));
  }

  struct Candidates {
    std::vector<std::size_t> members;
    int rows = 0;
    bool full = false;     // it cannot grow any more
    bool hurried = false;  // … because a larger one would be too late for its first request
  };
  // Those of one shape from number `first` on, as far as there is room and the time of the first one allows.
  Candidates from(std::size_t first, double now) const {
    const Waiting& begin = waiting_[first];
    Candidates found{{first}, begin.rows, !batches_ || begin.alone || begin.rows >= options_.max_batch_size, false};
    double deadline = begin.deadline;
    for (std::size_t i = first + 1; i < waiting_.size() && !found.full; ++i) {
      const Waiting& one = waiting_[i];
      if (one.alone || one.shape != begin.shape) continue;
      deadline = std::min(deadline, one.deadline);
      found.hurried = now + delivery().mean(found.rows + one.rows) > deadline;
      found.full = found.hurried || found.rows + one.rows > options_.max_batch_size;
      if (found.full) break;
      found.members.push_back(i);
      found.rows += one.rows;
      found.full = found.rows >= options_.max_batch_size;
    }
    return found;
  }
  // The first ones; but where so little of their time is left that the batch is small, those whose batch is the largest.
  // (Nexus, SOSP 2019, section 6.3: "early drop". Otherwise small batches make the next ones late, too.)
  Candidates candidates(double now) const {
    Candidates best = from(0, now);
    for (std::size_t i = 1; i < waiting_.size() && best.hurried; ++i) {
      if (waiting_[i].alone || waiting_[i].priority != waiting_.front().priority) break;
      Candidates other = from(i, now);
      if (other.rows > best.rows || !other.hurried) best = std::move(other);
    }
    return best;
  }
  double earliest(const std::vector<std::size_t>& members) const {
    double deadline = never;
    for (const std::size_t i : members) deadline = std::min(deadline, waiting_[i].deadline);
    return deadline;
  }
  double begin_of(const std::vector<std::size_t>& members, int rows) const {
    if (options_.batching == Batching::fixed_delay) {
      double arrived = never;
      for (const std::size_t i : members) arrived = std::min(arrived, waiting_[i].arrived);
      return arrived + options_.max_delay;
    }
    // A client's own time limit is no wish to be answered late.
    if (options_.latency_objective <= 0) return 0;
    const double deadline = earliest(members);
    // Later than that, a batch with one row more could not be done in time.
    return deadline == never ? 0 : deadline - delivery().bound(rows + 1) - slack;
  }

  const LatencyModel& delivery() const { return delivery_.known() ? delivery_ : latency_; }

  static constexpr double slack = 0.0005;  // seconds that timers, and the way of a request to here, need
  BatchOptions options_;
  bool batches_;
  LatencyModel latency_, delivery_;
  std::vector<Waiting> waiting_;  // ordered
};

}  // namespace hypertune::inline v0::serving
