// GpuGate: whether a GPU's memory is free again after what ran there has ended. No I/O.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::local::detail {

struct GpuUse {
  std::uint64_t used = 0, total = 0;  ///< bytes
};

/// What was seen of all devices at one time.
struct GpuReading {
  Seconds begun = 0;                           ///< not older than this
  bool blind = false;                          ///< there is nothing that could be asked
  std::vector<std::optional<GpuUse>> devices;  ///< by the slots' numbers; none: not known
};

/// A process that was killed is gone before the memory that it had on a device is: what begins there at once would find
/// it full. So whoever is to begin asks, and the gate compares the device with what it held before anything of this
/// program ran there, or, while others share it, with the share that was promised. It only ever holds somebody up after
/// something of this program has left that device, and no longer than `patience` after that: what stays is another
/// program's then, and counts as the device's usual state. Not thread-safe.
class GpuGate {
 public:
  GpuGate(std::size_t devices, Seconds patience, Seconds now)
      : devices_(devices), patience_(patience), first_look_(now + std::min(2.0, patience)) {}

  /// Something of this program may hold memory there from now on, or does no more.
  void enter(const std::vector<int>& devices) {
    for (const int d : devices)
      if (known(d)) ++at(d).users;
  }
  void leave(const std::vector<int>& devices, Seconds now) {
    for (const int d : devices) {
      if (!known(d)) continue;
      at(d).users -= std::min(at(d).users, 1);
      at(d).left = now;
      at(d).doubtful = true;
    }
  }

  void observe(GpuReading reading) {
    reading.devices.resize(devices_.size());
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      Device& device = devices_[d];
      const auto& use = reading.devices[d];
      if (use && device.users == 0 && (!device.doubtful || reading.begun >= device.left))
        device.usual = std::min(device.usual.value_or(use->used), use->used);
    }
    reading_ = std::move(reading);
  }

  struct Answer {
    bool go = true;
    std::string waits;     ///< for what, if it does not go
    std::string given_up;  ///< what is in the way still, for the user
  };
  /// Whether something that gets `share` (at most 1) of each of the devices may begin.
  Answer ask(const std::vector<int>& devices, double share, Seconds now) {
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
  /// Whether a reading that is as new as what happened is needed for an answer.
  bool needs_look(const std::vector<int>& devices) const {
    if (!reading_) return true;
    return !reading_->blind &&
           std::any_of(devices.begin(), devices.end(), [this](int d) { return known(d) && at(d).doubtful; });
  }

 private:
  struct Device {
    int users = 0;
    bool doubtful = false;  // something has left, and its memory was not seen free since
    Seconds left = 0;
    std::optional<std::uint64_t> usual;  // what it holds with nothing of this program there
  };

  bool known(int d) const { return d >= 0 && static_cast<std::size_t>(d) < devices_.size(); }
  Device& at(int d) { return devices_[static_cast<std::size_t>(d)]; }
  const Device& at(int d) const { return devices_[static_cast<std::size_t>(d)]; }

  void ask(int d, double share, Seconds now, Answer& answer) {
    Device& device = at(d);
    const bool patient = now < device.left + patience_;
    const auto& use = reading_->devices[static_cast<std::size_t>(d)];
    if (reading_->begun < device.left) {
      if (!patient) device.doubtful = false;  // whoever was asked does not answer
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
        answer.waits = fmt::format("the memory of GPU {}, where something has ended: {:.1f} of {:.1f} GiB are in use",
                                   d, gib(use->used), gib(use->total));
      answer.go = false;
      return;
    }
    answer.given_up +=
        fmt::format("{}GPU {} still has {:.1f} of {:.1f} GiB in use {:g} s after the last trial there ended",
                    answer.given_up.empty() ? "" : "; ", d, gib(use->used), gib(use->total), patience_);
    device.doubtful = false;
    if (device.users == 0) device.usual = use->used;
  }

  static bool enough(const Device& device, const GpuUse& use, double share) {
    const double total = static_cast<double>(use.total), used = static_cast<double>(use.used);
    const double usual = static_cast<double>(device.usual.value_or(0));
    const double slack = std::max(256.0 * 1024 * 1024, total / 50);  // contexts of displays and daemons come and go
    if (device.users == 0) return used <= usual + slack;
    return total - used + slack >= share * (total - usual);
  }

  std::vector<Device> devices_;
  Seconds patience_, first_look_;
  std::optional<GpuReading> reading_;
};

}  // namespace hypertune::inline v0::local::detail
