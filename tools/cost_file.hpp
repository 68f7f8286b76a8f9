// What an experiment has cost on a cluster: kept in its folder, over all its runs.
#pragma once

#include <hypertune/cluster/cost.hpp>
#include <hypertune/record/results.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace hypertune::command {

/// `cost.json` of an experiment. The machine hours of a run are what the cluster's journal has grown by since it began;
/// those of a run that was killed are counted by the next one, as its machines went on.
class CostFile {
 public:
  /// `so_far`: what the journal adds up to now, over the cluster's whole life.
  CostFile(const std::filesystem::path& directory, const std::string& cluster, const cluster::CostReport& so_far);

  /// What the experiment has cost, written down. `ended`: its machines count no more.
  cluster::CostReport update(const cluster::CostReport& so_far, bool ended);

  /// What the folder has; nullopt where the experiment never ran on a cluster, or the file cannot be read.
  static std::optional<cluster::CostReport> read(const std::filesystem::path& directory);

 private:
  std::filesystem::path file_;
  std::string cluster_;
  cluster::CostReport earlier_;   // of runs that have ended
  cluster::CostReport baseline_;  // what the journal had when this one began
};

/// One line: host hours, money, what was saved, steps done twice. Empty where the experiment never ran on a cluster.
std::string cost_line(const std::filesystem::path& directory, const Results& results);
/// The same as JSON; "null" where there is nothing.
std::string cost_json(const std::filesystem::path& directory, const Results& results);

}  // namespace hypertune::command
