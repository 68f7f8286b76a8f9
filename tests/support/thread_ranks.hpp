// The ranks of a group as threads, for tests of what stands above a communicator.
#pragma once

#include "support/ranks.hpp"

#include <hypertune/train/communicator.hpp>
#include <hypertune/train/gloo_communicator.hpp>
#include <hypertune/train/thread_communicator.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// body(communicator) in a thread for each rank. A rank that throws is lost: the others' collectives end with an error.
/// Returns what each has thrown, by rank. Assertions of Catch2 do not stand in `body`: they are for one thread.
inline std::vector<std::exception_ptr> run_ranks(std::vector<Communicator> ranks,
                                                 const std::function<void(Communicator)>& body) {
  std::vector<std::exception_ptr> errors(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    threads.emplace_back([&body, &error = errors[rank], communicator = std::move(ranks[rank])]() mutable {
      try {
        body(communicator);
      } catch (...) {
        error = std::current_exception();
        const int rank = communicator.rank();
        communicator.abort(GroupError(GroupError::Kind::lost, "rank " + std::to_string(rank) + " is lost", {rank}));
      }
    });
  threads.clear();
  return errors;
}
/// The same where no rank may throw: rethrows the first that did.
inline void run_ranks(int size, const std::function<void(Communicator)>& body) {
  for (const auto& error : run_ranks(thread_communicators(size, {.timeout = 30}), body))
    if (error) std::rethrow_exception(error);
}

/// The same with ranks that are connected by Gloo. For tests that link hypertune::train.
inline void run_gloo_ranks(int size, const std::function<void(Communicator)>& body) {
  MemoryRendezvous rendezvous;
  const auto outcomes =
      run_threads(size, [&](int rank) { body(connect_gloo(place_of(rank, size), rendezvous, {.timeout = 30})); });
  for (const auto& outcome : outcomes)
    if (!outcome.empty()) fail(Errc::group, "{}", outcome);
}

/// A rank among threads that says when it has performed an operation.
class WatchedRank : public ThreadCommunicator {
 public:
  using Watcher = std::function<void(const collective::Operation&)>;
  WatchedRank(std::shared_ptr<detail::ThreadHub> hub, int rank, Watcher watcher)
      : ThreadCommunicator(std::move(hub), rank, {.timeout = 30}), watcher_(std::move(watcher)) {}
  void perform(const collective::Operation& operation) {
    ThreadCommunicator::perform(operation);
    watcher_(operation);
  }

 private:
  Watcher watcher_;
};
inline std::vector<Communicator> watched_ranks(int size, const WatchedRank::Watcher& watcher) {
  const auto hub = std::make_shared<detail::ThreadHub>(size);
  std::vector<Communicator> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.emplace_back(std::make_unique<WatchedRank>(hub, rank, watcher));
  return ranks;
}

}  // namespace hypertune::inline v0::test
