#include "kubernetes_driver.hpp"

#include "cluster_support.hpp"
#include "commands.hpp"
#include "remote_trials.hpp"
#include "sweep_file.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/units.hpp>

#ifdef HYPERTUNE_HAS_K8S
#include <hypertune/k8s/driver_job.hpp>
#endif

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::command {

#ifdef HYPERTUNE_HAS_K8S

namespace {

namespace fs = std::filesystem;

Sweep kubernetes_sweep(const std::string& file, const std::vector<std::string>& set) {
  auto sweep = load_sweep(file, set, false);
  if (!sweep.executor.kubernetes)
    fail(Errc::usage,
         "{}: --kubernetes needs 'executor: {{type: kubernetes, …}}', which says the image and the cluster", file);
  auto& kubeconfig = sweep.executor.kubernetes->kubeconfig;
  kubeconfig = found_from(sweep, kubeconfig);
  return sweep;
}

k8s::DriverJobOptions job_options(const Sweep& sweep) {
  return {.workers = *sweep.executor.kubernetes, .name = *sweep.options.name};
}
k8s::DriverJobOptions job_options(const SubmittedSweep& which) {
  auto options = job_options(kubernetes_sweep(which.file, which.set));
  options.volume = which.volume;
  return options;
}

Seconds duration_of(const std::string& text, const char* option, Seconds otherwise) {
  if (text.empty()) return otherwise;
  const auto seconds = parse_duration(text);
  if (!seconds) fail(Errc::usage, "{} takes a duration like 90s, 10m or 2h, not '{}'", option, text);
  return *seconds;
}

// Files that the sweep names by a path relative to it have the same relative path in the cluster.
std::vector<FileMount> files_of(const Sweep& sweep, const std::string& file) {
  std::vector<FileMount> files{{.remote = "sweep.yaml", .local = file}};
  std::vector<fs::path> programs;
  const auto folder = fs::absolute(sweep.file).parent_path().lexically_normal();
  const auto add = [&](const fs::path& local, const std::vector<std::string>& exclude) {
    const auto place = fs::absolute(local).lexically_normal().lexically_relative(folder);
    if (place.empty() || place.string().starts_with(".."))
      fail(Errc::usage,
           "{}: '{}' is brought to pods by a driver in the cluster, which has what is beside the sweep and below it: "
           "put "
           "it there",
           sweep.file.string(), local.string());
    if (std::none_of(files.begin(), files.end(), [&](const auto& each) { return each.remote == place.string(); }))
      files.push_back({.remote = place.string(), .local = local, .exclude = exclude});
  };
  for (const auto& mount : mounts_of(sweep, sweep.executor.kubernetes->file_mounts, programs))
    add(mount.local, mount.exclude);
  for (const auto& file : sweep.trial->files)
    if (!file.from.empty()) add(found_from(sweep, file.from), {});
  return files;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

void say(const std::string& text) { detail::say("hypertune: " + text); }

// A command for the sweep as it was submitted. It repeats --set, because other settings may mean another Job.
std::string command_for(std::string_view command, const SubmittedSweep& which, std::string_view option = {}) {
  auto line = fmt::format("hypertune {} --kubernetes {}", command, detail::shell_quote(which.file));
  for (const auto& assignment : which.set) line += " --set " + detail::shell_quote(assignment);
  if (!option.empty()) line += fmt::format(" {}", option);
  return line;
}

int follow(k8s::DriverJob& job, const SubmittedSweep& which) {
  interruptions();  // Ctrl-C ends the following, not the job
  const auto state = job.follow(
      [](std::string_view line) {
        std::fwrite(line.data(), 1, line.size(), stdout);
        std::fputc('\n', stdout);
        std::fflush(stdout);
      },
      [&](const std::string& sentence) { say(fmt::format("the driver's pod {}", sentence)); }, interrupted_after(0));
  using Phase = k8s::DriverJobState::Phase;
  switch (state.phase) {
    case Phase::done: return exit_done;
    case Phase::failed: say(fmt::format("the job '{}' has failed: {}", job.name(), state.sentence)); return exit_failed;
    case Phase::none: fail(Errc::usage, "there is no job '{}' in namespace '{}'", job.name(), job.name_space());
    default: break;
  }
  say(fmt::format("the job '{}' goes on in the cluster; `{}` follows it again, `{}` ends it", job.name(),
                  command_for("attach", which), command_for("down", which)));
  return exit_interrupted;
}

// False also if the state cannot be read.
bool has_failed(const k8s::DriverJob& job) {
  try {
    return job.state().phase == k8s::DriverJobState::Phase::failed;
  } catch (const Error&) { return false; }
}

}  // namespace

int submit_to_kubernetes(const ClusterArguments& submission) {
  if (!submission.program.empty())
    fail(Errc::usage, "'{}': with --kubernetes nothing follows the sweep", submission.program);
  const auto set = settings_of(submission);
  const auto sweep = kubernetes_sweep(submission.file, set);
  auto options = job_options(sweep);
  options.service_account = submission.service_account;
  options.volume = submission.volume;
  options.storage_class = submission.storage_class;
  const auto storage = parse_size(submission.storage);
  if (!storage || *storage == 0) fail(Errc::usage, "--storage takes a size like 10GiB, not '{}'", submission.storage);
  options.storage = *storage;
  options.ttl = duration_of(submission.ttl, "--ttl", -1);
  options.deadline = duration_of(submission.deadline, "--deadline", 0);
  k8s::DriverFiles files{.files = files_of(sweep, submission.file)};
  for (const auto& assignment : set) files.arguments.insert(files.arguments.end(), {"--set", assignment});
  // In the cluster, the driver uses its service account instead.
  for (const char* ours : {"executor.kubeconfig=''", "executor.context=''"})
    files.arguments.insert(files.arguments.end(), {"--set", ours});
  k8s::DriverJob job(std::move(options));
  interruptions();
  const bool begun = job.submit(
      files, [](const std::string& sentence) { say(fmt::format("the driver's pod {}", sentence)); },
      interrupted_after(0));
  if (!begun) {
    say(fmt::format("interrupted: the job '{}' has not begun, and is gone", job.name()));
    return exit_interrupted;
  }
  const SubmittedSweep which{submission.file, submission.set};
  if (job.made_claim())
    say(fmt::format(
        "a new record begins, on the volume claim '{}' that was made for it; --volume CLAIM goes on with one "
        "that is on another claim",
        job.name()));
  if (has_failed(job)) return follow(job, which);
  say(fmt::format("job '{}' runs in namespace '{}'; `{}` reads it, `{}` ends it", job.name(), job.name_space(),
                  command_for("results", which), command_for("down", which)));
  return submission.detach ? exit_done : follow(job, which);
}

int attach_to_kubernetes(const SubmittedSweep& which) {
  k8s::DriverJob job(job_options(which));
  return follow(job, which);
}

int down_on_kubernetes(const SubmittedSweep& which, bool volume) {
  k8s::DriverJob job(job_options(which));
  interruptions();
  const auto stop = interrupted_after(0);
  const auto record = job.record(stop);
  if (!job.remove(volume, stop)) {
    say(fmt::format("there is no job '{}' in namespace '{}'", job.name(), job.name_space()));
  } else if (record.there && !record.made) {
    say(fmt::format("job '{}' is gone; its record stays on the volume claim '{}', which is yours: `{}` reads it",
                    job.name(), record.claim,
                    command_for("results", which, "--volume " + detail::shell_quote(record.claim))));
  } else if (record.there && !volume) {
    say(fmt::format("job '{}' is gone; its volume, with the record, stays: `{}` reads it, `{}` deletes it, too",
                    job.name(), command_for("results", which), command_for("down", which, "--volume")));
  }
  return exit_done;
}

int inspect_on_kubernetes(const SubmittedSweep& which, const std::vector<std::string>& words) {
  k8s::DriverJob job(job_options(which));
  interruptions();
  const auto stop = interrupted_after(0);
  const auto to = [](std::FILE* stream) {
    return [stream](std::string_view piece) {
      std::fwrite(piece.data(), 1, piece.size(), stream);
      return true;
    };
  };
  const int code = job.run_with_record(words, to(stdout), to(stderr), stop);
  if (code == exit_done || stop.stop_requested()) return code;
  // If there is nothing to read, or nothing to read it with, a failed job may be the reason.
  const auto state = job.state(stop);
  if (state.phase == k8s::DriverJobState::Phase::failed)
    say(fmt::format("the job '{}' has failed: {}", job.name(), state.sentence));
  return code;
}

void begin_as_driver() {
  static bool begun = false;  // while it waits for the record it is called again and again
  if (!std::exchange(begun, true)) k8s::begin_own_job();
}
void end_as_driver() { k8s::end_own_job(); }

bool belongs_to_job() {
  return is_set(std::string(k8s::job_variable).c_str()) || is_set(std::string(k8s::record_access_variable).c_str());
}

bool wait_as_driver(const Error& busy) {
  if (!is_set(std::string(k8s::job_variable).c_str())) return false;
  static bool told = false;
  if (!std::exchange(told, true)) say(fmt::format("{}; this is waited for", busy.what()));
  constexpr int ms = 1000;
  ::poll(nullptr, 0, ms);
  return true;
}

#else

void begin_as_driver() {}
void end_as_driver() {}
bool belongs_to_job() { return false; }
bool wait_as_driver(const Error&) { return false; }

namespace {
[[noreturn]] void refuse() {
  fail(Errc::usage,
       "--kubernetes needs OpenSSL and zstd, without which this command was built (libssl-dev, libzstd-dev)");
}
}  // namespace

int submit_to_kubernetes(const ClusterArguments&) { refuse(); }
int attach_to_kubernetes(const SubmittedSweep&) { refuse(); }
int down_on_kubernetes(const SubmittedSweep&, bool) { refuse(); }
int inspect_on_kubernetes(const SubmittedSweep&, const std::vector<std::string>&) { refuse(); }

#endif

CLI::Option* add_submitted(CLI::App& command, bool& kubernetes, std::vector<std::string>& set, const char* what) {
  auto* flag = command.add_flag("--kubernetes", kubernetes, what);
  command.add_option("--set", set, "with --kubernetes, key=value: as of `submit`; may be repeated")
      ->allow_extra_args(false)
      ->needs(flag);
  return flag;
}

}  // namespace hypertune::inline v0::command
