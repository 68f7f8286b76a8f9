// What the agents of the tests run, by the name that the driver says.
#pragma once

#include "support/executor_trials.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/command.hpp>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// Learns to some accuracy that its parameter bounds; a step takes a few milliseconds, so that hosts can be killed
/// within one. Its state is a sum over its steps: a step that is left out or done twice in a row shows.
struct Learner {
  struct Config {
    double x = 0;
  };
  static SearchSpace search_space() { return typed_space().search_space(); }
  static Space<Config> typed_space() { return hypertune::space<Config>(dim("x", &Config::x, uniform(0.0, 1.0))); }
  Learner(const Config& config, Context& context) : x(config.x), step_(context.next_step()) {}
  Report step() {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it trains
    sum += x * (step_ + 1);
    ++step_;
    return report("accuracy", x * (1 - std::exp(-0.1 * step_)), "sum", sum);
  }
  void save(CheckpointWriter& out) const {
    std::ofstream file(out.file("state"));
    file.precision(17);
    file << sum;
  }
  void restore(const Checkpoint& in) { std::ifstream(in.file("state")) >> sum; }
  double x = 0, sum = 0;
  int step_;
};

inline std::shared_ptr<const Program> learner_program() {
  const auto space = Learner::typed_space();
  return make_class_program<Learner::Config, Learner>([space](const Point& point) { return space.config(point); },
                                                      "accuracy");
}

struct ChattyTrainer : conformance::PlannedTrainer {
  ChattyTrainer(const Plan& plan, Context& context)
      : conformance::PlannedTrainer(plan, context), trial(context.trial()) {}
  std::optional<Report> step() {
    std::printf("a line of trial %d\n", static_cast<int>(trial));
    return conformance::PlannedTrainer::step();
  }
  TrialId trial;
};

/// From here on this process can start one more thread: the memory for a second one's stack is beyond its limit.
inline void allow_one_thread() {
  constexpr std::size_t stack = std::size_t{1} << 30U;
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0 || ::pthread_attr_setstacksize(&attributes, stack) != 0 ||
      ::pthread_setattr_default_np(&attributes) != 0)
    fail(Errc::io, "the size of stacks cannot be set");
  ::pthread_attr_destroy(&attributes);
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + stack + stack / 2;
  const rlimit limit{.rlim_cur = most, .rlim_max = most};
  if (::setrlimit(RLIMIT_AS, &limit) != 0) fail(Errc::io, "the memory cannot be limited");
}

/// "command SCRIPT NAME…": a shell script whose arguments are parameters of these names.
inline std::shared_ptr<const Program> command_program(const std::string& text) {
  std::istringstream words(text.substr(8));
  std::string script, name;
  words >> script;
  local::CommandOptions options;
  options.command = {"sh", script};
  options.stop_grace = 2;
  std::vector<std::string> names;
  while (words >> name) {
    options.command.push_back("{" + name + "}");
    names.push_back(name);
  }
  return std::make_shared<local::CommandProgram>(names, std::move(options));
}

/// A command that cannot run on host "a", or cannot go on there after its first step: what happens is `deed`, in sh.
inline std::shared_ptr<const Program> broken_on_a(const std::string& deed) {
  return std::make_shared<local::CommandProgram>(
      std::vector<std::string>{"x"},
      local::CommandOptions{.command = {"sh", "-c",
                                        "report() {{ printf '{{\"accuracy\": %s}}\\n' \"$1\"; }}\n"
                                        "case $HYPERTUNE_DIRECTORY in */a/*) " +
                                            deed + ";; esac\nreport 0.5; report 0.75"}});
}

inline std::shared_ptr<const Program> program_named(const std::string& name) {
  if (name == "coroutine") return planned_program(Form::coroutine);
  if (name == "object") return planned_program(Form::object);
  if (name == "reusable") return planned_program(Form::reusable);
  if (name == "chatty") return make_class_program<Plan, ChattyTrainer>(&Plan::of, "value");
  if (name == "learner") return learner_program();
  if (name == "one thread and no more") {
    allow_one_thread();
    return planned_program(Form::object);
  }
  if (name.starts_with("command ")) return command_program(name);
  if (name == "umask")
    return std::make_shared<local::CommandProgram>(
        std::vector<std::string>{"x"},
        local::CommandOptions{
            .command = {"sh", "-c", "printf '{{\"accuracy\": %d}}\\n' \"$(($(umask)))\"; touch made-by-trial"}});
  if (name == "cannot run on a") return broken_on_a("echo 'sh: ./train: Permission denied' >&2; exit 126");
  if (name == "disk full on a")
    return broken_on_a(
        "report 0.5; echo \"cannot write $HYPERTUNE_CHECKPOINT/x: No space left on device\" >&2; exit 1");
  fail(Errc::usage, "there is no test program '{}'", name);
}

}  // namespace hypertune::inline v0::test
