// GpuGate: decides whether a GPU's memory is free again after a process there has ended. No I/O.
#pragma once

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

/// A reading of all devices.
struct GpuReading {
  Seconds begun = 0;                           ///< when the reading began
  bool blind = false;                          ///< neither NVML nor nvidia-smi is available
  std::vector<std::optional<GpuUse>> devices;  ///< indexed by the slots' numbers; nullopt: unknown
};

/// A killed process disappears before its memory on a device is freed, so a process that begins there at once could
/// find the device full. So a launch asks the gate first. The gate compares the device's memory use with the usual one,
/// before anything of this program ran there; while others share the device, it compares the free memory with the
/// promised share. It delays a launch only after something of this program has left that device, and for at most
/// `patience` seconds after that: what remains then belongs to other programs and counts as the usual use. Not
/// thread-safe.
class GpuGate {
 public:
  GpuGate(std::size_t devices, Seconds patience, Seconds now);

  /// From now on something of this program may hold memory there (enter), or no longer (leave).
  void enter(const std::vector<int>& devices);
  void leave(const std::vector<int>& devices, Seconds now);

  void observe(GpuReading reading);

  struct Answer {
    bool go = true;
    std::string waits;     ///< what it waits for, if not `go`
    std::string given_up;  ///< a text for the user if `patience` has run out
  };
  /// Whether something that gets `share` (at most 1) of each of these devices may begin.
  Answer ask(const std::vector<int>& devices, double share, Seconds now);
  /// Whether an answer needs another reading.
  bool needs_look(const std::vector<int>& devices) const;

 private:
  struct Device {
    int users = 0;
    bool doubtful = false;  // something has left, and its memory was not seen to be free since
    Seconds left = 0;
    std::optional<std::uint64_t> usual;  // bytes used when nothing of this program is there
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
