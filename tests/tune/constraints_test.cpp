// Bounds on metrics: what is best keeps them.
#include "support/standard_error.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/record/analysis.hpp>
#include <hypertune/show/detail/progress.hpp>

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
};
const auto line = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));

/// Notes what it is told of constraints.
struct Listener {
  struct Heard {
    std::size_t expected = 0;
    std::vector<std::vector<double>> reports, ends;
  };
  std::shared_ptr<Heard> heard = std::make_shared<Heard>();
  std::optional<ht::SearchSpace> space;
  void prepare(const ht::SearchSpace& s, const ht::SearchContext& goal) {
    space = s;
    heard->expected = goal.constraints;
  }
  ht::Suggestion suggest(const ht::Ask& ask) { return space->sample(ask.rng); }
  void observe(const ht::Observation& o) {
    auto& list = o.kind == ht::Observation::Kind::report ? heard->reports : heard->ends;
    if (o.kind != ht::Observation::Kind::started) list.emplace_back(o.constraints.begin(), o.constraints.end());
  }
};

ht::Options options(const TemporaryDirectory& directory) {
  ht::Options o;
  o.search = ht::Random{};
  o.samples = 8;
  o.output = directory.path() / "study";
  o.display = ht::Display::quiet;
  o.constraints = {ht::at_most("latency_ms", 5.0), ht::at_least("recall", 0.9)};
  return o;
}

ht::Metrics told(double value, double latency, double recall) {
  return {{"value", value}, {"latency_ms", latency}, {"recall", recall}};
}

}  // namespace

TEST_CASE("the best trial keeps the constraints, and the others follow by how much they break them") {
  TemporaryDirectory directory;
  Listener listener;
  auto o = options(directory);
  {
    ht::Study study(line, listener, o);
    CHECK(listener.heard->expected == 2);
    study.tell(*study.ask(), told(0.1, 9, 0.95));  // 0: much too slow
    CHECK(study.results().best().trial == 0);      // the best there is
    study.tell(*study.ask(), told(0.2, 6, 0.95));  // 1: a little too slow
    CHECK(study.results().best().trial == 1);
    study.tell(*study.ask(), told(0.9, 5, 0.9));  // 2: on both bounds
    CHECK(study.results().best().trial == 2);
    study.tell(*study.ask(), told(0.5, 1, 1));              // 3
    study.tell(*study.ask(), told(0.01, 1, std::nan("")));  // 4: not known
    study.tell(*study.ask(), {{"value", 0.02}});            // 5: not known
    const auto results = study.results();
    CHECK(results.best().trial == 3);
    CHECK(results.ranked() == std::vector<ht::TrialId>{3, 2, 1, 0, 4, 5});
    CHECK(results.trial(3).feasible == true);
    CHECK(results.trial(1).feasible == false);
    CHECK_FALSE(results.trial(5).feasible);
    CHECK(results.table().find("feasible") != std::string::npos);
    CHECK(results.json(results.trial(1)).find("\"feasible\": false") != std::string::npos);
    CHECK(results.csv().find(",feasible,") != std::string::npos);
    const auto curve = ht::best_so_far(results);
    CHECK(std::isnan(curve[1]));
    CHECK(curve[2] == 0.9);
    CHECK(curve[5] == 0.5);
    CHECK(ht::pareto_front(results) == std::vector<ht::TrialId>{3});
  }
  const auto& ends = listener.heard->ends;
  REQUIRE(ends.size() == 6);
  CHECK(ends[0][0] == Approx(4));
  CHECK(ends[0][1] == Approx(-0.05));
  CHECK(ends[2] == std::vector<double>{0, 0});
  CHECK(std::isnan(ends[4][1]));
  CHECK(std::isnan(ends[5][0]));

  // From the folder, and resumed: the same. With other constraints: judged by those.
  CHECK(ht::Results::read(o.output).best().trial == 3);
  CHECK(ht::Results::read(o.output).experiment().constraints == o.constraints);
  o.resume = true;
  {
    ht::Study study(line, Listener{}, o);
    CHECK(study.results().best().trial == 3);
  }
  o.constraints = {ht::at_most("latency_ms", 6.0)};
  {
    ht::Study study(line, Listener{}, o);
    CHECK(study.results().best().trial == 4);
  }
  CHECK(ht::Results::read(o.output).best().trial == 4);
  o.constraints.clear();
  {
    ht::Study study(line, Listener{}, o);
    CHECK(study.results().best().trial == 4);  // 0.01
    study.tell(*study.ask(), told(0.001, 100, 0));
    CHECK(study.results().best().trial == 6);
  }
  CHECK(ht::Results::read(o.output).best().trial == 6);
  CHECK_FALSE(ht::Results::read(o.output).trial(3).feasible);
}

