// Experiments on pods of the tests' Kubernetes, and what is true of their results whatever was done to the pods.
#pragma once

#include "k8s/support/test_kubernetes.hpp"

#include <atomic>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <variant>

namespace hypertune::inline v0::test {

inline KubernetesSetup workers_of(const TestKubernetes& kubernetes, int most = 2) {
  KubernetesSetup setup;
  setup.options = pods_of(kubernetes);
  setup.options.pool = {1, most};
  setup.options.heartbeat_timeout = 4;
  setup.remote.program = "learner";
  return setup;
}

inline Options small(const std::filesystem::path& output, AnyExecutor executor, int samples, int steps) {
  auto options = experiment(output, std::move(executor));
  options.resources.cpus = 0.1;
  options.ordered = false;
  options.samples = samples;
  options.stop = hypertune::steps(steps);
  return options;
}

/// A trial that saves only when it must, so that a step done twice or left out would show.
inline Options saves_when_told(const std::filesystem::path& output, AnyExecutor executor, int samples, int steps) {
  auto options = small(output, std::move(executor), samples, steps);
  options.checkpoint = {.every = 1000, .keep = 2};
  return options;
}

/// All was done, each step once, and nothing was laid against a trial.
inline void check_whole(const Results& results, int trials, int steps) {
  INFO(story(results));
  CHECK(results.size() == static_cast<std::size_t>(trials));
  for (const auto& trial : results.trials()) CHECK(trial.steps == steps);
  CHECK(results.failures(FailureSource::user) == 0);
  check_reports(results);
}

/// Each attempt began after the last step that had been reported: none was done again.
inline void check_none_again(const Results& results) {
  INFO(story(results));
  CHECK(results.failures(FailureSource::infrastructure) == 0);
  std::map<TrialId, int> reported;
  read_journal(results.directory(), [&](const Record& record) {
    if (const auto* e = std::get_if<record::TrialReported>(&record.what)) reported[e->trial] = e->step + 1;
    if (const auto* e = std::get_if<record::TrialStarted>(&record.what)) CHECK(e->next_step == reported[e->trial]);
  });
}

/// Waits for a condition; false: it did not come true in time, or the run has ended.
using Until = std::function<bool(const std::function<bool()>&)>;

/// Runs an experiment while `disturb`, on a thread of its own, does what it does. `patience`: seconds of each Until.
inline Results run_disturbed(Options options, const std::function<void(const Until&)>& disturb, double patience = 60) {
  std::atomic<bool> over = false;
  const std::jthread disturber([&] {
    try {
      disturb([&](const std::function<bool()>& holds) {
        bool held = false;
        eventually([&] { return over || (held = holds()); }, patience);
        return held;
      });
    } catch (const std::exception& error) { WARN("the disturber: " << error.what()); }
  });
  struct Over {  // also where the run throws; before the thread is waited for
    std::atomic<bool>& over;
    ~Over() { over = true; }
  } const at_end{over};
  return run(std::move(options));
}

}  // namespace hypertune::inline v0::test
