// Population based training from end to end: the toy of its paper, lineage, and checkpoints that must not vanish.
#include "history.hpp"
#include "support/pbt_toy.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace ht = hypertune;
using pbt_toy::Config;
using pbt_toy::Toy;

namespace {

const auto space = pbt_toy::space();

ht::Options options(const std::filesystem::path& output) {
  ht::Options o;
  o.search = ht::Random{};
  o.name = "pbt";
  o.metric = "q";
  o.mode = ht::Mode::maximize;
  o.samples = 2;
  o.schedule = ht::Pbt{.perturbation_interval = 4, .max_steps = 120, .quantile_fraction = 0.5};
  o.executor = ht::simulated({.pool = 2});
  o.checkpoint = {.every = 0, .keep = 1};
  o.output = output;
  o.display = ht::Display::quiet;
  o.seed = 3;
  return o;
}

std::vector<ht::record::TrialExploited> mutations(const std::filesystem::path& directory) {
  std::vector<ht::record::TrialExploited> found;
  for (const auto& record : support::records_of(directory))
    if (const auto* m = std::get_if<ht::record::TrialExploited>(&record.what)) found.push_back(*m);
  return found;
}

/// No checkpoint is dropped between the moment it is taken over and the taker's own next one, or its end.
void check_donors(const std::filesystem::path& directory) {
  std::map<ht::TrialId, ht::CheckpointInfo> needed;
  int mutated = 0;
  for (const auto& record : support::records_of(directory)) {
    if (const auto* m = std::get_if<ht::record::TrialExploited>(&record.what)) {
      needed[m->trial] = m->checkpoint;
      ++mutated;
    } else if (const auto* c = std::get_if<ht::record::TrialCheckpointed>(&record.what)) {
      needed.erase(c->trial);
    } else if (const auto* e = std::get_if<ht::record::TrialEnded>(&record.what)) {
      needed.erase(e->trial);
    } else if (const auto* d = std::get_if<ht::record::CheckpointDropped>(&record.what)) {
      CHECK(d->why == "retention");
      for (const auto& [trial, checkpoint] : needed) {
        INFO("trial " << trial << " needs " << checkpoint.name << " of trial " << checkpoint.trial);
        CHECK(checkpoint != d->checkpoint);
      }
    }
  }
  CHECK(mutated > 0);
}

}  // namespace

TEST_CASE("the toy of the PBT paper: two trials that learn from one another reach what neither can alone") {
  double pbt = 0, fixed = 0;
  constexpr int seeds = 10;
  for (int seed = 0; seed < seeds; ++seed) {
    TemporaryDirectory directory(TemporaryDirectory::memory());
    // The paper begins with h = (1, 0) and (0, 1), with which each can reach 0.39 at most.
    auto o = options(directory.path() / "pbt");
    o.seed = static_cast<std::uint64_t>(seed);
    o.schedule = ht::Pbt{.perturbation_interval = 4, .max_steps = 800, .quantile_fraction = 0.5};
    o.start_with = {{{"h0", 1.0}, {"h1", 0.0}}, {{"h0", 0.0}, {"h1", 1.0}}};
    pbt += ht::tune<Toy>(space, o).best().best->value / seeds;
    o.output = directory.path() / "fixed";
    o.schedule = ht::Fifo{.max_steps = 800};
    fixed += ht::tune<Toy>(space, o).best().best->value / seeds;
  }
  CHECK(fixed < 0.4);
  CHECK(pbt > 1.1);
}

