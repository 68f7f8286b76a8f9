// GpuWatch: looks at the memory of GPUs on a thread of its own, so that nobody waits for a driver that is slow to
// answer.
#pragma once

#include <hypertune/local/gpu_memory.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local::detail {

class GpuWatch {
 public:
  /// `clock`: for GpuReading::begun. `wake`: called on the watch's thread when there is a new reading. The first look
  /// is taken at once.
  GpuWatch(std::vector<std::string> names, std::function<Seconds()> clock, std::function<void()> wake)
      : names_(std::move(names)), clock_(std::move(clock)), wake_(std::move(wake)), thread_([this] { run(); }) {}
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;
  ~GpuWatch() {
    {
      const std::lock_guard guard(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// Asks for a new reading, not sooner than a tenth of a second after the last one.
  void look() {
    {
      const std::lock_guard guard(mutex_);
      wanted_ = true;
    }
    changed_.notify_all();
  }
  /// The newest reading, once.
  std::optional<GpuReading> take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(reading_, std::nullopt);
  }

 private:
  void run() {
    const GpuMeter meter;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return wanted_ || closing_; });
      if (closing_) return;
      wanted_ = false;
      lock.unlock();
      const Seconds begun = clock_();
      GpuReading reading = meter.read(names_);
      reading.begun = begun;
      lock.lock();
      reading_ = std::move(reading);
      lock.unlock();
      wake_();
      lock.lock();
      if (changed_.wait_for(lock, std::chrono::milliseconds(100), [this] { return closing_; })) return;
    }
  }

  std::vector<std::string> names_;
  std::function<Seconds()> clock_;
  std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = true, closing_ = false;
  std::optional<GpuReading> reading_;
  std::thread thread_;
};

}  // namespace hypertune::inline v0::local::detail
