// Recorded curves, played again: what is in the record is exact, and what is not is bounded.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/tune/what_if.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0)));

// Curves that cross: what begins well does not end best.
ht::Training learn(Config config, ht::Context& context) {
  for (int step = context.next_step(); step < 27; ++step)
    co_yield ht::report("error", 0.1 + std::abs(config.x - 0.7) + (1 + config.x) / (2.0 + step));
}

ht::SimulatedExecutor machines(int workers) {
  ht::SimulationOptions options;
  options.pool = workers;
  // What learn() takes to end after its last step is in no record of trials that were cut before.
  options.step_seconds = [](const ht::Params&, int done) { return done < 27 ? 2.0 : 0.0; };
  return ht::simulated(std::move(options));
}

ht::Results record(const std::filesystem::path& folder, ht::AnyScheduler schedule, int workers,
                   std::int64_t samples = 60) {
  return ht::tune(space, learn,
                  {.metric = "error",
                   .samples = samples,
                   .search = ht::Random{},
                   .schedule = std::move(schedule),
                   .executor = machines(workers),
                   .seed = 3,
                   .output = folder,
                   .display = ht::Display::quiet});
}

const ht::Asha asha{.grace_period = 1, .max_steps = 27, .reduction_factor = 3};

// What an experiment itself has found, as what_if() says it.
void require_same(const ht::PlayedAgain& played, const ht::RecordedCurves& curves) {
  CHECK(played.steps == curves.steps());
  CHECK(played.trials == curves.trials().size());
  CHECK(played.elapsed == Approx(curves.elapsed()));
  CHECK(played.busy == Approx(curves.busy()));
  REQUIRE(played.improvements.size() == curves.improvements().size());
  for (std::size_t i = 0; i < played.improvements.size(); ++i) {
    INFO("improvement " << i);
    CHECK(played.improvements[i].value == curves.improvements()[i].value);
    CHECK(played.improvements[i].trial == curves.improvements()[i].trial);
    CHECK(played.improvements[i].seconds == Approx(curves.improvements()[i].seconds));
  }
}

double best(const ht::PlayedAgain& played) { return played.improvements.back().value; }

}  // namespace

TEST_CASE("whole curves played again under a scheduler are what it would have made of them") {
  const TemporaryDirectory folder;
  record(folder.path() / "fifo", ht::Fifo{}, 4);
  const auto curves = ht::RecordedCurves::read(folder.path() / "fifo");
  for (const int workers : {1, 4, 16}) {
    for (const int reduction : {2, 3, 4}) {
      ht::Asha schedule = asha;
      schedule.reduction_factor = reduction;
      INFO("reduction factor " << reduction << ", workers " << workers);
      const auto name = fmt::format("asha-{}-{}", reduction, workers);
      record(folder.path() / name, schedule, workers);
      const auto result = ht::what_if(curves, {.schedule = schedule, .workers = workers});
      CHECK(result.exact());
      CHECK(result.workers == workers);
      require_same(result.usual, ht::RecordedCurves::read(folder.path() / name));
    }
  }
}

TEST_CASE("an experiment played again as it was is what it was") {
  const TemporaryDirectory folder;
  record(folder.path() / "asha", asha, 5);
  const auto curves = ht::RecordedCurves::read(folder.path() / "asha");
  CHECK(curves.max_at_once() == 5);
  CHECK(curves.start().scheduler == "asha");
  CHECK(curves.start().scheduler_options.starts_with("grace_period: 1, max_steps: 27, reduction_factor: 3"));
  const auto result = ht::what_if(curves, {.schedule = asha});
  CHECK(result.workers == 5);
  CHECK(result.exact());
  require_same(result.stands_still, curves);
}

TEST_CASE("what curves that were cut would have come to is said and bounded") {
  const TemporaryDirectory folder;
  record(folder.path() / "asha", asha, 4, 200);
  record(folder.path() / "fifo", ht::Fifo{}, 4, 200);
  const auto curves = ht::RecordedCurves::read(folder.path() / "asha");
  const auto truth = ht::RecordedCurves::read(folder.path() / "fifo");
  const auto result = ht::what_if(curves, {.schedule = ht::Fifo{}});
  CHECK_FALSE(result.exact());
  for (const auto* played : {&result.stands_still, &result.usual, &result.best}) {
    CHECK(played->steps == truth.steps());
    CHECK(played->unknown_steps == truth.steps() - curves.steps());
    CHECK(played->unknown_trials > 100);
    CHECK(played->elapsed == Approx(truth.elapsed()));
  }
  CHECK(best(result.stands_still) == curves.improvements().back().value);
  CHECK(best(result.stands_still) >= best(result.usual));
  CHECK(best(result.usual) >= best(result.best));
  const double true_best = truth.improvements().back().value;
  CHECK(best(result.stands_still) >= true_best);
  CHECK(best(result.best) <= true_best);
}

