#include "slurm_driver.hpp"

#include "commands.hpp"
#include "sweep_file.hpp"

#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/process/subprocess.hpp>
#include <hypertune/remote/detail/printed.hpp>
#include <hypertune/slurm/detail/messages.hpp>
#include <hypertune/tune/detail/experiment_directory.hpp>

#include <fmt/format.h>

#include <cctype>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

std::string batch_script(const std::vector<std::string>& words, const fs::path& directory) {
  std::string command;
  for (const auto& word : words) command += (command.empty() ? "" : " ") + detail::shell_quote(word);
  // SIGTERM comes when the job's time is nearly over (--signal) or it is preempted: the experiment then saves and ends,
  // and the job is queued again. The driver may have received the signal too; then `stop` has no further effect.
  // A driver that was killed (out of memory) goes on within the job, unless it is killed again and again.
  return fmt::format(R"sh(#!/bin/sh
# hypertune submit --slurm: a sweep's driver, which goes on where it was whenever it is started again.
directory={directory}
set -- {command}
told= driver=
trap 'told=yes; [ -z "$driver" ] || {hypertune} stop "$directory" || kill -TERM "$driver"' TERM
quick=0 code={interrupted}
while [ -z "$told" ]; do
  resume=
  [ ! -e "$directory/experiment.db" ] || resume=--resume
  begun=$(date +%s)
  "$@" $resume &
  driver=$!
  code=0
  while :; do
    wait "$driver"
    code=$?
    kill -0 "$driver" 2>/dev/null || break
  done
  driver=
  [ "$code" -gt 128 ] && [ "$code" -ne {interrupted} ] || break
  quick=$((quick + 1))
  [ "$(($(date +%s) - begun))" -lt 300 ] || quick=1
  signal="signal $((code - 128))"
  [ "$code" -ne 137 ] || signal="$signal, as when the job's memory is used up"
  [ -z "$told" ] || break
  if [ "$quick" -gt {restarts} ]; then
    echo "hypertune: the driver was killed $quick times in a row ($signal), each time soon after its start: not started again"
    break
  fi
  echo "hypertune: the driver was killed ($signal), and goes on from there"
  sleep "$((2 * quick - 1))" &
  wait "$!"
done
[ -n "$told" ] && [ "$code" -gt 128 ] || exit "$code"
tries=0
while [ "$tries" -lt 60 ]; do  # the controller may be away for a while
  if state=$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %T); then
    [ "$state" = RUNNING ] || exit "$code"  # it was cancelled, or Slurm queues it again by itself
    echo "hypertune: job $SLURM_JOB_ID is queued again, and goes on from there"
    scontrol requeue "$SLURM_JOB_ID" && exit 0
  fi
  tries=$((tries + 1))
  sleep 2
done
exit "$code"
)sh",
                     fmt::arg("directory", detail::shell_quote(directory.string())), fmt::arg("command", command),
                     fmt::arg("hypertune", detail::shell_quote(words.front())),
                     fmt::arg("interrupted", exit_interrupted), fmt::arg("restarts", 5));
}

int submit_to_slurm(const ClusterArguments& submission) {
  const auto set = settings_of(submission);
  const Sweep sweep = load_sweep(submission.file, set, false);
  slurm::require_configuration();
  Options options = sweep.options;
  if (!submission.output.empty()) options.output = submission.output;
  const auto directory = fs::absolute(experiment_directory(options));
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe"),
                                 "run",
                                 fs::absolute(submission.file).string(),
                                 "--plain",
                                 "--output",
                                 directory.string()};
  for (const auto& assignment : set) words.insert(words.end(), {"--set", assignment});
  const auto log = directory.string() + ".slurm.log";
  std::vector<std::string> sbatch{
      "sbatch",
      "--parsable",
      "--requeue",
      "--open-mode=append",
      "--signal=B:TERM@120",
      "--ntasks=1",
      "--job-name=" + *options.name,
      fmt::format("--comment=hypertune: the driver of the experiment '{}' in {}", *options.name, directory.string()),
      "--output=" + log};
  if (const auto& slurm = sweep.executor.slurm) {
    words.insert(words.end(), {"--set", "executor.jobs=own"});  // the driver's own allocation is not for workers
    const auto add = [&](const char* option, const std::string& value) {
      if (!value.empty()) sbatch.push_back(fmt::format("{}={}", option, value));
    };
    add("--partition", slurm->partition);
    add("--account", slurm->account);
    add("--qos", slurm->qos);
  }
  if (!submission.program.empty()) sbatch.push_back(submission.program);  // the first word after --
  sbatch.insert(sbatch.end(), submission.rest.begin(), submission.rest.end());
  std::error_code error;
  fs::create_directories(directory.parent_path(), error);
  if (error) fail(Errc::io, "cannot make the folder '{}': {}", directory.parent_path().string(), error.message());
  const auto script = batch_script(words, directory);
  process::RunOptions run;
  run.input = process::whole(script);
  process::Collected said;
  try {
    said = process::collect(sbatch, std::move(run));
  } catch (const process::NotStarted&) {
    fail(Errc::usage, "there is no program sbatch: call this on a login node of a Slurm cluster");
  }
  if (said.late) fail(Errc::io, "sbatch does not answer: is Slurm's controller there? (scontrol ping says)");
  if (said.code() != 0) fail(Errc::usage, "sbatch has refused the job: {}", slurm::reason_of_srun(said.err));
  const auto id = said.out.substr(0, said.out.find_first_not_of("0123456789"));
  if (id.empty()) fail(Errc::io, "sbatch printed no job number, but '{}'", remote::detail::last_line(said.out));
  fmt::print("job {}: the driver of '{}'; what it prints: {}\nhypertune status {}\n", id, *options.name, log,
             detail::shell_quote(directory.string()));
  return exit_done;
}

}  // namespace hypertune::inline v0::command
