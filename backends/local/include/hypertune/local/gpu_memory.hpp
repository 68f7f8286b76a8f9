// What NVIDIA GPUs hold in memory, by NVML or nvidia-smi as they are found at run time. CUDA itself is not touched.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/local/gpu_gate.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/process/subprocess.hpp>

#include <dlfcn.h>

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::local::detail {

/// NVIDIA's management library, which comes with the driver. Used by one thread at a time.
class Nvml {
 public:
  /// Null if there is no such library, or no driver that answers it.
  static std::unique_ptr<Nvml> open(const char* library = "libnvidia-ml.so.1") {
    std::unique_ptr<Nvml> nvml(new Nvml(::dlopen(library, RTLD_NOW | RTLD_LOCAL)));
    return nvml->ready_ ? std::move(nvml) : nullptr;
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (ready_ && shutdown_ != nullptr) shutdown_();
    if (library_ != nullptr) ::dlclose(library_);
  }

  /// `name`: an index or a UUID, as in CUDA_VISIBLE_DEVICES.
  std::optional<GpuUse> use(const std::string& name) const {
    void* device = nullptr;
    unsigned index = 0;
    const char* end = name.data() + name.size();
    const bool number = !name.empty() && std::from_chars(name.data(), end, index).ptr == end;
    if ((number ? by_index_(index, &device) : by_uuid_(name.c_str(), &device)) != 0) return std::nullopt;
    Memory memory{};
    if (memory_(device, &memory) != 0) return std::nullopt;
    return GpuUse{memory.used, memory.total};
  }

 private:
  struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
  };
  explicit Nvml(void* library) : library_(library) {
    int (*init)() = nullptr;
    ready_ = library != nullptr && find(init, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
             find(by_index_, "nvmlDeviceGetHandleByIndex_v2") && find(by_uuid_, "nvmlDeviceGetHandleByUUID") &&
             find(memory_, "nvmlDeviceGetMemoryInfo") && init() == 0;
  }
  template <class F>
  bool find(F& function, const char* name) {
    function = reinterpret_cast<F>(::dlsym(library_, name));
    return function != nullptr;
  }

  void* library_;
  bool ready_ = false;
  int (*shutdown_)() = nullptr;
  int (*by_index_)(unsigned, void**) = nullptr;
  int (*by_uuid_)(const char*, void**) = nullptr;
  int (*memory_)(void*, Memory*) = nullptr;
};

/// What a line of nvidia-smi says: `index, uuid, MiB used, MiB in all`; null if it is none.
struct SmiLine {
  std::string index, uuid;
  GpuUse use;
  static std::optional<SmiLine> read(std::string_view text) {
    const auto words = split_devices(text, ',');
    if (words.size() != 4) return std::nullopt;
    SmiLine line{words[0], words[1], {}};
    for (auto [word, bytes] : {std::pair(&words[2], &line.use.used), {&words[3], &line.use.total}}) {
      std::uint64_t mib = 0;
      const char* end = word->data() + word->size();
      if (std::from_chars(word->data(), end, mib).ptr != end || mib > (std::uint64_t{1} << 40U)) return std::nullopt;
      *bytes = mib << 20U;
    }
    return line;
  }
};

/// All devices by nvidia-smi; nullopt if it is not there, fails, or takes more than 10 seconds.
inline std::optional<std::vector<SmiLine>> ask_nvidia_smi() {
  process::Collected smi;
  try {
    smi = process::collect(
        {"nvidia-smi", "--query-gpu=index,uuid,memory.used,memory.total", "--format=csv,noheader,nounits"},
        {.spawn = {.keeper = process::Keeper::all}, .deadline = 10});
  } catch (const Error&) { return std::nullopt; }
  if (smi.late || smi.code() != 0) return std::nullopt;
  std::vector<SmiLine> lines;
  for (const auto& text : split_devices(smi.out, '\n'))
    if (auto line = SmiLine::read(text)) lines.push_back(std::move(*line));
  return lines;
}

/// Asks whichever of the two there is.
class GpuMeter {
 public:
  GpuMeter() : nvml_(Nvml::open()) {}

  /// `names` as in CUDA_VISIBLE_DEVICES. May take seconds.
  GpuReading read(const std::vector<std::string>& names) const {
    GpuReading reading;
    reading.devices.resize(names.size());
    if (nvml_) {
      for (std::size_t d = 0; d < names.size(); ++d) reading.devices[d] = nvml_->use(names[d]);
      return reading;
    }
    const auto lines = ask_nvidia_smi();
    reading.blind = !lines;
    if (!lines) return reading;
    for (std::size_t d = 0; d < names.size(); ++d)
      for (const auto& line : *lines)
        if (line.index == names[d] || line.uuid == names[d]) reading.devices[d] = line.use;
    return reading;
  }

 private:
  std::unique_ptr<Nvml> nvml_;
};

}  // namespace hypertune::inline v0::local::detail
