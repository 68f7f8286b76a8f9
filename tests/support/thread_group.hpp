// The simplest backend of a Communicator: the ranks are threads that meet at a barrier. For tests of what stands above.
#pragma once

#include <hypertune/train/communicator.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// What the ranks have in common. All that a rank does in a collective stands between two meetings.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size, double timeout = 20) : size_(size), timeout_(timeout), slots_(count()) {}

  int size() const { return size_; }
  std::size_t count() const { return static_cast<std::size_t>(size_); }
  /// Of how many collectives rank 0 has taken part in.
  std::size_t collectives() const { return collectives_; }

  void perform(int rank, const collective::Operation& operation) {
    if (rank == 0) ++collectives_;
    {
      const std::lock_guard guard(mutex_);
      slots_[static_cast<std::size_t>(rank)] = &operation;
    }
    meet();
    std::vector<std::byte> result;
    std::visit([&](const auto& mine) { result = computed(rank, mine); }, operation);
    meet();  // all have read what was put in: it can be written over
    std::visit([&](const auto& mine) { put(mine, result); }, operation);
    meet();
  }
  void abort(const GroupError& why) {
    const std::lock_guard guard(mutex_);
    if (!error_) error_ = why;
    changed_.notify_all();
  }

 private:
  void meet() {
    std::unique_lock lock(mutex_);
    if (error_) throw GroupError(*error_);
    const std::size_t round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
      return;
    }
    const auto limit = std::chrono::duration<double>(timeout_);
    if (!changed_.wait_for(lock, limit, [&] { return round_ != round || error_; }))
      error_ = GroupError(GroupError::Kind::late, "a rank is late");
    if (round_ == round) throw GroupError(*error_);
  }
  template <class O>
  const O& of(std::size_t rank) const {
    if (const O* operation = std::get_if<O>(slots_[rank])) return *operation;
    throw GroupError(GroupError::Kind::failed, "the ranks ask for different collectives");
  }
  template <class T>
  static T combined(T a, T b, Reduction reduction) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
      return T(combined(static_cast<float>(a), static_cast<float>(b), reduction));
    else
      return reduction == Reduction::min   ? std::min(a, b)
             : reduction == Reduction::max ? std::max(a, b)
                                           : static_cast<T>(a + b);
  }
  template <class T>
  std::vector<std::byte> all_reduced(const collective::AllReduce& mine) const {
    std::vector<T> sum(mine.count);
    for (std::size_t rank = 0; rank < count(); ++rank) {
      const auto& other = of<collective::AllReduce>(rank);
      if (other.count != mine.count || other.type != mine.type || other.reduction != mine.reduction)
        throw GroupError(GroupError::Kind::failed, "the ranks reduce different things");
      const T* data = static_cast<const T*>(other.data);
      for (std::size_t i = 0; i < mine.count; ++i)
        sum[i] = rank == 0 ? data[i] : combined(sum[i], data[i], mine.reduction);
    }
    std::vector<std::byte> bytes(mine.count * sizeof(T));
    if (!bytes.empty()) std::memcpy(bytes.data(), sum.data(), bytes.size());
    return bytes;
  }
  std::vector<std::byte> computed(int, const collective::AllReduce& mine) const {
    switch (mine.type) {
      case ElementType::float32: return all_reduced<float>(mine);
      case ElementType::float64: return all_reduced<double>(mine);
      case ElementType::float16: return all_reduced<Half>(mine);
      case ElementType::bfloat16: return all_reduced<BFloat16>(mine);
      case ElementType::int32: return all_reduced<std::int32_t>(mine);
      case ElementType::int64: return all_reduced<std::int64_t>(mine);
      case ElementType::uint8: break;
    }
    return all_reduced<std::uint8_t>(mine);
  }
  std::vector<std::byte> computed(int, const collective::Broadcast& mine) const {
    const auto* data =
        static_cast<const std::byte*>(of<collective::Broadcast>(static_cast<std::size_t>(mine.root)).data);
    return {data, data + mine.count * size_of(mine.type)};
  }
  std::vector<std::byte> computed(int, const collective::AllGather& mine) const {
    std::vector<std::byte> all;
    for (std::size_t rank = 0; rank < count(); ++rank) {
      const auto& other = of<collective::AllGather>(rank);
      if (other.count != mine.count) throw GroupError(GroupError::Kind::failed, "the ranks gather different things");
      const auto* data = static_cast<const std::byte*>(other.mine);
      all.insert(all.end(), data, data + mine.count * size_of(mine.type));
    }
    return all;
  }
  std::vector<std::byte> computed(int, const collective::ReduceScatter&) const {
    throw GroupError(GroupError::Kind::failed, "no test needs it");
  }
  std::vector<std::byte> computed(int, const collective::Barrier&) const { return {}; }

  template <class O>
  static void put(const O& mine, const std::vector<std::byte>& result) {
    void* to = nullptr;
    if constexpr (requires { mine.data; })
      to = mine.data;
    else if constexpr (requires { mine.all; })
      to = const_cast<void*>(static_cast<const void*>(mine.all));
    if (to != nullptr && !result.empty()) std::memcpy(to, result.data(), result.size());
  }

  int size_;
  double timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const collective::Operation*> slots_;
  int arrived_ = 0;
  std::size_t round_ = 0;
  std::optional<GroupError> error_;
  std::size_t collectives_ = 0;
};

class ThreadBackend {
 public:
  ThreadBackend(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  int rank() const { return rank_; }
  int size() const { return group_->size(); }
  std::string name() const { return "test threads"; }
  void perform(const collective::Operation& operation) { group_->perform(rank_, operation); }
  void abort(const GroupError& why) { group_->abort(why); }

 private:
  std::shared_ptr<ThreadGroup> group_;
  int rank_;
};
static_assert(CommunicatorBackend<ThreadBackend>);

inline Communicator communicator_of(const std::shared_ptr<ThreadGroup>& group, int rank) {
  return Communicator(std::make_unique<ThreadBackend>(group, rank));
}

/// body(communicator) in a thread for each rank. A rank that throws is lost: the others' collectives end with an error.
/// Returns what each has thrown, by rank. Assertions of Catch2 do not stand in `body`: they are for one thread.
inline std::vector<std::exception_ptr> run_ranks(const std::shared_ptr<ThreadGroup>& group,
                                                 const std::function<void(Communicator)>& body) {
  std::vector<std::exception_ptr> errors(group->count());
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < group->size(); ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(communicator_of(group, rank));
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
        group->abort(GroupError(GroupError::Kind::lost, "rank " + std::to_string(rank) + " is lost", {rank}));
      }
    });
  threads.clear();
  return errors;
}
/// The same where no rank may throw: rethrows the first that did.
inline void run_ranks(int size, const std::function<void(Communicator)>& body) {
  for (const auto& error : run_ranks(std::make_shared<ThreadGroup>(size), body))
    if (error) std::rethrow_exception(error);
}

}  // namespace hypertune::inline v0::test
