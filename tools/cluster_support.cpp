#include "cluster_support.hpp"

#include "commands.hpp"

#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/signal_block.hpp>
#include <hypertune/process/subprocess.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace hypertune::inline v0::command {

namespace {

std::atomic<int> signals{0};
std::atomic<int> wake{-1};  // an eventfd, once there is a SignalCounter

// When a terminal is closed, the shell and the kernel send one SIGHUP each. So SIGHUP counts only as the first signal.
void count_signal(int signal) {
  int none = 0;
  if (signal == SIGHUP)
    signals.compare_exchange_strong(none, 1);
  else
    signals.fetch_add(1);
  const int saved = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake.load(), &one, sizeof one);
  errno = saved;
}

/// Takes over the signals. A thread stops what waits for them, because a signal handler must not.
class SignalCounter {
 public:
  SignalCounter() {
    wake = ::eventfd(0, EFD_CLOEXEC);
    if (wake < 0) fail(Errc::io, "cannot make an event descriptor (errno {})", errno);
    {
      const detail::SignalBlock block;  // the main thread handles signals: they interrupt its waits
      thread_ = std::jthread([this](const std::stop_token& over) {
        std::uint64_t count = 0;
        while (::read(wake.load(), &count, sizeof count) > 0 && !over.stop_requested()) stop_sources();
      });
    }
    struct sigaction action{};
    action.sa_handler = count_signal;
    sigemptyset(&action.sa_mask);
    struct sigaction hangup{};
    ::sigaction(SIGHUP, nullptr, &hangup);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
      if (signal != SIGHUP || hangup.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // ignored by nohup
  }
  SignalCounter(const SignalCounter&) = delete;
  SignalCounter& operator=(const SignalCounter&) = delete;
  ~SignalCounter() {
    thread_.request_stop();
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake.load(), &one, sizeof one);
  }

  std::stop_token after(int heard) {
    const std::lock_guard lock(mutex_);
    auto& source = sources_[heard];
    if (signals > heard) source.request_stop();
    return source.get_token();
  }

 private:
  void stop_sources() {
    const std::lock_guard lock(mutex_);
    for (auto& [heard, source] : sources_)
      if (signals > heard) source.request_stop();
  }

  std::mutex mutex_;
  std::map<int, std::stop_source> sources_;  // by the number of signals before they stop
  std::jthread thread_;
};

SignalCounter& signal_counter() {
  static SignalCounter counter;
  return counter;
}

}  // namespace

int interruptions() {
  signal_counter();
  return signals.load();
}
bool interrupted() { return interruptions() > 0; }
std::stop_token interrupted_after(int heard) { return signal_counter().after(heard); }

cluster::ClusterHooks hooks() {
  return {.say = [](const std::string& line) { detail::say(line); }, .stop = interrupted_after(0)};
}

std::vector<std::string> settings_of(const ClusterArguments& arguments) {
  auto set = arguments.set;
  if (!arguments.samples.empty()) set.push_back("samples=" + arguments.samples);
  return set;
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
  int heard = interruptions();  // the program handles Ctrl-C; this process only waits
  process::Subprocess program(arguments, {.in = Stream::inherited,
                                          .out = Stream::inherited,
                                          .err = Stream::inherited,
                                          .group = process::Group::shared,
                                          .death_signal = SIGTERM,  // it must not outlive this process
                                          .keep_descriptors = true});
  while (!program.ready(1))
    if (interruptions() > heard) {
      heard = interruptions();
      program.signal(SIGTERM);  // the signal may have been sent to this process only
    }
  return process::exit_code(program.wait());
}

std::vector<cluster::Session::Port> ports_of(const std::vector<std::string>& ports) {
  std::vector<cluster::Session::Port> all;
  for (const auto& text : ports) {
    const auto colon = text.find(':');
    const auto number = [&](std::string_view part) {
      const auto port = detail::parse_number<std::uint16_t>(part);
      if (!port || *port == 0) fail(Errc::usage, "'{}' is no port to forward: write PORT, or LOCAL:REMOTE", text);
      return *port;
    };
    const auto local = number(std::string_view(text).substr(0, colon));
    all.push_back({.local = local,
                   .remote = colon == std::string::npos ? local : number(std::string_view(text).substr(colon + 1))});
  }
  return all;
}

cluster::MachineLink patient_link(const cluster::ClusterConfig& config, const cluster::Machine& machine,
                                  double patience) {
  const auto begin = std::chrono::steady_clock::now();
  for (;;) {
    try {
      return cluster::connect_machine(config, machine, cluster::cluster_state(config.name), 20);
    } catch (const Error& error) {
      const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (cluster::link_problem(error) == cluster::LinkProblem::permanent || waited > patience || interruptions() > 1)
        throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }
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

}  // namespace hypertune::inline v0::command
