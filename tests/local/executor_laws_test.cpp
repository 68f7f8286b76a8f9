#include "support/combinations.hpp"
#include "support/disturbed_executor.hpp"
#include "support/executor_conformance.hpp"
#include "support/test.hpp"

#include <hypertune/local/processes.hpp>
#include <hypertune/random.hpp>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

std::vector<pid_t> children_of(pid_t process) {
  std::vector<pid_t> children;
  std::error_code ignored;
  for (const auto& task : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), ignored)) {
    std::ifstream in(task.path() / "children");
    for (pid_t child = 0; in >> child;) children.push_back(child);
  }
  return children;
}

/// Kills some worker process: those are the children of the guardian.
void kill_a_worker(int number) {
  std::vector<pid_t> workers;
  for (const pid_t guardian : children_of(::getpid()))
    for (const pid_t worker : children_of(guardian)) workers.push_back(worker);
  Rng rng = derived_rng(5, {static_cast<std::uint64_t>(number)});
  if (!workers.empty())
    ::kill(workers[static_cast<std::size_t>(uniform01(rng) * static_cast<double>(workers.size()))], SIGKILL);
}

}  // namespace

TEST_CASE("processes keep the laws of executors", "[thorough]") {
  executor_conformance([] { return processes({.pool = 3}); },
                       {.many = 300, .shutdowns = 6, .combinations = combinations()});
}

TEST_CASE("processes form groups that keep the laws, though some are killed", "[thorough]") {
  executor_gang_conformance([] { return processes({.pool = 8}); },
                            [] { return disturbed(processes({.pool = 6}), 7, kill_a_worker); }, 60, combinations());
}
