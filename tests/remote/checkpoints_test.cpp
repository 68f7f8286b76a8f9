// Checkpoints between hosts and driver by content: what moves, what is cut off, what is damaged, and from host to host.
#include "agent/weighty_program.hpp"
#include "conforming_hosts.hpp"
#include "shared_executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

using namespace hypertune;
using namespace hypertune::test;

namespace {

remote::RemoteOptions options_for(std::uint64_t bytes) {
  remote::RemoteOptions options;
  options.program = fmt::format("weighty {}", bytes);
  options.timeouts = {.heartbeat = 2.5, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  return options;
}

/// A plan that lasts, and one that may fail.
Plan lingering(int at) {
  Plan plan{.steps = 1000};
  plan.linger_at = at;
  return plan;
}
Plan failing(int steps) {
  Plan plan{.steps = steps};
  plan.throw_at = 100000;  // never, but not "ordinary": its host may be lost
  return plan;
}

/// The folders of checkpoints that are arriving below `root`.
std::vector<std::filesystem::path> arriving(const std::filesystem::path& root) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator at(root, error), end; !error && at != end; at.increment(error))
    if (at->path().filename().string().starts_with(".incoming-")) found.push_back(at->path());
  return found;
}
/// Whether a part of one has arrived below `root`.
bool part_arrived(const std::filesystem::path& root) {
  for (const auto& folder : arriving(root)) {
    std::error_code error;
    const auto size = std::filesystem::file_size(folder / "progress", error);
    if (!error && size > 0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("trials whose checkpoints all travel by content keep the laws of executors", "[thorough]") {
  const Hosts hosts;
  ExecutorTraits traits{.many = 60, .shutdowns = 3, .combinations = combinations()};
  traits.damage_copies = [&](const CheckpointInfo& info) { damage_copies(hosts, info); };
  const bool direct = GENERATE(false, true);
  const auto make = [&](Form form) {
    remote::RemoteOptions options;
    options.program = program_of(form);
    options.transfer.inline_limit = 0;
    options.transfer.direct = direct;
    return RemoteExecutor(hosts.pool(2), options);
  };
  executor_conformance(make, traits);
}

TEST_CASE("hosts that hang while they are connected to hold up no checkpoint of another one") {
  const Hosts hosts(1);
  // More of them than threads that connect.
  struct Hang {
    std::mutex mutex;
    std::condition_variable_any changed;
    int begun = 0;
    bool released = false, forgotten = false;
  } hang;
  const auto wait_there = [&](const std::stop_token& stop) -> remote::AgentStream {
    std::unique_lock hold(hang.mutex);
    ++hang.begun;
    hang.changed.notify_all();
    if (!hang.changed.wait_for(hold, stop, std::chrono::seconds(60), [&] { return hang.released; }) &&
        !stop.stop_requested())
      hang.released = hang.forgotten = true;  // none hangs again: what waits for them ends, and the test with it
    fail(Errc::io, "it hangs");
  };
  auto pool = hosts.pool(1);
  for (int i = 0; i < 40; ++i) {
    remote::RemoteHost host;
    host.name = fmt::format("hanging{}", i);
    host.dialer = FunctionDialer{wait_there};
    pool.add(host);
  }
  SharedExecutor<RemoteExecutor> executor(pool, options_for(1000));
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial&) { return Answer{.save = true}; };
  tuner.add({.steps = 6});
  {
    std::unique_lock hold(hang.mutex);
    REQUIRE(hang.changed.wait_for(hold, std::chrono::seconds(60), [&] { return hang.begun >= 32; }));
  }
  tuner.run();
  CHECK(tuner[0].sealed.size() >= 5);
  {
    const std::lock_guard hold(hang.mutex);
    CHECK_FALSE(hang.forgotten);  // nothing had to wait for them
  }
  tuner.shutdown();
  tuner.check();
}

TEST_CASE("of a checkpoint of which a tenth has changed, about a tenth moves") {
  constexpr std::uint64_t size = 8'000'000;
  const Hosts hosts(1);
  SharedExecutor<RemoteExecutor> executor(hosts.pool(1), options_for(size));
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial&) { return Answer{.save = true}; };
  tuner.add({.steps = 6});
  tuner.run();
  REQUIRE(tuner[0].sealed.size() >= 5);
  const auto sum = total(*ssh);
  const auto copies = tuner[0].sealed.size();
  INFO(copies << " copies of " << size << " bytes: " << sum.sent << " moved, " << sum.reused << " reused");
  CHECK(sum.sent >= size);
  CHECK(sum.sent < size + (copies - 1) * size / 4);
  CHECK(sum.sent + sum.reused >= copies * size);
  for (const auto& info : tuner[0].sealed) CHECK_NOTHROW(tuner.store().open(info));
  CHECK(arriving(tuner.directory()).empty());
  tuner.shutdown();
  tuner.check();
}

TEST_CASE("a copy to a host that is cut off goes on where it ended") {
  constexpr std::uint64_t size = 4'000'000;
  const Hosts hosts(1);
  auto pool = hosts.pool(1);
  auto options = options_for(size);
  options.transfer.rate_limit = 800'000;  // the driver needs five seconds
  SharedExecutor<RemoteExecutor> executor(pool, options);
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.attempts = 5;
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps == 1 && t.sealed.empty()}; };
  tuner.add(failing(1000000));
  tuner.run([&] { return !tuner[0].sealed.empty(); });
  // What its agent has is gone, and then it is killed in the middle of the copy that it fetches.
  const auto host = hosts.folder() / "a";
  for (const auto& folder : hosts.stores()) {
    LocalCheckpointStore store(folder);
    for (const auto& held : store.list(0)) store.drop(held);
    for (const auto& entry : std::filesystem::directory_iterator(folder / "trials/0/checkpoints"))
      if (entry.path().filename() == ".chunks") std::filesystem::remove_all(entry.path());
  }
  bool struck = false;
  std::jthread killer(
      [&] { struck = hosts.kill("a") && eventually([&] { return part_arrived(host); }, 60) && hosts.kill("a"); });
  tuner.run([&] { return tuner[0].causes.size() >= 2 && tuner[0].starts.size() >= 2 && !tuner[0].reports.empty(); });
  killer.join();
  REQUIRE(struck);
  tuner.run([&] { return total(*ssh).received > 0; });
  const auto sum = total(*ssh);
  INFO(sum.received << " of " << size << " bytes moved by the second attempt");
  CHECK(sum.received < size);
  tuner.look([&] { CHECK(tuner[0].starts.back() == tuner[0].sealed.front().steps); });
  tuner.stop(0);
  tuner.run();
}

