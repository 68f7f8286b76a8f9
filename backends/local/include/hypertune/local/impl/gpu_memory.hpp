// Reads GPU memory through NVML and nvidia-smi.
#pragma once

#include <hypertune/detail/parse_number.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/gpu_memory.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/process/subprocess.hpp>

#include <dlfcn.h>
#include <fcntl.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace hypertune::inline v0::local::detail {

std::unique_ptr<Nvml> Nvml::open(const char* library) {
  std::unique_ptr<Nvml> nvml(new Nvml(::dlopen(library, RTLD_NOW | RTLD_LOCAL)));
  return nvml->ready_ ? std::move(nvml) : nullptr;
}

Nvml::~Nvml() {
  if (ready_ && shutdown_ != nullptr) shutdown_();
  if (library_ != nullptr) ::dlclose(library_);
}

std::optional<GpuUse> Nvml::use(const std::string& name) const {
  void* device = nullptr;
  const auto index = hypertune::detail::parse_number<unsigned>(name);
  if ((index ? by_index_(*index, &device) : by_uuid_(name.c_str(), &device)) != 0) return std::nullopt;
  Memory memory{};
  if (memory_(device, &memory) != 0) return std::nullopt;
  return GpuUse{memory.used, memory.total};
}

template <class F>
bool Nvml::find(F& function, const char* name) {
  function = reinterpret_cast<F>(::dlsym(library_, name));
  return function != nullptr;
}

Nvml::Nvml(void* library) : library_(library) {
  int (*init)() = nullptr;
  ready_ = library != nullptr && find(init, "nvmlInit_v2") && find(shutdown_, "nvmlShutdown") &&
           find(by_index_, "nvmlDeviceGetHandleByIndex_v2") && find(by_uuid_, "nvmlDeviceGetHandleByUUID") &&
           find(memory_, "nvmlDeviceGetMemoryInfo") && init() == 0;
}

std::optional<SmiLine> SmiLine::read(std::string_view text) {
  const auto words = split_devices(text, ',');
  if (words.size() != 4) return std::nullopt;
  SmiLine line{words[0], words[1], {}};
  for (auto [word, bytes] : {std::pair(&words[2], &line.use.used), {&words[3], &line.use.total}}) {
    const auto mib = hypertune::detail::parse_number<std::uint64_t>(*word);
    if (!mib || *mib > (std::uint64_t{1} << 40U)) return std::nullopt;
    *bytes = *mib << 20U;
  }
  return line;
}

std::optional<std::vector<SmiLine>> ask_nvidia_smi() {
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

GpuReading GpuMeter::read(const std::vector<std::string>& names) const {
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

}  // namespace hypertune::inline v0::local::detail
