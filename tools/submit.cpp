#include "cluster_support.hpp"
#include "commands.hpp"
#include "kubernetes_driver.hpp"
#include "shell_words.hpp"
#include "slurm_driver.hpp"

#include <hypertune/cluster/job.hpp>
#include <hypertune/cluster/machine_link.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/say.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::command {

namespace {

namespace hc = hypertune::cluster;

// Settings that make a sweep use all machines of the cluster, unless it says where its trials run. Paths are relative
// to the job's working folder, so that they are the same on every cluster.
std::vector<std::string> cluster_executor(const hc::ClusterConfig& config, const std::filesystem::path& sweep) {
  const Node root = load_yaml_file(sweep);
  if (!root.is_map()) return {};
  const auto executor = root.find("executor");
  const bool none = !executor || executor->is_null();
  if (config.provider.type == "kubernetes") {
    if (!none) return {};
    if (config.provider.service_account.empty() &&
        config.head().node_config.find("\"serviceAccountName\"") == std::string::npos)
      fail(Errc::usage,
           "{}:{}: the trials of '{}' run on the cluster's pods, which the head reaches with the rights of its service "
           "account: give provider.service_account (deploy/kubernetes/driver.yaml makes one: hypertune-driver), and "
           "make "
           "the head anew; or give the sweep an executor",
           config.file.string(), config.provider.line, sweep.string());
    return {"executor={type: ssh, cluster: ../../../cluster.yaml, grow: false}"};
  }
  if (none) return {"executor={type: ssh, hosts: {file: ../../../hosts}, ssh_config: ../../../ssh_config}"};
  const auto type = executor->is_map() ? executor->find("type") : std::nullopt;
  if (!type || !type->is_scalar() || type->as<std::string>() != "ssh" || executor->has("hosts") ||
      executor->has("cluster"))
    return {};
  return {"executor.hosts={file: ../../../hosts}", "executor.ssh_config=../../../ssh_config"};
}

// The CLUSTER.yaml with which the sweep adds workers from the head; empty if it has none.
std::filesystem::path own_cluster(const std::filesystem::path& sweep) {
  const Node root = load_yaml_file(sweep);
  const auto executor = root.is_map() ? root.find("executor") : std::nullopt;
  const auto cluster = executor && executor->is_map() ? executor->find("cluster") : std::nullopt;
  if (!cluster) return {};
  const std::filesystem::path path = cluster->as<std::string>();
  std::error_code ignored;
  const auto beside = sweep.parent_path() / path;
  return path.is_relative() && !std::filesystem::exists(path, ignored) ? beside : path;
}

bool is_up(const hc::ClusterConfig& config, const hc::Machine& machine) {
  const auto machines = hc::provider_of(config).list();
  return std::any_of(machines.begin(), machines.end(), [&](const hc::Machine& each) {
    return each.id == machine.id && each.state == hc::MachineState::running;
  });
}

// Prints the job's output until it ends. The first Ctrl-C is passed on to the program, the second one kills it.
hc::JobStatus watch(const hc::ClusterConfig& config, const hc::Machine& head, hc::MachineLink& link,
                    const std::string& id) {
  std::uint64_t offset = 0;
  int passed_on = 0;
  for (;;) {
    try {
      offset = hc::follow_job(
          link.shell, config, id, offset,
          [](std::string_view text) {
            std::fwrite(text.data(), 1, text.size(), stdout);
            std::fflush(stdout);
          },
          interrupted_after(passed_on));
      if (const int heard = interruptions(); heard > passed_on) {
        passed_on = heard;
        detail::say(heard == 1 ? "hypertune: interrupted: the program is asked to end; once more ends it at once"
                               : "hypertune: ending the program");
        hc::signal_job(link.shell, config, id, heard == 1 ? "INT" : "KILL");
        continue;
      }
      const auto status = hc::job_status(link.shell, config, id);
      if (status.state != hc::JobState::running) return status;
    } catch (const Error& error) {
      if (hc::link_problem(error) == hc::LinkProblem::permanent) {
        if (!is_up(config, head))
          fail(Errc::io,
               "job {} is lost: its machine, the head '{}', was ended by somebody else ({}); `hypertune up {}` makes "
               "another one, where the same submit begins it anew",
               id, head.id, error.what(), config.file.string());
        throw;
      }
      detail::say(fmt::format("hypertune: {}; connecting again", error.what()));
      link = patient_link(config, head, 600);
    }
  }
}

// A folder that does not exist yet: results never overwrite others, as the same job may be submitted again later.
std::filesystem::path fresh_folder(const std::filesystem::path& wanted) {
  std::error_code ignored;
  auto folder = wanted;
  for (int number = 2; std::filesystem::exists(folder, ignored); ++number)
    folder = fmt::format("{}-{}", wanted.string(), number);
  return folder;
}

}  // namespace