TEST_CASE("a copy from a host that is killed in the middle of it does not count, and nothing of it stays") {
  constexpr std::uint64_t size = 4'000'000;
  const Hosts hosts(1);
  auto options = options_for(size);
  options.transfer.rate_limit = 800'000;
  SharedExecutor<RemoteExecutor> executor(hosts.pool(2), options);
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.attempts = 5;
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps == 1}; };
  tuner.add(failing(3));
  bool struck = false;
  std::jthread killer(
      [&] { struck = eventually([&] { return part_arrived(tuner.directory()); }, 60) && hosts.kill("a"); });
  tuner.run([&] { return tuner[0].causes.size() == 1; });
  killer.join();
  REQUIRE(struck);
  CHECK(tuner[0].sealed.empty());
  tuner.run();
  CHECK(tuner[0].finished == 1);
  REQUIRE(tuner[0].starts.size() == 2);
  CHECK(tuner[0].starts[1] == 0);
  REQUIRE(tuner[0].sealed.size() == 1);
  CHECK_NOTHROW(tuner.store().open(tuner[0].sealed.front()));
  CHECK(eventually([&] { return arriving(tuner.directory()).empty(); }));
}

TEST_CASE("a checkpoint that another host has comes from there, and through the driver where it is damaged") {
  constexpr std::uint64_t size = 4'000'000;
  const bool damaged = GENERATE(false, true);
  const bool direct = GENERATE(true, false);
  INFO("damaged " << damaged << ", direct " << direct);
  const Hosts hosts(1);
  auto options = options_for(size);
  options.transfer.direct = direct;
  SharedExecutor<RemoteExecutor> executor(hosts.pool(2), options);
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.id == 0 && t.steps == 2}; };
  tuner.add(lingering(3));
  tuner.run([&] { return tuner[0].reports.size() == 3 && !tuner[0].sealed.empty(); });
  tuner.inherited = tuner[0].sealed;
  if (damaged)
    for (const auto& folder : hosts.stores()) {
      LocalCheckpointStore store(folder);
      for (const auto& held : store.list(0)) {
        std::fstream file(store.folder(held) / "weights", std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(size / 2);
        file << "damaged";
      }
    }
  tuner.add({.steps = 5});
  tuner.run([&] { return tuner[1].finished == 1; });
  CHECK(tuner[1].starts == std::vector<int>{2});
  const auto sum = total(*ssh);
  INFO(sum.direct << " bytes direct, " << sum.received << " from the driver");
  if (direct && !damaged) {
    CHECK(sum.direct >= size);
    CHECK(sum.received == 0);
  } else {
    CHECK(sum.direct == 0);
    CHECK(sum.received > 0);
    if (!direct) CHECK(sum.received >= size);
  }
  tuner.stop(0);
  tuner.run();
  tuner.shutdown();
  // No secret is in an argument, no port is left open.
  CHECK(eventually([&] { return hosts.all().empty(); }));
}

