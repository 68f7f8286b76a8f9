// Checkpoints over real OpenSSH servers: what they take of a slow line, from host to host, and what can be seen of it.
#include "remote/agent/weighty_program.hpp"
#include "remote/agents.hpp"
#include "remote/shared_executor.hpp"
#include "support/scripted_tuner.hpp"
#include "support/test_hosts.hpp"

#include <hypertune/ssh/executor.hpp>

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <sstream>
#include <string>

using namespace hypertune;
using namespace hypertune::test;

namespace {

SshSetup setup_for(const TestHosts& hosts, std::uint64_t bytes, int count) {
  SshSetup setup;
  std::vector<std::string> names;
  for (int i = 1; i <= count; ++i) names.push_back(TestHosts::name(i));
  setup.hosts = names;
  setup.ssh = hosts.options();
  setup.program = HYPERTUNE_TEST_AGENT;
  setup.arguments = {"agents", "1"};
  setup.remote.program = fmt::format("weighty {}", bytes);
  setup.remote.gather = 60;
  return setup;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// How many sockets of a host accept connections by TCP.
int listening(TestHosts& hosts, int host) {
  std::istringstream lines(hosts.exec(host, "cat /proc/net/tcp /proc/net/tcp6 2>/dev/null; true"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    count += state == "0A" ? 1 : 0;
  }
  return count;
}

/// Bytes that a host has sent and received by its network so far.
std::uint64_t line_bytes(TestHosts& hosts, int host) {
  std::istringstream lines(hosts.exec(host, "cat /proc/net/dev"));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find("eth0:");
    if (colon == std::string::npos) continue;
    std::istringstream words(line.substr(colon + 5));
    std::vector<std::uint64_t> columns;  // eight of what came, then eight of what went
    for (std::uint64_t value = 0; words >> value;) columns.push_back(value);
    return columns.at(0) + columns.at(8);
  }
  throw std::runtime_error("there is no eth0");
}

/// Whether an argument of a process there may be a secret of ours: 64 hexadecimal digits.
bool shows_a_secret(TestHosts& hosts, int host) {
  const auto text = hosts.exec(host, "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/cmdline; done 2>/dev/null; true");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (line.size() == 64 && line.find_first_not_of("0123456789abcdef") == std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("over a real line of 1 MB/s, a checkpoint of which a tenth has changed takes about a tenth of the time") {
  const auto hosts = test_hosts(1, {"--rate", "8mbit"});
  if (!hosts) return;
  constexpr std::uint64_t size = 4'000'000;
  SharedExecutor<SshExecutor> executor(setup_for(*hosts, size, 1));
  const auto remote = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps <= 3}; };
  Plan plan{.steps = 100'000'000};
  plan.throw_at = 200'000'000;
  tuner.add(plan);
  std::vector<double> seconds;
  std::vector<std::uint64_t> moved;
  std::uint64_t before = 0;
  for (std::size_t i = 1; i <= 3; ++i) {
    const double begin = seconds_now();
    tuner.run([&] { return tuner[0].sealed.size() == i; });
    seconds.push_back(seconds_now() - begin);
    const auto account = remote->accounts().at(0);
    moved.push_back(account.sent - before);
    before = account.sent;
    CHECK(account.losses == 0);  // signs of life are not kept waiting by copies
  }
  tuner.stop(0);
  tuner.run();
  tuner.shutdown();
  for (std::size_t i = 0; i < 3; ++i)
    std::printf("copy %d: %d of %d bytes moved in %.2f s\n", static_cast<int>(i + 1), static_cast<int>(moved[i]),
                static_cast<int>(size), seconds[i]);
  CHECK(moved[0] >= size);
  CHECK(moved[1] < size / 4);
  CHECK(moved[2] < size / 4);
}

TEST_CASE("real hosts give checkpoints to each other where they are told to, and open no port where not") {
  const bool direct = GENERATE(false, true);
  INFO("direct " << direct);
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const int before = listening(*hosts, 1);
  constexpr std::uint64_t size = 8'000'000;
  auto setup = setup_for(*hosts, size, 2);
  setup.remote.transfer.direct = direct;
  SharedExecutor<SshExecutor> executor(std::move(setup));
  const auto remote = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.id == 0 && t.steps == 2}; };
  Plan plan{.steps = 1000};
  plan.linger_at = 3;
  tuner.add(plan);
  tuner.run([&] { return tuner[0].reports.size() == 3 && !tuner[0].sealed.empty(); });
  tuner.inherited = tuner[0].sealed;
  CHECK(listening(*hosts, 1) == before + (direct ? 1 : 0));
  CHECK_FALSE(shows_a_secret(*hosts, 1));
  tuner.add({.steps = 5});
  tuner.run([&] { return tuner[1].finished == 1; });
  CHECK(tuner[1].starts == std::vector<int>{2});
  std::uint64_t through_driver = 0, from_host = 0;
  for (const auto& account : remote->accounts()) {
    through_driver += account.received;
    from_host += account.direct;
  }
  std::printf("takeover of %d bytes: %d through the driver, %d from the other host\n", static_cast<int>(size),
              static_cast<int>(through_driver), static_cast<int>(from_host));
  CHECK((through_driver == 0) == direct);
  CHECK((from_host >= size) == direct);
  tuner.stop(0);
  tuner.run();
  tuner.shutdown();
  CHECK(eventually([&] { return listening(*hosts, 1) == before; }));
}

