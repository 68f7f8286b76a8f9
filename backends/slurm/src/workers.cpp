// The list of workers.
#include "workers.hpp"

#include <hypertune/error.hpp>
#include <hypertune/process/program_file.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/slurm/detail/messages.hpp>
#include <hypertune/trial/attributes.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::slurm {
namespace {

void require_slurm() {
  for (const char* program : {"srun", "sbatch", "squeue", "scancel"})
    if (process::program_file(program).empty())
      fail(Errc::usage,
           "executor slurm needs the program {}, which is not in PATH: start this on a login node of a Slurm cluster, "
           "or within a job",
           program);
  require_configuration();
}

std::string program_of(const SlurmSetup& setup) {
  std::error_code error;
  const auto program = setup.program.empty() ? std::filesystem::read_symlink("/proc/self/exe", error) : setup.program;
  if (error || program.empty()) fail(Errc::usage, "where this program lies cannot be told: {}", error.message());
  if (program.string().ends_with(" (deleted)"))
    fail(Errc::usage, "the file of this program is not there any more: workers cannot be started from it");
  return program;
}

bool within_allocation(const SlurmOptions& options) {
  const char* nodes = std::getenv("SLURM_JOB_NODELIST");
  return options.jobs == SlurmOptions::Jobs::automatic && std::getenv("SLURM_JOB_ID") != nullptr && nodes != nullptr &&
         *nodes != '\0';
}

// For people who look at the job: whose it is.
std::string job_comment(const std::string& worker, const Workload& workload) {
  std::error_code error;
  const auto folder = std::filesystem::absolute(workload.directory, error).lexically_normal();
  std::string text = fmt::format("hypertune: {} of the experiment '{}', driven on {} in {}", worker, workload.name,
                                 hypertune::detail::host_name(), folder.string());
  std::erase_if(text, hypertune::detail::is_control);
  return text;
}

}  // namespace

Workers make_workers(const SlurmSetup& setup, const Workload& workload,
                     const std::function<void(const std::string&)>& say) {
  const auto& options = setup.options;
  check_options(options);
  require_slurm();
  const bool own_jobs = !within_allocation(options);
  const int most = std::min(workload.useful_workers(options.pool.max), options.pool.max);
  const auto environment = srun_environment(options, own_jobs);
  std::vector<std::string> program{program_of(setup)};
  program.insert(program.end(), setup.arguments.begin(), setup.arguments.end());
  const auto stem = job_stem(workload.name, workload.directory);
  Workers workers;
  if (own_jobs)
    workers.jobs = std::make_shared<WorkerJobs>(JobsPlan{.stem = stem,
                                                         .directory = workload.directory,
                                                         .orphan = setup.orphan,
                                                         .environment = environment,
                                                         .queue = Queue(options.args),
                                                         .say = say});
  const auto add = [&](std::string name, std::string node, remote::HostOptions limits, Resources total) {
    WorkerPlan plan{.job = fmt::format("{}.{}", stem, workers.all.size() + 1),
                    .comment = job_comment(name, workload),
                    .node = std::move(node),
                    .limits = std::move(limits),
                    .program = program};
    // If the options do not limit the memory, the worker's memory is unknown until it runs; assume enough.
    if (total.memory == 0) total.memory = std::uint64_t{1} << 50U;
    Worker worker{.name = std::move(name), .total = std::move(total), .dialer = {}};
    if (own_jobs)
      worker.dialer =
          JobDialer({.worker = worker.name,
                     .job = plan.job,
                     .sbatch = sbatch_arguments(options, plan),
                     .srun = [options, plan](std::uint64_t id) { return srun_arguments(options, plan, id); }},
                    environment, workers.jobs);
    else
      worker.dialer = StepDialer(srun_arguments(options, plan), environment);
    workers.all.push_back(std::move(worker));
  };
  if (own_jobs) {
    for (int i = 1; i <= most; ++i)
      add(fmt::format("worker-{}", i), {}, worker_limits(options), worker_resources(options));
    return workers;
  }
  for (const auto& host : remote::slurm_hosts()) {
    if (static_cast<int>(workers.all.size()) >= most) break;
    remote::HostOptions limits{.name = {}, .cpus = host.cpus, .gpus = host.gpus, .memory = options.memory};
    add(host.name, host.name, std::move(limits),
        {.cpus = host.cpus > 0 ? host.cpus : options.cpus,
         .gpus = host.gpus >= 0 ? host.gpus : gpus_of_gres(options.gres),
         .memory = options.memory});
  }
  return workers;
}

}  // namespace hypertune::inline v0::slurm
