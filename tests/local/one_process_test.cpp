// At no moment are there two processes of one trial: the trainer takes a lock, and tells if somebody holds it.
#include "local_support.hpp"

#include <hypertune/checkpoint/detail/posix_files.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/process/process_tree.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

// It keeps the lock until its process is gone, and needs a while to leave when it is asked to.
std::string trainer(bool heeds) {
  return std::string(R"(import fcntl, json, os, signal, sys, time
ballast = b"x" * (int(os.environ.get("BALLAST", "0")) << 20)  # a process with memory takes a while to be gone
lock = open(os.environ["HYPERTUNE_DIRECTORY"] + "/lock", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    open(os.environ["HYPERTUNE_DIRECTORY"] + "/overlap", "w").close()
    sys.exit("another process of this trial is there")
child = os.fork()  # the lock is its as well, and it hears nothing
if child == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True: signal.pause()
def leave(*_):
    time.sleep(0.3)
    os._exit(0)
signal.signal(signal.SIGTERM, )") +
         (heeds ? "leave" : "signal.SIG_IGN") + R"()
step = int(os.environ["HYPERTUNE_STEP"])
while True:
    print(json.dumps({"step": step, "pid": os.getpid()}), flush=True)
    step += 1
    time.sleep(0.01)
)";
}

struct AnyExperiment {
  AnyExperiment(AnyExecutor e, std::shared_ptr<const Program> program) : executor(std::move(e)) {
    executor.start({.program = std::move(program), .directory = directory.path(), .sink = [this](Event event) {
                      if (std::holds_alternative<Failed>(event) && held(0)) held_at_end = true;
                      events(std::move(event));
                    }});
    waiter = std::thread([this] {
      while (!over) executor.wait(executor.now() + 3600);
    });
  }
  ~AnyExperiment() {
    over = true;
    executor.notify();
    waiter.join();
    executor.shutdown();
  }
  void launch(TrialId trial, Attempt attempt) {
    Launch launch;
    launch.trial = trial;
    launch.attempt = attempt;
    launch.params = Params{{"mode", std::string("m")}};
    launch.allocation.lead.resources.cpus = 1;
    executor.perform(launch);
  }
  bool overlapped(TrialId trial) const {
    return std::filesystem::exists(directory.path() / "trials" / std::to_string(trial) / "overlap");
  }
  // Whether a process of the trial has its lock.
  bool held(TrialId trial) const {
    const auto file = directory.path() / "trials" / std::to_string(trial) / "lock";
    const hypertune::detail::Descriptor lock(::open(file.c_str(), O_RDWR | O_CLOEXEC));
    return lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
  }
  std::atomic<bool> held_at_end{false};
  TemporaryDirectory directory;
  Events events;
  AnyExecutor executor;
  std::atomic<bool> over{false};
  std::thread waiter;
};

std::shared_ptr<const Program> program_of_trainer(bool heeds, int ballast = 0) {
  local::CommandOptions options;
  options.command = {"python3", "-c", "{mode}"};
  options.stop_grace = 0.8;
  // As a parameter, so that its braces are nobody's placeholders.
  options.command.back() = "import os; exec(os.environ['TRAINER'])";
  options.environment["TRAINER"] = trainer(heeds);
  options.environment["BALLAST"] = std::to_string(ballast);
  return std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode"}, std::move(options));
}

}  // namespace

TEST_CASE("an attempt begins when the command of a dropped one is gone") {
  const std::string kind = GENERATE("processes", "threads");
  const bool heeds = GENERATE(true, false);
  INFO(kind << (heeds ? ", it leaves in its time" : ", it has to be killed"));
  AnyExperiment bench(
      kind == "threads" ? AnyExecutor(threads(4)) : AnyExecutor(processes({.pool = 4, .stop_grace = 1})),
      program_of_trainer(heeds));
  bench.launch(0, 0);
  for (Attempt attempt = 0; attempt < 3; ++attempt) {
    bench.events.next<Reported>();
    bench.executor.perform(Pause{0, attempt});
    CHECK(bench.events.next<Paused>().parked);
    bench.executor.perform(Stop{0, attempt});
    bench.launch(0, attempt + 1);
    CHECK(bench.events.next<Started>().attempt == attempt + 1);
  }
  // One that waits for the last one to be gone is called off.
  bench.events.next<Reported>();
  bench.executor.perform(Pause{0, 3});
  bench.events.next<Paused>();
  bench.executor.perform(Stop{0, 3});
  bench.launch(0, 4);
  bench.executor.perform(Stop{0, 4});
  CHECK(bench.events.next<Stopped>().attempt == 4);
  CHECK_FALSE(bench.overlapped(0));
}

TEST_CASE("a trial whose worker process was killed is over when its command is gone, too") {
  AnyExperiment bench(processes({.pool = 2}), program_of_trainer(false, 128));
  for (Attempt attempt = 0; attempt < 5; ++attempt) {
    bench.launch(0, attempt);
    const auto reported = bench.events.next<Reported>();
    const auto command = static_cast<pid_t>(*find_metric(reported.report.metrics, "pid"));
    const pid_t worker = process::parent_of(command);
    REQUIRE(worker > 1);
    CHECK(bench.held(0));
    ::kill(worker, SIGKILL);
    CHECK_THAT(bench.events.next<Failed>().cause.text, ContainsSubstring("signal 9"));
  }
  CHECK_FALSE(bench.held_at_end);
  CHECK_FALSE(bench.overlapped(0));
}