TEST_CASE("the rate limit holds for checkpoints that go whole, from a host and to one") {
  constexpr std::uint64_t size = 400'000;
  const bool by_content = GENERATE(true, false);
  INFO("by content where long " << by_content);
  const Hosts hosts(1);
  auto options = options_for(size);
  options.transfer.by_content = by_content;
  options.transfer.inline_limit = 10 * size;
  options.transfer.rate_limit = size / 2;  // two seconds
  SharedExecutor<RemoteExecutor> executor(hosts.pool(2), options);
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.id == 0 && t.steps == 2}; };
  const auto now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  double begin = now();
  tuner.add(lingering(3));
  tuner.run([&] { return !tuner[0].sealed.empty(); });
  CHECK(now() - begin > 1.5);  // no machine is too slow for it; what may go at once is far less than a quarter
  tuner.inherited = tuner[0].sealed;
  begin = now();
  tuner.add({.steps = 3});
  tuner.run([&] { return tuner[1].finished == 1; });
  CHECK(now() - begin > 1.5);
  CHECK(tuner[1].starts == std::vector<int>{2});
  const auto sum = total(*ssh);
  CHECK(sum.sent >= size);
  CHECK(sum.received >= size);
  tuner.stop(0);
  tuner.run();
}

TEST_CASE("a host that has fetched a checkpoint gives it to others, also where it is gone from the one that made it") {
  constexpr std::uint64_t size = 2'000'000;
  const bool dropped = GENERATE(true, false);
  INFO("dropped by who made it: " << dropped);
  const Hosts hosts(1);
  auto options = options_for(size);
  options.transfer.direct = true;
  SharedExecutor<RemoteExecutor> executor(hosts.pool(4), options);
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.id == 0 && t.steps == 2}; };
  tuner.add(lingering(3));
  tuner.run([&] { return tuner[0].reports.size() == 3 && !tuner[0].sealed.empty(); });
  tuner.inherited = tuner[0].sealed;
  tuner.add(lingering(3));
  tuner.run([&] { return tuner[1].reports.size() == 1; });
  CHECK(total(*ssh).direct >= size);
  if (dropped) {
    int copies = 0;
    for (const auto& folder : hosts.stores()) {
      LocalCheckpointStore store(folder);
      if (folder.string().find((hosts.folder() / "a").string() + "/") == std::string::npos) continue;
      for (const auto& held : store.list(0)) {
        store.drop(held);
        ++copies;
      }
    }
    REQUIRE(copies == 1);
  }
  for (int i = 2; i < 4; ++i) {
    tuner.add(lingering(3));
    tuner.run([&] { return tuner[i].reports.size() == 1; });
    CHECK(tuner[i].starts == std::vector<int>{2});
  }
  const auto sum = total(*ssh);
  CHECK(sum.direct >= 3 * size);
  CHECK(sum.received == 0);
  for (int i = 0; i < 4; ++i) tuner.stop(i);
  tuner.run();
}

TEST_CASE("a trial goes on from the driver's copy where its host's is damaged when its worker opens it") {
  constexpr std::uint64_t size = 400'000;
  const bool whole = GENERATE(true, false);
  const bool gone = GENERATE(false, true);
  INFO("whole " << whole << ", gone " << gone);
  const Hosts hosts(1);
  auto options = options_for(size);
  if (whole) options.transfer.inline_limit = 10 * size;
  SharedExecutor<RemoteExecutor> executor(hosts.pool(1), options);
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.attempts = 2;
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps == 2}; };
  int damaged = 0;
  tuner.before_launch = [&](ScriptedTrial& t) {
    if (t.sealed.empty()) return;
    for (const auto& folder : hosts.stores()) {
      LocalCheckpointStore store(folder);
      for (const auto& held : store.list(0)) {
        if (gone)
          std::filesystem::remove(store.folder(held) / "weights");
        else
          test::conformance::damage(store, held);
        ++damaged;
      }
    }
  };
  tuner.add({.steps = 6, .throw_at = 3, .throwing_attempts = 1});
  tuner.run();
  CHECK(damaged == 1);
  CHECK(tuner[0].finished == 1);
  CHECK(tuner[0].starts == std::vector<int>{0, 2});
  CHECK(tuner[0].lost.empty());
  CHECK(total(*ssh).received > 0);
  const auto notices = tuner.notices();
  for (const auto& each : notices) UNSCOPED_INFO(each);
  CHECK(std::any_of(notices.begin(), notices.end(), [](const auto& each) {
    return each.find("its copy of checkpoint") != std::string::npos && each.find("'a' is damaged") != std::string::npos;
  }));
  for (const auto& info : tuner[0].sealed) CHECK_NOTHROW(tuner.store().open(info));
}
