#include "driver_process.hpp"
#include "local_support.hpp"

#include <hypertune/local/command.hpp>
#include <hypertune/process/process_tree.hpp>

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("when the driver is killed, its guardian ends the workers and all that they started") {
  {
    DriverProcess driver([] {
      local::CommandOptions options;
      options.command = {"/bin/sh", "-c",
                         R"(sleep 1000 & echo "{{\"a\": $!}}"; setsid sleep 1000 & echo "{{\"a\": $!}}"; wait)"};
      auto bench =
          std::make_unique<Bench>(std::make_shared<local::CommandProgram>(std::vector<std::string>{}, options));
      for (TrialId trial = 0; trial < 3; ++trial) bench->launch(trial, "");
      return bench;
    });
    const auto helpers = process::children_of(driver.pid());
    REQUIRE(helpers.size() == 1);  // the guardian
    const auto workers = process::children_of(helpers.front());
    CHECK(workers.size() >= 3);
    const int guardian = static_cast<int>(::syscall(SYS_pidfd_open, helpers.front(), 0));
    REQUIRE(guardian >= 0);
    REQUIRE(driver.kill());
    pollfd polled{.fd = guardian, .events = POLLIN, .revents = 0};
    CHECK(::poll(&polled, 1, 5000) == 1);
    ::close(guardian);
    CHECK(::waitpid(helpers.front(), nullptr, 0) == helpers.front());
    for (const pid_t pid : driver.started()) CHECK(::kill(pid, 0) != 0);
    for (const pid_t pid : workers) CHECK(::kill(pid, 0) != 0);
  }
  CHECK(process::children_of(::getpid()).empty());
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

TEST_CASE("a guardian that is stopped goes on, so that the ends of trials are heard of") {
  Bench bench(program_of([](Context&) -> Training {
    co_yield report("parent", ::getppid());
    ::raise(SIGKILL);
  }));
  bench.launch(0, "");
  REQUIRE(::kill(static_cast<pid_t>(bench.events.next<Reported>().report.metrics.front().second), SIGSTOP) == 0);
  bench.executor.perform(Continue{0, 0});
  CHECK_THAT(bench.events.next<Failed>().cause.text, ContainsSubstring("killed by signal 9"));
}
