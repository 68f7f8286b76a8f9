// stable_sort(): like std::stable_sort, which libstdc++ 12 implements with functions that it has itself declared
// deprecated; clang reports that to everybody who includes hypertune.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// The numbers below `count`, ordered by `less`; equal ones keep their order. It is one function for all types, because
/// each further std::sort adds 25 functions.
inline std::vector<std::size_t> sorted_order(std::size_t count,
                                             const std::function<bool(std::size_t, std::size_t)>& less) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (less(a, b)) return true;
    return !less(b, a) && a < b;
  });
  return order;
}

/// Sorts [first, last) by `less`; equal elements keep their order.
template <class Iterator, class Less>
void stable_sort(Iterator first, Iterator last, const Less& less) {
  using Value = typename std::iterator_traits<Iterator>::value_type;
  const auto at = [first](std::size_t i) -> decltype(auto) {
    return first[static_cast<typename std::iterator_traits<Iterator>::difference_type>(i)];
  };
  const auto order = sorted_order(static_cast<std::size_t>(last - first),
                                  [&](std::size_t a, std::size_t b) { return less(at(a), at(b)); });
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) sorted.push_back(std::move(at(i)));
  std::move(sorted.begin(), sorted.end(), first);
}

}  // namespace hypertune::inline v0::detail
