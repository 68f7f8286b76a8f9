// GpuWatch: reads the memory use of GPUs on a thread of its own, because the GPU driver may be slow to answer.
#pragma once

#include <hypertune/local/gpu_gate.hpp>
#include <hypertune/trial/trial.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hypertune::inline v0::local::detail {

class GpuWatch {
 public:
  /// `clock`: for GpuReading::begun. `wake`: called on the watch's thread when there is a new reading. The first
  /// reading begins at once.
  GpuWatch(std::vector<std::string> names, std::function<Seconds()> clock, std::function<void()> wake);
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;
  ~GpuWatch();

  /// Requests a new reading, which begins at the earliest 0.1 s after the last one.
  void look();
  /// The newest reading; nullopt if it was taken before.
  std::optional<GpuReading> take();

 private:
  void run();

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
