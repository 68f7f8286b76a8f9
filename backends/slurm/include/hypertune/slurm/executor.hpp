// SlurmExecutor: trials on workers that are jobs of Slurm, or steps in the allocation that the driver runs in.
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
  /// What runs as a worker, as the nodes see it: a program that becomes an agent when it is called with the arguments
  /// below and then `--hypertune-agent` (a Runtime does that). Empty: this program itself.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  remote::RemoteOptions remote = {};  ///< its time to connect, liveness and transfer are those of `options`
  /// Lines for the user while no experiment takes them; by default they go to standard error. Any thread.
  std::function<void(const std::string&)> say = {};
};

/// Each worker is an `srun` whose standard streams are the connection: no port, no daemon. There are as many as the
/// queue of trials asks for, and they end when they were idle for some time, and with the run, however it ends. The
/// experiment begins while they wait in Slurm's queue, and says what they wait for. The end of a worker's time and a
/// preemption are notices: its trials save, and go on in the next worker. Slurm's controller may be away for a while.
/// The program and the folder where it was called must be there on the nodes, too. Copies are the same executor.
class SlurmExecutor : public remote::ElasticExecutor {
 public:
  explicit SlurmExecutor(SlurmSetup setup);
};

static_assert(Executor<SlurmExecutor>);

}  // namespace hypertune::inline v0::slurm

namespace hypertune::inline v0 {
using slurm::SlurmExecutor;
using slurm::SlurmSetup;

/// `ht::on_slurm(runtime, {.partition = "gpu", .time = 4 * 3600, .cpus = 4, .gres = "gpu:1"})`: trials on workers of
/// Slurm, each by this program, called there as it was called here.
inline SlurmExecutor on_slurm(const remote::AgentRuntime& runtime, SlurmOptions options = {}) {
  SlurmSetup setup;
  setup.options = std::move(options);
  return SlurmExecutor(runtime.setup(std::move(setup)));
}
}  // namespace hypertune::inline v0
