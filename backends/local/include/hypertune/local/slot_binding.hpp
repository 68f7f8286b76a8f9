// SlotBinding: what this machine has, and how a process is bound to its part of it.
#pragma once

#include <hypertune/detail/linkage.hpp>
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

/// The NVIDIA GPUs that this process may use, as CUDA_VISIBLE_DEVICES would list them: those it lists now, else all
/// that nvidia-smi finds. CUDA itself is not touched.
std::vector<std::string> usable_gpus();

/// The bytes of memory that this machine, or the container this process is in, has.
std::uint64_t usable_memory();

/// Binds a process to a slot: its cores, the threads of its numerical libraries, its GPUs.
class SlotBinding {
 public:
  /// `pin`: bind to the slot's cores. `gpus`: the devices' names, by the slot's numbers; none: GPUs are not accounted,
  /// and CUDA_VISIBLE_DEVICES stays as it is.
  SlotBinding(std::vector<int> cores, std::vector<std::string> gpus, bool pin);

  /// To be called in the process itself, on its main thread.
  void operator()(const Slot& slot) const;

  /// What a program that is started in the slot should find in its environment.
  std::vector<std::pair<std::string, std::string>> environment(const Slot& slot) const;

  std::string visible_devices(const Slot& slot) const;

 private:
  static int threads_of(const Slot& slot) { return hypertune::detail::whole_within(slot.resources.cpus, 1, 4096); }

  std::vector<int> cores_;
  std::vector<std::string> gpus_;
  bool pin_;
};

}  // namespace hypertune::inline v0::local

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/slot_binding.hpp>
#endif
