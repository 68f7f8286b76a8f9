// Measured: what a runner of programs can measure of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hypertune::inline v0 {

/// What a command has used since it was started for this attempt, with all that it started itself.
enum class Measured : std::uint8_t {
  duration,     ///< seconds, without those in which the trial was suspended
  cpu_time,     ///< seconds of processors, in the program and the kernel
  peak_memory,  ///< bytes that were resident at once
};

/// nullopt: there is no such name.
inline std::optional<Measured> measured_from(std::string_view name) {
  if (name == "duration") return Measured::duration;
  if (name == "cpu_time") return Measured::cpu_time;
  if (name == "peak_memory") return Measured::peak_memory;
  return std::nullopt;
}

}  // namespace hypertune::inline v0
