// Slurm's queue.
#include "queue.hpp"

#include <hypertune/detail/text.hpp>
#include <hypertune/remote/detail/printed.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace hypertune::inline v0::slurm {
namespace {

constexpr double patience = 10;  // timeout of squeue and scancel, in seconds

// Makes text printable and short for messages.
std::string plain(std::string_view text, std::size_t longest) {
  std::string all;
  for (const char c : text.substr(0, longest))
    if (c >= ' ' && c < 0x7f) all += c;
  return all;
}

struct Meaning {
  std::string_view reason, means;
};
// By prefix of the reason.
constexpr std::array meanings{
    Meaning{"Resources", "what it asks for is in use"},
    Meaning{"Priority", "jobs before it have a higher priority"},
    Meaning{"QOS", "a limit of its QOS is reached"},
    Meaning{"MaxQOS", "a limit of its QOS is reached"},
    Meaning{"Assoc", "a limit of its account is reached"},
    Meaning{"MaxJobs", "a limit of its account is reached"},
    Meaning{"MaxCpu", "a limit of its account is reached"},
    Meaning{"MaxGRES", "a limit of its account is reached"},
    Meaning{"MaxMem", "a limit of its account is reached"},
    Meaning{"MaxNode", "a limit of its account is reached"},
    Meaning{"MaxSubmit", "a limit of its account is reached"},
    Meaning{"PartitionDown", "the partition is down"},
    Meaning{"PartitionInactive", "the partition is inactive"},
    Meaning{"ReqNodeNotAvail", "nodes that it needs are not available"},
    Meaning{"Nodes required for job are DOWN", "nodes that it needs are down, drained or reserved"},
    Meaning{"NodeDown", "a node that it needs is down"},
    Meaning{"Licenses", "a licence is in use"},
    Meaning{"Reservation", "its reservation has not begun"},
    Meaning{"BeginTime", "it is not to begin yet"},
    Meaning{"JobHeld", "it is held: scontrol release lets it go"},
    Meaning{"JobArrayTaskLimit", "a limit of its array is reached"},
    Meaning{"Dependency", "a job that it depends on has not ended"},
};
// Reasons for which waiting is useless. Compared as a whole: a limit per job stays, a limit per user may pass.
constexpr std::array never{
    Meaning{"PartitionConfig", "no node of the partition has what a worker asks for"},
    Meaning{"BadConstraints", "no node of the partition has what a worker asks for"},
    Meaning{"PartitionTimeLimit", "'time' is above the limit of the partition"},
    Meaning{"PartitionNodeLimit", "the partition does not allow as many nodes"},
    Meaning{"AccountNotAllowed", "the partition is not open to this account"},
    Meaning{"QOSNotAllowed", "the partition is not open to this QOS"},
    Meaning{"InvalidAccount", "the account is not valid"},
    Meaning{"InvalidQOS", "the QOS is not valid"},
    Meaning{"MaxMemPerLimit", "'memory' is above the limit of the partition"},
    Meaning{"DependencyNeverSatisfied", "the job that it depends on has failed"},
    Meaning{"ReservationDeleted", "its reservation was deleted"},
    Meaning{"QOSMinCpuNotSatisfied", "a worker asks for fewer cpus than its QOS demands"},
};
std::string_view why_never(std::string_view reason) {
  for (const auto& [word, means] : never)
    if (reason == word) return means;
  // QOSMaxCpuPerJobLimit, AssocMaxWallDurationPerJobLimit, QOSMaxGRESPerJob, QOSMaxMemoryPerNode, …
  if (reason.ends_with("PerJobLimit") || reason.ends_with("PerJob") || reason.ends_with("PerNode")) {
    if (reason.starts_with("QOSMax")) return "a worker asks for more than its QOS allows a job";
    if (reason.starts_with("AssocMax")) return "a worker asks for more than its account allows a job";
  }
  if (reason.starts_with("QOSMin")) return "a worker asks for less than its QOS demands";
  return {};
}

}  // namespace

std::map<std::string, QueuedJob> read_queue(std::string_view printed) {
  std::map<std::string, QueuedJob> jobs;
  while (!printed.empty()) {
    auto line = hypertune::detail::take_until(printed, '\n');
    std::array<std::string_view, 3> parts;
    bool whole = true;
    for (auto& part : parts) {
      const auto bar = line.find('|');
      whole = whole && bar != std::string_view::npos;
      if (!whole) break;
      part = line.substr(0, bar);
      line.remove_prefix(bar + 1);
    }
    const auto [name, number, state] = parts;
    QueuedJob job;
    const auto [after, error] = std::from_chars(number.data(), number.data() + number.size(), job.id);
    // A suffix may follow the number: "12_3" for an array job, "12+3" for a heterogeneous one.
    if (!whole || name.empty() || error != std::errc() || job.id == 0) continue;
    if (after != number.data() + number.size() && *after != '_' && *after != '+') continue;
    job.state = plain(state, 40);
    job.reason = plain(line, 200);
    if (job.state.empty()) continue;
    auto& newest = jobs[plain(name, 200)];
    if (job.id >= newest.id) newest = std::move(job);
  }
  return jobs;
}

