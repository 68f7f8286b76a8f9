// The workers of one experiment and how they are started.
#pragma once

#include "srun.hpp"
#include "srun_dialer.hpp"

#include <hypertune/slurm/executor.hpp>
#include <hypertune/trial/resources.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::slurm {

struct Worker {
  std::string name;  ///< as a host: "worker-3", or the name of a node in an allocation
  Resources total;   ///< its resources, as far as known before it has started
  remote::AnyDialer dialer;
};

struct Workers {
  std::shared_ptr<WorkerJobs> jobs;  ///< null: the workers are steps in the current allocation
  std::vector<Worker> all;
};

/// All workers of the experiment that the options allow. `say` gets lines for the user. Error of kind `usage` for
/// invalid options, if Slurm's programs or their configuration are missing, or if the program cannot be started on other
/// nodes.
Workers make_workers(const SlurmSetup& setup, const Workload& workload,
                     const std::function<void(const std::string&)>& say);

}  // namespace hypertune::inline v0::slurm
