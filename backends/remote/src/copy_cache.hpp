// CopyCache: the checkpoints that a host keeps although the driver has them.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// What a trial may go on from without a copy through the network: the newest checkpoints of each, bounded in bytes.
/// Nothing is dropped that the driver does not have, or that a trial goes on from which has not shown yet that it has
/// read it.
class CopyCache {
 public:
  CopyCache(LocalCheckpointStore store, std::uint64_t bytes) : store_(std::move(store)), limit_(bytes) {}

  void add(const CheckpointInfo& info, bool replicated) {
    if (find(info) == nullptr) held_.push_back({info, replicated, 0});
    trim(info.trial);
  }
  void replicated(const CheckpointInfo& info) {
    if (Held* held = find(info)) held->replicated = true;
    trim(info.trial);
  }
  /// Also one that it has not heard of: an earlier incarnation's, or one that has come just now.
  void pin(const CheckpointInfo& info) {
    if (Held* held = find(info))
      ++held->pins;
    else
      held_.push_back({info, true, 1});
  }
  void unpin(const CheckpointInfo& info) {
    if (Held* held = find(info); held != nullptr && held->pins > 0) --held->pins;
    trim(info.trial);
    std::erase_if(held_, [&](const Held& held) { return held.forgotten && held.info == info && drop(held); });
  }
  /// The trial will not go on here. What another one is still to read of it goes when that has.
  void forget(TrialId trial) {
    std::erase_if(held_, [&](const Held& held) { return held.info.trial == trial && drop(held); });
    for (Held& held : held_)
      if (held.info.trial == trial) held.forgotten = true;
  }

 private:
  struct Held {
    CheckpointInfo info;
    bool replicated;
    int pins;
    bool forgotten = false;
  };
  static constexpr int per_trial = 2;

  Held* find(const CheckpointInfo& info) {
    const auto found = std::find_if(held_.begin(), held_.end(), [&](const Held& held) { return held.info == info; });
    return found == held_.end() ? nullptr : &*found;
  }
  // Whether it is gone.
  bool drop(const Held& held) {
    if (!held.replicated || held.pins > 0) return false;
    try {
      store_.drop(held.info);
    } catch (const std::exception&) {}  // it takes room, no more
    return true;
  }
  void trim(TrialId trial) {
    auto newer = std::count_if(held_.begin(), held_.end(), [&](const Held& held) { return held.info.trial == trial; });
    std::erase_if(held_,
                  [&](const Held& held) { return held.info.trial == trial && newer-- > per_trial && drop(held); });
    std::uint64_t bytes = 0;
    for (const auto& held : held_) bytes += held.info.bytes;
    std::erase_if(held_, [&](const Held& held) {
      if (bytes <= limit_ || !drop(held)) return false;
      bytes -= held.info.bytes;
      return true;
    });
  }

  LocalCheckpointStore store_;
  std::uint64_t limit_;
  std::vector<Held> held_;  // in the order of their arrival
};

}  // namespace hypertune::inline v0::remote::detail
