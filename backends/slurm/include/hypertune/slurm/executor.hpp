// SlurmExecutor: trials on workers that are Slurm jobs, or steps in the allocation that the driver runs in.
#pragma once

#include <hypertune/config/slurm_options.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/remote/elastic.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/runtime.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::slurm {

/// Meant for designated initialisers.
struct SlurmSetup {
  SlurmOptions options = {};
  /// The program of the workers, by its path on the nodes. It must become an agent when called with the arguments below
  /// and then `--hypertune-agent` (a Runtime does that). Empty: this program itself.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  /// Seconds that a worker's job waits for its driver to start the agent in it. Then it ends.
  Seconds orphan = 300;
  remote::RemoteOptions remote =
      {};  ///< its heartbeat timeout and transfer are taken from `options`; connecting has no limit
  /// Gets the lines for the user while no experiment takes them; by default they go to standard error. May be called
  /// from any thread.
  std::function<void(const std::string&)> say = {};
};

/// Each worker is a job, in which the driver starts the agent as a step: an `srun` whose standard streams are the
/// connection, without a port or a daemon. There are as many workers as the queue of trials needs. They end when they
/// were idle for some time, and with the run, however it ends: a job lasts no longer than its step, also if the driver's
/// machine is lost. A driver that resumes the experiment cancels jobs that an earlier one has left. The experiment begins
/// while the workers wait in Slurm's queue, and reports what they wait for. The end of a worker's time and a preemption
/// are termination notices: its trials save and continue on the next worker. Slurm's controller may be unavailable for a
/// while. The program and its working directory must also exist on the nodes. Copies share one executor.
class SlurmExecutor : public remote::ElasticExecutor {
 public:
  explicit SlurmExecutor(SlurmSetup setup);
};

static_assert(Executor<SlurmExecutor>);

}  // namespace hypertune::inline v0::slurm

namespace hypertune::inline v0 {
using slurm::SlurmExecutor;
using slurm::SlurmSetup;

/// `ht::on_slurm(runtime, {.partition = "gpu", .time = 4 * 3600, .cpus = 4, .gres = "gpu:1"})`: runs trials on Slurm
/// workers. Each worker runs this program with the same arguments as here.
inline SlurmExecutor on_slurm(const remote::AgentRuntime& runtime, SlurmOptions options = {}) {
  SlurmSetup setup;
  setup.options = std::move(options);
  return SlurmExecutor(runtime.setup(std::move(setup)));
}
}  // namespace hypertune::inline v0
