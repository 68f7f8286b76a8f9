// What an experiment has cost on a cluster: kept in its folder, over all its runs.
#pragma once

#include <hypertune/cluster/cost.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace hypertune::inline v0::cluster {

/// `cost.json` of an experiment. The machine hours of a run are what the cluster's journal has grown by since it began;
/// those of a run that was killed are counted by the next one, as its machines went on.
class CostFile {
 public:
  /// `so_far`: what the journal adds up to now, over the cluster's whole life.
  CostFile(const std::filesystem::path& directory, const std::string& cluster, const CostReport& so_far);

  /// What the experiment has cost, written down. `ended`: its machines count no more.
  CostReport update(const CostReport& so_far, bool ended);

  /// What the folder has; nullopt where the experiment never ran on a cluster, or the file cannot be read.
  static std::optional<CostReport> read(const std::filesystem::path& directory);

 private:
  std::filesystem::path file_;
  std::string cluster_;
  CostReport earlier_;   // of runs that have ended
  CostReport baseline_;  // what the journal had when this one began
};

/// A report as JSON text: its currency and its lines.
std::string cost_text(const CostReport& report);

}  // namespace hypertune::inline v0::cluster