TEST_CASE("with fewer slots than members a population is as good, and takes over what was saved after as many steps",
          "[simulated]") {
  const auto run = [](ht::AnyScheduler schedule, int slots, double& mean) {
    constexpr int seeds = 3;
    mean = 0;
    for (int seed = 0; seed < seeds; ++seed) {
      TemporaryDirectory directory(TemporaryDirectory::memory());
      auto o = options(directory.path() / "run");
      o.seed = static_cast<std::uint64_t>(seed);
      o.samples = 8;
      o.schedule = schedule;
      o.executor = ht::simulated({.pool = slots});
      mean += ht::tune<Toy>(space, o).best().best->value / seeds;
      std::map<ht::TrialId, int> steps;
      int mutated = 0;
      for (const auto& record : support::records_of(o.output)) {
        if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) steps[r->trial] = r->step + 1;
        if (const auto* m = std::get_if<ht::record::TrialExploited>(&record.what)) {
          CHECK(m->checkpoint.steps == steps.at(m->trial));
          CHECK(m->checkpoint.trial == m->donor);
          ++mutated;
        }
      }
      CHECK(mutated > 10);
      check_donors(o.output);
    }
  };
  for (const auto& schedule :
       {ht::AnyScheduler(ht::Pbt{.max_steps = 60}), ht::AnyScheduler(ht::Pbt{.max_steps = 60, .synchronous = true}),
        ht::AnyScheduler(ht::Pb2{.max_steps = 60}), ht::AnyScheduler(ht::Pb2{.max_steps = 60, .synchronous = true})}) {
    double one = 0, two = 0, all = 0, alone = 0;
    run(schedule, 1, one);
    run(schedule, 2, two);
    run(schedule, 8, all);
    for (int seed = 0; seed < 3; ++seed) {
      TemporaryDirectory directory(TemporaryDirectory::memory());
      auto o = options(directory.path() / "run");
      o.seed = static_cast<std::uint64_t>(seed);
      o.samples = 8;
      o.schedule = ht::Fifo{.max_steps = 60};
      alone += ht::tune<Toy>(space, o).best().best->value / 3;
    }
    INFO(schedule.name() << ": " << alone << " without, " << one << ", " << two << ", " << all);
    CHECK(one > alone);
    CHECK(two > alone);
    CHECK(std::abs(one - all) < 0.08);
    CHECK(std::abs(two - all) < 0.08);
  }
}

TEST_CASE("a trial's schedule is the line of configurations that led to its state, and can be trained by again") {
  TemporaryDirectory directory(TemporaryDirectory::memory());
  auto o = options(directory.path() / "run");
  o.samples = 6;
  o.executor = ht::simulated({.pool = 2});  // fewer slots than trials
  const auto results = ht::tune<Toy>(space, o);
  REQUIRE(results.size() == 6);
  CHECK(results.count(ht::TrialState::completed) == 6);
  CHECK(mutations(o.output).size() > 5);
  for (const auto& trial : results.trials()) {
    const auto schedule = results.schedule(trial.trial);
    INFO("trial " << trial.trial);
    REQUIRE(!schedule.empty());
    CHECK(schedule.front().from_step == 0);
    CHECK(schedule.back().params == trial.params);
    CHECK(schedule.back().trial == trial.trial);
    for (std::size_t i = 1; i < schedule.size(); ++i) CHECK(schedule[i].from_step > schedule[i - 1].from_step);
    // Read from the folder it is the same.
    CHECK(ht::Results::read(o.output).schedule(trial.trial) == schedule);

    // By hand, and by Replay.
    Toy toy{Config{}};
    std::size_t next = 0;
    double last = 0;
    for (int step = 0; step < 120; ++step) {
      if (next < schedule.size() && schedule[next].from_step == step)
        toy.config = space.config(space.search_space().point(schedule[next++].params));
      last = *ht::find_metric(toy.step().metrics, "q");
    }
    REQUIRE(trial.metrics.size() == 1);
    CHECK(trial.metrics.front().second == last);
    auto again = options(directory.path() / fmt::format("again-{}", trial.trial));
    const ht::Replay replay{.schedule = schedule, .max_steps = 120};
    again.search = replay;
    again.schedule = replay;
    again.samples = 1;
    again.executor = ht::threads(1);
    const auto replayed = ht::tune<Toy>(space, again);
    REQUIRE(replayed.size() == 1);
    CHECK(replayed.trial(0).metrics.front().second == last);
    CHECK(replayed.trial(0).params == trial.params);
    CHECK(replayed.schedule(0).size() == schedule.size());
  }
}

namespace {

/// Results that are told one record after the other, of an experiment that maximizes q and has two trials.
struct Told {
  TemporaryDirectory directory{TemporaryDirectory::memory()};
  ht::Results results{directory.path()};
  std::int64_t number = 0;
  const std::array<ht::Params, 3> params{ht::Params{{"h0", 0.1}, {"h1", 0.2}}, ht::Params{{"h0", 0.3}, {"h1", 0.4}},
                                         ht::Params{{"h0", 0.5}, {"h1", 0.6}}};

  Told() {
    ht::record::ExperimentStarted started;
    started.objectives = {ht::maximize("q")};
    add(started);
    add(ht::record::TrialCreated{0, {0.1, 0.2}, params[0], false});
    add(ht::record::TrialCreated{1, {0.3, 0.4}, params[1], false});
  }
  void add(ht::record::Any what) {
    results.add({.sequence = ++number, .time = static_cast<double>(number), .what = std::move(what)});
  }
};

}  // namespace