TEST_CASE("real hosts that share a disk with the driver copy nothing, unless it is mounted for reading only") {
  const bool writable = GENERATE(true, false);
  INFO("writable " << writable);
  const TemporaryDirectory disk;
  const auto hosts = test_hosts(2, {"--share", disk.path().string()});
  if (!hosts) return;
  if (!writable)
    for (int host = 1; host <= 2; ++host) hosts->exec(host, "mount -o remount,bind,ro /run/share");
  constexpr std::uint64_t size = 8'000'000;
  auto setup = setup_for(*hosts, size, 2);
  setup.remote.transfer.shared = {.folder = disk.path(), .on_hosts = "/run/share"};
  SharedExecutor<SshExecutor> executor(std::move(setup));
  const auto remote = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  const auto before = line_bytes(*hosts, 1) + line_bytes(*hosts, 2);
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.id == 0 && t.steps <= 4}; };
  Plan plan{.steps = 1000};
  plan.linger_at = 5;
  tuner.add(plan);
  tuner.run([&] { return tuner[0].reports.size() == 5 && tuner[0].sealed.size() == 4; });
  tuner.inherited = tuner[0].sealed;
  tuner.add({.steps = 6});
  tuner.run([&] { return tuner[1].finished == 1; });
  CHECK(tuner[1].starts == std::vector<int>{4});
  const auto moved = line_bytes(*hosts, 1) + line_bytes(*hosts, 2) - before;
  std::uint64_t copied = 0, shared = 0;
  for (const auto& account : remote->accounts()) {
    copied += account.sent + account.received;
    shared += account.shared;
  }
  std::printf("4 checkpoints of %d bytes and a takeover: %d bytes over the network, %d of them checkpoints\n",
              static_cast<int>(size), static_cast<int>(moved), static_cast<int>(copied));
  for (const auto& info : tuner.inherited) CHECK_NOTHROW(tuner.store().open(info));
  if (writable) {
    CHECK(copied == 0);
    CHECK(shared >= 4 * size);
    CHECK(moved < size / 10);
    CHECK(tuner.notices().empty());
  } else {
    CHECK(copied >= size);
    CHECK(shared == 0);
    std::string told;
    for (const auto& notice : tuner.notices()) told += notice + "\n";
    CHECK_THAT(told, ContainsSubstring("host 'host1' does not share the folder of checkpoints"));
    CHECK_THAT(told, ContainsSubstring("Read-only file system"));
  }
  tuner.stop(0);
  tuner.run();
  tuner.shutdown();
}