int submit(const ClusterArguments& arguments) {
  if (arguments.slurm) return submit_to_slurm(arguments);
  if (arguments.kubernetes) return submit_to_kubernetes(arguments);
  if (!arguments.samples.empty())
    fail(Errc::usage, "--samples goes with --slurm or --kubernetes; of a program on a cluster write -- --samples …");
  if (!arguments.set.empty())
    fail(Errc::usage, "--set goes with --slurm or --kubernetes; of a program on a cluster write -- --set …");
  if (arguments.program.empty()) fail(Errc::usage, "which program? write hypertune submit {} PROGRAM", arguments.file);
  const auto config = read_cluster(arguments);
  if (arguments.detach && arguments.stop)
    fail(Errc::usage,
         "--detach leaves nobody who could do --stop: run `hypertune submit` without --detach later, or `hypertune "
         "down`");
  hc::JobOptions spec;
  spec.program = arguments.program;
  spec.arguments = arguments.rest;
  for (auto& word : words_of(arguments.legacy_args)) spec.arguments.push_back(std::move(word));
  std::string title = spec.program.filename().string();
  if (spec.program.extension() == ".yaml" || spec.program.extension() == ".yml") {  // a sweep, run by hypertune itself
    spec.files.push_back(spec.program);
    spec.arguments.insert(spec.arguments.begin(), {"run", title});
    for (auto& setting : cluster_executor(config, spec.program))
      spec.arguments.insert(spec.arguments.end(), {"--set", setting});
    if (const auto own = own_cluster(spec.program); !own.empty()) {
      spec.files.push_back(own);
      spec.arguments.insert(spec.arguments.end(), {"--set", "executor.cluster=" + own.filename().string()});
    }
    title = spec.program.stem().string();
    spec.name = title;
    spec.program = std::filesystem::read_symlink("/proc/self/exe");
  }
  for (const auto& path : arguments.sync) spec.files.emplace_back(path);
  const auto id = hc::job_id(spec);  // finds unreadable files before a machine costs money
  const std::filesystem::path output =
      arguments.output.empty()
          ? fresh_folder(std::filesystem::path("results") / config.name / fmt::format("{}-{}", title, id))
          : std::filesystem::path(arguments.output);
  std::unique_ptr<hc::Cluster> cluster;
  if (arguments.start || arguments.stop) cluster = hc::open_cluster(config, hooks());
  interruptions();

  // Whatever happens, with --stop no machine is left running.
  int code = exit_failed;
  std::exception_ptr trouble;
  bool fetched = false;
  try {
    if (arguments.start) bring_up(*cluster, arguments);
    const auto head = hc::find_head(config, hc::provider_of(config));
    auto link = patient_link(config, head, 60);
    for (const auto& port : ports_of(arguments.ports)) link.forward(port.local, port.remote);
    if (interrupted()) throw hc::Interrupted();
    // A job that runs or has run there is only followed.
    if (const auto setup = arguments.start ? std::string() : hc::setup_problem(config, head); !setup.empty()) {
      const auto state = hc::job_status(link.shell, config, id).state;
      if (state == hc::JobState::none || state == hc::JobState::died) fail(Errc::usage, "{}", setup);
      detail::say(fmt::format("hypertune: {}", setup));
    }
    auto status = hc::start_job(link.shell, config, spec);
    detail::say(fmt::format("job {} of '{}' {} on {}", id, title,
                            status.state == hc::JobState::running ? "runs" : "has run", head.address));
    if (arguments.detach) {
      fmt::print("job {}: running; the same command without --detach follows it and fetches its results\n", id);
      return exit_done;
    }
    status = watch(config, head, link, id);
    if (status.state == hc::JobState::died)
      fail(Errc::io, "the job was ended with its machine, or killed: submit it again, and it goes on in its folder");
    code = status.code;
    std::error_code error;
    std::filesystem::create_directories(output, error);
    if (error) fail(Errc::io, "cannot make the folder '{}': {}", output.string(), error.message());
    const auto files = hc::fetch_job(link.shell, config, id, output);
    fetched = true;
    fmt::print("results: {} ({} files)\n", output.string(), files);
    std::fflush(stdout);
  } catch (...) { trouble = std::current_exception(); }
  if (arguments.stop) {
    try {
      const int ended = cluster->down();
      const auto cost = cluster->journal().ledger().cost(hc::wall_now(), config.currency);
      detail::say(fmt::format("cluster '{}': {} machines ended; {}", config.name, ended, cost.summary()));
    } catch (const std::exception& error) {
      detail::say(
          fmt::format("hypertune: machines may be left: {}; run `hypertune down {}`", error.what(), arguments.file));
      if (!trouble) throw;
    }
  }
  if (trouble) std::rethrow_exception(trouble);
  return interrupted() && fetched ? exit_interrupted : code;
}

int logs(const ClusterArguments& arguments) {
  const auto config = read_cluster(arguments);
  interruptions();
  const auto head = hc::find_head(config, hc::provider_of(config));
  const auto link = patient_link(config, head, 20);
  const auto jobs = hc::all_jobs(link.shell, config);
  const auto& wanted = arguments.program;
  const auto job = std::find_if(jobs.begin(), jobs.end(), [&](const auto& each) {
    return wanted.empty() || each.name == wanted || each.id.starts_with(wanted);
  });
  if (job == jobs.end()) {
    std::string all;
    for (const auto& each : jobs) all += fmt::format("{}{} ({})", all.empty() ? "" : ", ", each.id, each.name);
    if (jobs.empty()) fail(Errc::usage, "nothing was submitted to the cluster '{}'", config.name);
    fail(Errc::usage, "there is no job '{}' on the cluster '{}': there are {}", wanted, config.name, all);
  }
  const auto print = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  // Ctrl-C leaves the job running.
  std::uint64_t offset = 0;
  auto held = link;
  for (;;) {
    try {
      offset = hc::follow_job(held.shell, config, job->id, offset, print, interrupted_after(0), arguments.follow);
      if (!arguments.follow || interrupted()) break;
      if (hc::job_status(held.shell, config, job->id).state != hc::JobState::running) break;
    } catch (const Error& error) {
      if (hc::link_problem(error) == hc::LinkProblem::permanent) throw;
      detail::say(fmt::format("hypertune: {}; connecting again", error.what()));
      held = patient_link(config, head, 600);
    }
  }
  return exit_done;
}

}  // namespace hypertune::inline v0::command
