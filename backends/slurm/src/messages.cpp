// What Slurm's commands print when they fail.
#include "queue.hpp"

#include <hypertune/detail/text.hpp>
#include <hypertune/error.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/slurm/detail/messages.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace hypertune::inline v0::slurm {
namespace {

constexpr std::string_view no_configuration = "Could not establish a configuration source";

// The name of a limit that sbatch prints on a line of its own, if this line is one: QOSMaxSubmitJobPerUserLimit.
bool is_limit(std::string_view text) {
  return text.find(' ') == std::string_view::npos && text.size() > 5 && !meaning_of_limit(text).empty();
}

// Calls `f` with the rest of each line in which a command of Slurm's reports an error, until it returns true.
template <class F>
void each_error(std::string_view said, F f) {
  while (!said.empty()) {
    const auto line = hypertune::detail::take_until(said, '\n');
    std::size_t at = line.size();
    for (const std::string_view word : {"error: ", "fatal: "})
      if (const auto found = line.find(word); found != std::string_view::npos) at = std::min(at, found + word.size());
    bool slurms = false;
    for (const auto* program : {"srun: ", "sbatch: ", "squeue: ", "scancel: ", "slurmstepd"})
      slurms = slurms || line.starts_with(program);
    if (slurms && at < line.size() && line.find(": task ") == std::string_view::npos && f(line.substr(at))) return;
  }
}

}  // namespace

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
  for (const auto* lasting :
       {"Invalid partition", "invalid partition", "Invalid account", "Invalid qos", "Invalid generic resource",
        "Requested node configuration is not available", "Requested time limit is invalid",
        "More processors requested than permitted", "Memory specification can not be satisfied",
        "not permitted to use this partition", "unrecognized option", "invalid option", "Invalid --", "invalid --",
        "option requires an argument", "Invalid feature specification", "No such file or directory",
        "Permission denied", "error while loading shared libraries", "Exec format error", "Invalid node name",
        "Unable to open configuration", "Could not establish a configuration source", "Access/permission denied",
        "Invalid numeric value", "unknown mpi", "Requested reservation is invalid",
        // Of a licence, a wckey, a burst buffer, …
        "submission failed: Invalid ", "allocate resources: Invalid "})
    if (has(lasting)) return FailureClass::permanent;
  auto failure = FailureClass::unknown;
  each_error(said, [&](std::string_view error) {
    if (!is_limit(error)) return false;
    // How many jobs there may be at once is a limit that passes as some of them end.
    if (!why_never({1, "PENDING", std::string(error)}).empty())
      failure = FailureClass::permanent;
    else if (error.find("Submit") != std::string_view::npos)
      failure = FailureClass::transient;
    return true;
  });
  return failure;
}

std::string reason_of_srun(std::string_view said) {
  if (said.find(no_configuration) != std::string_view::npos)
    return fmt::format(
        "Slurm's commands find no configuration on this machine: {}. Start this on a login node of the cluster, or set "
        "SLURM_CONF to its slurm.conf",
        std::getenv("SLURM_CONF") == nullptr
            ? "SLURM_CONF is not set, and there is no slurm.conf where they look for it"
            : "they cannot use the one that SLURM_CONF names");
  // The first error is the cause; the following ones are consequences.
  std::string cause;
  each_error(said, [&](std::string_view error) {
    cause = remote::detail::last_line(error);
    return true;
  });
  if (cause.empty()) return remote::detail::last_line(said);
  if (is_limit(cause)) return fmt::format("Slurm accepts no job now: {} ({})", meaning_of_limit(cause), cause);
  // What was tried says nothing about why it failed.
  constexpr std::string_view kill = "Kill job error on job id ";
  if (const auto colon = cause.find(": "); cause.starts_with(kill) && colon != std::string::npos)
    return cause.substr(colon + 2);
  for (const std::string_view step : {"Batch job submission failed: ", "Unable to allocate resources: "})
    if (cause.starts_with(step) && cause.size() > step.size()) return cause.substr(step.size());
  return cause;
}

void require_configuration() {
  const char* file = std::getenv("SLURM_CONF");
  std::error_code error;
  if (file == nullptr || *file == '\0' || std::filesystem::exists(file, error)) return;
  fail(Errc::usage,
       "there is no '{}', which SLURM_CONF names as Slurm's configuration: set it to the cluster's "
       "slurm.conf, or unset it",
       file);
}

}  // namespace hypertune::inline v0::slurm
