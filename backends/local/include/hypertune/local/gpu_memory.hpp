// The memory use of NVIDIA GPUs, read through NVML or nvidia-smi, whichever is found at run time. Does not use CUDA.
#pragma once

#include <hypertune/local/gpu_gate.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// NVIDIA's management library, which comes with the driver. Not thread-safe.
class Nvml {
 public:
  /// Null if there is no such library, or no working driver.
  static std::unique_ptr<Nvml> open(const char* library = "libnvidia-ml.so.1");
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// `name`: an index or a UUID, as in CUDA_VISIBLE_DEVICES.
  std::optional<GpuUse> use(const std::string& name) const;

 private:
  struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
  };
  explicit Nvml(void* library);
  template <class F>
  bool find(F& function, const char* name);

  void* library_;
  bool ready_ = false;
  int (*shutdown_)() = nullptr;
  int (*by_index_)(unsigned, void**) = nullptr;
  int (*by_uuid_)(const char*, void**) = nullptr;
  int (*memory_)(void*, Memory*) = nullptr;
};

/// A line of nvidia-smi: `index, uuid, MiB used, MiB in total`. read() returns nullopt for other lines.
struct SmiLine {
  std::string index, uuid;
  GpuUse use;
  static std::optional<SmiLine> read(std::string_view text);
};

/// All devices according to nvidia-smi; nullopt if it is missing, fails, or takes more than 10 seconds.
std::optional<std::vector<SmiLine>> ask_nvidia_smi();

/// Reads through NVML if it is available, else through nvidia-smi.
class GpuMeter {
 public:
  GpuMeter() : nvml_(Nvml::open()) {}

  /// `names` as in CUDA_VISIBLE_DEVICES. May take seconds.
  GpuReading read(const std::vector<std::string>& names) const;

 private:
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace hypertune::inline v0::local::detail
