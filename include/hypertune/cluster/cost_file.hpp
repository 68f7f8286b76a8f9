// The costs of an experiment on a cluster, over all its runs; kept in the experiment's folder.
#pragma once

#include <hypertune/cluster/cost.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace hypertune::inline v0::cluster {

/// `cost.json` of an experiment. The machine hours of a run are the hours added to the cluster's journal since the run
/// began. The hours of a run that was killed are counted by the next run, because its machines may have continued to
/// run.
class CostFile {
 public:
  /// `so_far`: the total of the journal now, over the cluster's whole life.
  CostFile(const std::filesystem::path& directory, const std::string& cluster, const CostReport& so_far);

  /// Returns the costs of the experiment and writes them to the file. `ended`: its machines are not counted from now
  /// on.
  CostReport update(const CostReport& so_far, bool ended);

  /// The costs recorded in the folder; nullopt if the experiment never ran on a cluster, or if the file cannot be read.
  static std::optional<CostReport> read(const std::filesystem::path& directory);

 private:
  std::filesystem::path file_;
  std::string cluster_;
  CostReport earlier_;   // runs that have ended
  CostReport baseline_;  // the journal's total when this run began
};

/// A report as JSON text: its currency and its lines.
std::string cost_text(const CostReport& report);

}  // namespace hypertune::inline v0::cluster