TEST_CASE("steps that nobody has reached are said to be without comparison") {
  const TemporaryDirectory folder;
  record(folder.path() / "asha", ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3}, 4, 30);
  const auto curves = ht::RecordedCurves::read(folder.path() / "asha");
  const auto result = ht::what_if(curves, {.schedule = ht::Fifo{.max_steps = 12}});
  CHECK(result.usual.steps == 30 * 12);
  CHECK(result.usual.uncompared_steps >= 30 * 3);
  CHECK(result.usual.uncompared_steps <= result.usual.unknown_steps);
}

TEST_CASE("more workers are done sooner, and another order is another one, the same each time") {
  const TemporaryDirectory folder;
  record(folder.path() / "fifo", ht::Fifo{}, 2);
  const auto curves = ht::RecordedCurves::read(folder.path() / "fifo");
  const auto few = ht::what_if(curves, {.schedule = asha, .workers = 2});
  const auto many = ht::what_if(curves, {.schedule = asha, .workers = 20});
  CHECK(many.usual.elapsed < few.usual.elapsed / 2);

  const ht::WhatIf shuffled{.schedule = asha, .workers = 2, .order = ht::TrialOrder::shuffled, .seed = 7};
  const auto once = ht::what_if(curves, shuffled), again = ht::what_if(curves, shuffled);
  CHECK(once.usual.improvements.front().trial == again.usual.improvements.front().trial);
  CHECK(once.usual.steps == again.usual.steps);
  CHECK(once.usual.improvements.front().trial != few.usual.improvements.front().trial);
}

TEST_CASE("bounds on metrics, and programs that end by themselves, are played again, too") {
  const TemporaryDirectory folder;
  const auto train = [](Config config, ht::Context& context) -> ht::Training {
    for (int step = context.next_step(); step < (config.x < 0.3 ? 4 : 9); ++step)
      co_yield ht::report("score", config.x + 0.1 * step, "latency", 10 * config.x);
  };
  const auto found = ht::tune(space, train,
                              {.metric = "score",
                               .mode = ht::Mode::maximize,
                               .constraints = {ht::at_most("latency", 6)},
                               .samples = 40,
                               .search = ht::Random{},
                               .executor = machines(3),
                               .seed = 1,
                               .output = folder.path() / "bounded",
                               .display = ht::Display::quiet});
  const auto curves = ht::RecordedCurves::read(folder.path() / "bounded");
  CHECK(curves.improvements().back().trial == found.best().trial);
  const auto result = ht::what_if(curves, {.schedule = ht::Fifo{}});
  CHECK(result.exact());
  require_same(result.usual, curves);
}

TEST_CASE("trials that have failed fail where they did, once") {
  const TemporaryDirectory folder;
  const auto train = [](Config config, ht::Context& context) -> ht::Training {
    for (int step = context.next_step(); step < 9; ++step) {
      if (config.x > 0.6 && step == 3) throw std::runtime_error("diverged");
      co_yield ht::report("score", config.x + 0.1 * step);
    }
  };
  const auto found = ht::tune(space, train,
                              {.metric = "score",
                               .mode = ht::Mode::maximize,
                               .samples = 40,
                               .search = ht::Random{},
                               .executor = machines(3),
                               .seed = 1,
                               .output = folder.path() / "failing",
                               .display = ht::Display::quiet});
  REQUIRE(found.count(ht::TrialState::failed) > 5);
  const auto curves = ht::RecordedCurves::read(folder.path() / "failing");
  const auto result = ht::what_if(curves, {.schedule = ht::Fifo{}});
  CHECK(result.exact());
  CHECK(result.usual.steps == curves.steps());
  CHECK(result.usual.busy == Approx(curves.busy()));
  // They are never the best, whatever they had reported.
  CHECK(curves.improvements().back().value == found.best().best->value);
  CHECK(curves.improvements().back().trial == found.best().trial);
  CHECK(best(result.usual) == found.best().best->value);
}

TEST_CASE("what cannot be played again is refused") {
  const TemporaryDirectory folder;
  record(folder.path() / "fifo", ht::Fifo{}, 2, 8);
  const auto curves = ht::RecordedCurves::read(folder.path() / "fifo");
  CHECK_THROWS_WITH(ht::what_if(curves, {.schedule = ht::Pbt{.perturbation_interval = 3}}),
                    Catch::Contains("'pbt'") && Catch::Contains("never recorded"));
  CHECK_THROWS_WITH(ht::what_if(curves, {.schedule = asha, .workers = -1}), Catch::Contains("workers is -1"));
  CHECK_THROWS_WITH(ht::RecordedCurves::read(folder.path() / "none"), Catch::Contains("there is no experiment"));
  std::stop_source stopped;
  stopped.request_stop();
  CHECK_THROWS_WITH(ht::what_if(curves, {.schedule = asha, .stop = stopped.get_token()}), Catch::Contains("stopped"));
}
