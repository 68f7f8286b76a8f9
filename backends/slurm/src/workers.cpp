// The list of workers.
#include "workers.hpp"

#include <hypertune/error.hpp>
#include <hypertune/process/program_file.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::slurm {
namespace {

void require_srun() {
  if (!process::program_file("srun").empty()) return;
  fail(Errc::usage,
       "executor slurm needs the program srun, which is not in PATH: start this on a login node of a Slurm cluster, or "
       "within a job");
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

// The names of workers are the same in each run. The names of jobs are not, so that they never match another driver's
// jobs.
std::string job_stem(const std::string& experiment) {
  std::random_device device;
  return fmt::format("{}-{:08x}", experiment.empty() ? "hypertune" : job_word(experiment), device());
}

}  // namespace

Workers make_workers(const SlurmSetup& setup, const std::string& experiment, int most,
                     const std::shared_ptr<LeftJobs>& left) {
  const auto& options = setup.options;
  check_options(options);
  require_srun();
  Workers workers;
  workers.own_jobs = !within_allocation(options);
  const auto environment = srun_environment(options, workers.own_jobs);
  std::vector<std::string> program{program_of(setup)};
  program.insert(program.end(), setup.arguments.begin(), setup.arguments.end());
  const auto stem = job_stem(experiment);
  const auto add = [&](std::string name, std::string node, remote::HostSpec limits, Resources total) {
    WorkerPlan plan{.job = fmt::format("{}.{}", stem, workers.all.size() + 1),
                    .node = std::move(node),
                    .limits = std::move(limits),
                    .program = program};
    // If the options do not limit the memory, the worker's memory is unknown until it runs; assume enough.
    if (total.memory == 0) total.memory = std::uint64_t{1} << 50U;
    workers.all.push_back({.name = std::move(name),
                           .job = plan.job,
                           .total = std::move(total),
                           .dialer = SrunDialer(srun_arguments(options, plan), environment, plan.job, left)});
  };
  if (workers.own_jobs) {
    for (int i = 1; i <= std::min(most, options.workers.max); ++i)
      add(fmt::format("worker-{}", i), {}, worker_limits(options), worker_resources(options));
    return workers;
  }
  for (const auto& host : remote::slurm_hosts()) {
    if (static_cast<int>(workers.all.size()) >= std::min(most, options.workers.max)) break;
    remote::HostSpec limits{.name = {}, .cpus = host.cpus, .gpus = host.gpus, .memory = options.memory};
    add(host.name, host.name, std::move(limits),
        {.cpus = host.cpus > 0 ? host.cpus : options.cpus,
         .gpus = host.gpus >= 0 ? host.gpus : gpus_of_gres(options.gres),
         .memory = options.memory});
  }
  return workers;
}

}  // namespace hypertune::inline v0::slurm
