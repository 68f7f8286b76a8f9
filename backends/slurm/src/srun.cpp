// The arguments and the environment of sbatch and srun, and the script of a job.
#include "srun.hpp"

#include "queue.hpp"

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

namespace {

// Options of `args` that belong to the agent's step: sbatch does not know them, or means the script by them.
bool is_of_step(std::string_view arg) {
  const auto name = arg.substr(0, arg.find('='));
  for (const auto* each : {"--cpu-bind", "--mpi", "--prolog", "--epilog", "--task-prolog", "--task-epilog"})
    if (name == each) return true;
  return name.starts_with("--container");
}

bool is_of_both(std::string_view arg) { return names_cluster(arg) || arg.starts_with("--export="); }

void add(std::vector<std::string>& words, const char* option, const std::string& value) {
  if (!value.empty()) words.push_back(fmt::format("{}={}", option, value));
}

}  // namespace

std::vector<std::string> sbatch_arguments(const SlurmOptions& options, const WorkerPlan& plan) {
  // A worker that was preempted is requested anew; requeued, its job would wait for a step that nobody starts.
  std::vector<std::string> words{"sbatch",    "--parsable", "--no-requeue",
                                 "--nodes=1", "--ntasks=1", "--output=/dev/null"};
  add(words, "--job-name", plan.job);
  add(words, "--comment", plan.comment);
  add(words, "--cpus-per-task", std::to_string(options.cpus));
  add(words, "--partition", options.partition);
  add(words, "--account", options.account);
  add(words, "--qos", options.qos);
  if (options.time > 0) add(words, "--time", time_text(options.time));
  add(words, "--gres", options.gres);
  if (options.memory > 0) add(words, "--mem", fmt::format("{}K", (options.memory + 1023) / 1024));
  // Not SIGTERM, which would end a command before its trial was asked to save. SIGURG is ignored by programs that do
  // not handle it.
  add(words, "--signal", fmt::format("URG@{}", static_cast<int>(std::ceil(options.save_grace))));
  add(words, "--chdir", options.workdir.string());
  for (const auto& arg : options.args)
    if (!is_of_step(arg)) words.push_back(arg);
  return words;
}

std::vector<std::string> srun_arguments(const SlurmOptions& options, const WorkerPlan& plan, std::uint64_t id) {
  // One task whose streams are this program's. Without MPI, because a trial's programs must not take themselves for a
  // rank of the agent's. It runs next to other steps of the allocation, such as those that trials start.
  std::vector<std::string> words{"srun",       "--nodes=1", "--ntasks=1", "--unbuffered",
                                 "--mpi=none", "--quiet",   "--overlap"};
  add(words, "--job-name", plan.job);
  if (id > 0) {
    add(words, "--jobid", std::to_string(id));
    add(words, "--cpus-per-task", std::to_string(options.cpus));
  } else {
    add(words, "--nodelist", plan.node);
    if (plan.limits.cpus > 0)
      add(words, "--cpus-per-task", std::to_string(std::max(1, static_cast<int>(plan.limits.cpus))));
    add(words, "--gres", options.gres);
  }
  add(words, "--chdir", options.workdir.string());
  for (const auto& arg : options.args)
    if (id == 0 || is_of_step(arg) || is_of_both(arg)) words.push_back(arg);
  words.insert(words.end(), plan.program.begin(), plan.program.end());
  words.insert(words.end(), {"--hypertune-agent", remote::agent_limits_text(plan.limits)});
  return words;
}

// Slurm ends a job with its script, whatever has become of the driver, its srun and the agent. Which steps there are is
// asked of the node (scontrol listpids), which needs no controller; elsewhere of the controller. An answer counts only if
// it lists this script itself. Nothing here depends on files or processes that a step in a container might not share.
// On SIGTERM (scancel, preemption) the agent has got it too, and gives its trials time to save. A step that began and ended
// between two looks is not seen, so they are close to each other until there was one.
std::string job_script(Seconds orphan) {
  const auto seconds = static_cast<std::int64_t>(std::ceil(std::clamp(orphan, 1.0, 1e8)));
  return fmt::format(R"sh(#!/bin/sh
# A worker of hypertune. Its driver starts the agent here, as a step of this job. The job ends when that step has, and
# when no driver has come for {orphan} s.
waited=0 seen= asked= pause=0.5
trap 'asked=yes' TERM
steps() {{ # which steps there are, in $listed
  listed=$(scontrol listpids "$SLURM_JOB_ID" 2>/dev/null | while read -r pid job step rest; do echo "$step"; done)
  case $listed in
    *batch*) ;;
    *) listed=$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format=%i 2>/dev/null |
         while IFS=. read -r job step; do echo "$step"; done) ;;
  esac
}}
gone=0
while :; do
  steps
  case $listed in
    *[0-9]*) seen=yes gone=0 pause=2 ;;
    *batch*)
      gone=$((gone + 1))
      [ -z "$asked" ] || exit 0
      if [ -n "$seen" ]; then
        [ "$gone" -lt 2 ] || exit 0
      else
        [ "$waited" -lt {looks} ] || exit 0
      fi
      ;;
  esac
  sleep "$pause" &
  wait "$!"
  waited=$((waited + 1))
done
)sh",
                     fmt::arg("orphan", seconds), fmt::arg("looks", 2 * seconds));
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
  entries["HYPERTUNE_NOTICE"] = std::to_string(static_cast<int>(std::ceil(options.save_grace)));
  return entries;
}

Resources worker_resources(const SlurmOptions& options) {
  return {.cpus = static_cast<double>(options.cpus),
          .gpus = static_cast<double>(gpus_of_gres(options.gres)),
          .memory = options.memory};
}

remote::HostOptions worker_limits(const SlurmOptions& options) {
  const auto has = worker_resources(options);
  return {.name = {}, .cpus = has.cpus, .gpus = options.gres.empty() ? 0 : has.gpus, .memory = has.memory};
}

}  // namespace hypertune::inline v0::slurm
