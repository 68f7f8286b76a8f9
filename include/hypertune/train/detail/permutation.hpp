// Permutation: a pseudo-random order of n items, computed item by item without memory.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/random.hpp>

#include <array>
#include <cstdint>

namespace hypertune::inline v0 {

/// A pseudo-random permutation of 0 ... n-1 that is determined by a key. at(i) takes constant memory and expected
/// constant time (0.1 us), so that 10^9 items need no table and a run can continue in the middle at once.
///
/// A generalised Feistel network over pairs with a*b >= n; a result that is not below n is fed in again until one is
/// (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002, methods 2 and 3). a and b are near the
/// root of n, so that this is rare. 24 rounds as in Mitchell et al., "Bandwidth-Optimal Random Shuffling for GPUs", ACM
/// Transactions on Parallel Computing 9(1), 2022, who find such shuffles as good as Fisher and Yates'. Not for
/// cryptography: the round function is not that of a cipher.
///
/// A value type. Const functions may be called from any thread.
class Permutation {
 public:
  /// n is at most 2^62; Error of kind `usage` above.
  Permutation(std::uint64_t n, std::uint64_t key) : n_(n) {
    if (n > std::uint64_t{1} << 62U) fail(Errc::usage, "a permutation of {} items: 2^62 is the most", n);
    left_ = root(n);
    right_ = n == 0 ? 1 : (n + left_ - 1) / left_;
    for (std::uint64_t round = 0; round < keys_.size(); ++round)
      keys_[round] = detail::mixed_in(detail::mixed_in(0, key), round);
  }

  std::uint64_t size() const { return n_; }

  /// The place of item i < n in the new order. Error of kind `usage` for other i.
  std::uint64_t at(std::uint64_t i) const {
    if (i >= n_) fail(Errc::usage, "item {} of a permutation of {}", i, n_);
    do i = network(i);
    while (i >= n_);
    return i;
  }

 private:
  /// The smallest positive number whose square is at least n.
  static std::uint64_t root(std::uint64_t n) {
    std::uint64_t low = 0, high = std::uint64_t{1} << 31U;
    while (low + 1 < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      (middle * middle < n ? low : high) = middle;
    }
    return high;
  }
  /// Maps the upper half of a mixture to a number below `bound`, which is at most 2^32. The bias is below
  /// 2^-32 * bound.
  static std::uint64_t below(std::uint64_t bound, std::uint64_t mixture) { return ((mixture >> 32U) * bound) >> 32U; }

  std::uint64_t network(std::uint64_t value) const {
    std::uint64_t left = value / right_, right = value % right_;
    for (std::size_t round = 0; round < keys_.size(); round += 2) {
      left += below(left_, detail::mixed_in(keys_[round], right));
      if (left >= left_) left -= left_;
      right += below(right_, detail::mixed_in(keys_[round + 1], left));
      if (right >= right_) right -= right_;
    }
    return left * right_ + right;
  }

  std::uint64_t n_;
  std::uint64_t left_ = 1, right_ = 1;
  std::array<std::uint64_t, 24> keys_ = {};
};

}  // namespace hypertune::inline v0
