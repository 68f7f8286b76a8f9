// What a rank knows about the others during collectives: which are lost or late, and why the group has failed.
#pragma once

#include "links.hpp"
#include "message.hpp"

#include <hypertune/train/detail/collective_text.hpp>
#include <hypertune/trial/group.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hypertune::inline v0::detail {

/// Uses two threads, which sleep while all is well. One waits for messages from the others and for connections that
/// close. The other wakes when a collective has taken `timeout`: it asks all other ranks where they are. A rank that
/// does not answer, or has not reached that collective, is late. It is an error, too, if all have reached it but there
/// is no progress; otherwise the collective gets the same time again. The first reason for a failure is kept and sent
/// to the others, so that all name the same ranks, and a rank that left only because of others is not taken for lost.
class GlooGroup {
 public:
  GlooGroup(GlooLinks links, int rank, int size, double timeout);
  ~GlooGroup();
  GlooGroup(const GlooGroup&) = delete;
  GlooGroup& operator=(const GlooGroup&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::unique_ptr<GlooBuffer> buffer(void* memory, std::size_t bytes) const {
    return links_.context->createUnboundBuffer(memory, bytes);
  }

  /// May be called from any thread.
  void fail_with(const GroupError& why);

 private:
  friend class GlooOperation;
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Peer {
    bool lost = false;                  ///< its connection is closed
    std::optional<std::uint64_t> left;  ///< the number of collectives after which it has left
    GlooMessage answer = {};            ///< its latest answer
  };
  struct MessageBuffer {
    GlooMessage message;
    std::unique_ptr<GlooBuffer> buffer;
  };

  void begin(const CollectiveShape& shape);
  void end(bool done);
  void add(GlooBuffer& buffer);
  [[noreturn]] void give_up(const std::string& error);

  void listen();
  void open_inbox();
  void receive_next();
  void handle(const GlooMessage& message, int from);
  /// The ranks whose connections are closed, except those already known to be lost or to have left.
  std::vector<int> find_closed();
  /// Fails the group because of these ranks. False if there are none, and `error` alone is the reason.
  bool name_lost(const std::vector<int>& lost, const std::string& error);

  void watch();
  void ask(Lock& lock);
  void judge(const GlooMessage& question);
  void send_last_message(Lock& lock, GlooMessage message);

  MessageBuffer* send(const GlooMessage& message, int to);
  void fail_locked(const GroupError& why);
  bool reachable(int rank) const { return rank != rank_ && !peers_[index(rank)].lost && !peers_[index(rank)].left; }
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  const GlooLinks links_;
  const int rank_, size_;
  const double timeout_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Peer> peers_;
  std::optional<GroupError> failure_;
  int reported_by_ = -1;          ///< the rank that reported the failure, or -1
  bool leaving_ = false;          ///< the communicator is being destroyed
  bool others_informed_ = false;  ///< the others were informed, as far as they can be reached
  bool stopping_ = false;         ///< the listening thread is to end

  std::uint64_t sequence_ = 0, done_ = 0;  ///< numbers of collectives begun and done
  CollectiveShape shape_ = {};
  Clock::time_point begun_ = {};
  std::atomic<std::uint64_t> progress_{0};
  std::vector<GlooBuffer*> in_use_;  ///< buffers that the collective in progress may wait for

  std::uint32_t round_ = 0;
  std::uint64_t seen_progress_ = 0, seen_sequence_ = 0;  ///< over all ranks, at the last query

  std::list<MessageBuffer> inboxes_;  ///< the last is in use; nothing waits for messages in the others
  std::unique_ptr<GlooBuffer> probe_;
  std::list<MessageBuffer> sent_;  ///< kept to the end, as it is not known when a message was read; they are few

  std::thread listener_, watcher_;
};

/// One collective in progress. Its waits end when the group fails. The memory passed to it is not used any more after
/// its destruction.
class GlooOperation {
 public:
  GlooOperation(GlooGroup& group, const CollectiveShape& shape);
  ~GlooOperation();
  GlooOperation(const GlooOperation&) = delete;
  GlooOperation& operator=(const GlooOperation&) = delete;

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

  GlooBuffer& memory(void* data, std::size_t bytes);
  /// Adds a buffer that outlives the operation.
  void use(GlooBuffer& buffer) { group_.add(buffer); }

  /// Messages from one rank to another arrive in the order in which the receiver receives them, separately per channel.
  void send(GlooBuffer& buffer, int to, std::size_t offset, std::size_t bytes, unsigned channel = 0);
  void receive(GlooBuffer& buffer, int from, std::size_t offset, std::size_t bytes, unsigned channel = 0);
  void wait_sent(GlooBuffer& buffer, int count = 1);
  void wait_received(GlooBuffer& buffer, int count = 1);
  void done() { done_ = true; }

 private:
  GlooGroup& group_;
  std::uint64_t slot_ = 0;
  std::vector<std::unique_ptr<GlooBuffer>> buffers_;
  bool done_ = false;
};

}  // namespace hypertune::inline v0::detail
