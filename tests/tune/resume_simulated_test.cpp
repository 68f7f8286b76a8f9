// A driver of simulated workers that is killed at any record and resumed decides as if nothing had happened.
#include "history.hpp"
#include "support/number_checkpoint.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"
#include "support/thorough.hpp"

#include <hypertune/hypertune.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));

/// Its state after each step depends on all steps before, so that a wrong restoration shows in the metric.
ht::Training wander(Config config, ht::Context& context) {
  double state = config.x;
  ht::test::checkpoint_number(context, state);
  for (int step = context.next_step(); step < 9; ++step) {
    state = 0.7 * state + 0.1 * config.x * config.x + 0.01 * step;
    co_yield ht::report("value", state * state);
  }
}

/// The same without checkpoints: it is brought to where it was by its steps.
ht::Training wander_unsaved(Config config) {
  double state = config.x;
  for (int step = 0; step < 9; ++step) {
    state = 0.7 * state + 0.1 * config.x * config.x + 0.01 * step;
    co_yield ht::report("value", state * state);
  }
}

ht::SimulationOptions rough_weather() {
  ht::SimulationOptions options;
  options.pool = 3;
  options.step_seconds = [](const ht::Params& p, int step) { return 1.0 + std::abs(p.get<double>("x")) + 0.1 * step; };
  options.startup_seconds = 0.25;
  options.speed_spread = 0.3;
  options.straggle_probability = 0.1;
  options.straggle_factor = 4;
  options.failure_probability = 0.05;
  options.outages = {{.worker = 1, .at = 7, .until = 19}, {.worker = 0, .at = 11, .until = 0}};
  options.seed = 5;
  return options;
}

struct Case {
  std::string name;
  ht::AnySearcher search = ht::Random{};
  ht::AnyScheduler schedule = ht::Fifo{};
  ht::SimulationOptions machines = {.pool = 3};
  int samples = 8;
  int checkpoint_every = 0;
  ht::StopCondition stop = {};
  ht::Workers workers = {};
  std::function<int(const ht::RunningGroup&)> resize = {};
};

ht::Options options(const Case& c, const std::filesystem::path& output) {
  ht::Options o;
  o.name = "simulated";
  o.samples = c.samples;
  o.search = c.search;
  o.schedule = c.schedule;
  o.executor = ht::simulated(c.machines);
  o.max_retries = 2;
  o.stop = c.stop;
  o.workers = c.workers;
  o.resize = c.resize;
  o.checkpoint = {.every = c.checkpoint_every, .keep = 0};
  o.output = output;
  o.display = ht::Display::quiet;
  o.seed = 11;
  return o;
}

ht::Results run(const Case& c, const ht::Options& o) {
  return c.checkpoint_every > 0 || c.schedule.exploits() ? ht::tune(space, wander, o)
                                                         : ht::tune(space, wander_unsaved, o);
}

/// More machines, for trials of several workers, and as rough.
ht::SimulationOptions rough_weather_for_gangs() {
  auto options = rough_weather();
  options.pool = 8;
  options.failure_probability = 0.02;
  options.speedup = [](int workers) { return std::sqrt(workers); };
  options.outages = {{.worker = 1, .at = 3, .until = 9},
                     {.worker = 0, .at = 4, .until = 0},
                     {.worker = 5, .at = 4, .until = 8},
                     {.worker = 2, .at = 5.5, .until = 12}};
  return options;
}

/// Workers that need many steps to begin, so that a growth lasts, is changed once more, or meets a loss.
ht::SimulationOptions slow_start(ht::Seconds startup, int machines = 8) {
  auto options = rough_weather_for_gangs();
  options.pool = machines;
  options.startup_seconds = startup;
  options.outages = {{.worker = 3, .at = 2, .until = 6},
                     {.worker = 0, .at = 5, .until = 0},
                     {.worker = 6, .at = 9.5, .until = 14},
                     {.worker = 2, .at = 16, .until = 19}};
  std::erase_if(options.outages, [&](const ht::Outage& outage) { return outage.worker >= machines; });
  return options;
}
/// Machines that go one after the other, for a moment each: mostly before the workers there take part.
ht::SimulationOptions losses_of_newcomers() {
  auto options = slow_start(2.2, 9);
  options.failure_probability = 0.004;
  options.outages.clear();
  for (int i = 0; i < 24; ++i)
    options.outages.push_back({.worker = 8 - i % 7, .at = 2.0 + 1.1 * i, .until = 2.6 + 1.1 * i});
  return options;
}
/// Up and down, at reports and where others leave room.
int zigzag(const ht::RunningGroup& group) {
  constexpr std::array plan{1, 2, 4, 3, 6, 6, 2, 5, 4};
  return plan[static_cast<std::size_t>(group.steps) % plan.size()];
}

