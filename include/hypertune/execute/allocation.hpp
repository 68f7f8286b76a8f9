// Workers: how many workers a trial has. Allocation: the slots of an attempt, one per worker.
#pragma once

#include <hypertune/option.hpp>
#include <hypertune/trial/resources.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// How the workers of a trial are spread over the hosts.
enum class Strategy : std::uint8_t {
  pack,           ///< on as few hosts as possible
  spread,         ///< on as many hosts as possible
  strict_pack,    ///< all on one host, or not at all
  strict_spread,  ///< each on a host of its own, or not at all
};

constexpr const char* to_string(Strategy strategy) {
  switch (strategy) {
    case Strategy::pack: return "pack";
    case Strategy::spread: return "spread";
    case Strategy::strict_pack: return "strict_pack";
    case Strategy::strict_spread: return "strict_spread";
  }
  return "unknown";
}

/// How many workers a trial has: `{4}`, or `{.min = 2, .max = 8}` if the number may change while it runs. The resources
/// of a trial are those of each worker.
struct Workers {
  int min = 1;
  int max = min;
  Strategy strategy = Strategy::pack;

  static constexpr const char* type = "workers";
  static void describe(auto& self, auto&& option) {
    option("min", self.min, at_least(1), "a trial begins as soon as there is room for this many");
    option("max", self.max, at_least(1).without_default(),
           "the most workers that a trial takes, as far as there is room");
    option("placement", self.strategy, {"pack", "spread", "strict_pack", "strict_spread"},
           "on as few hosts as possible, or on as many; `strict_pack`: all on one host; `strict_spread`: each on a "
           "host of its own");
  }
  bool several() const { return max > 1; }
  bool elastic() const { return min < max; }
  /// Throws an Error of kind `usage` if the numbers are invalid.
  void require_sound() const;
  friend bool operator==(const Workers&, const Workers&) = default;
};

/// How the workers of a trial find each other.
struct GroupOptions {
  /// The network through which hosts reach each other, as "10.1.0.0/16": workers of a trial on several hosts use their
  /// addresses in it.
  std::string network = {};
  /// The workers of a trial connect to each other as they start, as external commands do: if no network is named, all
  /// of them must be on one host.
  bool required = false;
  /// Throws an Error of kind `usage` if `network` is invalid. Whether hosts have such addresses is checked when workers
  /// are placed.
  void require_sound() const;
};

/// The slots of an attempt: one for each worker, by rank. All were placed together. A change of the workers is a new
/// generation of the same attempt.
struct Allocation {
  std::uint32_t generation = 0;
  Slot lead = {};                 ///< of rank 0, the only one that reports
  std::vector<Slot> others = {};  ///< of ranks 1, 2, …; separate, so that a trial of one worker needs no heap memory

  int workers() const { return static_cast<int>(others.size()) + 1; }
  const Slot& operator[](int rank) const { return rank == 0 ? lead : others.at(static_cast<std::size_t>(rank) - 1); }
  Slot& operator[](int rank) { return rank == 0 ? lead : others.at(static_cast<std::size_t>(rank) - 1); }
  bool uses_host(const std::string& name) const;
};

}  // namespace hypertune::inline v0
