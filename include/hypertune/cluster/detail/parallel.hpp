// Running work on several threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace hypertune::inline v0::cluster::detail {

/// Calls `work(i)` for each index on up to `threads` threads and waits for all. `work` must not throw.
template <class F>
void in_parallel(std::size_t count, std::size_t threads, F work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> others;
  for (std::size_t t = 1; t < std::min(count, threads); ++t) others.emplace_back(run);
  run();
}

}  // namespace hypertune::inline v0::cluster::detail
