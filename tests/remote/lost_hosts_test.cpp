// Hosts that fall silent, go away with notice, refuse, or come back; what is left of them.
#include "agent/test_programs.hpp"
#include "agents.hpp"
#include "support/executor_trials.hpp"
#include "support/scripted_tuner.hpp"
#include "support/standard_error.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

remote::RemoteOptions quick(double silence = 1.5) {
  remote::RemoteOptions options;
  options.program = "object";
  options.timeouts = {.heartbeat = silence, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  return options;
}
std::shared_ptr<const Program> program() { return planned_program(Form::object); }

/// Trials that may fail, which "ordinary" ones may not: at a step that none comes to.
void add_trials(ScriptedTuner& tuner, int count, int steps) {
  Plan plan{.steps = steps};
  plan.throw_at = steps + 1000;
  for (int i = 0; i < count; ++i) {
    plan.seed = i + 1;
    tuner.add(plan);
  }
}

std::string hosts_error(const remote::HostPool& pool, remote::RemoteOptions options = quick()) {
  options.gather = 0.1;
  options.timeouts.connect = 2;
  const RemoteExecutor executor(pool, options);
  try {
    executor.hosts();
  } catch (const Error& e) {
    CHECK(e.code() == Errc::resources);
    return e.what();
  }
  FAIL("hosts were found");
  return {};
}

}  // namespace

TEST_CASE("a host that cannot be reached says why, and the others are used") {
  const auto command = [](std::string name, std::vector<std::string> argv) {
    return remote::RemoteHost{.name = std::move(name), .dialer = remote::CommandDialer(argv)};
  };
  CHECK_THAT(hosts_error(remote::HostPool({command("x", {"/no/such/ssh"})})),
             ContainsSubstring("host 'x': cannot run '/no/such/ssh': No such file or directory"));
  CHECK_THAT(
      hosts_error(remote::HostPool({command("x", {"/bin/sh", "-c", "echo 'ssh: Permission denied' >&2; exit 255"})})),
      ContainsSubstring("host 'x': ssh: Permission denied"));
  CHECK_THAT(hosts_error(remote::HostPool({command("x", {"/bin/sh", "-c", "echo Only root may log in; exit 1"})})),
             ContainsSubstring("Only root may log in"));
  CHECK_THAT(hosts_error(remote::HostPool({command("x", {"/bin/sh", "-c", "while :; do echo garbage; done"})})),
             ContainsSubstring("prints something else than an agent does"));
  CHECK_THAT(hosts_error(remote::HostPool({command("x", {"/bin/sleep", "1000"})})),
             ContainsSubstring("no answer within 2 s"));
  CHECK_THAT(said([&] { hosts_error(remote::HostPool({command("x", {"/bin/sleep", "1000"})})); }),
             ContainsSubstring("hypertune: no answer yet from host 'x': waiting"));
  CHECK_THAT(hosts_error(remote::HostPool(
                 {remote::RemoteHost{.name = "x", .dialer = remote::CommandDialer([]() -> std::vector<std::string> {
                                                    fail(Errc::io, "no way there");
                                                  })}})),
             ContainsSubstring("host 'x': no way there"));
  CHECK_THAT(hosts_error(remote::HostPool()), ContainsSubstring("there is none on the list"));

  const Hosts hosts;
  auto pool = hosts.pool(1);
  pool.add(command("x", {"/bin/sh", "-c", "echo nobody home >&2; exit 1"}));
  auto options = quick();
  options.timeouts.first_delay = options.timeouts.max_delay = 2;  // what is over in a moment is not said
  const RemoteExecutor executor(pool, options);
  const auto found = executor.hosts();
  REQUIRE(found.size() == 2);
  CHECK(found[0].total.cpus == 2);
  CHECK(found[1].total.cpus == 0);
  const auto accounts = executor.accounts();
  CHECK_THAT(accounts.at(1).reason, ContainsSubstring("nobody home") && ContainsSubstring("set aside"));
}

