// Collectives among threads of one process: each rank reduces a part of all ranks' buffers in place.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/train/communicator.hpp>
#include <hypertune/train/detail/collective_text.hpp>
#include <hypertune/train/detail/polling.hpp>
#include <hypertune/train/detail/reduce.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {
namespace detail {

/// Synchronises the ranks. In a round all ranks arrive, each does its part, and all leave. No rank leaves before all
/// have done their parts, as buffers belong to the callers.
class ThreadHub {
 public:
  explicit ThreadHub(int size) : ranks_(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(ranks_.size()); }

  void perform(int rank, const collective::Operation& operation, double timeout) {
    check_root(operation, size());
    arrive(rank, operation, timeout);
    std::visit([&](const auto& mine) { work(rank, mine); }, operation);
    leave_round();
  }

  void abort(const GroupError& why) {
    const std::lock_guard guard(mutex_);
    fail_with(why);
  }

  /// Ranks that wait for this rank now, or will later, get an error.
  void leave(int rank) {
    const std::lock_guard guard(mutex_);
    ranks_[static_cast<std::size_t>(rank)].left = true;
    if (arrived_ != 0 && opened_ == closed_) fail_with(gone());
  }

 private:
  struct Rank {
    const collective::Operation* operation = nullptr;  ///< set while it takes part in a round
    bool left = false;
  };

  GroupError gone() const {
    std::vector<int> ranks;
    for (std::size_t i = 0; i < ranks_.size(); ++i)
      if (ranks_[i].left) ranks.push_back(static_cast<int>(i));
    return {GroupError::Kind::lost, fmt::format("{} left the group", describe_ranks(ranks)), ranks};
  }

  /// The first error is reported on all ranks.
  void fail_with(const GroupError& why) {
    if (!failure_) failure_ = own_copy(why);
    changed_.notify_all();
  }

  void arrive(int rank, const collective::Operation& operation, double timeout) {
    const auto limit = steady_after(timeout);
    std::unique_lock lock(mutex_);
    if (failure_) throw own_copy(*failure_);
    ranks_[static_cast<std::size_t>(rank)].operation = &operation;
    const auto round = closed_ + 1;
    if (++arrived_ == ranks_.size()) {
      compare();
      if (failure_) throw own_copy(*failure_);
      opened_ = round;
      changed_.notify_all();
      return;
    }
    if (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& r) { return r.left; })) fail_with(gone());
    changed_.wait_until(lock, limit, [&] { return opened_ == round || failure_; });
    if (opened_ == round) return;
    if (!failure_) {
      std::vector<int> late;
      for (std::size_t i = 0; i < ranks_.size(); ++i)
        if (ranks_[i].operation == nullptr) late.push_back(static_cast<int>(i));
      fail_with({GroupError::Kind::late, late_text(late, timeout, shape_of(operation)), late});
    }
    throw own_copy(*failure_);
  }

  void compare() {
    const auto first = shape_of(*ranks_[0].operation);
    for (std::size_t i = 1; i < ranks_.size(); ++i) {
      const auto other = shape_of(*ranks_[i].operation);
      if (other == first) continue;
      fail_with({GroupError::Kind::failed,
                 fmt::format("rank {} asks for {}, rank 0 for {}: all ranks must ask for the same, in the same order",
                             i, describe(other), describe(first)),
                 {static_cast<int>(i)}});
      return;
    }
  }

  /// Has no timeout: all ranks have arrived, and each only does its part.
  void leave_round() {
    std::unique_lock lock(mutex_);
    const auto round = opened_;
    if (++done_ == ranks_.size()) {
      done_ = arrived_ = 0;
      for (auto& rank : ranks_) rank.operation = nullptr;
      closed_ = round;
      closed_well_ = !failure_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return closed_ == round; });
    }
    // Fails on all ranks or on none: a failure after this belongs to the next round, which cannot start without this
    // rank.
    if (!closed_well_) throw own_copy(*failure_);
  }

  template <class O>
  const O& of(std::size_t rank) const {
    return std::get<O>(*ranks_[rank].operation);
  }

  void work(int rank, const collective::AllReduce& mine) {
    const auto n = ranks_.size(), me = static_cast<std::size_t>(rank);
    std::vector<void*> data(n);
    for (std::size_t i = 0; i < n; ++i) data[i] = of<collective::AllReduce>(i).data;
    // Whole blocks, so that two ranks seldom write to one cache line.
    const std::size_t part = ((mine.count + n - 1) / n + reduced_at_once - 1) / reduced_at_once * reduced_at_once;
    const std::size_t begin = std::min(mine.count, me * part), end = std::min(mine.count, begin + part);
    const std::vector<const void*> inputs(data.begin(), data.end());
    combine(mine.type, mine.reduction, inputs, data, begin, end);
  }
  void work(int, const collective::Broadcast& mine) {
    const auto& root = of<collective::Broadcast>(static_cast<std::size_t>(mine.root));
    if (mine.data != root.data && mine.count != 0) std::memcpy(mine.data, root.data, mine.count * size_of(mine.type));
  }
  void work(int, const collective::AllGather& mine) {
    const std::size_t bytes = mine.count * size_of(mine.type);
    if (bytes == 0) return;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      auto* const to = static_cast<std::byte*>(mine.all) + i * bytes;
      const void* const from = of<collective::AllGather>(i).mine;
      if (to != from) std::memcpy(to, from, bytes);
    }
  }
  void work(int rank, const collective::ReduceScatter& mine) {
    const std::size_t offset = static_cast<std::size_t>(rank) * mine.count * size_of(mine.type);
    std::vector<const void*> inputs(ranks_.size());
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = static_cast<const std::byte*>(of<collective::ReduceScatter>(i).all) + offset;
    void* const output = mine.mine;
    combine(mine.type, mine.reduction, inputs, std::span<void* const>(&output, 1), 0, mine.count);
  }
  void work(int, const collective::Barrier&) {}

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Rank> ranks_;
  std::size_t arrived_ = 0, done_ = 0;
  std::uint64_t opened_ = 0, closed_ = 0;  ///< rounds in which all have arrived, and rounds that all have left
  bool closed_well_ = true;                ///< no failure when the last round was left
  std::optional<GroupError> failure_;
};

