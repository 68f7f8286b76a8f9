// Drivers with real threads and real checkpoints, killed by SIGKILL whenever it pleases chance.
#include "history.hpp"
#include "support/number_checkpoint.hpp"
#include "support/sanitizers.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace ht = hypertune;
using namespace std::chrono_literals;

namespace {

constexpr int kill_points = hypertune_test::address_sanitizer || hypertune_test::thread_sanitizer ? 20 : 200;

struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));
constexpr int steps = 12;
constexpr int every = 3;

/// One line at a time, whole or not at all, whoever dies.
class Log {
 public:
  explicit Log(const std::filesystem::path& path) : fd_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644)) {}
  ~Log() { ::close(fd_); }
  void line(const std::string& text) const {
    const std::string whole = text + "\n";
    if (::write(fd_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) std::abort();
  }

 private:
  int fd_;
};

ht::Options options(const std::filesystem::path& directory) {
  ht::Options o;
  o.search = ht::Random{};
  o.name = "kill";
  o.samples = 24;
  o.executor = ht::threads(4);
  o.schedule = ht::Asha{.max_steps = steps, .promotion = true};
  o.checkpoint = {.every = every, .keep = 2};
  o.output = directory / "run";
  o.resume = true;
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  return o;
}

/// A population that is larger than its slots, with as little kept as there may be.
ht::Options population(const std::filesystem::path& directory) {
  ht::Options o = options(directory);
  o.samples = 10;
  o.schedule = ht::Pbt{.perturbation_interval = 2, .max_steps = steps, .quantile_fraction = 0.5};
  o.checkpoint = {.every = 0, .keep = 1};
  return o;
}

/// Runs the experiment as far as it comes, in a process of its own.
void drive(const std::filesystem::path& directory, ht::Options o) {
  const Log log(directory / "log");
  ht::tune(
      space,
      [&log](Config config, ht::Context& context) -> ht::Training {
        double sum = 0;
        ht::test::checkpoint_number(context, sum);
        log.line(fmt::format("begin {} {} {}", context.trial(), context.attempt(), context.next_step()));
        for (int step = context.next_step(); step < steps; ++step) {
          sum += config.x * (step + 1);
          log.line(fmt::format("step {} {}", context.trial(), step));
          co_yield ht::report("value", std::abs(sum));
        }
      },
      std::move(o));
}

/// Forks; in the child: calls `work` and leaves with its result as the exit code.
pid_t in_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  int code = 99;
  try {
    code = work();
  } catch (const std::exception& e) { std::fputs((std::string(e.what()) + "\n").c_str(), stderr); }
  ::_exit(code);
}

/// The exit code, or minus the signal.
int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/// Waits until the child has ended by itself or `left` is over and it has been killed. Its end wakes: no polling.
int kill_after(pid_t child, std::chrono::microseconds left) {
  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec limit{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
  sigtimedwait(&ended, nullptr, &limit);
  ::kill(child, SIGKILL);
  const int code = wait_for(child);
  const timespec now{};
  while (sigtimedwait(&ended, nullptr, &now) > 0) {}  // this child's, not the next one's
  return code;
}

struct BlockSigchld {
  sigset_t before{};
  BlockSigchld() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, &before);
  }
  ~BlockSigchld() { sigprocmask(SIG_SETMASK, &before, nullptr); }
};

