#include "cluster.hpp"

#include "cluster_support.hpp"
#include "commands.hpp"
#include "count_option.hpp"
#include "kubernetes_driver.hpp"

#include <hypertune/cluster/job.hpp>
#include <hypertune/cluster/machine_link.hpp>
#include <hypertune/cluster/sync.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/shell_quote.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

namespace hc = hypertune::cluster;

int up(const ClusterArguments& arguments) {
  auto config = read_cluster(arguments);
  if (!confirmed(fmt::format("Bring up the cluster '{}' ({}, {} to {} workers)?", config.name, config.provider.type,
                             config.min_workers, config.max_workers),
                 arguments.yes))
    return exit_usage;
  const auto cluster = hc::open_cluster(std::move(config), hooks());
  return bring_up(*cluster, arguments) ? exit_done : exit_failed;
}

// What is lost with the machines, or with the workers: one line each.
std::vector<std::string> lost_by_down(const hc::ClusterConfig& config, const ClusterArguments& arguments) {
  std::vector<std::string> lost;
  if (arguments.keep_min_workers) return lost;
  std::vector<hc::JobStatus> jobs;
  try {
    for (const auto& machine : hc::provider_of(config).list())
      if (machine.head) jobs = unfetched_jobs(config, machine);
  } catch (const Error& error) {  // no reason to keep paying for it
    detail::say(fmt::format("hypertune: the head cannot be asked what runs on it: {}", error.what()));
  }
  for (const auto& job : jobs) {
    if (job.state == hc::JobState::running)
      lost.push_back(fmt::format("job {} ({}) is running{}", job.id, job.name,
                                 arguments.workers_only ? ": what it does on the workers ends" : " and is ended"));
    else if (!arguments.workers_only)
      lost.push_back(
          fmt::format("the results of job {} ({}) have not been fetched, and are lost: the submit that began it "
                      "fetches them",
                      job.id, job.name));
  }
  return lost;
}

int down(const ClusterArguments& arguments) {
  if (arguments.kubernetes) return down_on_kubernetes({arguments.file, arguments.set}, arguments.with_volume);
  auto config = read_cluster(arguments);
  const auto lost = lost_by_down(config, arguments);
  for (const auto& line : lost) detail::say("hypertune: " + line);
  if (!lost.empty() && !arguments.yes && ::isatty(STDIN_FILENO) == 0)
    fail(Errc::usage,
         "nobody can be asked whether that is meant: `hypertune down {} -y` ends the machines all the same",
         arguments.file);
  if (!confirmed(fmt::format("End {} machines of the cluster '{}'?", arguments.workers_only ? "the worker" : "all",
                             config.name),
                 arguments.yes))
    return exit_usage;
  const auto cluster = hc::open_cluster(std::move(config), hooks());
  const int ended =
      cluster->down({.workers_only = arguments.workers_only, .keep_min_workers = arguments.keep_min_workers});
  const auto cost = cluster->journal().ledger().cost(hc::wall_now(), cluster->config().currency);
  fmt::print("cluster '{}': {} machine{} ended{}\n", cluster->config().name, ended, ended == 1 ? "" : "s",
             cost.machines() > 0 ? "; " + cost.summary() : "");
  return exit_done;
}

// The cluster and its head, brought up first with --start; only then the lock is held.
struct Reached {
  hc::ClusterConfig config;
  std::unique_ptr<hc::Cluster> cluster;
  hc::Machine head;
};
Reached reach(const ClusterArguments& arguments) {
  Reached reached;
  reached.config = read_cluster(arguments);
  if (arguments.start) {
    reached.cluster = hc::open_cluster(reached.config, hooks());
    bring_up(*reached.cluster, arguments);
  }
  reached.head = hc::find_head(reached.config, hc::provider_of(reached.config));
  if (!arguments.start)
    if (const auto problem = hc::setup_problem(reached.config, reached.head); !problem.empty())
      detail::say(fmt::format("hypertune: {}", problem));
  return reached;
}
void leave(Reached& reached, const ClusterArguments& arguments) {
  if (!arguments.stop) return;
  if (!reached.cluster) reached.cluster = hc::open_cluster(reached.config, hc::ClusterHooks{hooks().say, {}});
  reached.cluster->down();
}

