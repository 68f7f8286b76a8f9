// What a driver of many hosts costs, and an agent that has nothing to do.
// Usage: benchmark_remote [--hosts N]… [--reports N] [--seconds N] [--folder DIR]; see benchmarks/README.md
#include "../driver_measures.hpp"
#include "../processor_seconds.hpp"
#include "played_hosts.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/remote/agent.hpp>
#include <hypertune/remote/executor.hpp>

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ht = hypertune;
namespace fs = std::filesystem;
using namespace driver_measures;

struct Arguments {
  std::vector<int> hosts = {};
  std::int64_t reports = 400'000;
  double seconds = 10;
  fs::path folder = fs::temp_directory_path();
};

/// In a process of its own, as the agents are: so all that is counted is the driver's.
void measure(int hosts, const Arguments& arguments) {
  const int steps = static_cast<int>(std::max<std::int64_t>(1, arguments.reports / hosts));
  const ht::test::PlayedHosts played({.steps = steps + 2, .cpus = 2}, ht::test::PlayedHosts::In::process);
  const auto& counts = played.counts();
  std::string folder = (arguments.folder / "hypertune-benchmark-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) ht::fail(ht::Errc::io, "no folder in '{}'", arguments.folder.string());
  fmt::print("\n| {} hosts | |\n|---|---:|\n", hosts);
  {
    ht::remote::RemoteOptions remote;
    remote.timeouts.first_delay = 0.2;
    const double empty = resident();
    ht::Options options;
    options.samples = hosts;
    options.search = ht::Random{};
    options.output = fs::path(folder) / "run";
    options.display = ht::Display::quiet;
    options.resources.cpus = 1;
    options.executor = ht::RemoteExecutor(played.pool(hosts), remote);
    TunerThread run([&] { return ht::make_tuner(space(), train, std::move(options)); });
    const auto begin = Clock::now();
    double processor = processor_seconds();
    run.start();
    until([&] { return run.over() || counts.launches >= hosts; });
    if (run.over()) run.end();
    row("until a trial runs on each, s", fmt::format("{:.2f}", since(begin)));
    row("… processor time of the driver, s", fmt::format("{:.2f}", processor_seconds() - processor));

    std::this_thread::sleep_for(std::chrono::seconds(1));
    const auto rest = Clock::now();
    processor = processor_seconds();
    const auto beats = counts.beats_heard + counts.beats_sent;
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.seconds));
    const double used = processor_seconds() - processor;
    const auto passed = counts.beats_heard + counts.beats_sent - beats;
    row("at rest: heartbeats a second, both ways", fmt::format("{:.0f}", static_cast<double>(passed) / since(rest)));
    row("at rest: % of a core", fmt::format("{:.2f}", 100 * used / since(rest)));
    row("at rest: processor time for each heartbeat, us",
        fmt::format("{:.1f}", 1e6 * used / static_cast<double>(std::max<std::int64_t>(passed, 1))));
    const double full = resident();
    row("resident memory at rest, MB", fmt::format("{:.1f}", full));
    row("… more than before there were hosts, for each, kB", fmt::format("{:.1f}", 1000 * (full - empty) / hosts));
    row("threads", std::to_string(threads()));

    const auto reported = counts.reports.load();
    const auto go = Clock::now();
    processor = processor_seconds();
    played.allow(steps);
    until([&] { return counts.reports >= reported + std::int64_t{steps} * hosts; });
    const double took = since(go);
    const auto reports = static_cast<double>(counts.reports - reported);
    row("reports a second", fmt::format("{:.0f}", reports / took));
    row("… and for each second of the driver's processor time",
        fmt::format("{:.0f}", reports / (processor_seconds() - processor)));

    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const auto launched = counts.launches.load(), greeted = counts.greeted.load();
    const auto struck = Clock::now();
    processor = processor_seconds();
    played.lose(0, hosts / 2);
    until([&] { return counts.launches >= launched + hosts / 2; });
    row("half of them lost at once: until their trials run elsewhere, s", fmt::format("{:.3f}", since(struck)));
    row("… processor time of the driver, s", fmt::format("{:.2f}", processor_seconds() - processor));
    until([&] { return counts.greeted >= greeted + hosts / 2; });
    row("… until all of them are there again, s", fmt::format("{:.2f}", since(struck)));
    played.allow(steps + 2);
    if (run.end().count(ht::TrialState::completed) != static_cast<std::size_t>(hosts))
      ht::fail(ht::Errc::experiment, "not all trials have completed");
    row("peak resident memory, MB", fmt::format("{:.1f}", megabytes("/proc/self/status", "VmHWM")));
  }
  fs::remove_all(folder);
}

