// External commands do the same whoever starts them: a worker process, a thread of the driver, or its main thread.
#include "driver_process.hpp"
#include "local_support.hpp"

#include <hypertune/execute/inline.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/process/process_tree.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

std::shared_ptr<const Program> shell(const std::string& script, local::CommandOptions options = {}) {
  options.command = {"/bin/sh", "-c", script};
  return std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode"}, std::move(options));
}

/// Any executor with a folder, a program, and its events; its wait() runs on a thread, as in a Tuner.
struct AnyBench {
  AnyBench(AnyExecutor e, std::shared_ptr<const Program> program, double hang_timeout = 0) : executor(std::move(e)) {
    executor.start({.program = std::move(program),
                    .directory = directory.path(),
                    .sink = [this](Event event) { events(std::move(event)); },
                    .hang_timeout = hang_timeout});
    waiter = std::thread([this] {
      while (!over) executor.wait(executor.now() + 3600);
    });
  }
  ~AnyBench() {
    over = true;
    executor.notify();
    waiter.join();
    executor.shutdown();
  }
  void launch(TrialId trial, Attempt attempt = 0, std::vector<CheckpointInfo> restore = {}, bool parked = false) {
    Launch launch;
    launch.trial = trial;
    launch.attempt = attempt;
    launch.params = Params{{"mode", std::string("m")}};
    launch.allocation.lead.resources.cpus = 1;
    launch.restore = std::move(restore);
    launch.parked = parked;
    executor.perform(launch);
  }
  TemporaryDirectory directory;
  Events events;
  AnyExecutor executor;
  std::atomic<bool> over{false};
  std::thread waiter;
};

AnyExecutor make(const std::string& kind, std::size_t max_parked = 64) {
  if (kind == "threads") return threads(ThreadOptions{.cpus = 4, .max_parked = max_parked});
  return processes({.pool = 4, .max_parked = max_parked});
}

pid_t pid_of(const Reported& reported) { return static_cast<pid_t>(*find_metric(reported.report.metrics, "pid")); }
bool alive(pid_t pid) { return ::kill(pid, 0) == 0; }
char state_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  const auto end = line.rfind(')');
  return end == std::string::npos ? '?' : line[end + 2];
}

// Counts from its checkpoint; saves at each step, and when it is asked to leave. (It waits by `wait`, which a trapped
// signal ends: one that comes just before a sleep in the foreground would be heard only after the sleep.)
const std::string counter = R"(n=0; if [ -n "$HYPERTUNE_RESTORE" ]; then n=$(cat $HYPERTUNE_RESTORE/n); fi
trap 'mkdir $HYPERTUNE_CHECKPOINT/last && echo $n > $HYPERTUNE_CHECKPOINT/last/n && echo "{{\"checkpoint\": \"last\"}}"; exit 0' TERM
while :; do n=$((n+1)); SAVE
echo "{{\"step\": $((n-1)), \"pid\": $$CHECKPOINT}}"; sleep SECONDS & wait $!; done)";
std::string counting(bool saves, const std::string& seconds) {
  std::string text = counter;
  text.replace(text.find("SAVE"), 4,
               saves ? "mkdir $HYPERTUNE_CHECKPOINT/s$n; echo $n > $HYPERTUNE_CHECKPOINT/s$n/n" : ":");
  text.replace(text.rfind("CHECKPOINT"), 10, saves ? ", \\\"checkpoint\\\": \\\"s$n\\\"" : "");
  text.replace(text.find("SECONDS"), 7, seconds);
  return text;
}

}  // namespace

TEST_CASE("the cause of a command's failure and the rules for its log count under every executor") {
  const auto program = shell("echo 'invalid config' >&2; exit 3", {.log_rules = {{"invalid config", true, true}}});
  const std::string kind = GENERATE("threads", "processes", "inline");
  INFO(kind);
  Cause cause;
  if (kind == "inline") {
    TemporaryDirectory directory;
    InlineExecutor executor;
    executor.start({.program = program, .directory = directory.path(), .sink = [&](const Event& event) {
                      if (const auto* failed = std::get_if<Failed>(&event)) cause = failed->cause;
                    }});
    Launch launch;
    launch.trial = 0;
    launch.attempt = 0;
    executor.perform(launch);
    executor.wait(0);
  } else {
    AnyBench bench(make(kind), program);
    bench.launch(0);
    cause = bench.events.next<Failed>().cause;
  }
  CHECK(cause.text == "the command exited with code 3: invalid config");
  CHECK_FALSE(cause.retry);
  CHECK(cause.exclude_host);
}

TEST_CASE("a command's checkpoints are taken over, and it saves when it is asked to leave") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  AnyBench bench(make(kind), shell(counting(false, "1000")));
  bench.launch(0);
  const pid_t pid = pid_of(bench.events.next<Reported>());
  CHECK(alive(pid));
  bench.executor.perform(Stop{0, 0, true});
  const auto saved = bench.events.next<Checkpointed>().checkpoint;
  CHECK(saved.steps == 1);
  bench.events.next<Stopped>();
  CHECK_FALSE(alive(pid));
  bench.launch(0, 1, {saved});
  CHECK(bench.events.next<Started>().next_step == 1);
  CHECK(bench.events.next<Reported>().report.step == 1);
}

