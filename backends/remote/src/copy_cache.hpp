// CopyCache: the checkpoints that a host keeps although the driver has them.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// Keeps the newest checkpoints of each trial, so that the trial can continue without a copy through the network;
/// bounded in bytes. A checkpoint is not dropped before the driver has it, or while a trial that continues from it may
/// not have read it.
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
  /// Also for a checkpoint that is not in the cache: of an earlier incarnation, or just arrived.
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
  /// The trial will not continue here. Checkpoints that another trial still has to read are dropped after that.
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
  // Returns whether the checkpoint was dropped.
  bool drop(const Held& held) {
    if (!held.replicated || held.pins > 0) return false;
    try {
      store_.drop(held.info);
    } catch (const std::exception&) {}  // it only takes up space
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
  std::vector<Held> held_;  // in order of arrival
};

}  // namespace hypertune::inline v0::remote::detail