hc::Machine pick(const hc::ClusterConfig& config, int worker) {
  if (worker < 0) return hc::find_head(config, hc::provider_of(config));
  const auto view = hc::view_cluster(config, hc::provider_of(config));
  int number = 0;
  for (const auto& status : view.machines)
    if (!status.machine.head && number++ == worker) return status.machine;
  fail(Errc::usage, "there is no worker number {}: there are {}, from 0", worker, number);
}

// Uses this process's streams. exit_interrupted if the machine did not get the interruption itself.
int run_session_at(const hc::ClusterConfig& config, const hc::Machine& machine, const hc::Session& what) {
  interruptions();
  try {
    return hc::run_session(config, machine, what, run_foreground, interrupted_after(0));
  } catch (const Error&) {
    if (!interrupted()) throw;
    return exit_interrupted;
  }
}

int execute(const ClusterArguments& arguments) {
  auto reached = reach(arguments);
  std::string command = arguments.program;
  for (const auto& word : arguments.rest)
    command += " " + (arguments.rest.size() == 1 ? word : detail::shell_quote(word));
  const bool terminal = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  const int code = run_session_at(reached.config, reached.head,
                                  {.command = command, .terminal = terminal, .ports = ports_of(arguments.ports)});
  leave(reached, arguments);
  return code;
}

int attach(const ClusterArguments& arguments) {
  if (arguments.kubernetes) return attach_to_kubernetes({arguments.file, arguments.set});
  auto reached = reach(arguments);
  const auto machine = arguments.worker >= 0 ? pick(reached.config, arguments.worker) : reached.head;
  auto ports = ports_of(arguments.ports);
  reached.cluster.reset();  // releases the lock: others may work on the cluster meanwhile
  return run_session_at(reached.config, machine, {.terminal = ::isatty(STDIN_FILENO) != 0, .ports = std::move(ports)});
}

int forward(const ClusterArguments& arguments) {
  auto ports = arguments.ports;
  ports.insert(ports.end(), arguments.rest.begin(), arguments.rest.end());
  if (ports.empty()) fail(Errc::usage, "no port to forward: write `forward CLUSTER.yaml PORT`, or LOCAL:REMOTE");
  const auto wanted = ports_of(ports);
  const auto config = read_cluster(arguments);
  const auto machine = pick(config, arguments.worker);
  for (const auto& port : wanted)
    fmt::print("http://127.0.0.1:{} is port {} of {}\n", port.local, port.remote, machine.address);
  std::fflush(stdout);
  const int code = run_session_at(config, machine, {.only_ports = true, .ports = wanted});
  return interrupted() ? exit_done : code;
}

std::vector<hc::Machine> targets(const hc::ClusterConfig& config, bool all) {
  if (!all) return {hc::find_head(config, hc::provider_of(config))};
  std::vector<hc::Machine> machines;
  for (const auto& status : hc::view_cluster(config, hc::provider_of(config)).machines)
    if (status.machine.state == hc::MachineState::running && !status.machine.address.empty())
      machines.push_back(status.machine);
  return machines;
}

int rsync(const ClusterArguments& arguments, bool upwards) {
  const auto config = read_cluster(arguments);
  interruptions();
  const auto state = hc::cluster_state(config.name);
  for (const auto& machine : targets(config, upwards && arguments.all_nodes)) {
    const auto link = hc::connect_machine(config, machine, state);
    const auto& shell = link.shell;
    if (!arguments.source.empty()) {
      if (arguments.target.empty())
        fail(Errc::usage, "a source needs a target: rsync-{} CLUSTER.yaml FROM TO", upwards ? "up" : "down");
      if (upwards)
        hc::push_files(shell, hc::scan_files(arguments.source, {config.rsync_exclude, config.rsync_filter}),
                       arguments.target, interrupted_after(0));
      else
        hc::pull_files(shell, arguments.source, arguments.target, config.rsync_exclude, {}, interrupted_after(0));
    } else {
      if (!upwards) fail(Errc::usage, "name what to fetch: rsync-down CLUSTER.yaml FROM TO");
      for (const auto& mount : config.file_mounts)
        hc::push_files(shell, hc::scan_files(mount.local, {config.rsync_exclude, config.rsync_filter}), mount.remote,
                       interrupted_after(0));
    }
    if (interrupted()) return exit_interrupted;
  }
  return exit_done;
}