/// What the record and the trials' own log must agree on, after the last driver has come to the end.
void check_history(const std::filesystem::path& directory) {
  const auto records = support::records_of(directory / "run");
  std::map<std::pair<ht::TrialId, int>, int> reported;
  std::map<ht::TrialId, ht::TrialState> ended;
  std::map<ht::TrialId, int> sealed;  // steps of the newest checkpoint that is recorded
  std::map<ht::TrialId, int> next;    // where each one's present attempt may begin at the latest
  for (const auto& record : records) {
    if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) {
      ++reported[{r->trial, r->step}];
      CHECK_FALSE(ended.contains(r->trial));
    } else if (const auto* e = std::get_if<ht::record::TrialEnded>(&record.what)) {
      CHECK(ended.emplace(e->trial, e->state).second);
    } else if (const auto* c = std::get_if<ht::record::TrialCheckpointed>(&record.what)) {
      sealed[c->trial] = std::max(sealed[c->trial], c->checkpoint.steps);
    } else if (const auto* s = std::get_if<ht::record::TrialStarted>(&record.what)) {
      CHECK_FALSE(ended.contains(s->trial));
      CHECK(s->next_step >= sealed[s->trial]);  // no step before the last checkpoint is done again
    }
  }
  CHECK(ended.size() == 24);
  for (const auto& [trial, state] : ended)
    CHECK((state == ht::TrialState::completed || state == ht::TrialState::stopped));
  for (const auto& [key, times] : reported) {
    INFO("trial " << key.first << ", step " << key.second);
    CHECK(times == 1);
    if (key.second > 0) CHECK(reported.contains({key.first, key.second - 1}));
  }

  // The log: every attempt begins at a multiple of `every` and goes on step by step.
  std::ifstream log(directory / "log");
  std::string what;
  while (log >> what) {
    ht::TrialId trial = 0;
    int step = 0;
    if (what == "begin") {
      int attempt = 0;
      log >> trial >> attempt >> step;
      // Promotion saves at each pause as well: 1, 3 and 9 steps.
      CHECK((step % every == 0 || step == 1));
      next[trial] = step;
    } else {
      log >> trial >> step;
      CHECK(step == next[trial]++);
      CHECK(step < steps);
    }
  }

  // The metric is a function of the configuration and the steps alone, if every restoration was right.
  const auto results = ht::Results::read(directory / "run");
  for (const auto& result : results.trials()) {
    const double x = space.config(result.point).x;
    double sum = 0;
    for (int step = 0; step < result.steps; ++step) sum += x * (step + 1);
    CHECK(result.metrics.front().second == Approx(std::abs(sum)));
  }
}

}  // namespace

TEST_CASE("a driver killed at 200 random moments loses nothing, repeats nothing, and comes to its end") {
  const BlockSigchld block;
  std::mt19937_64 random(17);
  int killed = 0, experiments = 0;
  while (killed < kill_points) {
    TemporaryDirectory directory;
    ++experiments;
    // Within an experiment each driver is let live a little longer than the last, so that all of them come to an end.
    double most = 12'000;
    for (;;) {
      const pid_t child = in_child([&] { return drive(directory, options(directory)), 0; });
      const std::chrono::microseconds left(static_cast<int>(std::uniform_real_distribution(500.0, most)(random)));
      most *= 1.06;
      const int code = killed < kill_points ? kill_after(child, left) : wait_for(child);
      if (code == 0) break;
      REQUIRE(code == -SIGKILL);
      ++killed;
    }
    check_history(directory);
  }
  INFO(experiments << " experiments");
  CHECK(killed == kill_points);
}

namespace {

/// After the last driver of a population has come to the end. Returns how often a trial took over another one's state.
int check_population(const std::filesystem::path& directory) {
  std::map<ht::TrialId, ht::CheckpointInfo> needed;
  std::map<ht::TrialId, int> ended;
  int mutated = 0;
  for (const auto& record : support::records_of(directory / "run")) {
    if (const auto* m = std::get_if<ht::record::TrialExploited>(&record.what)) {
      needed[m->trial] = m->checkpoint;
      ++mutated;
    } else if (const auto* c = std::get_if<ht::record::TrialCheckpointed>(&record.what)) {
      needed.erase(c->trial);
    } else if (const auto* e = std::get_if<ht::record::TrialEnded>(&record.what)) {
      CHECK(++ended[e->trial] == 1);
      CHECK(e->state == ht::TrialState::completed);
      needed.erase(e->trial);
    } else if (const auto* d = std::get_if<ht::record::CheckpointDropped>(&record.what)) {
      CHECK(d->why == "retention");  // none was missing, none was damaged
      for (const auto& [trial, checkpoint] : needed) CHECK(checkpoint != d->checkpoint);
    }
  }
  CHECK(ended.size() == 10);
  // The state of each trial is that of its line of configurations, step by step, whoever did them.
  const auto results = ht::Results::read(directory / "run");
  for (const auto& result : results.trials()) {
    const auto schedule = results.schedule(result.trial);
    double sum = 0;
    std::size_t entry = 0;
    for (int step = 0; step < result.steps; ++step) {
      while (entry + 1 < schedule.size() && schedule[entry + 1].from_step <= step) ++entry;
      sum += schedule[entry].params.get<double>("x") * (step + 1);
    }
    INFO("trial " << result.trial);
    CHECK(result.steps == steps);
    CHECK(result.metrics.front().second == Approx(std::abs(sum)));
  }
  return mutated;
}

}  // namespace

