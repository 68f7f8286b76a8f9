// Hosts and drivers that are out of files or threads, or that fail in another way: nobody waits for them in vain.
#include "agents.hpp"
#include "conforming_hosts.hpp"
#include "file_limit.hpp"
#include "support/executor_trials.hpp"
#include "support/temporary_directory.hpp"

#include <hypertune/process/subprocess.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>

using namespace hypertune;
using namespace hypertune::test;

namespace {

remote::RemoteOptions quick() {
  remote::RemoteOptions options;
  options.program = "object";
  options.gather = 0.1;
  options.timeouts = {.heartbeat = 20, .connect = 5, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  return options;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) { return e.what(); }
  return {};
}

}  // namespace

TEST_CASE("a driver without a file to spare says so of a host at once, and connects when it has some again") {
  if (!can_do_without_files) return;
  const Hosts hosts;
  struct State {
    std::mutex mutex;
    std::unique_ptr<FileLimit> limit;
    int dials = 0;
  };
  const auto state = std::make_shared<State>();
  remote::HostPool pool;
  pool.add({.name = "a", .dialer = FunctionDialer{[state, inner = hosts.host("a").dialer](const std::stop_token& stop) {
                           const std::lock_guard guard(state->mutex);
                           state->limit.reset();
                           auto stream = inner.dial(stop);
                           if (++state->dials == 1) state->limit = std::make_unique<FileLimit>(0);
                           return stream;
                         }}});
  RemoteExecutor executor(pool, quick());
  CHECK_THAT(error_of([&] { executor.hosts(); }), ContainsSubstring("'a'") && ContainsSubstring("Too many open files"));
  {
    const std::lock_guard guard(state->mutex);
    state->limit.reset();
  }
  CHECK(eventually([&] { return executor.accounts().front().state == remote::HostState::ready; }));
  executor.shutdown();
  CHECK(eventually([&] { return hosts.all().empty(); }));
}

TEST_CASE("an agent that cannot start its threads says so, and its host is not waited for") {
  const Hosts hosts;
  auto options = quick();
  options.program = "one thread and no more";
  options.transfer.by_content = false;
  RemoteExecutor executor(hosts.pool(1), options);
  const TemporaryDirectory directory;
  std::mutex mutex;
  std::string why;
  REQUIRE(executor.hosts().size() == 1);
  executor.start({.program = planned_program(Form::object), .directory = directory.path(), .sink = [&](Event event) {
                    const std::lock_guard guard(mutex);
                    if (const auto* lost = std::get_if<HostLost>(&event); lost != nullptr && why.empty())
                      why = lost->why;
                  }});
  executor.wait(0);
  CHECK(eventually([&] {
    const std::lock_guard guard(mutex);
    return !why.empty();
  }));
  CHECK_THAT(why, ContainsSubstring("Resource temporarily unavailable"));
  executor.shutdown();
}

TEST_CASE("a host whose end cannot be explained is lost like others, and comes back") {
  struct BrokenDialer {
    remote::AnyDialer inner;
    std::shared_ptr<std::atomic<int>> dials;
    remote::AgentStream dial(std::stop_token stop) const {
      if (++*dials > 1) return inner.dial(std::move(stop));
      return remote::CommandDialer({"/bin/sh", "-c", "echo no >&2"}).dial(stop);
    }
    remote::FailureClass classify(const std::string&) const { throw std::runtime_error("who knows"); }
  };
  const Hosts hosts;
  remote::HostPool pool;
  pool.add({.name = "a", .dialer = BrokenDialer{hosts.host("a").dialer, std::make_shared<std::atomic<int>>(0)}});
  RemoteExecutor executor(pool, quick());
  CHECK_THAT(error_of([&] { executor.hosts(); }), ContainsSubstring("who knows"));
  CHECK(eventually([&] { return executor.accounts().front().state == remote::HostState::ready; }));
}

TEST_CASE("what fails on the driver's thread ends the run with its reason") {
  const Hosts hosts;
  RemoteExecutor executor(hosts.pool(1), quick());
  const TemporaryDirectory directory;
  REQUIRE(executor.hosts().size() == 1);
  executor.start({.program = planned_program(Form::object), .directory = directory.path(), .sink = [&](const Event&) {
                    throw std::runtime_error("nobody takes this event");
                  }});
  std::string why;
  CHECK(eventually([&] {
    why = error_of([&] { executor.wait(executor.now() + 0.1); });
    return !why.empty();
  }));
  CHECK_THAT(why, ContainsSubstring("nobody takes this event"));
  executor.shutdown();
  CHECK(eventually([&] { return hosts.all().empty(); }));
}