int addresses(const ClusterArguments& arguments, bool head) {
  const auto config = read_cluster(arguments);
  if (head) {
    fmt::print("{}\n", hc::find_head(config, hc::provider_of(config)).address);
    return exit_done;
  }
  for (const auto& machine : targets(config, true))
    if (!machine.head) fmt::print("{}\n", machine.address);
  return exit_done;
}

}  // namespace

void add_cluster_commands(CLI::App& app, std::function<int()>& chosen) {
  const auto arguments = std::make_shared<ClusterArguments>();
  const auto add = [&app, &chosen, arguments](const char* name, const char* what, int (*run)(const ClusterArguments&)) {
    auto* command = app.add_subcommand(name, what);
    command->add_option("CLUSTER", arguments->file, "the cluster's YAML file")->required();
    command->add_option("-n,--cluster-name", arguments->name, "in place of the file's cluster_name");
    command->callback([&chosen, arguments, run] {
      chosen = [arguments, run] {
        try {
          if (!arguments->rest.empty() && arguments->rest.front() == "--")
            arguments->rest.erase(arguments->rest.begin());
          return run(*arguments);
        } catch (const cluster::Interrupted&) {
          detail::say(
              fmt::format("hypertune: interrupted; what is there is written down: the same command goes on, "
                          "`hypertune down {}` ends all machines",
                          arguments->file));
          return exit_interrupted;
        }
      };
    });
    return command;
  };
  const auto start_stop = [arguments](CLI::App* command) {
    command->add_flag("--start", arguments->start, "bring the cluster up first, where it is not");
    command->add_flag("--stop", arguments->stop, "end all machines afterwards");
    command->add_option("-p,--port-forward", arguments->ports, "LOCAL:REMOTE or PORT; may be repeated")
        ->allow_extra_args(false);
    command->add_option("--min-workers", arguments->min_workers)->check(count());
    command->add_option("--max-workers", arguments->max_workers)->check(count());
    command->add_flag("-y,--yes", arguments->yes, "do not ask");
  };

  auto* command = add("up", "start a cluster, or bring it into the state of its file", up);
  command->add_flag("-y,--yes", arguments->yes, "do not ask");
  command->add_option("--min-workers", arguments->min_workers, "in place of the file's")->check(count());
  command->add_option("--max-workers", arguments->max_workers, "in place of the file's")->check(count());
  auto* no_restart =
      command->add_flag("--no-restart", arguments->no_restart, "leave machines that are set up as they are");
  command->add_flag("--restart-only", arguments->restart_only, "run none of the file's commands")->excludes(no_restart);

  command = add("down", "end a cluster's machines", down);
  command->add_flag("-y,--yes", arguments->yes, "do not ask");
  command->add_flag("--workers-only", arguments->workers_only, "leave the head");
  auto* sweeps = add_submitted(*command, arguments->kubernetes, arguments->set,
                               "CLUSTER is the YAML file of a sweep that was submitted: its Job ends, and its pods");
  command->add_flag("--volume", arguments->with_volume, "with --kubernetes: the volume with its record, too")
      ->needs(sweeps);
  command->add_flag("--keep-min-workers", arguments->keep_min_workers, "leave the head and min_workers workers");

  command = add("exec", "run a shell command on the head", execute);
  start_stop(command);
  command->add_option("COMMAND", arguments->program, "the command")->required();
  command->add_option("ARGS", arguments->rest, "its arguments");

  command = add("attach", "a shell on the head", attach);
  start_stop(command);
  command->add_option("--worker", arguments->worker, "on this worker, from 0")->check(count());
  add_submitted(*command, arguments->kubernetes, arguments->set,
                "CLUSTER is the YAML file of a sweep that was submitted: what its driver prints");

  command = add("submit", "run a program on the head: bring up, copy, run, fetch the results, end", submit);
  start_stop(command);
  command->add_flag("--detach", arguments->detach, "leave it running; the same command without fetches the results");
  command->add_option("--sync", arguments->sync, "a file or folder for the program's working folder; may be repeated")
      ->allow_extra_args(false);
  command->add_option("-o,--output", arguments->output,
                      "the folder for the results; else results/<cluster>/<program>-<job>");
  command->add_option("--args", arguments->legacy_args, "arguments in one text (better: -- ARGS)");
  command->add_flag(
      "--slurm", arguments->slurm,
      "CLUSTER is a sweep's YAML file: its driver becomes a batch job of Slurm, which is queued again when "
      "it was preempted or its time is over; after --: options of sbatch");
  auto* kubernetes =
      command->add_flag("--kubernetes", arguments->kubernetes,
                        "CLUSTER is a sweep's YAML file: its driver becomes a Job of Kubernetes, which goes "
                        "on where it was when its pod or node is lost");
  command
      ->add_option("--set", arguments->set, "with --slurm or --kubernetes, key=value: a value in place of the sweep's")
      ->allow_extra_args(false);
  command->add_option("--samples", arguments->samples, "with --slurm or --kubernetes: trials in all");
  const auto of_kubernetes = [&](const char* name, std::string& value, const char* what) {
    command->add_option(name, value, what)->needs(kubernetes);
  };
  of_kubernetes("--service-account", arguments->service_account, "with --kubernetes: of the driver");
  of_kubernetes("--volume", arguments->volume, "with --kubernetes: a volume claim for its record; else one is made");
  of_kubernetes("--storage", arguments->storage, "with --kubernetes: the size of the volume that is made");
  of_kubernetes("--storage-class", arguments->storage_class,
                "with --kubernetes: its class; else the cluster's default");
  of_kubernetes("--ttl", arguments->ttl, "with --kubernetes: the Job is deleted so long after its end");
  of_kubernetes("--deadline", arguments->deadline, "with --kubernetes: the Job is ended after so long");
  command->add_option("PROGRAM", arguments->program, "a program, a script, or a sweep's YAML file");
  command->add_option("ARGS", arguments->rest, "after --: its arguments");

  command = add("logs", "the output of a submitted program", logs);
  command->add_option("NAME", arguments->program, "the job's number or the program's name; else the last one");
  command->add_flag("-f,--follow", arguments->follow, "go on until it ends, or Ctrl-C, which leaves it running");

  for (const char* name : {"rsync-up", "rsync_up"}) {
    command = add(name, "copy files to the head; without FROM and TO: the file's file_mounts",
                  [](const ClusterArguments& a) { return rsync(a, true); });
    command->add_option("FROM", arguments->source, "here");
    command->add_option("TO", arguments->target, "there");
    command->add_flag("-A,--all-nodes", arguments->all_nodes, "to all machines");
    if (std::string_view(name) == "rsync_up") command->group("");
  }
  for (const char* name : {"rsync-down", "rsync_down"}) {
    command = add(name, "copy files from the head", [](const ClusterArguments& a) { return rsync(a, false); });
    command->add_option("FROM", arguments->source, "there");
    command->add_option("TO", arguments->target, "here");
    if (std::string_view(name) == "rsync_down") command->group("");
  }

  command = add("forward", "ports of the head on this machine's loopback, until Ctrl-C", forward);
  command->add_option("-p,--port-forward", arguments->ports, "LOCAL:REMOTE or PORT")->allow_extra_args(false);
  command->add_option("--worker", arguments->worker, "of this worker, from 0")->check(count());
  command->add_option("PORTS", arguments->rest, "LOCAL:REMOTE or PORT");

  add("get-head-ip", "the head's address", [](const ClusterArguments& a) { return addresses(a, true); });
  add("get-worker-ips", "the workers' addresses", [](const ClusterArguments& a) { return addresses(a, false); });
}

}  // namespace hypertune::inline v0::command