TEST_CASE("a killed host's trials fail by the infrastructure's doing and go on elsewhere from their checkpoints") {
  const Hosts hosts;
  const int signal = GENERATE(SIGKILL, SIGSTOP);
  INFO("signal " << signal);
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(2), quick()), program());
  tuner.attempts = 5;
  bool struck = false;
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps % 2 == 0}; };
  add_trials(tuner, 4, 200);
  tuner.run([&] {
    if (!struck && tuner[0].sealed.size() >= 2 && tuner[1].sealed.size() >= 2) {
      struck = true;
      REQUIRE(hosts.kill("a", signal));
    }
    return (struck && tuner[0].causes.size() + tuner[1].causes.size() > 0) || tuner[0].finished == 1;
  });
  tuner.run();
  for (TrialId id = 0; id < 4; ++id) {
    CHECK(tuner[id].finished == 1);
    for (const auto& cause : tuner[id].causes) {
      CHECK(cause.source == FailureSource::infrastructure);
      CHECK_THAT(cause.text, ContainsSubstring("host 'a' was lost"));
    }
  }
  tuner.shutdown();
  tuner.check();
  CHECK(eventually([&] { return hosts.all().empty(); }));
}

TEST_CASE("what takes a host's trials first and then their agent is the host's end, and no failure of theirs") {
  const Hosts hosts(1);
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(2), quick()), program());
  tuner.attempts = 5;
  std::optional<Seconds> struck;
  bool agent_too = false;
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps % 2 == 0}; };
  add_trials(tuner, 2, 1000);
  tuner.run([&] {
    const Seconds now = hypertune::detail::steady_seconds();
    if (!struck && tuner[0].sealed.size() >= 2 && tuner[1].sealed.size() >= 2) {
      struck = now;
      const auto trials = hosts.trials("a");
      REQUIRE(!trials.empty());
      for (const pid_t pid : trials) REQUIRE(::kill(pid, SIGKILL) == 0);
    }
    // The other host's trial reports on, so this is asked again: the agent has heard of the trial's end by then.
    if (struck && !agent_too && now - *struck >= 0.1) {
      REQUIRE(hosts.kill("a"));
      agent_too = true;
    }
    return agent_too || tuner[0].finished + tuner[1].finished == 2;
  });
  REQUIRE(agent_too);
  tuner.run();
  int lost = 0;
  for (TrialId id = 0; id < 2; ++id) {
    CHECK(tuner[id].finished == 1);
    for (const auto& cause : tuner[id].causes) {
      ++lost;
      CHECK(cause.source == FailureSource::infrastructure);
      CHECK_THAT(cause.text, ContainsSubstring("host 'a' was lost"));
    }
  }
  CHECK(lost == 1);
  tuner.shutdown();
  tuner.check();
}

TEST_CASE("an agent that is asked to end lets its trials save and leave, which counts as a preemption") {
  const Hosts hosts;
  auto pool = hosts.pool(1);  // both trials are there before the other host joins
  ScriptedTuner tuner(RemoteExecutor(pool, quick(10)), program());
  tuner.attempts = 5;
  std::atomic<bool> joined{false}, asked{false};
  tuner.decide = [&](const ScriptedTrial& t) {
    if (t.id == 0 && t.steps == 1 && !joined.exchange(true)) pool.add(hosts.host("b"));
    if (t.id == 0 && t.steps == 3 && !asked.exchange(true)) REQUIRE(hosts.kill("a", SIGTERM));
    return Answer{};
  };
  add_trials(tuner, 2, 3000);
  tuner.run([&] { return tuner[0].starts.size() == 2 && tuner[1].starts.size() == 2; });
  tuner.look([&] {
    for (TrialId id = 0; id < 2; ++id) {
      REQUIRE(tuner[id].causes.size() == 1);
      CHECK(tuner[id].causes[0].source == FailureSource::preemption);
      CHECK_THAT(tuner[id].causes[0].text, ContainsSubstring("SIGTERM"));
      // No step was lost: it goes on where its last report was.
      REQUIRE(tuner[id].sealed.size() == 1);
      CHECK(tuner[id].starts[1] == tuner[id].sealed[0].steps);
      CHECK(static_cast<std::size_t>(tuner[id].starts[1]) <= tuner[id].reports.size());
    }
  });
  tuner.run([&] { return tuner[0].reports.size() > 200; });
  tuner.shutdown();
  tuner.check();
}

