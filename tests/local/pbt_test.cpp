// Population based training where each trial is a process of its own, forked or an external command.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/local/processes.hpp>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>

namespace ht = hypertune;

namespace {

struct Config {
  int x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::integer(1, 1000)));
constexpr int steps = 12;

/// A step adds x * (step + 1): the sum tells by which configurations the steps were done.
struct Sum {
  Sum(const Config& config, ht::Context& context) : x(config.x), step_(context.next_step()) {}
  ht::Report step() {
    sum += x * ++step_;
    return ht::report("sum", sum);
  }
  void save(ht::CheckpointWriter& out) const { std::ofstream(out.file("sum")) << sum; }
  void restore(const ht::Checkpoint& in) { std::ifstream(in.file("sum")) >> sum; }
  int x, step_;
  long sum = 0;
};

ht::Options options(const std::filesystem::path& output, ht::AnyExecutor executor) {
  ht::Options o;
  o.name = "population";
  o.metric = "sum";
  o.samples = 7;
  o.max_retries = 2;
  o.executor = std::move(executor);
  o.schedule = ht::Pbt{.perturbation_interval = 3, .max_steps = steps, .quantile_fraction = 0.5};
  o.checkpoint = {.every = 0, .keep = 1};
  o.output = output;
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  o.seed = 2;
  return o;
}

void check(const ht::Results& results) {
  REQUIRE(results.size() == 7);
  std::size_t longest = 0;
  for (const auto& trial : results.trials()) {
    const auto schedule = results.schedule(trial.trial);
    longest = std::max(longest, schedule.size());
    std::int64_t sum = 0;
    std::size_t entry = 0;
    for (int step = 0; step < steps; ++step) {
      while (entry + 1 < schedule.size() && schedule[entry + 1].from_step <= step) ++entry;
      sum += schedule[entry].params.get<std::int64_t>("x") * (step + 1);
    }
    INFO("trial " << trial.trial);
    CHECK(trial.state == ht::TrialState::completed);
    CHECK(trial.steps == steps);
    CHECK(trial.metrics.front().second == static_cast<double>(sum));
  }
  CHECK(longest > 1);
}

}  // namespace

TEST_CASE("a population of processes takes over one another's checkpoints") {
  TemporaryDirectory directory;
  check(ht::tune<Sum>(space, options(directory.path() / "run", ht::processes({.pool = 3}))));
}

TEST_CASE("a population of external commands takes over one another's checkpoints") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  TemporaryDirectory directory;
  ht::local::CommandOptions command;
  command.command = {"/bin/sh", "-c", R"(
n=0; sum=0
if [ -n "$HYPERTUNE_RESTORE" ]; then read n sum < $HYPERTUNE_RESTORE/state; fi
while [ $n -lt 12 ]; do
  n=$((n+1)); sum=$((sum + {x} * n))
  mkdir $HYPERTUNE_CHECKPOINT/s$n; echo $n $sum > $HYPERTUNE_CHECKPOINT/s$n/state
  echo "{{\"step\": $((n-1)), \"sum\": $sum, \"checkpoint\": \"s$n\"}}"
done)"};
  const auto program = std::make_shared<ht::local::CommandProgram>(space.search_space(), command);
  const auto executor =
      kind == "threads" ? ht::AnyExecutor(ht::threads(3)) : ht::AnyExecutor(ht::processes({.pool = 3}));
  check(ht::tune(space.search_space(), program, options(directory.path() / "run", executor)));
}
