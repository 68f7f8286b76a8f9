// HostSpec: a machine to run trials on.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace hypertune::inline v0 {

/// A host and what trials may use of it. Values that are not set are those of the machine.
struct HostSpec {
  std::string name = {};     ///< for ssh: a name in the ssh_config, a host's name or address, or user@name
  int slots = 0;             ///< number of one-cpu trials at once; 0: as many as it has cpus
  double cpus = 0;           ///< 0: all of its cores
  double gpus = -1;          ///< negative: those that are detected
  std::uint64_t memory = 0;  ///< bytes; 0: all of it
  std::map<std::string, double> custom = {};  ///< further resources by name
  std::map<std::string, std::string> labels = {};
  friend bool operator==(const HostSpec&, const HostSpec&) = default;
};

}  // namespace hypertune::inline v0
