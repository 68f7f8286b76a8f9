// Memory kills: processes that the kernel has killed because the memory of their control group was used up.
#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote::detail {

/// Begins the text of a Failed of an agent in whose control group such a kill happened meanwhile.
inline constexpr std::string_view memory_was_used_up = "its memory was used up, and the kernel killed a process: ";

/// How many there have been in this process's own control group, as a container sees it; nullopt: it is in none.
inline std::optional<std::uint64_t> count_memory_kills(const std::string& root = "/sys/fs/cgroup") {
  for (const char* file : {"/memory.events", "/memory/memory.oom_control"}) {
    std::ifstream in(root + file);
    std::string word;
    std::uint64_t number = 0;
    while (in >> word >> number)
      if (word == "oom_kill") return number;
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0::remote::detail
