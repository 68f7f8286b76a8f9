// A sweep's trials on the machines of a CLUSTER.yaml, which come and go with its queue.
#pragma once

#include <hypertune/config/sweep_text.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/record/callback.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::command {

/// Drives the sweep's cluster from its making to finish(). Trials that can never fit are an error of kind `resources`
/// before any machine is asked for. Its machines are ended by finish() or the destructor, however the run ends, but for
/// the head and min_workers of a cluster that `up` has brought up.
class ClusterTrials {
 public:
  /// `left`: trials that are still to be done; 0: as many as there is room for. `directory`: the experiment's.
  ClusterTrials(const Sweep& sweep, std::int64_t left, std::filesystem::path directory);
  ~ClusterTrials();
  ClusterTrials(const ClusterTrials&) = delete;
  ClusterTrials& operator=(const ClusterTrials&) = delete;

  /// Waits for the first machine. False: the user has interrupted that. Error if none can be had at all.
  bool await_machine();
  AnyExecutor executor(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set);
  /// Tells how trials end, which an executor does not know.
  AnyCallback follower() const;
  /// Ends the machines and writes down what they have cost. Once.
  void finish();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  // the executor asks it for hosts until it ends
};

}  // namespace hypertune::command
