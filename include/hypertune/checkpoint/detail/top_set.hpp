// An ordered set that knows which of its elements are among the first k.
#pragma once

#include <cstddef>
#include <iterator>
#include <set>

namespace hypertune::inline v0::detail {

/// A std::set of pointers with a mark after the first `k`. All operations are O(log n) or better. Not copyable or
/// movable, because the mark is an iterator that may be the end.
template <class T, class Compare>
class TopSet {
 public:
  explicit TopSet(std::size_t k) : k_(k) {}
  TopSet(const TopSet&) = delete;
  TopSet& operator=(const TopSet&) = delete;

  /// Returns the element that is no longer among the first k (`element` itself if it never was), or null.
  T insert(T element) {
    const bool was_full = all_.size() >= k_;
    all_.insert(element);
    if (!was_full) return nullptr;
    if (mark_ != all_.end() && !all_.key_comp()(element, *mark_)) return element;
    return *--mark_;
  }

  void erase(T element) {
    const bool was_top = top(element);
    const auto found = all_.find(element);
    if (found == mark_) ++mark_;
    all_.erase(found);
    if (was_top && mark_ != all_.end()) ++mark_;
  }

  /// Whether an element of the set is among the first k.
  bool top(T element) const { return mark_ == all_.end() || all_.key_comp()(element, *mark_); }
  T first() const { return all_.empty() ? nullptr : *all_.begin(); }
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::size_t k_;
  std::set<T, Compare> all_;
  typename std::set<T, Compare>::const_iterator mark_ = all_.end();  // the first that is not among the first k
};

}  // namespace hypertune::inline v0::detail
