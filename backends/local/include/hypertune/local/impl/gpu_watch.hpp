// GpuWatch: definitions.
#pragma once

#include <hypertune/local/gpu_memory.hpp>
#include <hypertune/local/gpu_watch.hpp>

#include <chrono>
#include <utility>

namespace hypertune::inline v0::local::detail {

GpuWatch::GpuWatch(std::vector<std::string> names, std::function<Seconds()> clock, std::function<void()> wake)
    : names_(std::move(names)), clock_(std::move(clock)), wake_(std::move(wake)), thread_([this] { run(); }) {}

GpuWatch::~GpuWatch() {
  {
    const std::lock_guard guard(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void GpuWatch::look() {
  {
    const std::lock_guard guard(mutex_);
    wanted_ = true;
  }
  changed_.notify_all();
}

std::optional<GpuReading> GpuWatch::take() {
  const std::lock_guard guard(mutex_);
  return std::exchange(reading_, std::nullopt);
}

void GpuWatch::run() {
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

}  // namespace hypertune::inline v0::local::detail
