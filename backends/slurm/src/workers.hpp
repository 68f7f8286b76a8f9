// The workers of one experiment: who they are, and how they are started.
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
  std::string name;  ///< of the host: "worker-3", or the node within an allocation
  std::string job;   ///< of the job
  Resources total;   ///< what it has, as far as that is known before it is there
  remote::AnyDialer dialer;
};

struct Workers {
  bool own_jobs = true;  ///< false: steps in the allocation that this program runs in
  std::vector<Worker> all;
};

/// All workers that the options allow, at most `most`. Error of kind `usage` for options that make no sense, where
/// there is no srun, or for a program that cannot be started elsewhere.
Workers make_workers(const SlurmSetup& setup, const std::string& experiment, int most,
                     const std::shared_ptr<LeftJobs>& left);

}  // namespace hypertune::inline v0::slurm
