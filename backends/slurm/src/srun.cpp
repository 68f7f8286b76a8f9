// The arguments and the environment of srun.
#include "srun.hpp"

#include <hypertune/remote/runtime.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>

extern "C" char** environ;  // NOLINT: unistd.h has it with _GNU_SOURCE only

namespace hypertune::inline v0::slurm {

std::string time_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::ceil(std::clamp(seconds, 1.0, 1e9)));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string job_word(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string word;
  for (const char c : text.substr(0, longest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                       c == '_' || (c == '-' && !word.empty());
    word += plain ? c : '_';
  }
  return word;
}

std::vector<std::string> srun_arguments(const SlurmOptions& options, const WorkerPlan& plan) {
  // One task whose streams are this program's. Without MPI, because a trial's programs must not take themselves for a
  // rank of the agent's.
  std::vector<std::string> words{"srun",
                                 "--nodes=1",
                                 "--ntasks=1",
                                 "--unbuffered",
                                 "--mpi=none",
                                 "--quiet",
                                 fmt::format("--job-name={}", plan.job)};
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.push_back(fmt::format("{}={}", option, value));
  };
  if (plan.node.empty()) {
    add("--cpus-per-task", std::to_string(options.cpus));
    add("--partition", options.partition);
    add("--account", options.account);
    add("--qos", options.qos);
    if (options.time > 0) add("--time", time_text(options.time));
    add("--gres", options.gres);
    if (options.memory > 0) add("--mem", fmt::format("{}K", (options.memory + 1023) / 1024));
    // Not SIGTERM, which would end a command before its trial was asked to save. SIGURG is ignored by programs that do
    // not handle it.
    add("--signal", fmt::format("URG@{}", static_cast<int>(std::ceil(options.notice))));
  } else {
    // Runs next to other steps of the allocation, such as those that trials start.
    words.emplace_back("--overlap");
    add("--nodelist", plan.node);
    if (plan.limits.cpus > 0) add("--cpus-per-task", std::to_string(std::max(1, static_cast<int>(plan.limits.cpus))));
    add("--gres", options.gres);
  }
  add("--chdir", options.workdir.string());
  words.insert(words.end(), options.args.begin(), options.args.end());
  words.insert(words.end(), plan.program.begin(), plan.program.end());
  words.insert(words.end(), {"--hypertune-agent", remote::agent_limits_text(plan.limits)});
  return words;
}

std::map<std::string, std::optional<std::string>> srun_environment(const SlurmOptions& options, bool own_job) {
  std::map<std::string, std::optional<std::string>> entries;
  const bool within = std::getenv("SLURM_JOB_ID") != nullptr;
  for (char** entry = environ; within && entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto name = text.substr(0, text.find('='));
    if (!name.starts_with("SLURM_") || name == "SLURM_CONF" || name == "SLURM_CLUSTERS") continue;
    // Keep only the variables that identify the allocation: its shape (tasks, cores) is not the worker's.
    if (own_job || (!name.starts_with("SLURM_JOB") && name != "SLURM_WORKING_CLUSTER"))
      entries[std::string(name)] = std::nullopt;
  }
  // An `srun` started by a trial shares the cores of its worker, which holds them all.
  entries["SLURM_OVERLAP"] = "1";
  entries["HYPERTUNE_NOTICE"] = std::to_string(static_cast<int>(std::ceil(options.notice)));
  return entries;
}

Resources worker_resources(const SlurmOptions& options) {
  return {.cpus = static_cast<double>(options.cpus),
          .gpus = static_cast<double>(gpus_of_gres(options.gres)),
          .memory = options.memory};
}

remote::HostSpec worker_limits(const SlurmOptions& options) {
  const auto has = worker_resources(options);
  return {.name = {}, .cpus = has.cpus, .gpus = options.gres.empty() ? 0 : has.gpus, .memory = has.memory};
}

}  // namespace hypertune::inline v0::slurm