std::vector<Case> cases() {
  const ht::SimulationOptions calm{.pool = 3};
  const ht::SimulationOptions equal_steps{
      .pool = 4, .step_seconds = [](const ht::Params&, int) { return 1.0; }};  // many events at one time
  return {
      {.name = "fifo", .machines = calm, .samples = 4},
      {.name = "ASHA, stopping", .schedule = ht::Asha{.max_steps = 9}, .machines = equal_steps},
      {.name = "ASHA, promotion", .schedule = ht::Asha{.max_steps = 9, .promotion = true}, .machines = equal_steps},
      {.name = "HyperBand", .schedule = ht::HyperBand{.max_steps = 9}, .machines = equal_steps, .samples = 12},
      {.name = "ASHA, rough", .schedule = ht::Asha{.max_steps = 9}, .machines = rough_weather()},
      {.name = "promotion, rough",
       .schedule = ht::Asha{.max_steps = 9, .promotion = true},
       .machines = rough_weather()},
      {.name = "HyperBand, rough",
       .schedule = ht::HyperBand{.max_steps = 9},
       .machines = rough_weather(),
       .samples = 12},
      {.name = "ASHA, rough, saved",
       .schedule = ht::Asha{.max_steps = 9},
       .machines = rough_weather(),
       .checkpoint_every = 2},
      {.name = "promotion, rough, saved",
       .schedule = ht::Asha{.max_steps = 9, .promotion = true},
       .machines = rough_weather(),
       .checkpoint_every = 2},
      {.name = "PBT",
       .schedule = ht::Pbt{.perturbation_interval = 2, .max_steps = 9, .quantile_fraction = 0.5},
       .machines = equal_steps},
      {.name = "PBT, rough",
       .schedule = ht::Pbt{.perturbation_interval = 2, .max_steps = 9, .quantile_fraction = 0.5},
       .machines = rough_weather()},
      {.name = "PBT, rough, saved at odd times",
       .schedule = ht::Pbt{.perturbation_interval = 2,
                           .max_steps = 9,
                           .quantile_fraction = 0.5,
                           .exploit = ht::Pbt::Exploit::t_test,
                           .population_size = 5},
       .machines = rough_weather(),
       .checkpoint_every = 3},
      {.name = "PB2, rough",
       .schedule = ht::Pb2{.perturbation_interval = 2, .max_steps = 9, .quantile_fraction = 0.5, .population_size = 4},
       .machines = rough_weather()},
      {.name = "HyperSched, rough, saved",
       .schedule = ht::HyperSched{.deadline = 40, .reduction_factor = 2, .max_steps = 9},
       .machines = rough_weather(),
       .samples = 12,
       .checkpoint_every = 2},
      {.name = "successive halving, rough",
       .schedule = ht::SuccessiveHalving{.max_steps = 9, .trials = 4},
       .machines = rough_weather()},
      {.name = "a stop condition",
       .schedule = ht::Asha{.max_steps = 9, .promotion = true},
       .machines = equal_steps,
       .samples = 30,
       .stop = ht::until("value", 0.002)},
      {.name = "gangs", .machines = {.pool = 7}, .samples = 6, .workers = {3}},
      {.name = "gangs, rough",
       .schedule = ht::Asha{.max_steps = 9},
       .machines = rough_weather_for_gangs(),
       .workers = {.min = 3, .max = 3, .strategy = ht::Strategy::spread}},
      {.name = "elastic gangs, rough",
       .machines = rough_weather_for_gangs(),
       .samples = 5,
       .workers = {.min = 2, .max = 5}},
      {.name = "elastic gangs, promotion, rough, saved",
       .schedule = ht::Asha{.max_steps = 9, .promotion = true},
       .machines = rough_weather_for_gangs(),
       .checkpoint_every = 2,
       .workers = {.min = 1, .max = 4}},
      {.name = "a plan of workers that begin slowly, rough, saved",
       .machines = slow_start(2.5),
       .samples = 4,
       .checkpoint_every = 1,
       .workers = {.min = 1, .max = 6},
       .resize = zigzag},
      {.name = "a plan of workers that begin slowly, with little room, rough, saved",
       .machines = slow_start(2.5, 5),
       .samples = 6,
       .checkpoint_every = 1,
       .workers = {.min = 1, .max = 6},
       .resize = zigzag},
      {.name = "a plan of workers that are lost as they begin, saved",
       .machines = losses_of_newcomers(),
       .samples = 3,
       .checkpoint_every = 1,
       .workers = {.min = 1, .max = 4},
       .resize = zigzag},
      {.name = "a plan of workers that begin at once, rough, saved",
       .machines = slow_start(0),
       .samples = 4,
       .checkpoint_every = 1,
       .workers = {.min = 1, .max = 6},
       .resize = zigzag},
      {.name = "elastic gangs of workers that begin slowly, rough, saved",
       .machines = slow_start(1.3),
       .samples = 5,
       .checkpoint_every = 1,
       .workers = {.min = 1, .max = 8}},
      {.name = "a plan, promotion, slow, rough, saved",
       .schedule = ht::Asha{.max_steps = 9, .promotion = true},
       .machines = slow_start(1.7),
       .samples = 6,
       .checkpoint_every = 1,
       .workers = {.min = 1, .max = 6},
       .resize = zigzag},
      {.name = "a time limit", .machines = rough_weather(), .samples = 30, .stop = ht::within(20)},
  };
}

