// HostSpec: a machine to run trials on.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hypertune::inline v0 {

/// A host and what trials may use of it. What is not said is what the machine has.
struct HostSpec {
  std::string name = {};     ///< for ssh: a name of the ssh_config, a host's name or address, or user@name
  int slots = 0;             ///< trials of one cpu at once; 0: as many as it has cpus
  double cpus = 0;           ///< 0: all of its cores
  double gpus = -1;          ///< negative: those that are found
  std::uint64_t memory = 0;  ///< bytes; 0: all of it
  std::map<std::string, double> custom = {};  ///< further resources by name
  std::map<std::string, std::string> labels = {};
  friend bool operator==(const HostSpec&, const HostSpec&) = default;
};

}  // namespace hypertune::inline v0