TEST_CASE("a stopped command is gone when its slot is free, also where nothing is to be saved") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  AnyBench bench(make(kind), shell(counting(true, "1000")));
  bench.launch(0);
  const auto reported = bench.events.next<Reported>();
  REQUIRE(reported.checkpoint);
  CHECK(reported.checkpoint->steps == 1);
  SECTION("between steps") {}
  SECTION("within a step") { bench.executor.perform(Continue{0, 0}); }
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
  CHECK_FALSE(alive(pid_of(reported)));
}

TEST_CASE("a paused command is halted, or ended if too many are and it has saved") {
  const std::string kind = GENERATE("threads", "processes");
  const bool saves = GENERATE(true, false);
  INFO(kind << (saves ? ", saves" : ", does not save"));
  AnyBench bench(make(kind, 1), shell(counting(saves, "0.3")));
  std::array<pid_t, 2> pids{};
  std::array<std::optional<CheckpointInfo>, 2> checkpoints;
  for (TrialId trial = 0; trial < 2; ++trial) {
    bench.launch(trial);
    const auto reported = bench.events.next<Reported>();
    pids.at(static_cast<std::size_t>(trial)) = pid_of(reported);
    checkpoints.at(static_cast<std::size_t>(trial)) = reported.checkpoint;
    bench.executor.perform(Pause{trial, 0});
    CHECK(bench.events.next<Paused>().parked == (trial == 0 || !saves));
  }
  // The signal is on its way when Paused comes; a process in a system call stops at its end.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (state_of(pids[0]) != 'T' && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  CHECK(state_of(pids[0]) == 'T');
  CHECK(alive(pids[1]) == !saves);
  bench.launch(0, 0, {}, true);
  CHECK(bench.events.next<Reported>().report.step == 1);
  if (saves) {
    bench.launch(1, 1, {checkpoints[1].value()});
    CHECK(bench.events.next<Started>().next_step == 1);
  } else {
    bench.executor.perform(Stop{1, 0});  // of a paused one: nobody is told
    bench.executor.perform(Stop{0, 0});
    bench.events.next<Stopped>();
  }
}

TEST_CASE("what a thread's command leaves behind ends with it, and its neighbours do not") {
  AnyBench bench(
      make("threads"),
      shell(R"(sleep 1000 & echo "{{\"pid\": $!}}"; setsid sleep 1000 & echo "{{\"pid\": $!}}"; sleep 1000)"));
  std::array<std::array<pid_t, 2>, 2> pids{};
  for (TrialId trial = 0; trial < 2; ++trial) {
    bench.launch(trial);
    for (auto& pid : pids.at(static_cast<std::size_t>(trial))) {
      pid = pid_of(bench.events.next<Reported>());
      bench.executor.perform(Continue{trial, 0});
    }
  }
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
  for (const pid_t pid : pids[0]) CHECK_FALSE(alive(pid));
  for (const pid_t pid : pids[1]) CHECK(alive(pid));
}

TEST_CASE("a command that hangs under a thread fails") {
  AnyBench bench(make("threads"), shell("echo '{{\"pid\": 1}}'; sleep 1000"), 0.2);
  bench.launch(0);
  bench.events.next<Reported>();
  bench.executor.perform(Continue{0, 0});
  CHECK_THAT(bench.events.next<Failed>().cause.text, ContainsSubstring("hung"));
}

TEST_CASE("a trial that heeds stop_requested() within a step has stopped, not finished") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  AnyBench bench(make(kind), program_of([](Context& context) -> Training {
                   co_yield report("value", 1);
                   while (!context.stop_requested()) ::usleep(1000);
                 }));
  bench.launch(0);
  bench.events.next<Reported>();
  bench.executor.perform(Continue{0, 0});
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
}

TEST_CASE("when a driver is killed, what its threads' commands started ends with it") {
  {
    DriverProcess driver([] {
      auto bench = std::make_unique<AnyBench>(
          make("threads"),
          shell(R"(sleep 1000 & echo "{{\"pid\": $!}}"; setsid sleep 1000 & echo "{{\"pid\": $!}}"; sleep 1000)"));
      for (TrialId trial = 0; trial < 3; ++trial) bench->launch(trial);
      return bench;
    });
    const auto keepers = process::children_of(driver.pid());
    CHECK(keepers.size() == 3);
    REQUIRE(driver.kill());
    for (const pid_t keeper : keepers) CHECK(::waitpid(keeper, nullptr, 0) == keeper);
    for (const pid_t pid : driver.started()) CHECK_FALSE(alive(pid));
  }
  CHECK(process::children_of(::getpid()).empty());
}

TEST_CASE("where all processes get SIGTERM at once, a command's end is neither its success nor its failure") {
  // It saves and leaves with code 0, as a command that was asked to leave does.
  AnyBench bench(make("processes"), shell(counting(false, "1000")));
  bench.launch(0);
  const pid_t command = pid_of(bench.events.next<Reported>()), worker = process::parent_of(command);
  REQUIRE(worker > 1);
  bench.executor.perform(Continue{0, 0});
  ::kill(worker, SIGTERM);
  ::kill(command, SIGTERM);
  SECTION("the driver has a notice as well, and asks for the end") {
    bench.executor.perform(Stop{0, 0, true});
    bench.events.next<Stopped>();
  }
  SECTION("the driver has none") {
    const auto failed = bench.events.next<Failed>();
    CHECK(failed.cause.source == FailureSource::preemption);
    CHECK(failed.cause.retry);
    CHECK_THAT(failed.cause.text, ContainsSubstring("asked to end (SIGTERM)"));
  }
}
