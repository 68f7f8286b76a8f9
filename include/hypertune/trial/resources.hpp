// What a trial requests, what a host has, and the slot that a trial was given.
#pragma once

#include <hypertune/option.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Amounts of user-defined kinds, by name: `{{"licence", 1}}`.
class CustomResources : public std::map<std::string, double> {
 public:
  using std::map<std::string, double>::map;
  CustomResources() noexcept;
  CustomResources(std::map<std::string, double> amounts);  // NOLINT: implicit on purpose
  CustomResources(const CustomResources& other);
  CustomResources(CustomResources&& other) noexcept;
  CustomResources& operator=(const CustomResources& other);
  CustomResources& operator=(CustomResources&& other) noexcept;
  ~CustomResources();
};

/// What one trial needs. Zero means none.
struct Resources {
  double cpus = 1;  ///< whole cores are pinned; a fraction shares a core
  double gpus = 0;
  std::uint64_t memory = 0;     ///< bytes; 0: no limit
  CustomResources custom = {};  ///< by name, e.g. {"licence", 1}

  static constexpr const char* type = "resources";
  static void describe(auto& self, auto&& option) {
    option("cpus", self.cpus, between(0, 1e9).without_default(), "cores; whole ones are the trial's own");
    option("gpus", self.gpus, between(0, 1e9), "a whole number, or a part of one GPU below 1");
    option("memory", self.memory, at_least(0).in(Bounds::Unit::bytes).without_default(),
           "more than that ends the trial (enforced by the kernel where that is permitted, else by polling)");
    option("custom", self.custom, "countable resources of hosts: `{licence: 1}`");
  }
  friend bool operator==(const Resources& a, const Resources& b);
};

namespace detail {

/// Whether `has` suffices for `needs`. The tolerance is for rounding errors, such as that of ten times 0.1.
inline bool fits(double needs, double has) { return needs <= has + 1e-9; }
bool fits(const std::map<std::string, double>& needs, const std::map<std::string, double>& has);

}  // namespace detail

/// Whether trials can be placed on a host when an executor names the host.
enum class Presence : std::uint8_t {
  there,
  away,     ///< not now; HostGained tells when
  unknown,  ///< not now either, and its resources are not known yet
  coming,   ///< not now, but it has been requested: with Options::ordered it counts from the start
};

/// A machine that can run trials.
struct Host {
  std::string name = "localhost";
  Resources total = {};
  Presence presence = Presence::there;
  int slots = 0;  ///< at most this many trials, or workers of trials, run on it at once; 0: as many as fit
  std::vector<std::string> addresses = {};  ///< all its addresses, as "10.1.0.5"; empty: not known
};

/// The part of a host that a placement gave to a trial.
struct Slot {
  int host = 0;  ///< index into the executor's hosts
  std::string host_name;
  std::vector<int> cpus;  ///< its own cores; empty: not pinned
  std::vector<int> gpus;  ///< device numbers; shared if the request was a fraction
  Resources resources;    ///< what was granted
};

}  // namespace hypertune::inline v0
