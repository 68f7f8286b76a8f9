// Groups whose workers are on several hosts, some of which are killed.
#include "conforming_hosts.hpp"

#include <hypertune/random.hpp>

#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

using namespace hypertune;
using namespace hypertune::test;

namespace {

/// Kills the agent of some host, and with it all that runs there, now and then.
class HostKiller {
 public:
  HostKiller(const Hosts& hosts, int count)
      : thread_([&hosts, count](const std::stop_token& stop) { run(hosts, count, stop); }) {}

 private:
  static void run(const Hosts& hosts, int count, const std::stop_token& stop) {
    Rng rng = derived_rng(9, {1});
    std::mutex mutex;
    std::condition_variable_any bell;
    std::unique_lock lock(mutex);
    for (;;) {
      bell.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
      if (stop.stop_requested()) return;
      hosts.kill(Hosts::name(static_cast<int>(uniform01(rng) * count)));
    }
  }
  std::jthread thread_;
};

RemoteExecutor executor_of(const Hosts& hosts, int count, Form form) {
  remote::RemoteOptions options;
  options.program = program_of(form);
  options.timeouts = {.liveness = 2, .connect = 20, .first_delay = 0.02, .max_delay = 0.1, .stable = 60};
  return RemoteExecutor(hosts.pool(count), options);
}

class LossyHosts {
 public:
  LossyHosts(const Hosts& hosts, int count, Form form)
      : hosts_(&hosts), count_(count), executor_(executor_of(hosts, count, form)) {}
  std::vector<Host> hosts() const { return executor_.hosts(); }
  Seconds now() const { return executor_.now(); }
  void start(ExecutorStart start) {
    executor_.start(std::move(start));
    killer_ = std::make_unique<HostKiller>(*hosts_, count_);
  }
  void perform(Command command) { executor_.perform(std::move(command)); }
  void wait(Seconds deadline) { executor_.wait(deadline); }
  void notify() { executor_.notify(); }
  void shutdown() {
    killer_.reset();
    executor_.shutdown();
  }
  static constexpr bool runs_gangs = true;

 private:
  const Hosts* hosts_;
  int count_;
  RemoteExecutor executor_;
  std::unique_ptr<HostKiller> killer_;
};

}  // namespace

TEST_CASE("groups on several hosts keep the laws, though hosts are killed") {
  const Hosts hosts(3);
  executor_gang_conformance([&](Form form) { return executor_of(hosts, 3, form); },
                            [&](Form form) { return LossyHosts(hosts, 4, form); }, 100);
}
