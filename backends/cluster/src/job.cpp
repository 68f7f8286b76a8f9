// Programs that are submitted to a cluster.
#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/cluster/detail/files.hpp>
#include <hypertune/cluster/job.hpp>
#include <hypertune/cluster/providers.hpp>
#include <hypertune/cluster/sync.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/detail/text.hpp>
#include <hypertune/remote/host_files.hpp>
#include <hypertune/remote/shipping.hpp>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <fstream>

namespace hypertune::inline v0::cluster {
namespace detail {

static std::string job_folder(const ClusterConfig& config, const std::string& id) {
  return ".hypertune/clusters/" + config.name + "/jobs/" + id;
}

// Prints the state of the job in $d in one line: none, running, ended CODE, died. The kill of busybox does not accept
// `--`.
constexpr std::string_view job_state_script = R"sh(state() {
  if [ -f "$d/fetched" ] || [ ! -d "$d" ]; then echo none
  elif [ -f "$d/exit" ]; then echo "ended $(cat "$d/exit")"
  elif [ ! -f "$d/pid" ]; then echo none
  elif kill -0 "-$(cat "$d/pid")" 2>/dev/null; then echo running
  elif [ -f "$d/exit" ]; then echo "ended $(cat "$d/exit")"
  else echo died; fi
}
)sh";

static JobStatus parse_status(const std::string& id, std::string_view text) {
  JobStatus status;
  status.id = id;
  if (text.starts_with("running")) status.state = JobState::running;
  if (text.starts_with("died")) status.state = JobState::died;
  if (text.starts_with("ended ")) {
    status.state = JobState::ended;
    text.remove_prefix(6);
    std::from_chars(text.data(), text.data() + text.size(), status.code);
  }
  return status;
}

}  // namespace detail

std::string job_id(const JobOptions& spec) {
  hypertune::detail::ContentHash program;
  std::ifstream stream(spec.program, std::ios::binary);
  if (!stream || std::filesystem::is_directory(spec.program))
    fail(Errc::input, "there is no program '{}'", spec.program.string());
  std::array<char, 65536> buffer{};
  while (stream.read(buffer.data(), buffer.size()) || stream.gcount() > 0)
    program.add(buffer.data(), static_cast<std::size_t>(stream.gcount()));
  std::string text = program.hex();
  for (const auto& argument : spec.arguments) text += argument + '\0';
  for (const auto& file : spec.files) text += file.filename().string() + '\0' + scan_files(file, {}).fingerprint;
  return hypertune::detail::ContentHash::of(text).substr(0, 12);
}

JobStatus job_status(const remote::HostShell& head, const ClusterConfig& config, const std::string& id) {
  const auto result = head.must("look after the job", "d=$HOME/$1\n" + std::string(detail::job_state_script) + "state",
                                {detail::job_folder(config, id)}, {.deadline = 60});
  return detail::parse_status(id, result.out);
}

std::vector<JobStatus> all_jobs(const remote::HostShell& head, const ClusterConfig& config) {
  const auto result = head.must("list the jobs",
                                std::string(detail::job_state_script) +
                                    "ls -td \"$HOME/$1\"/*/run 2>/dev/null | while IFS= read -r d; do d=${d%/run}; "
                                    "echo \"${d##*/} $(state)\"; head -n 1 \"$d/name\" 2>/dev/null || echo; done; :",
                                {".hypertune/clusters/" + config.name + "/jobs"}, {.deadline = 60});
  std::vector<JobStatus> jobs;
  std::string_view rest = result.out;
  while (!rest.empty()) {
    const auto line = hypertune::detail::take_until(rest, '\n');
    const auto name = hypertune::detail::take_until(rest, '\n');
    if (const auto space = line.find(' '); space != std::string_view::npos) {
      jobs.push_back(detail::parse_status(std::string(line.substr(0, space)), line.substr(space + 1)));
      jobs.back().name = std::string(name);
    }
  }
  return jobs;
}

std::string detail::job_environment(const ClusterConfig& config) {
  if (config.provider.type == "kubernetes")
    return fmt::format(
        "export HYPERTUNE_CLUSTER={0} HYPERTUNE_CLUSTER_FILE=\"$HOME/.hypertune/clusters/{1}/cluster.yaml\"",
        hypertune::detail::shell_quote(config.name), config.name);
  std::string text = fmt::format(
      "export HYPERTUNE_CLUSTER={0} HYPERTUNE_HOSTS=\"$HOME/.hypertune/clusters/{1}/hosts\" "
      "HYPERTUNE_SSH_CONFIG=\"$HOME/.hypertune/clusters/{1}/ssh_config\"",
      hypertune::detail::shell_quote(config.name), config.name);
  if (config.provider.type == "aws") text += fmt::format(" HYPERTUNE_NOTICE_URL={}", AwsProvider::notice_url);
  return text;
}

