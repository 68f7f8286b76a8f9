#include "cluster_support.hpp"

#include "commands.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/process/subprocess.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <string>

namespace hypertune::command {

namespace {
std::atomic<int> signals{0};
// Of a terminal that is closed, the shell and the kernel tell by a SIGHUP each: it says nothing beyond the first
// signal.
void count_signal(int signal) {
  int none = 0;
  if (signal == SIGHUP)
    signals.compare_exchange_strong(none, 1);
  else
    signals.fetch_add(1);
}
}  // namespace

int interruptions() {
  static const bool once = [] {
    struct sigaction action{};
    action.sa_handler = count_signal;
    sigemptyset(&action.sa_mask);
    struct sigaction hangup{};
    ::sigaction(SIGHUP, nullptr, &hangup);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      if (signal != SIGHUP || hangup.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // ignored: nohup
    return true;
  }();
  static_cast<void>(once);
  return signals.load();
}
bool interrupted() { return interruptions() > 0; }

cluster::ClusterHooks hooks() {
  interruptions();
  return {.say = [](const std::string& line) { detail::say(line); }, .cancelled = interrupted};
}

cluster::ClusterConfig read_cluster(const ClusterArguments& arguments) {
  cluster::ClusterOverrides overrides;
  overrides.name = arguments.name;
  if (arguments.min_workers >= 0) overrides.min_workers = arguments.min_workers;
  if (arguments.max_workers >= 0) overrides.max_workers = arguments.max_workers;
  auto config = cluster::load_cluster(arguments.file, overrides);
  for (const auto& warning : config.warnings) detail::say(fmt::format("hypertune: {}", warning));
  return config;
}

bool confirmed(const std::string& question, bool yes) {
  if (yes || ::isatty(STDIN_FILENO) == 0) return true;
  std::fputs((question + " [y/N] ").c_str(), stderr);
  std::fflush(stderr);
  std::string line;
  for (int c = std::getchar(); c != EOF && c != '\n'; c = std::getchar()) line += static_cast<char>(c);
  return line == "y" || line == "Y" || line == "yes";
}

int run_foreground(const std::vector<std::string>& arguments) {
  using process::Stream;
  std::fflush(nullptr);
  int heard = interruptions();  // Ctrl-C is the program's; this only waits
  process::Subprocess program(arguments, {.in = Stream::inherited,
                                          .out = Stream::inherited,
                                          .err = Stream::inherited,
                                          .group = process::Group::shared,
                                          .death_signal = SIGTERM,  // it must not go on without us, whatever ends us
                                          .keep_descriptors = true});
  while (!program.ready(1))
    if (interruptions() > heard) {
      heard = interruptions();
      program.signal(SIGTERM);  // one that was sent to this process alone
    }
  return process::exit_code(program.wait());
}

std::vector<std::string> forward_options(const std::vector<std::string>& ports) {
  std::vector<std::string> options;
  for (const auto& text : ports) {
    const auto colon = text.find(':');
    const auto number = [&](std::string_view part) {
      int port = 0;
      const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), port);
      if (error != std::errc() || end != part.data() + part.size() || port < 1 || port > 65535)
        fail(Errc::usage, "'{}' is no port to forward: write PORT, or LOCAL:REMOTE", text);
      return port;
    };
    const int local = number(std::string_view(text).substr(0, colon));
    const int remote = colon == std::string::npos ? local : number(std::string_view(text).substr(colon + 1));
    options.insert(options.end(), {"-L", fmt::format("127.0.0.1:{}:127.0.0.1:{}", local, remote)});
  }
  if (!options.empty()) options.insert(options.end(), {"-o", "ExitOnForwardFailure=yes"});
  return options;
}

bool bring_up(cluster::Cluster& cluster, const ClusterArguments& arguments) {
  const auto reports = cluster.up({.no_restart = arguments.no_restart, .restart_only = arguments.restart_only});
  bool all = true, head = false;
  int workers = 0;
  for (const auto& report : reports) {
    all = all && report.error.empty();
    if (report.error.empty()) report.machine.head ? static_cast<void>(head = true) : static_cast<void>(++workers);
  }
  if (!head)
    for (const auto& report : reports)
      if (report.machine.head) fail(Errc::io, "the head is not up: {}", report.error);
  fmt::print("cluster '{}': head and {} worker{} up{}\n", cluster.config().name, workers, workers == 1 ? "" : "s",
             all ? "" : fmt::format(", {} failed (see above)", reports.size() - static_cast<std::size_t>(workers) - 1));
  return all;
}

}  // namespace hypertune::command
