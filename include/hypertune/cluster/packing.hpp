// Packing: how many and which machines a queue of trials needs.
#pragma once

#include <hypertune/remote/demand.hpp>
#include <hypertune/trial/resources.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::cluster {

using remote::TrialShape;

/// The free resources of a machine. No I/O.
class Room {
 public:
  /// `known` false: the machine's resources are not known; it is assumed to hold exactly one trial of any size.
  explicit Room(const Resources& total, bool known = true) : free_(total), known_(known) {
    memory_counts_ = total.memory > 0;
    if (total.gpus >= 1 && total.gpus < 4096) devices_.assign(static_cast<std::size_t>(total.gpus), 1.0);
  }

  bool fits(const Resources& needs) const {
    if (!known_) return !taken_;
    if (!hypertune::detail::fits(needs.cpus, free_.cpus)) return false;
    if (needs.gpus > 0 && !has_devices(needs.gpus)) return false;
    if (memory_counts_ && needs.memory > free_.memory) return false;
    return hypertune::detail::fits(needs.custom, free_.custom);
  }
  bool take(const Resources& needs) {
    if (!fits(needs)) return false;
    taken_ = true;
    if (!known_) return true;
    free_.cpus -= needs.cpus;
    if (memory_counts_) free_.memory -= needs.memory;
    for (const auto& [name, amount] : needs.custom)
      if (amount > 0) free_.custom[name] -= amount;
    double rest = needs.gpus;
    if (rest > 0 && rest < 1) {  // the fullest device with enough left
      double* best = nullptr;
      for (auto& device : devices_)
        if (device + 1e-9 >= rest && (best == nullptr || device < *best)) best = &device;
      if (best != nullptr) *best -= rest;
    } else {
      for (auto& device : devices_)
        if (rest >= 1 && device >= 1 - 1e-9) {
          device = 0;
          rest -= 1;
        }
    }
    return true;
  }
  bool used() const { return taken_; }

 private:
  bool has_devices(double gpus) const {
    if (gpus < 1)
      return std::any_of(devices_.begin(), devices_.end(), [&](double device) { return device + 1e-9 >= gpus; });
    if (gpus != std::floor(gpus)) return false;
    return std::count_if(devices_.begin(), devices_.end(), [](double device) { return device >= 1 - 1e-9; }) >=
           static_cast<std::ptrdiff_t>(gpus);
  }

  Resources free_;
  bool known_, memory_counts_ = false, taken_ = false;
  std::vector<double> devices_;
};

/// How many trials with these needs fit on an empty machine; at most `most`.
inline int how_many(const Resources& total, bool known, const Resources& needs, int most = 64) {
  Room room(total, known);
  int count = 0;
  while (count < most && room.take(needs)) ++count;
  return count;
}

/// A size to compare needs by: larger trials are packed first.
inline double weight_of(const Resources& needs) {
  double weight = needs.cpus + 10 * needs.gpus + static_cast<double>(needs.memory >> 20U) / 8192;
  for (const auto& [name, amount] : needs.custom) weight += std::max(0.0, amount);
  return weight;
}

}  // namespace hypertune::inline v0::cluster
