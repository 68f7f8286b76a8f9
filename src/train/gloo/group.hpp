// What a rank knows of the others while collectives run: who is gone, who is late, and why it is over.
#pragma once

#include "links.hpp"
#include "message.hpp"

#include <hypertune/train/collective_text.hpp>
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

/// Two threads, both asleep while all is well. One waits for messages of the others, and for connections that close.
/// The other wakes when a collective has taken `timeout`: it asks all others where they are. Who does not answer, or
/// has not come to that collective, is late; that all have come but none gets on is an error, too; else the collective
/// has so much time again. The first reason for the end is this rank's, and it tells it to the others, so that all name
/// the same ranks, and a rank that only left because of others is not taken for the one that was lost.
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

  /// Any thread.
  void fail_with(const GroupError& why);

 private:
  friend class GlooOperation;
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  struct Peer {
    bool lost = false;                  ///< its connection is closed
    std::optional<std::uint64_t> left;  ///< it has left after so many collectives
    GlooMessage answer = {};            ///< its last
  };
  struct Letter {
    GlooMessage message;
    std::unique_ptr<GlooBuffer> buffer;
  };

  void begin(const CollectiveShape& shape);
  void end(bool done);
  void add(GlooBuffer& buffer);
  [[noreturn]] void give_up(const std::string& error);

  void listen();
  void open_mailbox();
  void await_letter();
  void handle(const GlooMessage& message, int from);
  /// Of those who are neither lost nor gone by their own word: whose connection is closed.
  std::vector<int> find_closed();
  /// False where nobody is, and the group failed by `error` alone.
  bool name_lost(const std::vector<int>& lost, const std::string& error);

  void watch();
  void ask(Lock& lock);
  void judge(const GlooMessage& question);
  void say_farewell(Lock& lock, GlooMessage farewell);

  Letter* send(const GlooMessage& message, int to);
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
  int told_by_ = -1;       ///< who told this rank of it
  bool leaving_ = false;   ///< the communicator is being destroyed
  bool told_ = false;      ///< the others know, as far as they can be reached
  bool stopping_ = false;  ///< the listening thread is to end

  std::uint64_t sequence_ = 0, done_ = 0;  ///< collectives begun and done
  CollectiveShape shape_ = {};
  Clock::time_point begun_ = {};
  std::atomic<std::uint64_t> progress_{0};
  std::vector<GlooBuffer*> in_use_;  ///< what the collective under way may wait for

  std::uint32_t round_ = 0;
  std::uint64_t seen_progress_ = 0, seen_sequence_ = 0;  ///< of all ranks together, when last asked

  std::list<Letter> mailboxes_;  ///< the last is in use; what still comes to the others is not waited for
  std::unique_ptr<GlooBuffer> probe_;
  std::list<Letter> letters_out_;  ///< kept to the end: when a letter was read is not known, and they are few

  std::thread listener_, watcher_;
};

/// One collective in progress: waits that end when the group does. Memory that is given to it is not touched any more
/// when it is destroyed.
class GlooOperation {
 public:
  GlooOperation(GlooGroup& group, const CollectiveShape& shape);
  ~GlooOperation();
  GlooOperation(const GlooOperation&) = delete;
  GlooOperation& operator=(const GlooOperation&) = delete;

  int rank() const { return group_.rank(); }
  int size() const { return group_.size(); }

  GlooBuffer& memory(void* data, std::size_t bytes);
  /// One that outlives the operation.
  void use(GlooBuffer& buffer) { group_.add(buffer); }

  /// What one rank sends to another comes in the order in which that one receives, for each channel apart.
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
