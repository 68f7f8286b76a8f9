// Rungs: the steps at which trials are compared, and the losses seen there, with fast access to the best fraction.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace hypertune::inline v0::detail {

/// The values seen so far, split into the best `quota` and the rest; the quota may grow by one with each value. Two
/// heaps around the boundary: adding is O(log n), reading the boundary O(1). No memory besides the values.
template <class Value>
class TopFraction {
 public:
  /// Adds a value; `quota` is the number of best values from now on: the same as before or one more. `entered(v)` is
  /// called for each value that becomes one of the best: the new one or the next best. A value that has been pushed out
  /// may enter again.
  template <class Entered>
  void add(const Value& value, std::size_t quota, Entered&& entered) {
    if (!best_.empty() && value < best_.front()) {
      push(best_, value, std::less<>());
      if (best_.size() > quota) push(rest_, pop(best_, std::less<>()), std::greater<>());
      entered(value);
    } else {
      push(rest_, value, std::greater<>());
      if (best_.size() == quota) return;
      const Value next_in_line = pop(rest_, std::greater<>());
      push(best_, next_in_line, std::less<>());
      entered(next_in_line);
    }
  }
  void add(const Value& value, std::size_t quota) {
    add(value, quota, [](const Value&) {});
  }

  std::size_t size() const { return best_.size() + rest_.size(); }
  std::size_t quota() const { return best_.size(); }
  /// The worst value that is still among the best. Only if quota() > 0.
  const Value& boundary() const { return best_.front(); }
  /// The best value outside of the best fraction. Only if quota() < size().
  const Value& next() const { return rest_.front(); }

 private:
  template <class Order>
  static void push(std::vector<Value>& heap, const Value& value, Order order) {
    heap.push_back(value);
    std::push_heap(heap.begin(), heap.end(), order);
  }
  template <class Order>
  static Value pop(std::vector<Value>& heap, Order order) {
    std::pop_heap(heap.begin(), heap.end(), order);
    Value value = heap.back();
    heap.pop_back();
    return value;
  }

  std::vector<Value> best_;  // the worst of them on top
  std::vector<Value> rest_;  // the best of them on top
};

/// A trial's loss at a rung. Equal losses rank in the order of creation, so that the order is total.
struct RungEntry {
  double loss;
  TrialId trial;
  friend bool operator<(const RungEntry& a, const RungEntry& b) {
    return a.loss != b.loss ? a.loss < b.loss : a.trial < b.trial;
  }
  friend bool operator>(const RungEntry& a, const RungEntry& b) { return b < a; }
};

/// The steps of successive halving: grace, grace * reduction, … below max.
std::vector<int> rung_steps(int grace, int max, int reduction);

/// A loss for ranking: NaN becomes the worst.
inline double ranked_loss(double loss) { return std::isnan(loss) ? worst_loss : loss; }

}  // namespace hypertune::inline v0::detail
