// GpuGate: whether a GPU's memory is free again after what ran there has ended. No I/O.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/trial/trial.hpp>

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
  GpuGate(std::size_t devices, Seconds patience, Seconds now);

  /// Something of this program may hold memory there from now on, or does no more.
  void enter(const std::vector<int>& devices);
  void leave(const std::vector<int>& devices, Seconds now);

  void observe(GpuReading reading);

  struct Answer {
    bool go = true;
    std::string waits;     ///< for what, if it does not go
    std::string given_up;  ///< what is in the way still, for the user
  };
  /// Whether something that gets `share` (at most 1) of each of the devices may begin.
  Answer ask(const std::vector<int>& devices, double share, Seconds now);
  /// Whether a reading that is as new as what happened is needed for an answer.
  bool needs_look(const std::vector<int>& devices) const;

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

  void ask(int d, double share, Seconds now, Answer& answer);

  static bool enough(const Device& device, const GpuUse& use, double share);

  std::vector<Device> devices_;
  Seconds patience_, first_look_;
  std::optional<GpuReading> reading_;
};

}  // namespace hypertune::inline v0::local::detail

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/gpu_gate.hpp>
#endif
