// The checkpoints that a server offers: found once, then cached while peers ask for them.
#pragma once

#include "folder_text.hpp"
#include "layout.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/checkpoint/local_store.hpp>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// A checkpoint that is being served.
struct Served {
  Served(LocalCheckpointStore s, Found f);

  /// Whether it is still in its place.
  bool in_place() const;

  LocalCheckpointStore store;
  const Found found;
  const Layout layout;
  Descriptor directory;

  enum class Chunks { unknown, asked_for, known, failed };
  // Guarded by the ServedCheckpoints' mutex.
  Chunks state = Chunks::unknown;
  std::shared_ptr<const std::string> chunks;
  std::string error;
};

/// Thread-safe.
class ServedCheckpoints {
 public:
  explicit ServedCheckpoints(std::vector<LocalCheckpointStore> stores) : stores_(std::move(stores)) {}
  ServedCheckpoints(const ServedCheckpoints&) = delete;
  ServedCheckpoints& operator=(const ServedCheckpoints&) = delete;
  ~ServedCheckpoints() { stop(); }

  /// The checkpoint in one of the stores; nullptr if none has it.
  std::shared_ptr<Served> find(const CheckpointInfo& info);

  /// The checkpoints of a trial, in all stores.
  std::vector<CheckpointInfo> list(TrialId trial);

  /// The encoded chunks of a checkpoint, computed on the shelf's own thread; nullptr if they are not ready after
  /// `patience`. Error of kind `corrupt` if its files are not those that were sealed.
  std::shared_ptr<const std::string> chunks(const std::shared_ptr<Served>& served, std::chrono::milliseconds patience);
  void prepare(const std::shared_ptr<Served>& served);

  void stop();

 private:
  void ask(const std::shared_ptr<Served>& served);
  void work(const std::stop_token& stop);

  static constexpr std::size_t capacity = 16;

  std::vector<LocalCheckpointStore> stores_;
  std::mutex mutex_;
  std::condition_variable_any work_, done_;
  std::list<std::shared_ptr<Served>> recent_;  // the most recent first
  std::deque<std::shared_ptr<Served>> queue_;
  bool stopped_ = false;
  std::jthread thread_;
};

}  // namespace hypertune::inline v0::detail
