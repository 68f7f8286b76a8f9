// CheckpointSealer: seals checkpoints on a separate thread, while the trials continue.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <concepts>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

namespace hypertune::inline v0 {

/// The result of a seal.
struct SealResult {
  TrialId trial = -1;
  int steps = 0;
  std::optional<CheckpointInfo> checkpoint;  ///< nullopt: it failed, and `error` says why
  Errc code = Errc::io;                      ///< of the error
  std::string error;
};

/// Seals in the calling thread.
template <class Store>
SealResult seal(Store& store, CheckpointWriter writer) noexcept {
  SealResult result{.trial = writer.trial(), .steps = writer.steps(), .checkpoint = {}, .code = Errc::io, .error = {}};
  try {
    result.checkpoint = store.seal(std::move(writer));
  } catch (const Error& e) {
    result.code = e.code();
    result.error = e.what();
  } catch (const std::exception& e) { result.error = e.what(); }
  return result;
}

/// Seals in the background: a save costs a trial only its own writing, and the hashing and waiting for the disk happen
/// while it trains. There is one thread, started at the first use; the order is kept. At most one checkpoint of each
/// trial is in progress, so that a trial that saves faster than the disk writes is slowed down instead of filling the
/// disk. All members may be called from any thread. `Store`: LocalCheckpointStore, or a substitute in a test.
template <class Store>
  requires requires(Store& store, CheckpointWriter writer) {
    { store.seal(std::move(writer)) } -> std::same_as<CheckpointInfo>;
  }
class CheckpointSealer {
 public:
  using Done = std::function<void(SealResult)>;

  explicit CheckpointSealer(Store store) : store_(std::move(store)) {}
  CheckpointSealer(const CheckpointSealer&) = delete;
  CheckpointSealer& operator=(const CheckpointSealer&) = delete;

  /// Finishes everything that was submitted.
  ~CheckpointSealer() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    work_.notify_one();
    if (thread_.joinable()) thread_.join();
  }

  /// Passes on a written checkpoint. Waits while an earlier one of the same trial is in progress (not if called from
  /// `done`). `done` is called once, on the sealer's thread, with no lock held; it must not throw.
  void submit(CheckpointWriter writer, Done done) {
    std::unique_lock lock(mutex_);
    if (std::this_thread::get_id() != thread_.get_id())
      idle_.wait(lock, [&] { return !under_way_.contains(writer.trial()); });
    under_way_.insert(writer.trial());
    queue_.push_back({std::move(writer), std::move(done)});
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
    work_.notify_one();
  }

  /// Waits until no checkpoint of the trial is in progress and its `done` has returned. Must not be called from `done`.
  void wait(TrialId trial) {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return !under_way_.contains(trial); });
  }

  /// Waits until no checkpoint is in progress. Must not be called from `done`.
  void drain() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return under_way_.empty(); });
  }

  Store& store() { return store_; }

 private:
  struct Job {
    CheckpointWriter writer;
    Done done;
  };

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      Job job = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const TrialId trial = job.writer.trial();
      auto result = hypertune::seal(store_, std::move(job.writer));
      if (job.done) job.done(std::move(result));
      job.done = nullptr;  // destroys what it holds before anybody is notified
      lock.lock();
      under_way_.erase(under_way_.find(trial));
      idle_.notify_all();
    }
  }

  Store store_;
  std::mutex mutex_;
  std::condition_variable work_, idle_;
  std::deque<Job> queue_;
  std::multiset<TrialId> under_way_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace hypertune::inline v0