/// PSS and RSS of an agent's processes, which runs nothing; `processes`: those whose command line names the folder.
void measure_agent(const char* self, const Arguments& arguments) {
  std::string folder = (arguments.folder / "hypertune-benchmark-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) ht::fail(ht::Errc::io, "no folder in '{}'", arguments.folder.string());
  fmt::print("\n| an agent at rest | PSS, MB | RSS, MB | threads |\n|---|---:|---:|---:|\n");
  {
    ht::RemoteExecutor executor(ht::remote::HostPool(
        {{.name = "a", .dialer = ht::remote::CommandDialer({self, "--agent", folder + "/agent"})}}));
    ht::ExecutorStart start;
    start.program = ht::make_program<Config>(ht::detail::decoder(space()), train, "value");
    start.directory = fs::path(folder) / "run";
    start.sink = [](const ht::Event&) {};
    executor.hosts();
    executor.start(std::move(start));
    executor.notify();
    executor.wait(ht::run_clock());
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.seconds));
    double pss = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto proc = entry.path().string();
      std::ifstream file(proc + "/cmdline", std::ios::binary);
      std::ostringstream line;
      line << file.rdbuf();
      if (line.str().find(folder + "/agent") == std::string::npos) continue;
      std::ifstream comm(proc + "/comm");
      std::string name;
      std::getline(comm, name);
      const double own = megabytes(proc + "/smaps_rollup", "Pss");
      pss += own;
      std::ifstream status(proc + "/status");
      std::string count;
      for (std::string text; std::getline(status, text);)
        if (text.starts_with("Threads:")) count = text.substr(9);
      fmt::print("| {} | {:.1f} | {:.1f} | {} |\n", name, own, megabytes(proc + "/smaps_rollup", "Rss"), count);
    }
    fmt::print("| together | {:.1f} | | |\n", pss);
  }
  fs::remove_all(folder);
}

/// One's memory is not counted for the next.
bool in_child(const std::function<void()>& work) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 0;
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
    std::fflush(stdout);
    ::_exit(status);
  }
  int status = 1;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && std::string(argv[1]) == "--agent") {
    ht::remote::AgentOptions options;
    options.directory = argv[2];
    return ht::remote::agent_main(
        [](const std::string&) { return ht::make_program<Config>(ht::detail::decoder(space()), train, "value"); },
        options);
  }
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--hosts") arguments.hosts.push_back(std::atoi(argv[i + 1]));
    if (name == "--reports") arguments.reports = std::atoll(argv[i + 1]);
    if (name == "--seconds") arguments.seconds = std::atof(argv[i + 1]);
    if (name == "--folder") arguments.folder = argv[i + 1];
  }
  if (arguments.hosts.empty()) arguments.hosts = {10, 1000};
  bool sound = true;
  for (const int hosts : arguments.hosts) sound = in_child([&] { measure(hosts, arguments); }) && sound;
  const auto self = fs::read_symlink("/proc/self/exe").string();
  sound = in_child([&] { measure_agent(self.c_str(), arguments); }) && sound;
  return sound ? 0 : 1;
}