TEST_CASE("an agent that hangs is ended before the next one on its host begins") {
  const Hosts hosts;
  remote::HostPool pool;
  const auto agent = hosts.command("a");
  pool.add({.name = "a",  // as over a network: the agent outlives the command that reached it
            .dialer = remote::CommandDialer(
                {"/bin/sh", "-c", "cat | setsid \"$@\" | cat", "sh", agent[0], agent[1], agent[2]})});
  ScriptedTuner tuner(RemoteExecutor(pool, quick(0.8)), program());
  tuner.attempts = 5;
  tuner.decide = [](const ScriptedTrial& t) { return Answer{.save = t.steps < 4}; };
  Plan plan{.steps = 5000};
  plan.throw_at = 100000;
  tuner.add(plan);
  tuner.run([&] { return tuner[0].sealed.size() >= 3; });
  const auto before = hosts.agents("a");
  REQUIRE(before.size() == 1);
  REQUIRE(::kill(before[0], SIGSTOP) == 0);
  tuner.run([&] { return tuner[0].starts.size() == 2 && tuner[0].reports.size() > 100; });
  for (const pid_t agent : hosts.agents("a")) CHECK(agent != before[0]);
  CHECK(tuner[0].causes.size() == 1);
  CHECK(tuner[0].starts[1] == tuner[0].sealed.front().steps);
  tuner.shutdown();
  tuner.check();
  CHECK(eventually([&] { return hosts.all().empty(); }));
}

TEST_CASE("what trials print is in the experiment's folder while they run") {
  const Hosts hosts;
  auto options = quick();
  options.program = "chatty";
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(1), options), program());
  Plan plan{.steps = 2};
  plan.linger_at = 1;
  tuner.add(plan);
  tuner.run([&] { return tuner[0].reports.size() == 1; });
  const auto log = tuner.directory() / "trials" / "0" / "log";
  CHECK(eventually([&] {
    std::ifstream in(log);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    return text.find("a line of trial 0") != std::string::npos;
  }));
  tuner.stop(0);
  tuner.run();
  tuner.shutdown();
}

TEST_CASE("an agent that a program of it cannot begin says so, and is set aside") {
  const Hosts hosts;
  auto options = quick();
  options.program = "no such program";
  RemoteExecutor executor(hosts.pool(1), options);
  TemporaryDirectory directory;
  std::mutex mutex;
  std::string why;
  CHECK(executor.hosts().size() == 1);
  executor.start({.program = program(), .directory = directory.path(), .sink = [&](Event event) {
                    const std::lock_guard guard(mutex);
                    if (const auto* lost = std::get_if<HostLost>(&event)) why = lost->why;
                  }});
  executor.wait(0);
  CHECK(eventually([&] {
    const std::lock_guard guard(mutex);
    return why.find("there is no test program 'no such program'") != std::string::npos;
  }));
  executor.shutdown();
}

TEST_CASE("why a host that joins cannot be used is said, once for each reason and with its name once") {
  const TemporaryDirectory directory;
  const Hosts hosts;
  auto pool = hosts.pool(1);
  RemoteExecutor executor(pool, quick());
  REQUIRE(executor.hosts().size() == 1);
  std::mutex mutex;
  std::vector<std::string> notices;
  executor.start({.program = program(), .directory = directory.path(), .sink = [&](Event event) {
                    const std::lock_guard guard(mutex);
                    if (const auto* notice = std::get_if<Notice>(&event)) notices.push_back(notice->text);
                  }});
  executor.wait(0);
  std::atomic<int> attempts{0};
  pool.add({.name = "x", .dialer = remote::CommandDialer([&]() -> std::vector<std::string> {
                           if (++attempts < 4)
                             throw remote::DialError(remote::FailureClass::unknown, "there is no host of this name");
                           throw remote::DialError(remote::FailureClass::transient, "it cannot be reached");
                         })});
  REQUIRE(eventually([&] { return attempts >= 6; }));
  executor.shutdown();
  REQUIRE(notices.size() == 2);
  CHECK_THAT(notices[0], Catch::Matchers::StartsWith("host 'x' is not used: there is no host of this name"));
  CHECK_THAT(notices[1], Catch::Matchers::StartsWith("host 'x' is not used: it cannot be reached"));
}

TEST_CASE("a host that is there and refuses each time is told of once") {
  const TemporaryDirectory directory;
  const Hosts hosts;
  auto pool = hosts.pool(1);
  std::ofstream(hosts.folder() / "x") << "in the way";
  std::atomic<int> attempts{0};
  auto x = hosts.host("x");
  x.dialer = WatchedDialer{x.dialer, [&attempts] { ++attempts; }};
  pool.add(x);
  RemoteExecutor executor(pool, quick());
  REQUIRE(executor.hosts().size() == 2);
  std::mutex mutex;
  std::vector<std::string> notices;
  executor.start({.program = program(), .directory = directory.path(), .sink = [&](Event event) {
                    const std::lock_guard guard(mutex);
                    if (const auto* notice = std::get_if<Notice>(&event))
                      if (notice->text.find("cannot make the folder") != std::string::npos)
                        notices.push_back(notice->text);
                  }});
  executor.wait(0);
  REQUIRE(eventually([&] { return attempts >= 4; }));
  executor.shutdown();
  CHECK(notices.size() == 1);
}

