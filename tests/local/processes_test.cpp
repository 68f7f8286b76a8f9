#include "local_support.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/execute/detail/bounded_log.hpp>
#include <hypertune/local/slot_binding.hpp>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

int crash_by_null() {
  volatile int* nowhere = nullptr;
  return *nowhere;  // NOLINT: the test is about this
}

// A trial that does what its parameter "mode" says at step 1.
Training obey(Context& context) {
  const auto mode = context.params().get<std::string>("mode");
  int total = 0;
  context.checkpoints([&](CheckpointWriter& out) { std::ofstream(out.file("total")) << total; },
                      [&](const Checkpoint& in) { std::ifstream(in.file("total")) >> total; });
  for (int step = context.next_step(); step < 5; ++step) {
    total += step;
    if (step == 1 && mode == "segfault") total += crash_by_null();
    if (step == 1 && mode == "abort") {
      std::fprintf(stderr, "assertion of the test\n");
      std::abort();
    }
    if (step == 1 && mode == "exit") std::exit(7);
    if (step == 1 && mode == "kill") {
      std::fprintf(stderr, "busy with the next step\n");
      std::raise(SIGKILL);
    }
    if (step == 1 && mode == "throw") throw std::runtime_error("no such data");
    if (step == 1 && mode == "hang")
      for (;;) ::pause();
    if (step == 1 && mode == "busy")
      while (!context.stop_requested()) ::usleep(1000);  // a long step that looks now and then
    if (step == 1 && mode == "beating")
      for (int i = 0; i < 60; ++i) {
        ::usleep(10000);
        context.alive();
      }
    if (step == 1 && mode == "memory") {
      std::vector<std::vector<char>> blocks;
      for (;;) {
        blocks.emplace_back(std::size_t{8} << 20U, 'x');
        ::usleep(5000);
      }
    }
    co_yield report("total", total, "pid", static_cast<double>(::getpid()));
  }
}

pid_t pid_in(const Reported& reported) { return static_cast<pid_t>(*find_metric(reported.report.metrics, "pid")); }

// Runs to the failure at step 1.
Cause failure_of(Bench& bench, const std::string& mode) {
  bench.launch(0, mode);
  bench.events.next<Started>();
  bench.events.next<Reported>();
  bench.executor.perform(Continue{0, 0});
  return bench.events.next<Failed>().cause;
}

}  // namespace

