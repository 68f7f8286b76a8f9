// Agents as child processes of the test, each with a folder of its own: they play hosts.
#pragma once

#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/process/process_tree.hpp>
#include <hypertune/remote/agent.hpp>
#include <hypertune/remote/executor.hpp>

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// Hosts "a", "b", … whose agents are children of this process.
class Hosts {
 public:
  /// `cache`: bytes of checkpoints that an agent keeps although the driver has them.
  explicit Hosts(int workers = 2, std::uint64_t cache = remote::AgentOptions().cache)
      : workers_(workers), cache_(cache) {}

  remote::RemoteHost host(const std::string& name) const {
    return {.name = name, .dialer = remote::CommandDialer(command(name))};
  }
  std::vector<std::string> command(const std::string& name) const {
    return {HYPERTUNE_TEST_AGENT, (folder_.path() / name).string(), std::to_string(workers_), std::to_string(cache_)};
  }
  remote::HostPool pool(int count) const {
    remote::HostPool pool;
    for (int i = 0; i < count; ++i) pool.add(host(name(i)));
    return pool;
  }
  static std::string name(int i) { return {static_cast<char>('a' + i)}; }
  const std::filesystem::path& folder() const { return folder_.path(); }

  /// The agents of a host that live, by their command lines.
  std::vector<pid_t> agents(const std::string& host) const {
    return processes(
        [&](const std::string& line) {
          return line.find((folder_.path() / host).string() + '\0') != std::string::npos;
        },
        "test_agent");
  }
  /// The processes of its trials, which are children of the agents' guardians.
  std::vector<pid_t> trials(const std::string& host) const {
    std::vector<pid_t> found;
    for (const pid_t agent : agents(host))
      for (const pid_t guardian : process::children_of(agent))
        for (const pid_t trial : process::children_of(guardian)) found.push_back(trial);
    return found;
  }
  /// Every process of any agent of these hosts: agents, guardians, workers.
  std::vector<pid_t> all() const {
    return processes([&](const std::string& line) { return line.find(folder_.path().string()) != std::string::npos; });
  }
  bool kill(const std::string& host, int signal = SIGKILL) const {
    bool any = false;
    for (const pid_t pid : agents(host)) any = ::kill(pid, signal) == 0 || any;
    return any;
  }

  /// The folders in which agents keep checkpoints.
  std::vector<std::filesystem::path> stores() const {
    std::vector<std::filesystem::path> found;
    std::error_code error;
    for (const auto& host : std::filesystem::directory_iterator(folder_.path(), error))
      for (const auto& experiment : std::filesystem::directory_iterator(host.path(), error))
        for (const auto& folder : std::filesystem::directory_iterator(experiment.path(), error))
          found.push_back(folder.path());
    return found;
  }

 private:
  static std::vector<pid_t> processes(const std::function<bool(const std::string&)>& wanted,
                                      const std::string& comm = {}) {
    std::vector<pid_t> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
      const std::string name = entry.path().filename();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      std::ifstream in(entry.path() / "cmdline", std::ios::binary);
      std::string line;  // one that ends meanwhile is no error
      for (std::string part; std::getline(in, part, '\0');) line += part + '\0';
      if (!wanted(line)) continue;
      std::string own;
      std::getline(std::ifstream(entry.path() / "comm"), own);
      if (!comm.empty() && own != comm.substr(0, 15)) continue;
      found.push_back(static_cast<pid_t>(std::stol(name)));
    }
    return found;
  }

  TemporaryDirectory folder_;
  int workers_;
  std::uint64_t cache_;
};

/// Does what a function does.
struct FunctionDialer {
  std::function<remote::AgentStream(const std::stop_token&)> function;
  remote::AgentStream dial(const std::stop_token& stop) const { return function(stop); }
  remote::FailureClass classify(const std::string&) const { return remote::FailureClass::unknown; }
};

/// Calls a function before each attempt.
struct WatchedDialer {
  remote::AnyDialer inner;
  std::function<void()> before;
  remote::AgentStream dial(std::stop_token stop) const {
    before();
    return inner.dial(std::move(stop));
  }
  remote::FailureClass classify(const std::string& said) const { return inner.classify(said); }
};

/// What all hosts together did with checkpoints.
inline remote::HostAccount total(const RemoteExecutor& executor) {
  remote::HostAccount sum;
  for (const auto& host : executor.accounts()) {
    sum.sent += host.sent;
    sum.received += host.received;
    sum.direct += host.direct;
    sum.shared += host.shared;
    sum.reused += host.reused;
  }
  return sum;
}

}  // namespace hypertune::inline v0::test
