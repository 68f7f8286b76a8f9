// SlotBinding: the resources of this machine, and the binding of a process to its slot.
#pragma once

#include <hypertune/detail/whole.hpp>
#include <hypertune/trial/resources.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

/// The cores that this process may use.
std::vector<int> usable_cores();

namespace detail {
std::vector<std::string> split_devices(std::string_view text, char separator);
}  // namespace detail

/// The NVIDIA GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES: those listed there, or all that
/// nvidia-smi finds if it is not set. Does not use CUDA.
std::vector<std::string> usable_gpus();

/// The memory in bytes of this machine or of the container that this process is in.
std::uint64_t usable_memory();

/// Binds a process to a slot: sets its cores, the number of threads of numerical libraries, and its GPUs.
class SlotBinding {
 public:
  /// `pin`: bind to the slot's cores. `gpus`: the names of the devices, indexed by the slot's numbers; empty:
  /// CUDA_VISIBLE_DEVICES is not changed.
  SlotBinding(std::vector<int> cores, std::vector<std::string> gpus, bool pin);

  /// To be called in the process itself, on its main thread.
  void operator()(const Slot& slot) const;

  /// Binds the main thread, and the threads that it will start, to these of the cores; not if slots are not bound. May be
  /// called on any thread.
  void bind_cores(const std::vector<int>& cpus) const;

  /// The environment variables for a program that is started in the slot.
  std::vector<std::pair<std::string, std::string>> environment(const Slot& slot) const;

  std::string visible_devices(const Slot& slot) const;

 private:
  static int threads_of(const Slot& slot) { return hypertune::detail::whole_within(slot.resources.cpus, 1, 4096); }

  std::vector<int> cores_;
  std::vector<std::string> gpus_;
  bool pin_;
};

}  // namespace hypertune::inline v0::local
