// GpuGate: definitions.
#pragma once

#include <hypertune/local/gpu_gate.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::local::detail {

GpuGate::GpuGate(std::size_t devices, Seconds patience, Seconds now)
    : devices_(devices), patience_(patience), first_look_(now + std::min(2.0, patience)) {}

void GpuGate::enter(const std::vector<int>& devices) {
  for (const int d : devices)
    if (known(d)) ++at(d).users;
}

void GpuGate::leave(const std::vector<int>& devices, Seconds now) {
  for (const int d : devices) {
    if (!known(d)) continue;
    at(d).users -= std::min(at(d).users, 1);
    at(d).left = now;
    at(d).doubtful = true;
  }
}

void GpuGate::observe(GpuReading reading) {
  reading.devices.resize(devices_.size());
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Device& device = devices_[d];
    const auto& use = reading.devices[d];
    if (use && device.users == 0 && (!device.doubtful || reading.begun >= device.left))
      device.usual = std::min(device.usual.value_or(use->used), use->used);
  }
  reading_ = std::move(reading);
}

GpuGate::Answer GpuGate::ask(const std::vector<int>& devices, double share, Seconds now) {
  Answer answer;
  if (reading_ && reading_->blind) return answer;
  if (!reading_) {  // the usual state of the devices is not known yet
    answer.go = now >= first_look_;
    if (!answer.go) answer.waits = "a first look at the GPUs";
    return answer;
  }
  for (const int d : devices)
    if (known(d) && at(d).doubtful) ask(d, std::min(share, 1.0), now, answer);
  return answer;
}

bool GpuGate::needs_look(const std::vector<int>& devices) const {
  if (!reading_) return true;
  return !reading_->blind &&
         std::any_of(devices.begin(), devices.end(), [this](int d) { return known(d) && at(d).doubtful; });
}

void GpuGate::ask(int d, double share, Seconds now, Answer& answer) {
  Device& device = at(d);
  const bool patient = now < device.left + patience_;
  const auto& use = reading_->devices[static_cast<std::size_t>(d)];
  if (reading_->begun < device.left) {
    if (!patient) device.doubtful = false;  // there was no reading in time
    if (patient && answer.go) answer.waits = fmt::format("a look at GPU {}", d);
    answer.go = answer.go && !patient;
    return;
  }
  if (!use || enough(device, *use, share)) {
    device.doubtful = false;
    return;
  }
  const auto gib = [](std::uint64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); };
  if (patient) {
    if (answer.go)
      answer.waits = fmt::format("the memory of GPU {}, where something has ended: {:.1f} of {:.1f} GiB are in use", d,
                                 gib(use->used), gib(use->total));
    answer.go = false;
    return;
  }
  answer.given_up +=
      fmt::format("{}GPU {} still has {:.1f} of {:.1f} GiB in use {:g} s after the last trial there ended",
                  answer.given_up.empty() ? "" : "; ", d, gib(use->used), gib(use->total), patience_);
  device.doubtful = false;
  if (device.users == 0) device.usual = use->used;
}

bool GpuGate::enough(const Device& device, const GpuUse& use, double share) {
  const double total = static_cast<double>(use.total), used = static_cast<double>(use.used);
  const double usual = static_cast<double>(device.usual.value_or(0));
  const double slack = std::max(256.0 * 1024 * 1024, total / 50);  // the use by displays and daemons varies
  if (device.users == 0) return used <= usual + slack;
  return total - used + slack >= share * (total - usual);
}

}  // namespace hypertune::inline v0::local::detail
