// Experiments over real OpenSSH servers, each with a network, processes and a home of its own, that are killed, cut
// off, slow, lossy, or told that they go away.
#include "remote/agents.hpp"
#include "remote/experiments.hpp"
#include "support/test_hosts.hpp"

#include <hypertune/ssh/executor.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

namespace ht = hypertune;
using namespace hypertune::test;

namespace {

double clock_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The names of hosts, changed while an experiment runs.
class Names {
 public:
  explicit Names(int count) {
    for (int i = 1; i <= count; ++i) names_.insert(TestHosts::name(i));
  }
  void flip(int host) {
    const std::lock_guard guard(mutex_);
    const auto name = TestHosts::name(host);
    if (names_.erase(name) == 0) names_.insert(name);
  }
  ht::remote::HostList list() const {
    const std::lock_guard guard(mutex_);
    ht::remote::HostList hosts;
    for (const auto& name : names_) hosts.push_back({.name = name});
    return hosts;
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> names_;
};

ht::SshSetup setup_for(const TestHosts& hosts, ht::remote::HostSource source) {
  ht::SshSetup setup;
  setup.hosts = std::move(source);
  setup.ssh = hosts.options();
  setup.program = HYPERTUNE_TEST_AGENT;
  setup.arguments = {"agents", "4"};  // from the home folder
  setup.remote.program = "learner";
  return setup;
}
ht::remote::HostSource names(int count) {
  std::vector<std::string> all;
  for (int i = 1; i <= count; ++i) all.push_back(TestHosts::name(i));
  return all;
}

/// Nothing that an experiment started is left on the hosts.
void check_no_orphans(TestHosts& hosts, int count) {
  for (int i = 1; i <= count; ++i) {
    INFO("host " << i);
    CHECK(eventually([&] { return hosts.processes(i, "test_agent") == 0; }));
  }
}

/// Does something to one of the first hosts again and again; the last one stays.
class RealChaos {
 public:
  RealChaos(TestHosts& hosts, Names& names, int count, unsigned seed)
      : hosts_(hosts), names_(names), count_(count), rng_(seed), thread_([this] { run(); }) {}
  ~RealChaos() { stop(); }
  void stop() {
    {
      const std::lock_guard guard(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  /// After stop().
  void mend() {
    for (const auto& [host, state] : states_)
      if (state == State::cut) hosts_.heal(host);
    hosts_.up(count_);
  }
  int done() const { return done_; }
  std::string trouble() const {
    const std::lock_guard guard(mutex_);
    return trouble_;
  }

 private:
  enum class State { well, dead, cut };
  void run() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      changed_.wait_for(lock, std::chrono::milliseconds(300 + rng_() % 700), [this] { return over_; });
      if (over_) break;
      try {
        disturb(1 + static_cast<int>(rng_() % static_cast<unsigned>(count_ - 1)));
        ++done_;
      } catch (const std::exception& error) {
        trouble_ = error.what();
        return;
      }
    }
  }
  void disturb(int victim) {
    auto& state = states_[victim];
    if (state == State::dead) {
      hosts_.up(count_);
      for (auto& [host, its] : states_)
        if (its == State::dead) its = State::well;
    } else if (state == State::cut) {
      hosts_.heal(victim);
      state = State::well;
    } else if (const auto what = rng_() % 3; what == 0) {
      hosts_.kill(victim);
      state = State::dead;
    } else if (what == 1) {
      hosts_.cut(victim);
      state = State::cut;
    } else {
      names_.flip(victim);
    }
  }
  TestHosts& hosts_;
  Names& names_;
  int count_;
  std::mt19937 rng_;
  std::map<int, State> states_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::atomic<int> done_{0};
  std::string trouble_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("real hosts are killed, cut off, healed and added: an experiment ends as it would undisturbed") {
  const auto [make, shared] = GENERATE(std::pair(&pbt, false), std::pair(&asha, false), std::pair(&pbt, true));
  INFO("a shared folder: " << shared);
  TemporaryDirectory directory, disk;
  const auto hosts = test_hosts(4, {"--share", disk.path().string()});
  if (!hosts) return;
  const auto shorter = [&](const std::string& name, ht::AnyExecutor executor) {
    auto options = make(directory.path() / name, std::move(executor));
    if (make == &asha)
      options.schedule = ht::Asha{.grace_period = 3, .max_steps = 27, .reduction_factor = 3};
    else
      options.schedule = ht::Pbt{.perturbation_interval = 4, .max_steps = 64, .quantile_fraction = 0.5};
    return options;
  };
  const auto peace = run(shorter("peace", ht::threads(4)));
  Names list(4);
  RealChaos chaos(*hosts, list, 4, 11);
  const double begin = clock_now();
  // On a busy machine it takes seconds to disturb a host: as many experiments as it takes for three of that.
  std::int64_t lost = 0, twice = 0;
  for (int number = 0; chaos.trouble().empty() && (number == 0 || chaos.done() < 3 || lost == 0); ++number) {
    INFO("experiment " << number);
    REQUIRE(number < 10);
    auto setup = setup_for(*hosts, ht::remote::HostSource::callback([&list] { return list.list(); }, 0.2));
    setup.remote.timeouts = {.heartbeat = 1.5, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
    setup.remote.transfer = {.inline_limit = 0, .direct = make == &pbt};  // by content, though they are small
    if (shared) setup.remote.transfer.shared = {.folder = disk.path(), .on_hosts = "/run/share"};
    setup.ssh.connect_timeout = 2;
    const auto war = run(shorter("war" + std::to_string(number), ht::over_ssh(std::move(setup))));
    INFO(story(war));
    CHECK(fingerprint(war) == fingerprint(peace));
    check_reports(war);
    CHECK(war.failures(ht::FailureSource::user) == 0);
    for (const auto& host : war.hosts()) lost += host.lost;
    twice += war.repeated_steps();
  }
  chaos.stop();
  CHECK(chaos.trouble().empty());
  if (!chaos.trouble().empty()) std::printf("trouble: %s\n", chaos.trouble().c_str());
  std::printf("disturbed %d times in %.1f s: %d hosts lost, %d steps done twice\n", chaos.done(), clock_now() - begin,
              static_cast<int>(lost), static_cast<int>(twice));
  chaos.mend();
  check_no_orphans(*hosts, 4);
}

TEST_CASE("a real host that vanishes is noticed in time, and its trials go on elsewhere at once") {
  const bool cut = GENERATE(false, true);
  INFO((cut ? "cut off" : "killed"));
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  TemporaryDirectory directory;
  auto options = experiment(directory.path() / "run", ht::over_ssh(setup_for(*hosts, names(2))));
  options.ordered = false;
  options.samples = 4;
  options.concurrency = 4;
  options.checkpoint = {.every = 5, .keep = 2};
  options.schedule = ht::Asha{.grace_period = 150, .max_steps = 150};
  struct Watch {
    TestHosts& hosts;
    bool cut;
    std::mutex mutex;
    std::condition_variable changed;
    bool strike = false, over = false;
    double before = 0, after = 0;
    void run() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return strike || over; });
      if (over) return;
      before = clock_now();
      cut ? hosts.cut(1) : hosts.kill(1);
      after = clock_now();
    }
  } watch{.hosts = *hosts, .cut = cut, .mutex = {}, .changed = {}};
  struct Follow {
    Watch* watch;
    void on_trial_report(const ht::record::TrialReported& report, ht::Seconds) {
      if (report.step != 40) return;
      const std::lock_guard guard(watch->mutex);
      watch->strike = true;
      watch->changed.notify_all();
    }
  };
  options.callbacks.emplace_back(Follow{&watch});
  std::thread striker([&] { watch.run(); });
  std::optional<ht::Results> results;
  std::string error;
  try {
    results = run(std::move(options));
  } catch (const std::exception& e) { error = e.what(); }
  {
    const std::lock_guard guard(watch.mutex);
    watch.over = true;
  }
  watch.changed.notify_all();
  striker.join();
  REQUIRE(error.empty());
  CHECK(results->count(ht::TrialState::completed) == 4);
  double lost = 0, again = 0;
  std::set<ht::TrialId> failed;  // until they report again
  ht::read_journal(results->directory(), [&](const ht::Record& record) {
    if (std::holds_alternative<ht::record::HostLost>(record.what) && lost == 0) lost = record.time;
    if (const auto* failure = std::get_if<ht::record::AttemptFailed>(&record.what)) failed.insert(failure->trial);
    if (const auto* report = std::get_if<ht::record::TrialReported>(&record.what))
      if (failed.erase(report->trial) > 0) again = std::max(again, record.time);
  });
  REQUIRE(lost > 0);
  REQUIRE(again > 0);
  CHECK(failed.empty());
  std::printf("%s: noticed %.2f to %.2f s after it; all its trials go on %.2f s later; %d steps done twice\n",
              cut ? "cut off" : "killed", lost - watch.after, lost - watch.before, again - lost,
              static_cast<int>(results->repeated_steps()));
  CHECK(lost - watch.after < 3);
  CHECK(again - lost < 2);
  cut ? hosts->heal(1) : hosts->up(2);
  check_no_orphans(*hosts, 2);
}

TEST_CASE("a real host that is told to go away drains: its trials save at once and lose no step") {
  const std::string way = GENERATE("SIGTERM", "command", "URL", "URL with a token");
  INFO(way);
  const auto hosts = test_hosts(2);
  if (!hosts) return;
  TemporaryDirectory directory;
  auto setup = setup_for(*hosts, names(2));
  setup.remote.notice_interval = 0.1;
  // A notice that stays; host1 alone has it.
  if (way == "command") setup.remote.notice_command = "test -e /tmp/notice && echo reclaimed by the cloud";
  if (way == "URL with a token") {  // as EC2 has it
    setup.remote.notice_url = "http://127.0.0.1:8169/latest/meta-data/spot/instance-action";
    for (int i = 1; i <= 2; ++i)
      hosts->exec(i, R"sh(cat >/tmp/metadata.py <<'END'
import http.server, os
class Metadata(http.server.BaseHTTPRequestHandler):
    def say(self, status, text=""):
        self.send_response(status), self.end_headers(), self.wfile.write(text.encode())
    def do_PUT(self):
        wanted = self.path == "/latest/api/token" and self.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        self.say(200 if wanted else 400, "t0ken==")
    def do_GET(self):
        if self.headers["X-aws-ec2-metadata-token"] != "t0ken==": self.say(401)
        elif os.path.exists("/tmp/notice"): self.say(200, '{"action": "terminate"}: reclaimed by the cloud')
        else: self.say(404)
http.server.HTTPServer(("127.0.0.1", 8169), Metadata).serve_forever()
END
setsid python3 /tmp/metadata.py >/dev/null 2>&1 </dev/null &
)sh");
  }
  if (way == "URL") {
    setup.remote.notice_url = "http://127.0.0.1:8169/latest/spot";
    for (int i = 1; i <= 2; ++i)
      hosts->exec(i,
                  "mkdir -p /tmp/www/latest; cd /tmp/www; "
                  "setsid python3 -m http.server --bind 127.0.0.1 8169 >/dev/null 2>&1 </dev/null &");
  }
  auto options = experiment(directory.path() / "run", ht::over_ssh(std::move(setup)));
  options.ordered = false;
  options.samples = 4;
  options.checkpoint = {.every = 1000, .keep = 2};  // nothing is saved but for the notice
  options.schedule = ht::Asha{.grace_period = 150, .max_steps = 150};
  std::atomic<bool> given{false};
  struct Follow {
    TestHosts* hosts;
    const std::string* way;
    std::atomic<bool>* given;
    void on_trial_report(const ht::record::TrialReported& report, ht::Seconds) const {
      if (report.step < 20 || given->exchange(true)) return;
      if (*way == "SIGTERM")
        hosts->exec(1,
                    "for p in /proc/[0-9]*; do [ \"$(tr '\\0' '|' <$p/cmdline | cut -d'|' -f2)\" = agents ] && "
                    "[ \"$(cat $p/comm)\" = test_agent ] && kill -TERM ${p#/proc/}; done; true");
      else
        hosts->exec(1, *way == "URL" ? "echo reclaimed by the cloud > /tmp/www/latest/spot" : "touch /tmp/notice");
    }
  };
  options.callbacks.emplace_back(Follow{hosts.get(), &way, &given});
  const auto results = run(std::move(options));
  INFO(story(results));
  CHECK(given);
  CHECK(results.count(ht::TrialState::completed) == 4);
  check_reports(results);
  CHECK(results.failures(ht::FailureSource::user) == 0);
  CHECK(results.failures(ht::FailureSource::infrastructure) == 0);
  CHECK(results.failures(ht::FailureSource::preemption) >= 1);
  CHECK(results.repeated_steps() == 0);
  std::string why;
  ht::Seconds noticed = 0, left = 0;
  ht::read_journal(results.directory(), [&](const ht::Record& record) {
    if (const auto* lost = std::get_if<ht::record::HostLost>(&record.what); lost != nullptr && why.empty()) {
      why = lost->why;
      noticed = record.time;
    }
    if (std::holds_alternative<ht::record::AttemptFailed>(record.what)) left = record.time;
  });
  CHECK_THAT(why, ContainsSubstring(way == "SIGTERM" ? "SIGTERM" : "reclaimed by the cloud"));
  std::printf("%s: the last of its trials has saved and left %.2f s after the notice\n", way.c_str(), left - noticed);
  CHECK(left - noticed < 5);
  check_no_orphans(*hosts, 2);
}

TEST_CASE("an experiment goes well over slow, long and lossy lines") {
  struct Line {
    const char* name;
    std::vector<std::string> options;
  };
  const auto line =
      GENERATE(Line{"200 ms and 1 % loss", {"--delay", "100", "--loss", "1"}}, Line{"1 MB/s", {"--rate", "8mbit"}});
  INFO(line.name);
  const auto hosts = test_hosts(2, line.options);
  if (!hosts) return;
  TemporaryDirectory directory;
  auto setup = setup_for(*hosts, names(2));
  const bool lossy = line.options.front() == "--delay";
  ht::AnyExecutor executor = ht::over_ssh(setup);
  // Two megabytes of program would take a minute of the test there. The hosts see this machine's disk, but for /tmp.
  const TemporaryDirectory brought("/var/tmp");
  const std::string agent = brought.path() / "agent";
  if (lossy) {
    std::filesystem::copy_file(HYPERTUNE_TEST_AGENT, agent);
    ht::remote::HostPool pool;
    for (int i = 1; i <= 2; ++i) {
      const auto connection = std::make_shared<std::optional<ht::ssh::SshConnection>>();
      pool.add({.name = TestHosts::name(i), .dialer = ht::remote::CommandDialer([connection, &hosts, &agent, i] {
                                              connection->reset();
                                              connection->emplace(hosts->open(i));
                                              return (*connection)->command({agent, "agents", "4"});
                                            })});
    }
    executor = ht::RemoteExecutor(pool, setup.remote);
  }
  auto options = asha(directory.path() / "run", std::move(executor));
  options.samples = 12;
  options.concurrency = 8;
  const double begin = clock_now();
  const auto results = run(std::move(options));
  std::printf("%s: %d trials, %d reports in %.1f s\n", line.name, static_cast<int>(results.size()),
              static_cast<int>(results.experiment().reports), clock_now() - begin);
  auto peace = asha(directory.path() / "peace", ht::threads(8));
  peace.samples = 12;
  peace.concurrency = 8;
  CHECK(fingerprint(results) == fingerprint(run(std::move(peace))));
  check_reports(results);
  std::int64_t lost = 0;
  for (const auto& host : results.hosts()) lost += host.lost;
  CHECK(lost == 0);
  CHECK(results.repeated_steps() == 0);
  check_no_orphans(*hosts, 2);
}
