// stable_sort(): as std's, which libstdc++ 12 makes of parts that it has itself declared deprecated: clang says so to
// everybody who includes us.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace hypertune::detail {

/// Sorts [first, last) by `less`; equal ones stay in their order.
template <class Iterator, class Less>
void stable_sort(Iterator first, Iterator last, const Less& less) {
  using Value = typename std::iterator_traits<Iterator>::value_type;
  const auto at = [first](std::size_t i) -> decltype(auto) {
    return first[static_cast<typename std::iterator_traits<Iterator>::difference_type>(i)];
  };
  std::vector<std::size_t> order(static_cast<std::size_t>(last - first));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (less(at(a), at(b))) return true;
    return !less(at(b), at(a)) && a < b;
  });
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const std::size_t i : order) sorted.push_back(std::move(at(i)));
  std::move(sorted.begin(), sorted.end(), first);
}

}  // namespace hypertune::detail
