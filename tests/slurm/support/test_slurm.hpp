// A Slurm of a test's own, and experiments on it.
#pragma once

#include "remote/agents.hpp"
#include "remote/experiments.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/process/subprocess.hpp>
#include <hypertune/slurm/executor.hpp>

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// A variable of this process's environment, for as long as it lives.
class EnvironmentVariable {
 public:
  EnvironmentVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() {
    if (before_)
      ::setenv(name_.c_str(), before_->c_str(), 1);
    else
      ::unsetenv(name_.c_str());
  }

 private:
  std::string name_;
  std::optional<std::string> before_;
};

/// Controller and nodes n1, n2, …; taken down by the destructor, and when this process dies.
class TestSlurm {
 public:
  struct Unavailable : std::runtime_error {
    using std::runtime_error::runtime_error;
  };

  explicit TestSlurm(int nodes, int cpus = 4) : conf_("SLURM_CONF", (state_ / "slurm.conf").string()) {
    tell({"up", std::to_string(nodes), "--cpus", std::to_string(cpus), "--owner", std::to_string(::getpid())});
  }
  TestSlurm(const TestSlurm&) = delete;
  TestSlurm& operator=(const TestSlurm&) = delete;
  ~TestSlurm() {
    try {
      tell({"down"});
    } catch (const std::exception& error) { WARN(error.what()); }
  }

  void kill_node(int node) { tell({"kill-node", std::to_string(node)}); }
  void start_node(int node) { tell({"start-node", std::to_string(node)}); }
  void stop_controller() { tell({"stop-controller"}); }
  void start_controller() { tell({"start-controller"}); }

  /// One of Slurm's own commands.
  static std::string call(const std::vector<std::string>& words) {
    const auto said = process::collect(words, {.deadline = 60});
    if (said.code() != 0) throw std::runtime_error(words[0] + ": " + said.err);
    return said.out;
  }
  /// "n1 n2": where jobs of any name run, one word each.
  static std::vector<std::string> jobs(const std::string& state = "R") {
    std::vector<std::string> lines;
    const auto out = call({"squeue", "-h", "-t", state, "-o", "%i %N"});
    for (std::size_t begin = 0; begin < out.size();) {
      const auto end = std::min(out.find('\n', begin), out.size());
      lines.push_back(out.substr(begin, end - begin));
      begin = end + 1;
    }
    return lines;
  }
  /// The node of the first job that runs, 0: there is none.
  static int busy_node() {
    for (const auto& job : jobs())
      if (const auto at = job.find(" n"); at != std::string::npos) return std::atoi(job.c_str() + at + 2);
    return 0;
  }

 private:
  void tell(std::vector<std::string> words) const {
    words.insert(words.begin(), {"python3", HYPERTUNE_TEST_SLURM, state_.string()});
    const auto said = process::collect(words, {.deadline = 120, .linger = 0});
    if (said.code() == 3) throw Unavailable(said.err);
    if (said.code() != 0) throw std::runtime_error(words[3] + ": " + said.err);
  }

  TemporaryDirectory folder_;
  std::filesystem::path state_ = folder_.path() / "slurm";
  EnvironmentVariable conf_;
};

/// Null, and a warning why the test is skipped, where there cannot be one.
inline std::unique_ptr<TestSlurm> test_slurm(int nodes, int cpus = 4) {
  try {
    return std::make_unique<TestSlurm>(nodes, cpus);
  } catch (const TestSlurm::Unavailable& error) {
    WARN("skipped: " << error.what());
    return nullptr;
  }
}

/// Workers that run the tests' programs, `room` trials at once on each.
inline SlurmSetup workers_of(const std::filesystem::path& agents, SlurmOptions options, int room = 4) {
  SlurmSetup setup;
  setup.options = std::move(options);
  setup.program = HYPERTUNE_TEST_AGENT;
  setup.arguments = {agents.string(), std::to_string(room)};
  setup.remote.program = "learner";
  return setup;
}

/// Sentences that an executor says, for a test that looks for one.
class Heard {
 public:
  void operator()(const std::string& line) {
    const std::lock_guard lock(mutex_);
    all_ += line + "\n";
  }
  std::string all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;
  std::string all_;
};

}  // namespace hypertune::inline v0::test
