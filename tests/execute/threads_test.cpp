#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/execute/threads.hpp>
#include <hypertune/trial/trainable.hpp>

#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace hypertune;

namespace {

struct Number {
  int trial;
};
std::shared_ptr<const Program> program(std::function<Training(int)> body) {
  return make_program<Number>([](const Point& point) { return Number{static_cast<int>(point[0])}; },
                              [body = std::move(body)](Number n, Context&) { return body(n.trial); }, "value");
}
Launch launch_of(TrialId trial, std::vector<int> cpus = {}) {
  Launch launch;
  launch.trial = trial;
  launch.attempt = 0;
  launch.point = {static_cast<double>(trial)};
  launch.allocation.lead.cpus = std::move(cpus);
  return launch;
}
void wait_until(ThreadExecutor& executor, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < end);
    executor.wait(executor.now() + 0.2);
  }
}
int cores_seen() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : -1;
}

std::atomic<bool> went_on{false}, met{false};
Training report_then_say_so() {
  co_yield report("value", 1.0);
  went_on = true;
}
Training wait_for_the_other() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!went_on && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  met = went_on.load();
  co_return;
}

constexpr int trials = 4, steps = 10;
std::atomic<int> strange{0}, gone{0};  // steps, and ends, in another thread than the first step; ends
struct OfThread {
  std::thread::id thread = std::this_thread::get_id();
  ~OfThread() {
    look();
    ++gone;
  }
  void look() const { strange += thread == std::this_thread::get_id() ? 0 : 1; }
};
Training look_at_thread() {
  const OfThread first;
  for (int step = 0; step < steps; ++step) {
    first.look();
    co_yield report("value", 1.0);
  }
  first.look();
}

std::atomic<bool> waiting{false}, dying{false}, closing{false}, thread_over{false};
// Relaxed: it orders nothing else for ThreadSanitizer.
void wait_for(const std::atomic<bool>& what) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!what.load(std::memory_order_relaxed) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
}
struct SaysThreadOver {
  ~SaysThreadOver() { thread_over = true; }
};
struct DiesSlowly {
  ~DiesSlowly() {
    dying.store(true, std::memory_order_relaxed);
    wait_for(thread_over);
  }
};
Training park_and_die_slowly() {
  const DiesSlowly held;
  thread_local const SaysThreadOver of_thread;
  (void)of_thread;
  co_yield report("value", 1.0);
}
Training wait_for_the_end(Context& context) {
  waiting = true;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!context.stop_requested() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  closing = true;
  co_return;
}

std::atomic<int> seen[3];
Training look_at_cores(int trial) {
  seen[trial] = cores_seen();
  co_return;
}

}  // namespace

TEST_CASE("a trial answered from another one's start does not wait for that one's first step") {
  for (int round = 0; round < 20; ++round) {
    went_on = met = false;
    TemporaryDirectory directory;
    std::atomic<int> reports{0}, ends{0};
    ThreadExecutor executor = threads(2);
    executor.start(
        {.program = program([](int trial) { return trial == 0 ? report_then_say_so() : wait_for_the_other(); }),
         .directory = directory.path(),
         .sink = [&](Event event) {
           const auto* started = std::get_if<Started>(&event);
           if (started != nullptr && started->trial == 1) executor.perform(Continue{0, 0, false});
           if (std::holds_alternative<Reported>(event)) ++reports;
           if (std::holds_alternative<Finished>(event)) ++ends;
           executor.notify();
         }});
    executor.perform(launch_of(0));
    wait_until(executor, [&] { return reports == 1; });  // and it waits for its answer
    executor.perform(launch_of(1));
    wait_until(executor, [&] { return ends == 2; });
    executor.shutdown();
    REQUIRE(met);
  }
}