TEST_CASE("a host that is refused for good is set aside while others work; where all are, the run ends and says why") {
  const auto run = [](const remote::HostPool& pool, remote::RemoteOptions options,
                      const std::filesystem::path& output) {
    Options o;
    o.metric = "accuracy";
    o.mode = Mode::maximize;
    options.timeouts.first_delay = 0.05;
    o.executor = RemoteExecutor(pool, std::move(options));
    o.samples = 3;
    o.schedule = Asha{.grace_period = 10, .max_steps = 10};
    o.output = output;
    o.display = Display::quiet;
    o.handle_signals = false;
    return tune(Learner::search_space(), learner_program(), std::move(o));
  };
  TemporaryDirectory directory;
  const Hosts hosts;
  auto options = quick();
  options.program = "learner";
  // The agents of these are there, and cannot work: their folder is a file.
  const auto broken = [&](const std::string& name) {
    std::ofstream(hosts.folder() / name) << "in the way";
    return hosts.host(name);
  };
  SECTION("every one") {
    remote::HostPool pool({broken("x")});
    std::string said;
    try {
      run(pool, options, directory.path() / "run");
    } catch (const Error& e) {
      CHECK(e.code() == Errc::resources);
      said = e.what();
    }
    CHECK_THAT(said, ContainsSubstring("no host can be used") &&
                         ContainsSubstring("host 'x': cannot make the folder") && ContainsSubstring("resume"));
    CHECK(said.find('\n') == std::string::npos);
    // What is mended goes on.
    std::filesystem::remove(hosts.folder() / "x");
    CHECK(run(pool, options, directory.path() / "run2").count(TrialState::completed) == 3);
  }
  SECTION("one of two") {
    auto pool = hosts.pool(1);
    pool.add(broken("x"));
    const auto results = run(pool, options, directory.path() / "run");
    CHECK(results.count(TrialState::completed) == 3);
    CHECK(results.failures(FailureSource::user) == 0);
  }
  SECTION("a list that may change is given some time") {
    options.all_refused = 30;
    remote::HostPool pool({broken("x")});
    std::atomic<int> failures{0};
    auto x = hosts.host("x");
    x.dialer = WatchedDialer{x.dialer, [&] {
                               if (++failures == 4) pool.add(hosts.host("a"));
                             }};
    options.timeouts.max_delay = 0.1;
    pool.add(x);
    CHECK(run(pool, options, directory.path() / "run").count(TrialState::completed) == 3);
  }
}

TEST_CASE("when the driver is killed, its agents and all their processes end") {
  const Hosts hosts;
  TemporaryDirectory directory;
  const pid_t driver = ::fork();
  REQUIRE(driver >= 0);
  if (driver == 0) {
    RemoteExecutor executor(hosts.pool(2), quick(60));
    executor.hosts();
    executor.start({.program = program(), .directory = directory.path(), .sink = [](Event) {}});
    for (TrialId trial = 0; trial < 4; ++trial) {
      Plan plan{.steps = 5};
      plan.linger_at = 0;
      Launch launch;
      launch.trial = trial;
      launch.attempt = 0;
      launch.point = plan.point();
      launch.allocation.lead.host = static_cast<int>(trial % 2);
      executor.perform(launch);
    }
    for (;;) ::pause();
  }
  CHECK(eventually([&] { return hosts.all().size() >= 8; }));  // agents, guardians, workers
  REQUIRE(::kill(driver, SIGKILL) == 0);
  REQUIRE(::waitpid(driver, nullptr, 0) == driver);
  CHECK(eventually([&] { return hosts.all().empty(); }));
}

TEST_CASE("when an agent is killed, its trials' processes end with it") {
  const Hosts hosts;
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(1), quick(60)), program());
  tuner.attempts = 1;
  Plan plan{.steps = 5};
  plan.linger_at = 1;
  plan.throw_at = 1000;
  tuner.add(plan);
  tuner.run([&] { return tuner[0].reports.size() == 1; });
  const auto before = hosts.all();
  CHECK(before.size() >= 3);
  REQUIRE(hosts.kill("a"));
  CHECK(eventually([&] {
    for (const pid_t pid : before)
      if (::kill(pid, 0) == 0) return false;
    return true;
  }));
  tuner.shutdown();
}