TEST_CASE("the schedule of the best is the line that led to its best report, not to what became of it") {
  // The best report of trial 0 is its first: it takes over a state of trial 1, which is worse by then in any case.
  Told told;
  auto& results = told.results;
  const auto add = [&](ht::record::Any what) { told.add(std::move(what)); };
  const auto& [first, second, third] = told.params;
  for (int step = 0; step < 4; ++step) {
    add(ht::record::TrialReported{0, 0, step, {{"q", 9.0 - step}}});
    add(ht::record::TrialReported{1, 0, step, {{"q", 1.0 + step}}});
  }
  add(ht::record::TrialExploited{
      0, 1, ht::CheckpointInfo{.trial = 1, .steps = 4, .name = "4", .bytes = 1, .digest = "d"}, {0.5, 0.6}, third});
  for (int step = 4; step < 6; ++step) add(ht::record::TrialReported{0, 1, step, {{"q", 2.0}}});
  const auto best = results.best();
  REQUIRE(best.trial == 0);
  CHECK(best.best->step == 0);
  CHECK(results.schedule(best) == std::vector<ht::ScheduleEntry>{{0, first, 0}});
  CHECK(results.schedule(0) == std::vector<ht::ScheduleEntry>{{0, second, 1}, {4, third, 0}});
  // A better one since then: the line of now, as far as it had come.
  add(ht::record::TrialReported{0, 1, 6, {{"q", 20.0}}});
  CHECK(results.schedule(results.best()) == results.schedule(0));
  add(ht::record::TrialExploited{
      0, 1, ht::CheckpointInfo{.trial = 1, .steps = 7, .name = "7", .bytes = 1, .digest = "d"}, {0.1, 0.2}, first});
  CHECK(results.schedule(results.best()) == std::vector<ht::ScheduleEntry>{{0, second, 1}, {4, third, 0}});
}

TEST_CASE(
    "whose checkpoint is taken over after it has taken one over itself gave the line that led to the checkpoint") {
  Told told;
  auto& results = told.results;
  const auto add = [&](ht::record::Any what) { told.add(std::move(what)); };
  const auto& [first, second, third] = told.params;
  add(ht::record::TrialCreated{2, {0.5, 0.6}, third, false});
  const auto saved = [](ht::TrialId trial, int steps) {
    return ht::CheckpointInfo{
        .trial = trial, .steps = steps, .name = "step-" + std::to_string(steps), .bytes = 1, .digest = "d"};
  };
  for (const ht::TrialId trial : {0, 1, 2}) {
    add(ht::record::TrialReported{trial, 0, 3, {{"q", 1.0 + static_cast<double>(trial)}}});
    add(ht::record::TrialCheckpointed{trial, saved(trial, 4)});
  }
  const ht::Params fourth{{"h0", 0.7}, {"h1", 0.8}}, fifth{{"h0", 0.8}, {"h1", 0.9}};
  add(ht::record::TrialExploited{1, 2, saved(2, 4), {0.7, 0.8}, fourth});
  add(ht::record::TrialExploited{0, 1, saved(1, 4), {0.8, 0.9}, fifth});  // what it had saved before
  CHECK(results.schedule(0) == std::vector<ht::ScheduleEntry>{{0, second, 1}, {4, fifth, 0}});
  CHECK(results.schedule(1) == std::vector<ht::ScheduleEntry>{{0, third, 2}, {4, fourth, 1}});
  // A trial that has saved nothing since gives what it took over, though it has one of its own of that name.
  add(ht::record::TrialExploited{0, 1, saved(2, 4), {0.1, 0.2}, first});
  CHECK(results.schedule(0) == std::vector<ht::ScheduleEntry>{{0, third, 2}, {4, first, 0}});
  // What it saves from then on is of its new line, and what is dropped is of none.
  add(ht::record::CheckpointDropped{1, saved(1, 4), "retention"});
  add(ht::record::TrialCheckpointed{1, saved(1, 8)});
  add(ht::record::TrialExploited{2, 1, saved(1, 8), {0.1, 0.2}, first});
  CHECK(results.schedule(2) == std::vector<ht::ScheduleEntry>{{0, third, 2}, {4, fourth, 1}, {8, first, 2}});
}