// ThreadSanitizer sees it if both destroy it.
TEST_CASE("a parked trial that is stopped as the executor closes is destroyed by one thread") {
  waiting = dying = closing = thread_over = false;
  TemporaryDirectory directory;
  std::atomic<bool> stopped{false};
  ThreadExecutor executor = threads(2);
  executor.start({.program = make_program<Number>([](const Point& point) { return Number{static_cast<int>(point[0])}; },
                                                  [](Number n, Context& context) {
                                                    return n.trial == 0 ? park_and_die_slowly()
                                                                        : wait_for_the_end(context);
                                                  },
                                                  "value"),
                  .directory = directory.path(),
                  .sink = [&](Event event) {
                    if (std::holds_alternative<Reported>(event)) executor.perform(Pause{0, 0});
                    if (std::holds_alternative<Paused>(event)) {
                      executor.perform(Stop{0, 0});
                      wait_for(dying);  // in another thread
                      stopped = true;
                      executor.notify();
                      wait_for(closing);  // this thread goes on once the executor closes
                    }
                    executor.notify();
                  }});
  executor.perform(launch_of(0));
  executor.perform(launch_of(1));
  wait_until(executor, [&] { return stopped && waiting; });
  executor.shutdown();
  CHECK(dying);
  CHECK(closing);
  CHECK(thread_over);
}

TEST_CASE("a trial keeps its thread, whoever answers its reports") {
  const bool to_the_end = GENERATE(true, false);  // or ended while they wait for answers
  strange = gone = 0;
  TemporaryDirectory directory;
  std::atomic<int> reports{0}, ends{0};
  ThreadExecutor executor = threads(trials);
  executor.start({.program = program([](int) { return look_at_thread(); }),
                  .directory = directory.path(),
                  .sink = [&](Event event) {
                    if (std::holds_alternative<Reported>(event)) ++reports;
                    if (std::holds_alternative<Finished>(event)) ++ends;
                    executor.notify();
                  }});
  for (int trial = 0; trial < trials; ++trial) executor.perform(launch_of(trial));
  // All wait for their answers, which come in other orders than the reports.
  for (int step = 1; step <= (to_the_end ? steps : steps / 2); ++step) {
    wait_until(executor, [&] { return reports == trials * step; });
    for (int i = 0; i < trials; ++i) executor.perform(Continue{(i + step) % trials, 0, false});
  }
  if (to_the_end) wait_until(executor, [&] { return ends == trials; });
  executor.shutdown();
  CHECK(gone == trials);
  CHECK(strange == 0);
}

TEST_CASE("pinned trials run on their slot's cores, and leave nothing of it to the next on their thread") {
  const int all = cores_seen();
  if (all < 2) return;
  TemporaryDirectory directory;
  std::atomic<int> ends{0}, setups{0};
  ThreadExecutor executor = threads(ThreadOptions{.cpus = 2, .pin = true, .bind_slot = [&](const Slot&) { ++setups; }});
  executor.start({.program = program(&look_at_cores), .directory = directory.path(), .sink = [&](Event event) {
                    if (std::holds_alternative<Finished>(event)) ++ends;
                    executor.notify();
                  }});
  executor.perform(launch_of(0, {1}));
  wait_until(executor, [&] { return ends == 1; });
  executor.perform(launch_of(1));
  wait_until(executor, [&] { return ends == 2; });
  executor.perform(launch_of(2, {0, 1}));
  wait_until(executor, [&] { return ends == 3; });
  executor.shutdown();
  CHECK(seen[0] == 1);
  CHECK(seen[1] == all);
  CHECK(seen[2] == 2);
  CHECK(setups == 3);
}

TEST_CASE("a set-up that throws is that trial's failure") {
  TemporaryDirectory directory;
  std::atomic<int> failures{0};
  ThreadExecutor executor =
      threads(ThreadOptions{.cpus = 1, .bind_slot = [](const Slot&) { throw std::runtime_error("no such device"); }});
  executor.start({.program = program(&look_at_cores), .directory = directory.path(), .sink = [&](Event event) {
                    const auto* failed = std::get_if<Failed>(&event);
                    if (failed != nullptr && failed->cause.text == "no such device") ++failures;
                    executor.notify();
                  }});
  executor.perform(launch_of(0));
  wait_until(executor, [&] { return failures == 1; });
}