/// The hubs of this process by name; the names are sent by a Rendezvous. A hub lives as long as a rank holds it.
class ThreadHubs {
 public:
  static ThreadHubs& instance() {
    static ThreadHubs hubs;
    return hubs;
  }
  std::pair<std::string, std::shared_ptr<ThreadHub>> add(int size) {
    auto hub = std::make_shared<ThreadHub>(size);
    const std::lock_guard guard(mutex_);
    std::erase_if(hubs_, [](const auto& entry) { return entry.second.expired(); });
    auto name = fmt::format("hub-{}", ++last_);
    hubs_[name] = hub;
    return {std::move(name), std::move(hub)};
  }
  std::shared_ptr<ThreadHub> find(const std::string& name) {
    const std::lock_guard guard(mutex_);
    const auto found = hubs_.find(name);
    return found == hubs_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::string, std::weak_ptr<ThreadHub>> hubs_;
};

}  // namespace detail

/// One rank among threads. A rank that is destroyed has left the group, and the others' next collective fails with that
/// reason. abort() affects all ranks. A round in which all ranks have arrived is finished first, as their buffers are
/// in use.
class ThreadCommunicator {
 public:
  ThreadCommunicator(std::shared_ptr<detail::ThreadHub> hub, int rank, CommunicatorOptions options)
      : hub_(std::move(hub)), rank_(rank), options_(options) {}
  ~ThreadCommunicator() { hub_->leave(rank_); }
  ThreadCommunicator(const ThreadCommunicator&) = delete;
  ThreadCommunicator& operator=(const ThreadCommunicator&) = delete;

  int rank() const { return rank_; }
  int size() const { return hub_->size(); }
  std::string name() const { return "threads"; }
  void perform(const collective::Operation& operation) { hub_->perform(rank_, operation, options_.timeout); }
  void abort(const GroupError& why) { hub_->abort(why); }

 private:
  std::shared_ptr<detail::ThreadHub> hub_;
  int rank_;
  CommunicatorOptions options_;
};

/// The communicators of `size` threads of this process, by rank.
inline std::vector<Communicator> thread_communicators(int size, const CommunicatorOptions& options = {}) {
  if (size < 1) fail(Errc::usage, "thread_communicators for {} ranks: at least 1", size);
  const auto hub = std::make_shared<detail::ThreadHub>(size);
  std::vector<Communicator> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(std::make_unique<ThreadCommunicator>(hub, rank, options));
  return ranks;
}

/// The communicator of one of the threads that share this Rendezvous. All must be in this process.
inline Communicator connect_threads(const GroupPlace& place, Rendezvous& rendezvous,
                                    const CommunicatorOptions& options = {}) {
  const auto key = fmt::format("threads/{}", place.generation);
  std::shared_ptr<detail::ThreadHub> hub;
  if (place.rank == 0) {
    auto [name, made] = detail::ThreadHubs::instance().add(place.size());
    hub = std::move(made);
    rendezvous.set(key, name);
  } else {
    const auto name = rendezvous.wait(key, options.timeout);
    if (!name)
      throw GroupError(GroupError::Kind::late,
                       fmt::format("rank 0 did not come to the rendezvous within {} s", options.timeout), {0});
    hub = detail::ThreadHubs::instance().find(*name);
    if (!hub || hub->size() != place.size())
      throw GroupError(GroupError::Kind::lost, "rank 0 left the group, or is in another process", {0});
  }
  return Communicator(std::make_unique<ThreadCommunicator>(std::move(hub), place.rank, options));
}

}  // namespace hypertune::inline v0
