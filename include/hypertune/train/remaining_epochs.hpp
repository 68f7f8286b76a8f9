// remaining_epochs: a range over the epochs that are still to be trained, starting from the (restored) state.
#pragma once

#include <hypertune/train/elastic_sampler.hpp>

#include <concepts>
#include <cstdint>
#include <iterator>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

/// A range whose position is not in its iterators but in the user's state, so that restoring the state moves the loop.
template <class Epoch, class Advance>
class RemainingEpochs {
 public:
  RemainingEpochs(Epoch epoch, std::uint64_t to, Advance advance)
      : epoch_(std::move(epoch)), advance_(std::move(advance)), to_(to) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::uint64_t;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = std::uint64_t;
    Iterator() = default;
    explicit Iterator(RemainingEpochs* range) : range_(range) {}
    std::uint64_t operator*() const { return range_->epoch_(); }
    Iterator& operator++() {
      range_->advance_();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.at_end(); }

   private:
    bool at_end() const { return range_->epoch_() >= range_->to_; }
    RemainingEpochs* range_ = nullptr;
  };
  Iterator begin() { return Iterator(this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  Epoch epoch_;
  Advance advance_;
  std::uint64_t to_;
};

}  // namespace detail

/// `for (const auto epoch : remaining_epochs(state.epoch, 90))`: the epochs from state.epoch up to, not including,
/// `to`. The loop increments the state itself, after each pass of its body. So a commit at the end of the body belongs
/// to an epoch that is not over yet, and a state that is restored, in the body or before the loop, decides where to
/// continue (like AdaptDL's remaining_epochs_until()). `epoch` must outlive the range.
template <std::integral T>
  requires(!std::same_as<T, bool>)
auto remaining_epochs(T& epoch, std::uint64_t to) {
  const auto get = [&epoch] { return static_cast<std::uint64_t>(epoch); };
  const auto advance = [&epoch] { ++epoch; };
  return detail::RemainingEpochs(get, to, advance);
}

/// The same with the epoch of a sampler, which it advances: `for (const auto epoch : remaining_epochs(sampler, 90))
/// while (!sampler.done()) ...`.
inline auto remaining_epochs(ElasticSampler& sampler, std::uint64_t to) {
  const auto get = [&sampler] { return sampler.epoch(); };
  const auto advance = [&sampler] { sampler.next_epoch(); };
  return detail::RemainingEpochs(get, to, advance);
}

}  // namespace hypertune::inline v0
