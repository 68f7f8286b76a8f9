#include "support/executor_conformance.hpp"
#include "support/test.hpp"

#include <hypertune/local/processes.hpp>
#include <hypertune/random.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("processes keep the laws of executors") {
  executor_conformance([] { return processes({.workers = 3}); }, {.many = 300, .shutdowns = 6});
}

namespace {

/// Kills some worker process of this program now and then.
class WorkerKiller {
 public:
  WorkerKiller() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

 private:
  void run(const std::stop_token& stop) {
    Rng rng = derived_rng(5, {1});
    std::mutex mutex;
    std::condition_variable_any bell;
    std::unique_lock lock(mutex);
    while (!bell.wait_for(lock, stop, std::chrono::milliseconds(20), [] { return false; }) && !stop.stop_requested()) {
      const auto workers = workers_of(::getpid());
      if (!workers.empty())
        ::kill(workers[static_cast<std::size_t>(uniform01(rng) * static_cast<double>(workers.size()))], SIGKILL);
    }
  }
  // The guardian's children.
  static std::vector<pid_t> workers_of(pid_t driver) {
    std::vector<pid_t> workers;
    for (const pid_t guardian : children_of(driver))
      for (const pid_t worker : children_of(guardian)) workers.push_back(worker);
    return workers;
  }
  static std::vector<pid_t> children_of(pid_t process) {
    std::vector<pid_t> children;
    std::error_code ignored;
    for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), ignored)) {
      std::ifstream in(task.path() / "children");
      for (pid_t child = 0; in >> child;) children.push_back(child);
    }
    return children;
  }
  std::jthread thread_;
};

/// Processes of which some are killed.
class LossyProcesses {
 public:
  LossyProcesses() : executor_(processes({.workers = 6})) {}
  std::vector<Host> hosts() const { return executor_.hosts(); }
  Seconds now() const { return executor_.now(); }
  void start(ExecutorStart start) {
    executor_.start(std::move(start));
    killer_ = std::make_unique<WorkerKiller>();
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
  ProcessExecutor executor_;
  std::unique_ptr<WorkerKiller> killer_;
};

}  // namespace

TEST_CASE("processes form groups that keep the laws, though some are killed") {
  executor_gang_conformance([] { return processes({.workers = 8}); }, [] { return LossyProcesses(); }, 60);
}