TEST_CASE("a donor's checkpoint never vanishes before it is not needed any more, however little is kept") {
  TemporaryDirectory directory(TemporaryDirectory::memory());
  int run = 0;
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}})
    for (const auto& executor : {ht::AnyExecutor(ht::simulated({.pool = 3, .failure_probability = 0.05, .seed = 4})),
                                 ht::AnyExecutor(ht::threads(3)), ht::AnyExecutor(ht::run_inline())}) {
      auto o = options(directory.path() / std::to_string(++run));
      o.samples = 9;
      o.max_retries = 100;
      o.executor = executor;
      o.schedule = ht::Pbt{.perturbation_interval = 2, .max_steps = 30, .quantile_fraction = 0.4};
      o.checkpoint = {.every = 3, .keep = 1, .max_bytes = bytes};
      const auto results = ht::tune<Toy>(space, o);
      INFO(executor.name() << ", " << bytes << " bytes");
      CHECK(results.count(ht::TrialState::completed) == 9);
      check_donors(o.output);
      for (const auto& trial : results.trials()) CHECK(trial.steps == 30);
    }
}

TEST_CASE("populations of one, of equals, of NaN and of trials that cannot save come to their end") {
  TemporaryDirectory directory(TemporaryDirectory::memory());
  auto o = options(directory.path() / "one");
  o.samples = 1;
  CHECK(ht::tune<Toy>(space, o).trial(0).steps == 120);
  CHECK(mutations(o.output).empty());

  const auto constant = [&](double value, const char* name) {
    auto own = options(directory.path() / name);
    own.samples = 7;
    own.schedule = ht::Pbt{.perturbation_interval = 2, .max_steps = 20};
    const auto results = ht::tune(
        space,
        [value](Config config, ht::Context& context) -> ht::Training {
          context.checkpoints([](ht::CheckpointWriter& out) { std::ofstream(out.file("x")) << 1; },
                              [](const ht::Checkpoint&) {});
          for (int step = context.next_step(); step < 20; ++step) {
            const double now = value == 0 && config.h0 < 0.5 ? std::nan("") : value;
            co_yield ht::report("q", now);
          }
        },
        own);
    CHECK(results.count(ht::TrialState::completed) == 7);
    return mutations(own.output);
  };
  for (const auto& m : constant(1.0, "equal")) CHECK(m.trial != m.donor);
  CHECK(constant(std::nan(""), "nan").empty());
  for (const auto& m : constant(0.0, "half")) CHECK(m.trial != m.donor);

  auto unsaved = options(directory.path() / "unsaved");
  unsaved.samples = 5;
  const auto results = ht::tune(
      space,
      [](Config config, ht::Context&) -> ht::Training {
        for (int step = 0; step < 12; ++step) co_yield ht::report("q", config.h0 * step);
      },
      unsaved);
  CHECK(results.count(ht::TrialState::completed) == 5);
  CHECK(mutations(unsaved.output).empty());
}

TEST_CASE("donors that fail, and trials that fail just after they took over, end well") {
  TemporaryDirectory directory(TemporaryDirectory::memory());
  struct Frail : Toy {
    using Toy::Toy;
    Frail(const Config& c, ht::Context& context) : Toy(c), first(context.attempt()), trial(context.trial()) {}
    ht::Report step() {
      if (++done == 1 && first > 0 && first % 2 == 1) throw std::runtime_error("just after the restoration");
      if (trial == 0 && done > 7) throw std::runtime_error("for good");
      return Toy::step();
    }
    ht::Attempt first = 0;
    ht::TrialId trial = 0;
    int done = 0;
  };
  auto o = options(directory.path() / "run");
  o.samples = 8;
  o.max_retries = 60;
  o.executor = ht::threads(3);
  o.schedule = ht::Pbt{.perturbation_interval = 2, .max_steps = 24, .quantile_fraction = 0.5};
  const auto results = ht::tune<Frail>(space, o);
  CHECK(results.count(ht::TrialState::completed) == 8);
  check_donors(o.output);
}

TEST_CASE("what pbt is told to change must be there, and its options must make sense") {
  const auto message = [](ht::Pbt pbt) {
    TemporaryDirectory directory(TemporaryDirectory::memory());
    try {
      auto o = options(directory.path() / "run");
      o.schedule = std::move(pbt);
      ht::tune<Toy>(space, o);
    } catch (const ht::Error& e) {
      CHECK(e.code() == ht::Errc::usage);
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK_THAT(message({.mutate = {"lr"}}), ContainsSubstring("'lr'"));
  CHECK_THAT(message({.perturbation_interval = 0}), ContainsSubstring("perturbation_interval is 0"));
  CHECK_THAT(message({.quantile_fraction = 0.7}), ContainsSubstring("quantile_fraction is 0.7"));
  CHECK_THAT(message({.perturbation_factor = 1}), ContainsSubstring("perturbation_factor is 1"));
  CHECK_THAT(message({.resample_probability = -1}), ContainsSubstring("resample_probability is -1"));
}