JobStatus start_job(const remote::HostShell& head, const ClusterConfig& config, const JobOptions& spec) {
  const auto id = job_id(spec);
  const auto folder = detail::job_folder(config, id);
  if (auto status = job_status(head, config, id); status.state == JobState::running || status.state == JobState::ended)
    return status;
  const auto shipped = remote::ship_program(head, spec.program);
  // A job that died continues with its files; a job whose results were fetched starts from nothing.
  head.must("prepare the job",
            "umask 077; d=$HOME/$1; if [ -f \"$d/fetched\" ]; then "
            // a trial may have left folders that forbid their change
            "find \"$d\" -type d ! -perm -0700 -exec chmod u+rwx {} \\; 2>/dev/null; rm -rf \"$d\"; fi; "
            "mkdir -p \"$d/work\"; rm -f \"$d/exit\" \"$d/pid\"",
            {folder}, {.deadline = 60});
  for (const auto& file : spec.files) {
    const auto files = scan_files(file, {config.rsync_exclude, config.rsync_filter});
    push_files(head, files, folder + "/work/" + (files.folder ? file.filename().string() : ""));
  }
  std::string script = fmt::format(
      "d=$HOME/{0}\n"
      "trap : INT TERM\n"  // the program gets the signals; this script waits for it
      "echo $$ >\"$d/pid.new\" && mv \"$d/pid.new\" \"$d/pid\"\n"
      "{1}\n"
      "cd \"$d/work\" || exit 1\n",
      folder, detail::job_environment(config));
  script += hypertune::detail::shell_quote(shipped.path);
  for (const auto& argument : spec.arguments) script += " " + hypertune::detail::shell_quote(argument);
  script += "\ncode=$?\necho $code >\"$d/exit.new\" && mv \"$d/exit.new\" \"$d/exit\"\n";
  remote::upload_text(head, script, folder + "/run", {.mode = 0700});
  remote::upload_text(head, (spec.name.empty() ? spec.program.filename().string() : spec.name) + "\n",
                      folder + "/name");
  // Runs in its own session, so that it continues when the connection ends. `setsid -f` does not change SIGINT, '&'
  // does.
  const auto started = head.must(
      "start the job",
      "d=$HOME/$1\n" + std::string(detail::job_state_script) +
          "if command -v bash >/dev/null 2>&1; then shell='bash -l'; else shell='sh -l'; fi\n"
          ": >\"$d/log\"; as_login\n"
          "if setsid --help 2>&1 | grep -q -- '-f\\|--fork'; then setsid -f $shell \"$d/run\" </dev/null >\"$d/log\" "
          "2>&1\n"
          "else setsid $shell \"$d/run\" </dev/null >\"$d/log\" 2>&1 & fi\n"
          "i=0; while [ ! -f \"$d/pid\" ] && [ ! -f \"$d/exit\" ] && [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done\n"
          "state\n",
      {folder}, {.deadline = 60});
  return detail::parse_status(id, started.out);
}

std::uint64_t follow_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                         std::uint64_t offset, const std::function<void(std::string_view)>& output,
                         const std::stop_token& stop, bool follow) {
  // The script's standard input ends when the caller is gone, which ends the script. If the connection does not report
  // this end (input_may_be_cut), the script exits after a number of rounds and is started again.
  constexpr std::string_view script = R"sh(d=$HOME/$1; off=$2; ended=$3; left=$4
exec 3<&0 </dev/null
watch=
[ -n "$left" ] || { ( cat <&3 >/dev/null; kill -KILL "$$" ) >/dev/null 2>&1 & watch=$!; }
exec 3<&-
while :; do
  [ -f "$d/exit" ] && ended=1
  kill -0 "-$(cat "$d/pid")" 2>/dev/null || ended=1
  size=$(wc -c <"$d/log")
  if [ "$size" -gt "$off" ]; then
    tail -c +$((off + 1)) "$d/log" | head -c $((size - off)) || exit 1
    off=$size
  fi
  [ -n "$ended" ] && break
  if [ -n "$left" ]; then
    [ "$left" -gt 0 ] || exit 75
    left=$((left - 1))
  fi
  sleep 0.2
done
[ -z "$watch" ] || kill -KILL "$watch" 2>/dev/null
exit 0)sh";
  constexpr const char* rounds = "100";
  constexpr int goes_on = 75;
  bool own = false;  // whether `output` threw the error
  try {
    int end = goes_on;
    while (end == goes_on)
      end = head.run(script,
                     {detail::job_folder(config, id), fmt::format("{}", offset), follow ? "" : "1",
                      head.input_may_be_cut ? rounds : ""},
                     {.hold_input = true,
                      .take_out =
                          [&](std::string_view text) {
                            own = true;
                            offset += text.size();
                            output(text);
                            own = false;
                            return true;
                          },
                      .take_err = [](std::string_view) { return true; },
                      .deadline = 1e9,
                      .max_output = SIZE_MAX,
                      .stop = stop})
                .exit;
  } catch (const Error&) {
    if (own) throw;  // otherwise: stopped, or the connection was lost, which the caller's next request reports
  }
  return offset;
}

void signal_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                const std::string& signal) {
  head.run("kill \"-$2\" \"-$(cat \"$HOME/$1/pid\")\"", {detail::job_folder(config, id), signal}, {.deadline = 30});
}

std::size_t fetch_job(const remote::HostShell& head, const ClusterConfig& config, const std::string& id,
                      const std::filesystem::path& local) {
  const auto folder = detail::job_folder(config, id);
  const auto count = pull_files(head, folder + "/work", local);
  remote::download(head, folder + "/log", local / "submit.log");
  head.must("note that the results are fetched", ": >\"$HOME/$1/fetched\"", {folder}, {.deadline = 60});
  return count;
}

}  // namespace hypertune::inline v0::cluster