void check_resumed(const Case& c, const std::filesystem::path& whole, const std::vector<ht::Record>& records,
                   const std::vector<std::string>& expected, std::size_t count) {
  INFO(c.name << ", killed after record " << count << " of " << records.size());
  TemporaryDirectory directory(TemporaryDirectory::memory());
  const auto output = directory.path() / "run";
  support::cut(whole, records, count, output);
  auto o = options(c, output);
  o.resume = true;
  run(c, o);
  const auto history = support::decisions(support::records_of(output));
  for (std::size_t i = 0; i < std::min(expected.size(), history.size()); ++i) {
    INFO("decision " << i);
    REQUIRE(history[i] == expected[i]);
  }
  REQUIRE(history.size() == expected.size());
}

}  // namespace

TEST_CASE("a simulated experiment repeats itself to the bit", "[simulated]") {
  for (const auto& c : cases()) {
    INFO(c.name);
    TemporaryDirectory first(TemporaryDirectory::memory()), second(TemporaryDirectory::memory());
    run(c, options(c, first.path() / "run"));
    run(c, options(c, second.path() / "run"));
    const auto history = support::decisions(support::records_of(first.path() / "run"));
    CHECK(history == support::decisions(support::records_of(second.path() / "run")));
    CHECK(history.size() > 20);
  }
}

TEST_CASE("killed at each record of a small experiment, the driver goes on as if nothing had happened",
          "[simulated][thorough]") {
  const std::size_t distance = ht::test::thorough() ? 1 : 4;
  std::size_t first = 0;  // another one for each case, since their first records are alike
  for (const auto& c : cases()) {
    TemporaryDirectory directory(TemporaryDirectory::memory());
    const auto whole = directory.path() / "run";
    run(c, options(c, whole));
    const auto records = support::records_of(whole);
    const auto expected = support::decisions(records);
    for (std::size_t count = 1 + first++ % distance; count < records.size(); count += distance)
      check_resumed(c, whole, records, expected, count);
  }
}

TEST_CASE("killed at random records of a larger experiment, the driver goes on as if nothing had happened",
          "[simulated]") {
  std::mt19937_64 random(3);
  auto weather = rough_weather();
  weather.pool = 10;
  for (const ht::AnyScheduler& schedule :
       {ht::AnyScheduler(ht::Asha{.max_steps = 9}), ht::AnyScheduler(ht::Asha{.max_steps = 9, .promotion = true}),
        ht::AnyScheduler(ht::HyperBand{.max_steps = 9})}) {
    const Case c{.name = "large, " + schedule.name(), .schedule = schedule, .machines = weather, .samples = 200};
    TemporaryDirectory directory(TemporaryDirectory::memory());
    const auto whole = directory.path() / "run";
    run(c, options(c, whole));
    const auto records = support::records_of(whole);
    const auto expected = support::decisions(records);
    for (int i = 0; i < 12; ++i) check_resumed(c, whole, records, expected, 1 + random() % (records.size() - 1));
  }
}

TEST_CASE("any searcher goes with any scheduler, and on after a kill as if nothing had happened", "[simulated]") {
  const std::vector<ht::AnySearcher> searchers{ht::Random{},
                                               ht::Sobol{},
                                               ht::Tpe{},
                                               ht::CmaEs{},
                                               ht::Nsga2{},
                                               ht::DifferentialEvolution{},
                                               ht::Auto{},
                                               ht::Dehb{.max_steps = 9},
                                               ht::GaussianProcess{.startup_trials = 3}};
  const std::vector<ht::AnyScheduler> schedulers{
      ht::Fifo{},
      ht::Asha{.max_steps = 9},
      ht::Asha{.max_steps = 9, .promotion = true},
      ht::HyperBand{.max_steps = 9},
      ht::SuccessiveHalving{.max_steps = 9, .trials = 5},
      ht::MedianStopping{.grace_period = 2},
      ht::Percentile{.grace_period = 2},
      ht::Patience{.patience = 3},
      ht::LearningCurve{.max_steps = 9, .points = 4},
      ht::Race{},
      ht::MoAsha{.max_steps = 9},
      ht::Pbt{.perturbation_interval = 2, .max_steps = 9, .population_size = 4},
      ht::Pb2{.perturbation_interval = 2, .max_steps = 9, .population_size = 4},
      ht::HyperSched{.deadline = 40, .max_steps = 9}};
  std::mt19937_64 random(8);
  for (const auto& search : searchers)
    for (const auto& schedule : schedulers) {
      const Case c{.name = search.name() + " with " + schedule.name(),
                   .search = search,
                   .schedule = schedule,
                   .machines = rough_weather(),
                   .samples = 10};
      INFO(c.name);
      TemporaryDirectory directory(TemporaryDirectory::memory());
      const auto whole = directory.path() / "run";
      const auto results = run(c, options(c, whole));
      CHECK(results.trials().size() >= 4);
      for (const auto& trial : results.trials()) CHECK(ht::is_final(trial.state));
      const auto best = results.find_best();
      REQUIRE(best);
      CHECK(std::isfinite(best->best->value));
      const auto records = support::records_of(whole);
      check_resumed(c, whole, records, support::decisions(records), 1 + random() % (records.size() - 1));
    }
}