TEST_CASE("a driver of a population killed at random moments rebuilds it each time") {
  const BlockSigchld block;
  std::mt19937_64 random(23);
  int killed = 0, mutated = 0;
  while (killed < kill_points / 2) {
    TemporaryDirectory directory;
    double most = 15'000;
    for (;;) {
      const pid_t child = in_child([&] { return drive(directory, population(directory)), 0; });
      const std::chrono::microseconds left(static_cast<int>(std::uniform_real_distribution(500.0, most)(random)));
      most *= 1.06;
      const int code = killed < kill_points / 2 ? kill_after(child, left) : wait_for(child);
      if (code == 0) break;
      REQUIRE(code == -SIGKILL);
      ++killed;
    }
    mutated += check_population(directory);
  }
  // Not in each experiment: where drivers are killed before any checkpoint of an interval is sealed, there is nothing
  // to take over.
  CHECK(mutated > 0);
}

TEST_CASE("a second driver is told who runs the experiment") {
  TemporaryDirectory directory;
  int ready[2], go[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(go) == 0);
  const pid_t child = in_child([&] {
    ht::Options o = options(directory);
    o.samples = 1;
    o.schedule = ht::Fifo{};
    ht::tune(
        space,
        [&](const Config& c) {
          char byte = 0;
          if (::write(ready[1], "x", 1) != 1 || ::read(go[0], &byte, 1) != 1) std::abort();
          return c.x;
        },
        o);
    return 0;
  });
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  try {
    ht::tune(space, [](const Config& c) { return c.x; }, options(directory));
    FAIL("two drivers on one directory");
  } catch (const ht::Error& e) {
    CHECK(e.code() == ht::Errc::busy);
    CHECK_THAT(e.what(), ContainsSubstring(fmt::format("process {}", child)));
  }
  REQUIRE(::write(go[1], "x", 1) == 1);
  CHECK(wait_for(child) == 0);
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
  CHECK(ht::Results::read(directory.path() / "run").count(ht::TrialState::completed) == 1);
}

TEST_CASE(
    "a full disk is an error of one line; what was recorded stays, and the experiment goes on when there is room") {
  TemporaryDirectory directory;
  const auto run = [&] {
    ht::Options o = options(directory);
    o.samples = 400;
    o.schedule = ht::Fifo{};
    o.checkpoint = {};
    ht::tune(
        space,
        [](Config config) -> ht::Training {
          for (int step = 0; step < 5; ++step) co_yield ht::report("value", config.x);
        },
        o);
    return 0;
  };
  for (const rlim_t limit : {rlim_t{40'000}, rlim_t{60'000}, rlim_t{90'000}}) {
    const pid_t child = in_child([&] {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit files{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &files);
      try {
        return run();
      } catch (const ht::Error& e) {
        const std::string what = e.what();
        return e.code() == ht::Errc::io && what.find('\n') == std::string::npos ? 7 : 8;
      }
    });
    CHECK(wait_for(child) == 7);
    std::map<std::pair<ht::TrialId, int>, int> reported;
    for (const auto& record : support::records_of(directory.path() / "run"))
      if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) ++reported[{r->trial, r->step}];
    for (const auto& [key, times] : reported) CHECK(times == 1);
  }
  const pid_t child = in_child(run);
  CHECK(wait_for(child) == 0);
  const auto results = ht::Results::read(directory.path() / "run");
  CHECK(results.count(ht::TrialState::completed) == 400);
  std::map<std::pair<ht::TrialId, int>, int> reported;
  for (const auto& record : support::records_of(directory.path() / "run"))
    if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) ++reported[{r->trial, r->step}];
  CHECK(reported.size() == 2000);
  for (const auto& [key, times] : reported) CHECK(times == 1);
}
