// PoolRun: a RemoteExecutor, and the thread that keeps its pool of hosts up to date.
#pragma once

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/execute/detail/executor_handle.hpp>
#include <hypertune/remote/demand.hpp>
#include <hypertune/remote/elastic.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/host_pool.hpp>
#include <hypertune/remote/notices.hpp>

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::remote::detail {

/// What derived classes decide: which hosts are in the pool. Their destructors must call stop_following(). Without an
/// executor, there is nothing to do.
class PoolRun : public hypertune::detail::ExecutorState {
 public:
  /// `tracker`: learns what the experiment needs; then no host is lost for good, because it can be replaced.
  PoolRun(ElasticHooks hooks, std::shared_ptr<Notices> notices, std::shared_ptr<DemandTracker> tracker)
      : hooks_(std::move(hooks)), notices_(std::move(notices)), tracker_(std::move(tracker)) {}
  PoolRun(const PoolRun&) = delete;
  PoolRun& operator=(const PoolRun&) = delete;

  std::vector<Host> hosts() override { return executor_->hosts(); }
  void start(ExecutorStart start) override {
    if (!executor_) return;
    notices_->start(start.sink);
    if (tracker_)
      start.sink = [tracker = tracker_, sink = std::move(start.sink)](Event event) {
        tracker->happened(event);
        if (auto* lost = std::get_if<HostLost>(&event)) lost->for_good = false;
        sink(std::move(event));
      };
    executor_->start(std::move(start));
    follow();
  }
  void perform(Command command) override {
    if (!executor_) return;
    notices_->take();
    if (tracker_) tracker_->performed(command);
    executor_->perform(std::move(command));
  }
  void wait(Seconds deadline) override {
    if (!executor_) return;
    notices_->flush();
    executor_->wait(deadline);
  }
  void notify() override {
    if (executor_) executor_->notify();
  }
  void shutdown() override {
    stop_following();
    if (!executor_) return;
    notices_->end();
    executor_->shutdown();
    if (tracker_) tracker_->ended();
  }
  void trial_ended(TrialId trial) {
    if (tracker_) tracker_->trial_ended(trial);
  }
  /// Ends all streams, and then what the backend has. See AnyExecutor::teardown().
  void finish(bool unfinished) noexcept {
    try {
      stop_following();
      executor_.reset();
      if (tracker_) tracker_->ended();
      if (hooks_.finish) hooks_.finish(unfinished);
    } catch (const std::exception& error) {
      hypertune::detail::say(fmt::format("hypertune: workers may be left: {}", error.what()));
    }
  }

  std::vector<HostAccount> host_accounts() const {
    return executor_ ? executor_->accounts() : std::vector<HostAccount>();
  }

 protected:
  /// Brings the pool up to date. The run does not depend on it: hosts that are there go on if it throws, for example
  /// because the process has no descriptors left.
  virtual void look() = 0;
  /// Makes a look() in progress return soon.
  virtual void interrupt() = 0;
  /// Seconds between calls of look(); 0: it is not called.
  virtual Seconds interval() const = 0;
  /// What cannot be done if look() throws: "workers cannot be looked after".
  virtual std::string failure() const = 0;

  /// Starts the thread, unless it runs.
  void follow() {
    if (thread_.joinable() || interval() <= 0) return;
    const hypertune::detail::SignalBlock block;
    thread_ = std::thread([this] {
      std::string failed;
      std::unique_lock hold(mutex_);
      const std::chrono::duration<double> pause(interval());
      for (;;) {
        changed_.wait_for(hold, pause, [&] { return stopping_ || woken_; });
        if (stopping_) break;
        woken_ = false;
        hold.unlock();
        try {
          look();
          failed.clear();
        } catch (const std::exception& error) {
          if (std::exchange(failed, error.what()) != error.what())
            notices_->say(fmt::format("{}, tries again: {}", failure(), error.what()));
        }
        hold.lock();
      }
    });
  }
  /// look() is called soon.
  void wake() {
    {
      const std::lock_guard hold(mutex_);
      woken_ = true;
    }
    changed_.notify_all();
  }
  void stop_following() {
    {
      const std::lock_guard hold(mutex_);
      stopping_ = true;
    }
    interrupt();
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
    stopping_ = false;  // for a further run
  }

  ElasticHooks hooks_;
  std::shared_ptr<Notices> notices_;
  std::shared_ptr<DemandTracker> tracker_;
  HostPool pool_;
  std::optional<RemoteExecutor> executor_;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopping_ = false, woken_ = false;
  std::thread thread_;
};

/// A run on the hosts of a list.
std::unique_ptr<PoolRun> make_listed_run(ListedHosts hosts, ElasticHooks hooks, std::shared_ptr<Notices> notices,
                                         std::shared_ptr<DemandTracker> tracker);

}  // namespace hypertune::inline v0::remote::detail
