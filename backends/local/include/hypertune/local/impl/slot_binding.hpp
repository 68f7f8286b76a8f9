// SlotBinding: definitions.
#pragma once

#include <hypertune/detail/text.hpp>
#include <hypertune/local/slot_binding.hpp>
#include <hypertune/process/subprocess.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>

extern "C" {  // defined if the program is linked with these libraries, which read the environment only once
void omp_set_num_threads(int) __attribute__((weak));
void openblas_set_num_threads(int) __attribute__((weak));
void MKL_Set_Num_Threads(int) __attribute__((weak));
}

namespace hypertune::inline v0::local {

std::vector<int> usable_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  if (cores.empty()) cores.push_back(0);
  return cores;
}

namespace detail {

std::vector<std::string> split_devices(std::string_view text, char separator) {
  std::vector<std::string> names;
  while (!text.empty()) {
    std::string_view name = hypertune::detail::take_until(text, separator);
    while (!name.empty() && (name.front() == ' ' || name.front() == '\t')) name.remove_prefix(1);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\r')) name.remove_suffix(1);
    if (name == "-1") break;  // CUDA ignores what follows
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

}  // namespace detail

std::vector<std::string> usable_gpus() {
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) return detail::split_devices(visible, ',');
  if (::access("/dev/nvidiactl", F_OK) != 0) return {};
  std::vector<std::string> names;
  try {
    // It hangs if the driver does.
    const auto printed =
        process::collect({"nvidia-smi", "--query-gpu=index", "--format=csv,noheader"}, {.deadline = 10});
    names = detail::split_devices(printed.out, '\n');
  } catch (const Error&) {}  // there is no nvidia-smi
  const auto is_index = [](const std::string& name) {
    return name.find_first_not_of("0123456789") == std::string::npos;
  };
  if (!std::all_of(names.begin(), names.end(), is_index)) names.clear();  // it printed an error
  return names;
}

std::uint64_t usable_memory() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES);
  const auto page = ::sysconf(_SC_PAGESIZE);
  std::uint64_t bytes =
      pages > 0 && page > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page) : 0;
  std::ifstream container("/sys/fs/cgroup/memory.max");  // "max" if there is no limit
  std::uint64_t limit = 0;
  if (container >> limit && limit > 0 && (bytes == 0 || limit < bytes)) bytes = limit;
  return bytes;
}

SlotBinding::SlotBinding(std::vector<int> cores, std::vector<std::string> gpus, bool pin)
    : cores_(std::move(cores)), gpus_(std::move(gpus)), pin_(pin) {}

void SlotBinding::bind_cores(const std::vector<int>& cpus) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (pin_)
    for (const int core : cpus)
      if (core >= 0 && static_cast<std::size_t>(core) < cores_.size())
        CPU_SET(cores_[static_cast<std::size_t>(core)], &set);
  if (CPU_COUNT(&set) == 0)  // undoes the binding to an earlier slot
    for (const int core : cores_) CPU_SET(core, &set);
  ::sched_setaffinity(::getpid(), sizeof set, &set);
}

void SlotBinding::operator()(const Slot& slot) const {
  bind_cores(slot.cpus);
  for (const auto& [name, value] : environment(slot)) ::setenv(name.c_str(), value.c_str(), 1);
  const int threads = threads_of(slot);
  if (omp_set_num_threads != nullptr) omp_set_num_threads(threads);
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(threads);
  if (MKL_Set_Num_Threads != nullptr) MKL_Set_Num_Threads(threads);
}

std::vector<std::pair<std::string, std::string>> SlotBinding::environment(const Slot& slot) const {
  std::vector<std::pair<std::string, std::string>> entries;
  const std::string count = std::to_string(threads_of(slot));
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"})
    entries.emplace_back(name, count);
  if (!gpus_.empty()) entries.emplace_back("CUDA_VISIBLE_DEVICES", visible_devices(slot));
  return entries;
}

std::string SlotBinding::visible_devices(const Slot& slot) const {
  std::string names;
  for (const int gpu : slot.gpus) {
    if (gpu < 0 || static_cast<std::size_t>(gpu) >= gpus_.size()) continue;
    if (!names.empty()) names += ',';
    names += gpus_[static_cast<std::size_t>(gpu)];
  }
  return names;
}

}  // namespace hypertune::inline v0::local
