#include "local_support.hpp"

#include <hypertune/local/command.hpp>
#include <hypertune/local/process_tree.hpp>

#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

// The orphans of a dead driver become this process's children (it is a subreaper meanwhile): each can be waited for.
TEST_CASE("when the driver is killed, its guardian ends the workers and all that they started") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe2(pipe.data(), O_CLOEXEC) == 0);
  REQUIRE(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  const pid_t driver = ::fork();
  REQUIRE(driver >= 0);
  if (driver == 0) {
    local::CommandOptions options;
    options.command = {"/bin/sh", "-c",
                       R"(sleep 1000 & echo "{{\"a\": $!}}"; setsid sleep 1000 & echo "{{\"a\": $!}}"; wait)"};
    Bench bench(std::make_shared<local::CommandProgram>(std::vector<std::string>{}, options));
    for (TrialId trial = 0; trial < 3; ++trial) bench.launch(trial, "");
    for (int i = 0; i < 6; ++i) {
      const auto reported = bench.events.next<Reported>();
      const auto pid = static_cast<pid_t>(reported.report.metrics.front().second);
      static_cast<void>(!::write(pipe[1], &pid, sizeof pid));
      bench.executor.perform(Continue{reported.trial, 0});
    }
    for (;;) ::pause();
  }
  ::close(pipe[1]);
  std::vector<pid_t> started(6);
  for (auto& pid : started) REQUIRE(::read(pipe[0], &pid, sizeof pid) == sizeof pid);
  ::close(pipe[0]);
  const auto helpers = local::detail::children_of(driver);
  REQUIRE(helpers.size() == 1);  // the guardian
  const auto workers = local::detail::children_of(helpers.front());
  CHECK(workers.size() >= 3);
  const int guardian = static_cast<int>(::syscall(SYS_pidfd_open, helpers.front(), 0));
  REQUIRE(guardian >= 0);
  SECTION("the driver") {
    REQUIRE(::kill(driver, SIGKILL) == 0);
    pollfd polled{.fd = guardian, .events = POLLIN, .revents = 0};
    CHECK(::poll(&polled, 1, 5000) == 1);
    CHECK(::waitpid(driver, nullptr, 0) == driver);
    CHECK(::waitpid(helpers.front(), nullptr, 0) == helpers.front());
    for (const pid_t pid : started) CHECK(::kill(pid, 0) != 0);
    for (const pid_t pid : workers) CHECK(::kill(pid, 0) != 0);
  }
  ::close(guardian);
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
  CHECK(local::detail::children_of(::getpid()).empty());
}

TEST_CASE("when the guardian is killed, its trials fail, and the next ones get another guardian") {
  Bench bench(program_of([](Context&) -> Training {
    for (;;) co_yield report("parent", ::getppid());
  }));
  bench.launch(0, "");
  const auto guardian = static_cast<pid_t>(bench.events.next<Reported>().report.metrics.front().second);
  REQUIRE(::kill(guardian, SIGKILL) == 0);
  CHECK_THAT(bench.events.next<Failed>().cause.text, ContainsSubstring("guardian"));
  bench.launch(0, "", 1);
  CHECK(static_cast<pid_t>(bench.events.next<Reported>().report.metrics.front().second) != guardian);
}