TEST_CASE("within a trial, the best report is one that keeps the constraints") {
  TemporaryDirectory directory;
  ht::Study study(line, Listener{}, options(directory));
  const auto first = *study.ask();
  study.report(first, told(0.1, 9, 1));
  study.report(first, told(0.4, 3, 1));
  study.report(first, told(0.3, 3, 1));
  study.tell(first, told(0.2, 7, 1));
  auto best = study.results().best();
  CHECK(best.best->value == 0.3);
  CHECK(best.best->step == 2);
  CHECK(best.feasible == true);

  const auto second = *study.ask();  // measured once, at the end: it holds for the whole trial
  study.report(second, {{"value", 0.05}});
  CHECK(study.results().best().trial == 0);
  study.tell(second, told(0.2, 2, 1));
  best = study.results().best();
  CHECK(best.trial == second.id);
  CHECK(best.best->value == 0.05);

  const auto third = *study.ask();  // … or at the start
  study.report(third, told(0.5, 2, 1));
  study.tell(third, {{"value", 0.01}});
  CHECK(study.results().best().best->value == 0.01);
}

TEST_CASE("the live display prefers what keeps the constraints") {
  ht::ProgressTracker tracker;
  const auto add = [&](ht::record::Any what) { tracker.add({.sequence = 1, .time = 0, .what = std::move(what)}); };
  ht::record::ExperimentStarted started;
  started.objectives = {ht::minimize("value")};
  started.constraints = {ht::at_most("latency_ms", 5)};
  add(started);
  for (const ht::TrialId trial : {0, 1, 2}) {
    add(ht::record::TrialCreated{trial, {0.0}, {{"x", 0.0}}, false});
    add(ht::record::TrialStarted{trial, 0, 0, "here", {}, {}});
  }
  add(ht::record::TrialReported{0, 0, 0, told(0.1, 9, 1)});
  CHECK(tracker.progress().best().front()->trial == 0);
  add(ht::record::TrialReported{1, 0, 0, told(0.5, 3, 1)});
  CHECK(tracker.progress().best().front()->trial == 1);
  add(ht::record::TrialReported{2, 0, 0, told(0.2, 6, 1)});
  CHECK(tracker.progress().best().front()->trial == 1);
}

TEST_CASE("checkpoints of what breaks a constraint are not the best ones") {
  TemporaryDirectory directory;
  ht::Options o;
  o.search = ht::Random{};
  o.samples = 40;
  o.seed = 3;
  o.metric = "value";
  o.output = directory.path() / "run";
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  o.constraints = {ht::at_least("x", 0.25)};
  const auto results = ht::tune(line, [](const Config& c) { return ht::Metrics{{"value", c.x * c.x}, {"x", c.x}}; }, o);
  const auto best = results.best();
  CHECK(best.feasible == true);
  CHECK(best.params.get<double>("x") >= 0.25);
  CHECK(best.params.get<double>("x") < 0.5);
}

TEST_CASE("bounds on metrics are stop conditions as well, and checked") {
  CHECK_THROWS_WITH(ht::at_most("latency_ms", std::nan("")), ContainsSubstring("latency_ms"));
  const ht::StopCondition both = ht::at_most("a", 1) | ht::at_least("b", 2);
  CHECK_FALSE(both.empty());
  CHECK_FALSE((ht::at_most("a", 1) & ht::at_least("b", 2)).empty());
  CHECK_FALSE((ht::at_most("a", 1) | ht::within(10)).empty());
  CHECK_FALSE(ht::per_trial(ht::at_most("a", 1)).empty());
  TemporaryDirectory directory;
  auto o = options(directory);
  o.constraints = {{"", ht::Mode::minimize, 1}};
  CHECK_THROWS_WITH((ht::Study<Config>(line, Listener{}, o)), ContainsSubstring("constraints"));
}

TEST_CASE("a bound on a metric that trials do not report is told once, and where all report it nothing is") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.executor = ht::threads({.cpus = 2});
  o.display = ht::Display::plain;
  o.constraints = {ht::at_most("latncy_ms", 5.0)};
  const auto trainer = [](const Config& c) { return ht::report("value", c.x * c.x, "latency_ms", 1.0); };
  const auto text = said([&] { ht::tune(line, trainer, o); });
  const std::string told = "has ended without a value of 'latncy_ms'";
  CHECK_THAT(text, ContainsSubstring(told));
  CHECK(text.find(told) == text.rfind(told));
  o.constraints = {ht::at_most("latency_ms", 0.5)};  // no trial meets it, but all have a value
  o.output = directory.path() / "reported";
  CHECK_THAT(said([&] { ht::tune(line, trainer, o); }), !ContainsSubstring("without a value"));
}
