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
    Meaning{"QOSMaxSubmit", "its QOS allows you no more jobs at once, whether they wait or run"},
    Meaning{"QOSGrpSubmit", "its QOS allows no more jobs at once, whether they wait or run"},
    Meaning{"MaxSubmit", "its account allows you no more jobs at once, whether they wait or run"},
    Meaning{"AssocMaxSubmit", "its account allows you no more jobs at once, whether they wait or run"},
    Meaning{"AssocGrpSubmit", "its account allows no more jobs at once, whether they wait or run"},
    Meaning{"QOS", "a limit of its QOS is reached"},
    Meaning{"MaxQOS", "a limit of its QOS is reached"},
    Meaning{"Assoc", "a limit of its account is reached"},
    Meaning{"MaxJobs", "a limit of its account is reached"},
    Meaning{"MaxCpu", "a limit of its account is reached"},
    Meaning{"MaxGRES", "a limit of its account is reached"},
    Meaning{"MaxMem", "a limit of its account is reached"},
    Meaning{"MaxNode", "a limit of its account is reached"},
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

std::vector<ListedJob> read_jobs(std::string_view printed) {
  std::vector<ListedJob> jobs;
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
    jobs.push_back({plain(name, 200), std::move(job)});
  }
  return jobs;
}

std::map<std::string, QueuedJob> read_queue(std::string_view printed) {
  std::map<std::string, QueuedJob> newest_of;
  for (auto& [name, job] : read_jobs(printed)) {
    auto& newest = newest_of[name];
    if (job.id >= newest.id) newest = std::move(job);
  }
  return newest_of;
}

bool names_cluster(std::string_view arg) {
  return arg.starts_with("--clusters=") || arg.starts_with("--cluster=") || (arg.starts_with("-M") && arg.size() > 2);
}

Queue::Queue(const std::vector<std::string>& args) {
  for (const auto& arg : args)
    if (names_cluster(arg)) cluster_ = {arg};
}

namespace {

// Runs a command of Slurm's; returns its output. `succeeded`: whether its exit code and standard error say so.
template <class F>
std::optional<std::string> printed_by(const std::vector<std::string>& words, const std::stop_token& stop,
                                      Trouble& trouble, F succeeded) {
  auto said = remote::detail::printed_by(words, patience, stop);
  if (!said)
    trouble = {fmt::format("there is no program {}", words.front()), remote::FailureClass::permanent};
  else if (said->late)
    trouble = {fmt::format("{} has said nothing for {:g} s", words.front(), patience)};
  else if (!succeeded(said->code(), said->err))
    trouble = {reason_of_srun(said->err), classify_srun(said->err) == remote::FailureClass::permanent
                                              ? remote::FailureClass::permanent
                                              : remote::FailureClass::transient};
  else
    return std::move(said->out);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Queue::ask(const std::vector<std::string>& which, const std::stop_token& stop,
                                      Trouble& trouble) const {
  std::vector<std::string> words{"squeue", "--noheader", "--user", std::to_string(::getuid())};
  words.insert(words.end(), cluster_.begin(), cluster_.end());
  words.insert(words.end(), which.begin(), which.end());
  words.insert(words.end(), {"--format", "%j|%i|%T|%r"});
  return printed_by(words, stop, trouble, [](int code, std::string_view) { return code == 0; });
}

std::optional<std::map<std::string, QueuedJob>> Queue::newest(const std::vector<std::string>& names,
                                                              const std::stop_token& stop, Trouble& trouble) const {
  if (names.empty()) return std::map<std::string, QueuedJob>();
  const auto printed = ask({"--name", fmt::format("{}", fmt::join(names, ","))}, stop, trouble);
  if (!printed) return std::nullopt;
  return read_queue(*printed);
}

std::optional<std::vector<std::uint64_t>> Queue::jobs_of(const std::string& stem, const std::stop_token& stop,
                                                         Trouble& trouble) const {
  const auto printed = ask({}, stop, trouble);
  if (!printed) return std::nullopt;
  std::vector<std::uint64_t> ids;
  for (const auto& [name, job] : read_jobs(*printed)) {
    const auto number = std::string_view(name).substr(std::min(name.size(), stem.size()));
    const bool ours = name.starts_with(stem) && number.size() > 1 && number.front() == '.' &&
                      number.find_first_not_of("0123456789", 1) == std::string_view::npos;
    if (ours && job.state != "COMPLETING") ids.push_back(job.id);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

bool Queue::cancel(const std::vector<std::uint64_t>& ids, Trouble& trouble) const {
  constexpr std::size_t at_once = 500;  // far below the limit of a command line
  for (std::size_t begin = 0; begin < ids.size(); begin += at_once) {
    std::vector<std::string> words{"scancel"};
    words.insert(words.end(), cluster_.begin(), cluster_.end());
    for (std::size_t i = begin; i < std::min(ids.size(), begin + at_once); ++i) words.push_back(std::to_string(ids[i]));
    if (!printed_by(words, {}, trouble, cancelled)) return false;
  }
  return true;
}

bool cancelled(int code, std::string_view said) {
  if (code == 0) return true;
  bool any = false;
  while (!said.empty()) {
    const auto line = hypertune::detail::take_until(said, '\n');
    if (line.find("error: ") == std::string_view::npos) continue;
    any = true;
    const bool over = line.find("Invalid job id") != std::string_view::npos ||
                      line.find("already completing or completed") != std::string_view::npos;
    if (!over) return false;
  }
  return any;
}

std::string meaning_of_limit(std::string_view word) {
  if (const auto means = why_never(word); !means.empty()) return std::string(means);
  for (const auto& [reason, means] : meanings)
    if (word.starts_with(reason)) return std::string(means);
  return {};
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

}  // namespace hypertune::inline v0::slurm
