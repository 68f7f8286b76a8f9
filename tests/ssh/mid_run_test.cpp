// What can go wrong with a host while an experiment runs on it: the other one carries on, and it is said why. Real
// OpenSSH servers.
#include "remote/agents.hpp"
#include "remote/experiments.hpp"
#include "support/test_hosts.hpp"

#include <hypertune/ssh/executor.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::test;

namespace {

ht::SshSetup setup_for(const TestHosts& hosts, int count) {
  ht::SshSetup setup;
  std::vector<std::string> names;
  for (int i = 1; i <= count; ++i) names.push_back(TestHosts::name(i));
  setup.hosts = std::move(names);
  setup.ssh = hosts.options();
  setup.program = HYPERTUNE_TEST_AGENT;
  setup.arguments = {"agents", std::to_string(4 / count)};  // from the home folder; all four trials have room
  setup.remote.program = "learner";
  setup.remote.timeouts = {.connect = 20, .first_delay = 0.1, .max_delay = 0.5};
  return setup;
}

/// Calls a function once, when a trial has come so far.
struct Strike {
  std::function<void()> what;
  std::shared_ptr<std::atomic<bool>> done = std::make_shared<std::atomic<bool>>(false);
  void on_trial_report(const ht::record::TrialReported& report, ht::Seconds) const {
    if (report.step >= 20 && !done->exchange(true)) what();
  }
};

ht::Options long_trials(const std::filesystem::path& output, ht::AnyExecutor executor, std::function<void()> what) {
  auto options = experiment(output, std::move(executor));
  options.ordered = false;
  options.samples = 4;
  options.schedule = ht::Asha{.grace_period = 120, .max_steps = 120};
  options.callbacks.emplace_back(Strike{.what = std::move(what)});
  return options;
}

struct Told {
  std::string lost;            // why host1 was lost, each time
  std::set<std::string> used;  // hosts on which attempts began
};
Told told(const ht::Results& results) {
  Told told;
  ht::read_journal(results.directory(), [&](const ht::Record& record) {
    if (const auto* lost = std::get_if<ht::record::HostLost>(&record.what)) told.lost += lost->why + "\n";
    if (const auto* started = std::get_if<ht::record::TrialStarted>(&record.what)) told.used.insert(started->host);
  });
  return told;
}

void check_whole(const ht::Results& results) {
  INFO(story(results));
  CHECK(results.count(ht::TrialState::completed) == 4);
  for (const auto& trial : results.trials()) CHECK(trial.steps == 120);
  CHECK(results.failures(ht::FailureSource::user) == 0);
  check_reports(results);
}

// Of host1, from within: its server and whatever else it runs go on.
constexpr auto end_sessions = R"sh(
for p in /proc/[0-9]*; do
  case "$(tr '\0' ' ' <$p/cmdline 2>/dev/null)" in "sshd: root"* | "sshd-session: root"*) kill -9 ${p#/proc/} ;; esac
done; true)sh";

}  // namespace

TEST_CASE("a host that lets nobody in any more is set aside with the reason, and its trials go on elsewhere") {
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const std::string way = GENERATE("login", "key");
  INFO(way);
  const TemporaryDirectory directory;
  const auto known = hosts->state() / "known_hosts";
  const auto strike = [&] {
    if (way == "login") {
      hosts->exec(1, "for f in /run/host/authorized_keys ~/.ssh/authorized_keys; do [ ! -e $f ] || : >$f; done");
    } else {  // as if somebody else answered at its address
      std::vector<std::string> lines;
      std::string other, text;
      std::ifstream in(known);
      for (std::string line; std::getline(in, line);) {
        if (line.find("host2") != std::string::npos) other = line.substr(line.find(' '));
        lines.push_back(std::move(line));
      }
      for (const auto& line : lines)
        text += (line.find("host1") != std::string::npos ? line.substr(0, line.find(' ')) + other : line) + "\n";
      std::ofstream(known) << text;
    }
    hosts->exec(1, end_sessions);
  };
  const auto results = run(long_trials(directory.path() / "run", ht::over_ssh(setup_for(*hosts, 2)), strike));
  check_whole(results);
  const auto said = told(results);
  CHECK(said.used.size() == 2);
  CHECK_FALSE(said.lost.empty());
  CHECK(eventually([&] { return hosts->processes(1, "test_agent") == 0; }));

  // Where all are like that, the run ends, says it in a line, and can be resumed when that is mended.
  auto alone = setup_for(*hosts, 1);
  try {
    run(long_trials(directory.path() / "alone", ht::over_ssh(alone), [] {}));
    FAIL("there is no host");
  } catch (const ht::Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring(way == "login" ? "it refuses the login" : "host key"));
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}

TEST_CASE("the only host lets nobody in any more: the run ends, says why, and is resumed when that is mended") {
  const auto hosts = test_hosts(1);
  if (!hosts) return;
  const TemporaryDirectory directory;
  const auto strike = [&] {
    hosts->exec(
        1, std::string("for f in /run/host/authorized_keys ~/.ssh/authorized_keys; do [ ! -e $f ] || { cp $f $f.kept; "
                       ": >$f; }; done") +
               end_sessions);
  };
  std::string said;
  try {
    run(long_trials(directory.path() / "run", ht::over_ssh(setup_for(*hosts, 1)), strike));
  } catch (const ht::Error& error) {
    CHECK(error.code() == ht::Errc::resources);
    said = error.what();
  }
  CHECK_THAT(said, ContainsSubstring("it refuses the login") && ContainsSubstring("resume"));
  hosts->exec(
      1, "for f in /run/host/authorized_keys ~/.ssh/authorized_keys; do [ ! -e $f.kept ] || cat $f.kept >$f; done");
  auto again = long_trials(directory.path() / "run", ht::over_ssh(setup_for(*hosts, 1)), [] {});
  again.resume = true;
  check_whole(run(std::move(again)));
}

