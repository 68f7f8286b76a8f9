// The workers of one experiment and how they are started.
#pragma once

#include "srun.hpp"
#include "srun_dialer.hpp"

#include <hypertune/slurm/executor.hpp>
#include <hypertune/trial/resources.hpp>

#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::slurm {

struct Worker {
  std::string name;  ///< as a host: "worker-3", or the name of a node in an allocation
  std::string job;   ///< name of the job
  Resources total;   ///< its resources, as far as known before it has started
  remote::AnyDialer dialer;
};

struct Workers {
  bool own_jobs = true;  ///< false: steps in the current allocation
  std::vector<Worker> all;
};

/// All workers that the options allow, at most `most`. Error of kind `usage` for invalid options, if there is no srun,
/// or if the program cannot be started on other nodes.
Workers make_workers(const SlurmSetup& setup, const std::string& experiment, int most,
                     const std::shared_ptr<LeftJobs>& left);

}  // namespace hypertune::inline v0::slurm