TEST_CASE(
    "what a trial of a worker process prints is bounded while it runs, and its last line is known when it crashes") {
  constexpr std::uint64_t limit = std::uint64_t{1} << 20U;
  Bench bench(program_of([](Context& context) -> Training {
                const auto log = context.directory() / "log";
                std::printf("first\n");
                // Until it has been cut: bounded by the test's own limit.
                for (int i = 0; i < 4'000'000; ++i) {
                  std::printf("line %d\n", i);
                  if (i % 20'000 == 0) {
                    std::fflush(stdout);
                    if (detail::LogParts::of(log, limit).left_out > 0) break;
                    ::usleep(10'000);
                  }
                }
                co_yield report("value", detail::LogParts::of(log, limit).left_out > 0 ? 1.0 : 0.0);
                std::printf("last words\n");
                std::fflush(stdout);
                std::abort();
              }),
              {}, 0, limit);
  bench.launch(0, "");
  const auto reported = bench.events.next<Reported>(60);
  CHECK(*find_metric(reported.report.metrics, "value") == 1);
  bench.executor.perform(Continue{0, 0});
  CHECK_THAT(bench.events.next<Failed>().cause.text, ContainsSubstring("the last line of its log: last words"));
  CHECK(text_of(bench.directory.path() / "trials/0/log").starts_with("first\nline 0\n"));
}

TEST_CASE("a trial runs in a process of its own and reports") {
  Bench bench(program_of(obey));
  bench.launch(3, "plain");
  CHECK(bench.events.next<Started>().next_step == 0);
  for (int step = 0; step < 5; ++step) {
    const auto reported = bench.events.next<Reported>();
    CHECK(reported.trial == 3);
    CHECK(*find_metric(reported.report.metrics, "total") == step * (step + 1) / 2);
    CHECK(pid_in(reported) != ::getpid());
    bench.executor.perform(Continue{3, 0});
  }
  CHECK(bench.events.next<Finished>().trial == 3);
  CHECK(bench.events.empty());
}

TEST_CASE("what ends a trial's process is told, and whose doing it was") {
  Bench bench(program_of(obey));
  SECTION("segfault") {
    const auto cause = failure_of(bench, "segfault");
    CHECK(cause.source == FailureSource::user);
    CHECK_THAT(cause.text, ContainsSubstring("signal 11 (Segmentation fault)"));
  }
  SECTION("abort, with the last words of the log") {
    const auto cause = failure_of(bench, "abort");
    CHECK(cause.source == FailureSource::user);
    CHECK_THAT(cause.text, ContainsSubstring("signal 6"));
    CHECK_THAT(cause.text, ContainsSubstring("assertion of the test"));
  }
  SECTION("exit") {
    const auto cause = failure_of(bench, "exit");
    CHECK(cause.source == FailureSource::user);
    CHECK_THAT(cause.text, ContainsSubstring("exited with code 7"));
  }
  SECTION("SIGKILL from somewhere") {
    const auto cause = failure_of(bench, "kill");
    CHECK(cause.source == FailureSource::infrastructure);
    CHECK_THAT(cause.text, ContainsSubstring("signal 9"));
    CHECK_THAT(cause.text, ContainsSubstring("from outside; perhaps out of memory"));
    CHECK_THAT(cause.text, ContainsSubstring("; its log ends with: busy with the next step"));  // which is no reason
    CHECK_THAT(cause.text, !ContainsSubstring("the last line of its log"));
  }
  SECTION("an exception") {
    const auto cause = failure_of(bench, "throw");
    CHECK(cause.source == FailureSource::user);
    CHECK(cause.text == "no such data");
  }
  // Whatever it was, the next trial runs.
  bench.launch(0, "plain", 1);
  CHECK(bench.events.next<Started>().attempt == 1);
}

TEST_CASE("SIGKILL of a trial's process is told") {
  Bench bench(program_of(obey));
  bench.launch(0, "plain");
  const pid_t pid = pid_in(bench.events.next<Reported>());
  REQUIRE(::kill(pid, SIGKILL) == 0);
  CHECK(bench.events.next<Failed>().cause.source == FailureSource::infrastructure);
}

TEST_CASE("a hang is ended past the limit, and signs of life prevent that") {
  Bench bench(program_of(obey), {}, 0.25);
  SECTION("hang") {
    const auto cause = failure_of(bench, "hang");
    CHECK(cause.source == FailureSource::user);
    CHECK(cause.text == "hung: no report and no alive() for 0.25 s");
  }
  SECTION("alive") {
    bench.launch(0, "beating");
    bench.events.next<Reported>();
    bench.executor.perform(Continue{0, 0});
    CHECK(bench.events.next<Reported>().trial == 0);
  }
}

TEST_CASE("a memory limit ends the trial with a clear cause") {
  Bench bench(program_of(obey));
  auto launch = bench.make(0, "memory");
  launch.allocation.lead.resources.memory = std::uint64_t{64} << 20U;
  bench.executor.perform(launch);
  bench.events.next<Reported>();
  bench.executor.perform(Continue{0, 0});
  const auto cause = bench.events.next<Failed>().cause;
  CHECK(cause.source == FailureSource::user);
  CHECK_THAT(cause.text, ContainsSubstring("memory limit of 64 MiB exceeded"));
}

TEST_CASE("Stop ends a trial between steps, within a step, and one that does not listen") {
  SECTION("between steps") {
    Bench bench(program_of(obey));
    bench.launch(0, "plain");
    bench.events.next<Reported>();
    bench.executor.perform(Stop{0, 0, true});
    CHECK(bench.events.next<Checkpointed>().checkpoint.steps == 1);
    bench.events.next<Stopped>();
  }
  SECTION("within a step that looks at stop_requested()") {
    Bench bench(program_of(obey));
    bench.launch(0, "busy");
    bench.events.next<Reported>();
    bench.executor.perform(Continue{0, 0});
    bench.executor.perform(Stop{0, 0});
    bench.events.next<Stopped>();
  }
  SECTION("within a step that never ends") {
    ProcessOptions options;
    options.stop_grace = 0.1;
    Bench bench(program_of(obey), options);
    bench.launch(0, "hang");
    const pid_t pid = pid_in(bench.events.next<Reported>());
    bench.executor.perform(Continue{0, 0});
    bench.executor.perform(Stop{0, 0});
    bench.events.next<Stopped>();
    CHECK(::kill(pid, 0) != 0);
  }
}

TEST_CASE("a paused trial stays in its process and goes on there") {
  Bench bench(program_of(obey));
  bench.launch(0, "plain");
  const pid_t pid = pid_in(bench.events.next<Reported>());
  bench.executor.perform(Pause{0, 0, true});
  CHECK(bench.events.next<Checkpointed>().checkpoint.steps == 1);
  CHECK(bench.events.next<Paused>().parked);
  auto again = bench.make(0, "plain");
  SECTION("goes on") {
    again.parked = true;
    bench.executor.perform(again);
    const auto reported = bench.events.next<Reported>();
    CHECK(pid_in(reported) == pid);
    CHECK(*find_metric(reported.report.metrics, "total") == 1);
  }
  SECTION("its process dies meanwhile") {
    REQUIRE(::kill(pid, SIGKILL) == 0);
    again.parked = true;
    // Either the death or the launch comes first: both end as a failure.
    bench.executor.perform(again);
    CHECK(bench.events.next<Failed>().cause.source == FailureSource::infrastructure);
  }
  SECTION("it is dropped, and another one runs") {
    bench.executor.perform(Stop{0, 0});
    bench.launch(1, "plain");
    CHECK(bench.events.next<Reported>().trial == 1);
  }
}

TEST_CASE("beyond max_parked a paused trial is saved and ended") {
  ProcessOptions options;
  options.max_parked = 0;
  Bench bench(program_of(obey), options);
  bench.launch(0, "plain");
  const pid_t pid = pid_in(bench.events.next<Reported>());
  bench.executor.perform(Pause{0, 0, false});
  const auto checkpoint = bench.events.next<Checkpointed>().checkpoint;
  CHECK_FALSE(bench.events.next<Paused>().parked);
  CHECK(::kill(pid, 0) != 0);
  auto again = bench.make(0, "plain", 1);
  again.restore = {checkpoint};
  bench.executor.perform(again);
  CHECK(bench.events.next<Started>().next_step == 1);
  CHECK(*find_metric(bench.events.next<Reported>().report.metrics, "total") == 1);
}

TEST_CASE("after a kill a trial goes on from its newest sound checkpoint") {
  Bench bench(program_of(obey));
  bench.launch(0, "plain");
  bench.events.next<Reported>();
  bench.executor.perform(Continue{0, 0, true});
  const auto first = bench.events.find<Checkpointed>().checkpoint;  // while the next step runs, or after it
  bench.events.find<Reported>();
  bench.executor.perform(Continue{0, 0, true});
  const auto second = bench.events.find<Checkpointed>().checkpoint;
  const pid_t pid = pid_in(bench.events.find<Reported>());
  ::kill(pid, SIGKILL);
  bench.events.next<Failed>();
  const LocalCheckpointStore store(bench.directory.path());
  std::ofstream(store.folder(second) / "total") << "garbage";
  auto again = bench.make(0, "plain", 1);
  again.restore = {second, first};
  bench.executor.perform(again);
  CHECK(bench.events.next<CheckpointLost>().checkpoint == second);
  CHECK(bench.events.next<Started>().next_step == 1);
  CHECK(*find_metric(bench.events.next<Reported>().report.metrics, "total") == 1);
}

TEST_CASE("a trial sees its slot: cores, threads of libraries, devices, and a log of its own") {
  ProcessOptions options;
  options.gpus = 2;
  const auto cores = local::usable_cores();
  Bench bench(program_of([](Context&) -> Training {
                cpu_set_t set;
                CPU_ZERO(&set);
                ::sched_getaffinity(0, sizeof set, &set);
                std::printf("gpus=%s\n", std::getenv("CUDA_VISIBLE_DEVICES"));
                co_yield report("cores", CPU_COUNT(&set), "omp", std::atof(std::getenv("OMP_NUM_THREADS")));
              }),
              options);
  auto launch = bench.make(0, "");
  launch.allocation.lead.cpus = {0};
  launch.allocation.lead.gpus = {1};
  launch.allocation.lead.resources.cpus = 1;
  bench.executor.perform(launch);
  const auto reported = bench.events.next<Reported>();
  CHECK(*find_metric(reported.report.metrics, "cores") == 1);
  CHECK(*find_metric(reported.report.metrics, "omp") == 1);
  CHECK_FALSE(cores.empty());
  CHECK_THAT(text_of(bench.directory.path() / "trials/0/log"), ContainsSubstring("gpus=1\n"));
}

TEST_CASE("the workers of a trial share its cores, so that their communication has what one of them leaves") {
  const auto cores = static_cast<double>(local::usable_cores().size());
  Bench bench(program_of([](Context& context) -> Training {
    for (int step = 0; step < 2; ++step) {
      context.group().join();
      cpu_set_t set;
      CPU_ZERO(&set);
      ::sched_getaffinity(0, sizeof set, &set);
      co_yield report("cores", CPU_COUNT(&set), "omp", std::atof(std::getenv("OMP_NUM_THREADS")));
    }
  }));
  auto launch = bench.make(0, "");
  launch.group = true;
  launch.allocation.lead.cpus = {0};
  launch.allocation.lead.resources.cpus = 1;
  launch.allocation.others = {launch.allocation.lead};
  launch.allocation.others[0].cpus = {1};
  bench.executor.perform(launch);
  auto reported = bench.events.next<Reported>();
  CHECK(*find_metric(reported.report.metrics, "cores") == std::min(2.0, cores));
  CHECK(*find_metric(reported.report.metrics, "omp") == 1);
  // Of those that remain.
  launch.allocation.generation = 1;
  launch.allocation.others.clear();
  bench.executor.perform(Resize{0, 0, launch.allocation, {0}});
  bench.executor.perform(Continue{0, 0});
  reported = bench.events.next<Reported>();
  CHECK(*find_metric(reported.report.metrics, "cores") == 1);
}

TEST_CASE("reusable trials share processes, and 750 no-op trials a second are no effort") {
  struct Config {};
  const auto program = make_program<Config>([](const Point&) { return Config{}; },
                                            [](Config&) { return static_cast<double>(::getpid()); }, "value");
  REQUIRE(program->reusable());
  Bench bench(program);
  const auto begin = std::chrono::steady_clock::now();
  std::set<double> pids;
  constexpr int trials = 500;
  for (TrialId trial = 0; trial < trials; ++trial) {
    bench.launch(trial, "");
    pids.insert(bench.events.next<Reported>().report.metrics.front().second);
    bench.executor.perform(Continue{trial, 0});
    bench.events.next<Finished>();
  }
  WARN("no-op trials a second, one at a time: " << trials / seconds_since(begin));
  CHECK(pids.size() <= 2);
}

TEST_CASE("shutdown leaves no process behind, whatever trials do") {
  auto bench = std::make_unique<Bench>(program_of(obey));
  bench->launch(0, "hang");
  const pid_t pid = pid_in(bench->events.next<Reported>());
  bench->executor.perform(Continue{0, 0});
  bench.reset();  // the trial would never end by itself
  CHECK(::kill(pid, 0) != 0);
}

TEST_CASE("at shutdown a step under way ends before what another trial keeps is destroyed") {
  const TemporaryDirectory directory;
  const auto folder = directory.path();
  Bench bench(program_of([folder](Context& context) -> Training {
    struct Kept {
      std::filesystem::path folder;
      pid_t owner = ::getpid();
      ~Kept() {
        if (::getpid() != owner) return;
        pid_t other = 0;
        std::ifstream(folder / "runs") >> other;
        for (int i = 0; i < 300 && ::kill(other, 0) == 0; ++i) ::usleep(10000);
        std::ofstream(folder / "seen") << (::kill(other, 0) == 0 ? "runs" : "is gone");
      }
    };
    std::optional<Kept> kept;
    if (context.trial() == 0) kept.emplace(folder);
    co_yield report("pid", ::getpid());
    std::ofstream(folder / "runs") << ::getpid();
    for (;;) ::pause();
  }));
  bench.launch(0, "keeps");
  bench.events.next<Reported>();
  bench.launch(1, "runs");
  const pid_t pid = pid_in(bench.events.next<Reported>());
  bench.executor.perform(Continue{1, 0});
  for (int i = 0; i < 2000 && text_of(folder / "runs") != std::to_string(pid); ++i) ::usleep(10000);
  bench.executor.shutdown();
  CHECK(text_of(folder / "seen") == "is gone");
}
