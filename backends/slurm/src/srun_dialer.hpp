// Opening a stream to a worker; the connection is the standard streams of an srun.
#pragma once

#include "worker_jobs.hpp"

#include <hypertune/config/slurm_options.hpp>
#include <hypertune/remote/dialer.hpp>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::slurm {

using Environment = std::map<std::string, std::optional<std::string>>;

/// A worker that is a step of the allocation in which the driver runs.
class StepDialer {
 public:
  StepDialer(std::vector<std::string> srun, Environment environment)
      : srun_(std::move(srun)), environment_(std::move(environment)) {}

  remote::AgentStream dial(const std::stop_token& stop) const;
  remote::FailureClass classify(const std::string& said) const;
  std::string explain(const std::string& said) const;

 private:
  std::vector<std::string> srun_;
  Environment environment_;
};

/// A worker that is a job of its own: each attempt submits one, waits until it runs, and starts the agent as a step in
/// it. The job ends with the stream.
class JobDialer {
 public:
  struct Commands {
    std::string worker;  ///< its name as a host
    std::string job;     ///< the name of its jobs
    std::vector<std::string> sbatch;
    std::function<std::vector<std::string>(std::uint64_t id)> srun;  ///< the step in job `id`
  };
  JobDialer(Commands commands, Environment environment, std::shared_ptr<WorkerJobs> jobs)
      : commands_(std::move(commands)), environment_(std::move(environment)), jobs_(std::move(jobs)) {}

  /// Blocks until the job runs, which may take any length of time.
  remote::AgentStream dial(const std::stop_token& stop) const;
  remote::FailureClass classify(const std::string& said) const;
  std::string explain(const std::string& said) const;

 private:
  Commands commands_;
  Environment environment_;
  std::shared_ptr<WorkerJobs> jobs_;
};

}  // namespace hypertune::inline v0::slurm
