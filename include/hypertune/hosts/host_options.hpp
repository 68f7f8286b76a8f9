// HostOptions: a machine to run trials on.
#pragma once

#include <hypertune/option.hpp>

#include <cstdint>
#include <map>
#include <string>

namespace hypertune::inline v0 {

/// Describes what trials may use of a machine, for HostOptions and executors. `custom` is the meaning of that option,
/// which differs.
void describe_capacity(auto&& self, auto&& option, const char* custom) {
  option("cpus", self.cpus, between(0, 1e9).without_default(), "the cores that trials may take");
  option("gpus", self.gpus, between(0, 1e9).without_default(), "the GPUs that trials may take");
  option("memory", self.memory, at_least(0).in(Bounds::Unit::bytes).without_default(),
         "the memory that trials may take");
  option("custom", self.custom, custom);
}

namespace detail {
/// A word, several, or a map with words as values.
struct HostLabels {
  using form_tag = void;
};
}  // namespace detail

/// A host and what trials may use of it. Values that are not set are those of the machine.
struct HostOptions {
  std::string name = {};     ///< for ssh: a name in the ssh_config, a host's name or address, or user@name
  int slots = 0;             ///< number of one-cpu trials at once; 0: as many as it has cpus
  double cpus = 0;           ///< 0: all of its cores
  double gpus = -1;          ///< negative: those that are detected
  std::uint64_t memory = 0;  ///< bytes; 0: all of it
  std::map<std::string, double> custom = {};  ///< further resources by name
  std::map<std::string, std::string> labels = {};

  static constexpr const char* type = "host";
  static void describe(auto& self, auto&& option) {
    option("slots", self.slots, at_least(1).without_default(), "trials of one cpu at once");
    describe_capacity(self, option, "what else the host has, and how much of it: `{licence: 2}`");
    option("labels", self.labels, detail::HostLabels{}, "labels of the host: `[big]`, `{zone: a}`");
  }
  friend bool operator==(const HostOptions&, const HostOptions&) = default;
};
using HostSpec [[deprecated("is now HostOptions")]] = HostOptions;

}  // namespace hypertune::inline v0