TEST_CASE("a disk that runs full, and folders that vanish, while trials run") {
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const std::string way = GENERATE("full", "vanished");
  INFO(way);
  const TemporaryDirectory directory;
  if (way == "full") hosts->exec(1, "mkdir -p ~/agents && mount -t tmpfs -o size=400k none ~/agents");
  const auto strike = [&] {
    hosts->exec(1, way == "full" ? "cat /dev/zero >~/agents/fill 2>/dev/null; true"
                                 : "for i in 1 2 3; do rm -rf ~/agents/*; done 2>/dev/null; true");
  };
  const auto results = run(long_trials(directory.path() / "run", ht::over_ssh(setup_for(*hosts, 2)), strike));
  INFO(told(results).lost);
  check_whole(results);
  CHECK(told(results).used.size() == 2);
  for (int i = 1; i <= 2; ++i) CHECK(eventually([&] { return hosts->processes(i, "test_agent") == 0; }));
}

TEST_CASE("an agent that hears nothing of its driver ends all that it runs, however young it is") {
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const TemporaryDirectory directory;
  double ended = -1;
  const auto strike = [&] {
    const auto begin = std::chrono::steady_clock::now();
    hosts->cut(1);
    if (eventually([&] { return hosts->processes(1, "test_agent") == 0; }, 30))
      ended = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    hosts->heal(1);
  };
  check_whole(run(long_trials(directory.path() / "run", ht::over_ssh(setup_for(*hosts, 2)), strike)));
  CHECK(ended > 1);  // within the patience of the driver, and some time for a machine that is busy
  CHECK(ended < 10);
  std::printf("cut off: all of it has ended %.1f s later\n", ended);
}

TEST_CASE("clocks of hosts that are an hour off change nothing") {
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const TemporaryDirectory directory, brought("/var/tmp");  // the hosts see this machine's disk, but for /tmp
  std::ofstream(brought.path() / "clock.c") << R"c(
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long off(void) { const char* text = getenv("CLOCK_OFF"); return text ? atol(text) : 0; }
int clock_gettime(clockid_t clock, struct timespec* t) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
  int code = real(clock, t);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) t->tv_sec += off();
  return code;
}
time_t time(time_t* t) { struct timespec now; clock_gettime(CLOCK_REALTIME, &now); return t ? *t = now.tv_sec : now.tv_sec; }
int gettimeofday(struct timeval* restrict t, void* restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now), t->tv_sec = now.tv_sec, t->tv_usec = now.tv_nsec / 1000;
  return 0;
}
)c";
  const std::string library = brought.path() / "clock.so", agent = brought.path() / "agent";
  if (local_command({"gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, brought.path() / "clock.c", "-ldl"})
          .exit != 0) {
    WARN("skipped: no C compiler");
    return;
  }
  std::filesystem::copy_file(HYPERTUNE_TEST_AGENT, agent);
  ht::remote::HostPool pool;
  for (int i = 1; i <= 2; ++i) {
    const auto connection = std::make_shared<std::optional<ht::ssh::SshConnection>>();
    pool.add({.name = TestHosts::name(i), .dialer = ht::remote::CommandDialer([connection, &hosts, library, agent, i] {
                                            connection->reset();
                                            connection->emplace(hosts->open(i));
                                            return (*connection)
                                                ->command({"env", "LD_PRELOAD=" + library,
                                                           i == 1 ? "CLOCK_OFF=3600" : "CLOCK_OFF=-3600", agent,
                                                           "agents", "4"});
                                          })});
  }
  auto remote = setup_for(*hosts, 2).remote;
  auto skewed = asha(directory.path() / "skewed", ht::RemoteExecutor(pool, remote));
  auto right = asha(directory.path() / "right", ht::threads(8));
  for (auto* options : {&skewed, &right}) options->samples = 12, options->concurrency = 8;
  const auto results = run(std::move(skewed));
  CHECK(hosts->exec(1, "CLOCK_OFF=3600 LD_PRELOAD=" + library + " date +%Y%m%d%H") != hosts->exec(1, "date +%Y%m%d%H"));
  CHECK(fingerprint(results) == fingerprint(run(std::move(right))));
  check_reports(results);
  CHECK(results.repeated_steps() == 0);
  CHECK(told(results).lost.empty());
  ht::Seconds last = 0;  // the record's time is the driver's
  ht::read_journal(results.directory(), [&](const ht::Record& record) {
    CHECK(record.time >= last);
    CHECK(std::abs(record.time - results.experiment().started) < 1800);
    last = record.time;
  });
}

TEST_CASE("programs for another processor are refused before a trial runs") {
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  const TemporaryDirectory directory;
  const auto foreign = directory.path() / "train";
  std::filesystem::copy_file("/bin/true", foreign);
  std::fstream file(foreign, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(18), file.put(static_cast<char>(0xb7)), file.put(0);  // e_machine: AArch64
  file.close();
  const bool agent = GENERATE(true, false);
  auto setup = setup_for(*hosts, 2);
  if (agent) {
    setup.program = foreign;
  } else {  // what trials run
    setup.mounts.push_back({.remote = "train", .local = foreign, .exclude = {}});
    setup.programs.push_back(foreign);
  }
  try {
    run(long_trials(directory.path() / "run", ht::over_ssh(setup), [] {}));
    FAIL("it cannot run");
  } catch (const ht::Error& error) {
    const std::string said = error.what();
    CHECK(error.code() == ht::Errc::resources);
    CHECK_THAT(said, ContainsSubstring("aarch64") && ContainsSubstring("host1") && ContainsSubstring("host2"));
    CHECK(said.find('\n') == std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(directory.path() / "run"));
}
