// What a trial asks for, what a host has, and the slot that a trial was given.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Amounts of one's own kinds, by name: `{{"licence", 1}}`.
class CustomResources : public std::map<std::string, double> {
 public:
  using std::map<std::string, double>::map;
  CustomResources() = default;
  CustomResources(std::map<std::string, double> amounts)  // NOLINT: implicit on purpose
      : std::map<std::string, double>(std::move(amounts)) {}
  CustomResources(const CustomResources&) = default;
  CustomResources(CustomResources&&) noexcept = default;
  CustomResources& operator=(const CustomResources&) = default;
  CustomResources& operator=(CustomResources&&) noexcept = default;
  // Inlined into a program that writes Options in braces, it makes g++ 12 warn of a map that may be uninitialised.
  [[gnu::noinline]] ~CustomResources() {}  // NOLINT(modernize-use-equals-default)
};

/// What one trial needs. Zero means none.
struct Resources {
  double cpus = 1;              ///< whole cores are pinned; a fraction shares a core
  double gpus = 0;              ///< a whole number, or a fraction below 1 of one GPU
  std::uint64_t memory = 0;     ///< bytes the trial may use; 0: no limit
  CustomResources custom = {};  ///< by name, e.g. {"licence", 1}
  friend bool operator==(const Resources&, const Resources&) = default;
};

/// Whether trials can be placed on a host when an executor names it.
enum class Presence : std::uint8_t {
  there,
  away,     ///< not now: HostGained tells when it is
  unknown,  ///< likewise, and what it has is not known before
  coming,   ///< not now, but it has been asked for: where all is decided in order, it counts from the start
};

/// A machine that can run trials.
struct Host {
  std::string name = "localhost";
  Resources total = {};
  Presence presence = Presence::there;
  int slots = 0;  ///< trials, or workers of trials, that it runs at once at most; 0: what there is room for
  std::vector<std::string> addresses = {};  ///< all that it has, "10.1.0.5"; empty: nobody has said
};

/// The part of a host that a placement gave to a trial.
struct Slot {
  int host = 0;  ///< index into the executor's hosts
  std::string host_name;
  std::vector<int> cpus;  ///< cores of its own; empty: not pinned
  std::vector<int> gpus;  ///< device numbers, shared when the request was a fraction
  Resources resources;    ///< what was granted
};

}  // namespace hypertune::inline v0