std::optional<std::map<std::string, QueuedJob>> ask_queue(const std::vector<std::string>& names,
                                                          const std::stop_token& stop, std::string& trouble) {
  if (names.empty()) return std::map<std::string, QueuedJob>();
  const auto said = remote::detail::printed_by({"squeue", "--noheader", "--user", std::to_string(::getuid()), "--name",
                                                fmt::format("{}", fmt::join(names, ",")), "--format", "%j|%i|%T|%r"},
                                               patience, stop);
  if (!said)
    trouble = "there is no program squeue";
  else if (said->late)
    trouble = fmt::format("squeue has said nothing for {:g} s", patience);
  else if (said->code() != 0)
    trouble = remote::detail::last_line(said->err);
  else
    return read_queue(said->out);
  return std::nullopt;
}

bool cancel_jobs(const std::vector<std::string>& names) {
  if (names.empty()) return true;
  std::vector<std::string> words{"scancel", "--quiet", "--user", std::to_string(::getuid())};
  bool all = true;
  for (const auto& name : names) {
    auto command = words;
    command.push_back("--name=" + name);
    const auto said = remote::detail::printed_by(command, patience);
    all = all && said && !said->late && said->code() == 0;
    if (!all) break;
  }
  return all;
}

std::string why_waiting(const QueuedJob& job) {
  if (job.state == "CONFIGURING") return "is a job of Slurm whose node is being made ready";
  if (job.state == "RUNNING") return "is a job of Slurm that runs, its agent has not spoken yet";
  if (job.state != "PENDING") return fmt::format("is a job of Slurm in state {}", job.state);
  if (job.reason.empty() || job.reason == "None") return "waits in Slurm's queue";
  if (const auto means = why_never(job.reason); !means.empty())
    return fmt::format("waits in Slurm's queue ({}: {}: it never starts like this)", job.reason, means);
  for (const auto& [reason, means] : meanings)
    if (job.reason.starts_with(reason)) return fmt::format("waits in Slurm's queue ({}: {})", job.reason, means);
  return fmt::format("waits in Slurm's queue ({})", job.reason);
}

std::string reason_word(const QueuedJob& job) {
  return job.reason == "None" ? std::string() : job.reason.substr(0, job.reason.find(','));
}

std::string why_never(const QueuedJob& job) {
  if (job.state != "PENDING") return {};
  const auto means = why_never(std::string_view(job.reason));
  return means.empty() ? std::string() : fmt::format("{} ({})", means, job.reason);
}

remote::FailureClass classify_srun(std::string_view said) {
  using remote::FailureClass;
  const auto has = [&](std::string_view text) { return said.find(text) != std::string_view::npos; };
  for (const auto* passing :
       {"Unable to contact slurm controller", "Socket timed out", "Connection refused", "Connection timed out",
        "Slurm temporarily unable", "Unable to confirm allocation", "Zero Bytes were transmitted", "revoked",
        "Node failure", "NODE FAILURE", "PREEMPTION", "Communication connection failure", "Resource temporarily",
        "Slurm backup controller", "slurm_receive_msg", "Job/step already completing", "Message receive failure",
        "Requested nodes are busy"})
    if (has(passing)) return FailureClass::transient;
  for (const auto* lasting : {"Invalid partition",
                              "invalid partition",
                              "Invalid account",
                              "Invalid qos",
                              "Invalid generic resource",
                              "Requested node configuration is not available",
                              "Requested time limit is invalid",
                              "More processors requested than permitted",
                              "Memory specification can not be satisfied",
                              "not permitted to use this partition",
                              "unrecognized option",
                              "invalid option",
                              "Invalid --",
                              "invalid --",
                              "option requires an argument",
                              "Invalid feature specification",
                              "No such file or directory",
                              "Permission denied",
                              "error while loading shared libraries",
                              "Exec format error",
                              "Invalid node name",
                              "Unable to open configuration",
                              "Could not establish a configuration source",
                              "Access/permission denied",
                              "Invalid numeric value",
                              "unknown mpi",
                              "Requested reservation is invalid"})
    if (has(lasting)) return FailureClass::permanent;
  return FailureClass::unknown;
}

std::string reason_of_srun(std::string_view said) {
  // The first error is the cause; the following ones are consequences.
  std::string_view rest = said;
  while (!rest.empty()) {
    const auto line = hypertune::detail::take_until(rest, '\n');
    const auto complaint = line.find("error: ") != std::string_view::npos   ? line.find("error: ") + 7
                           : line.find("fatal: ") != std::string_view::npos ? line.find("fatal: ") + 7
                                                                            : line.size();
    const bool slurms = line.starts_with("srun: ") || line.starts_with("slurmstepd");
    if (slurms && complaint < line.size() && line.find(": task ") == std::string_view::npos)
      return remote::detail::last_line(line.substr(complaint));
  }
  return remote::detail::last_line(said);
}

}  // namespace hypertune::inline v0::slurm
