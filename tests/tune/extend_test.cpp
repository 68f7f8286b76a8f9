// An experiment is never finished for good: more samples, a longer schedule, another space.
#include "history.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
  double y = 0;
};
const auto line = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));
const auto plane = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)),
                                     ht::dim("y", &Config::y, ht::uniform(-1.0, 1.0)));
const auto half_line = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0)));

ht::Options options(const TemporaryDirectory& directory) {
  ht::Options o;
  o.search = ht::Random{};
  o.name = "extended";
  o.samples = 12;
  o.output = directory.path() / "run";
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  o.checkpoint = {.every = 1, .keep = 1};
  return o;
}

std::atomic<int> steps_done{0};

ht::Training endless(Config config, ht::Context& context) {
  context.checkpoints([](ht::CheckpointWriter& out) { std::ofstream(out.file("nothing")) << 1; },
                      [](const ht::Checkpoint&) {});
  for (int step = context.next_step();; ++step) {
    ++steps_done;
    co_yield ht::report("value", config.x * config.x).at(step);
  }
}
/// Ends by itself after four steps, whatever the schedule.
ht::Training four_steps(Config config, ht::Context& context) {
  for (int step = context.next_step(); step < 4; ++step) {
    ++steps_done;
    co_yield ht::report("value", config.x * config.x);
  }
}

void each_step_once(const std::filesystem::path& directory) {
  std::map<std::pair<ht::TrialId, int>, int> seen;
  for (const auto& record : support::records_of(directory))
    if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) ++seen[{r->trial, r->step}];
  for (const auto& [key, times] : seen) CHECK(times == 1);
}

/// Remembers what it is taught.
struct Pupil {
  std::shared_ptr<std::set<ht::TrialId>> started = std::make_shared<std::set<ht::TrialId>>();
  std::shared_ptr<std::set<ht::TrialId>> ended = std::make_shared<std::set<ht::TrialId>>();
  ht::Random random{};
  void prepare(const ht::SearchSpace& s, const ht::SearchContext& g) { random.prepare(s, g); }
  ht::Suggestion suggest(const ht::Ask& ask) { return random.suggest(ask); }
  void observe(const ht::Observation& o) {
    if (o.kind == ht::Observation::Kind::started) started->insert(o.trial);
    if (o.kind == ht::Observation::Kind::ended) ended->insert(o.trial);
  }
};

}  // namespace

TEST_CASE("a finished experiment that is resumed as it was runs nothing") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.schedule = ht::Asha{.max_steps = 9};
  ht::tune(line, endless, o);
  const int before = steps_done;
  o.resume = true;
  CHECK(ht::tune(line, endless, o).size() == 12);
  CHECK(steps_done == before);
  each_step_once(o.output);
}

TEST_CASE("a longer schedule lets completed trials go on from their last checkpoint, and those alone") {
  for (const bool simulated : {false, true}) {
    TemporaryDirectory directory;
    auto o = options(directory);
    o.schedule = ht::Fifo{.max_steps = 5};
    if (simulated) o.executor = ht::simulated({.pool = 3});
    CHECK(ht::tune(line, endless, o).trial(3).steps == 5);
    steps_done = 0;
    o.resume = true;
    o.schedule = ht::Fifo{.max_steps = 8};
    const auto results = ht::tune(line, endless, o);
    CHECK(results.count(ht::TrialState::completed) == 12);
    for (const auto& trial : results.trials()) CHECK(trial.steps == 8);
    CHECK(steps_done == 12 * 3);  // from the checkpoint after five steps
    each_step_once(o.output);
    // A third session, as long: nothing is left to do. A fourth, shorter again: nothing either.
    steps_done = 0;
    ht::tune(line, endless, o);
    o.schedule = ht::Fifo{.max_steps = 5};
    CHECK(ht::tune(line, endless, o).count(ht::TrialState::completed) == 12);
    CHECK(steps_done == 0);
  }
}

TEST_CASE("a longer ASHA goes on with those that its new rungs let pass") {
  for (const bool promotion : {false, true}) {
    INFO("promotion " << promotion);
    TemporaryDirectory directory;
    auto o = options(directory);
    o.samples = 40;
    o.schedule = ht::Asha{.max_steps = 9, .promotion = promotion};
    const auto before = ht::tune(line, endless, o);
    o.resume = true;
    o.schedule = ht::Asha{.max_steps = 27, .promotion = promotion};
    const auto results = ht::tune(line, endless, o);
    int longest = 0;
    for (const auto& trial : results.trials()) {
      longest = std::max(longest, trial.steps);
      if (before.trial(trial.trial).state == ht::TrialState::stopped) CHECK(trial.steps <= 9);
    }
    CHECK(longest == 27);
    CHECK(results.count(ht::TrialState::paused) == 0);
    CHECK(results.count(ht::TrialState::running) == 0);
    each_step_once(o.output);
  }
}

TEST_CASE("trials that ended by themselves are not reopened by a longer schedule") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.schedule = ht::Fifo{.max_steps = 5};
  ht::tune(line, four_steps, o);
  steps_done = 0;
  o.resume = true;
  o.schedule = ht::Fifo{.max_steps = 50};
  CHECK(ht::tune(line, four_steps, o).count(ht::TrialState::completed) == 12);
  CHECK(steps_done == 0);
}

TEST_CASE("in a changed space the trials that fit teach the searcher") {
  TemporaryDirectory directory;
  auto o = options(directory);
  const auto f = [](const Config& c) { return c.x * c.x; };
  const auto first = ht::tune(line, f, o);
  std::size_t right = 0;
  for (const auto& trial : first.trials()) right += line.config(trial.point).x >= 0;
  o.resume = true;
  o.samples = 20;
  Pupil pupil;
  o.search = pupil;
  const auto results = ht::tune(half_line, f, o);
  CHECK(results.size() == 20);
  CHECK(pupil.ended->size() == right + 8);
  TemporaryDirectory second;
  auto q = options(second);
  ht::tune(line, f, q);
  q.resume = true;
  q.samples = 20;
  Pupil stranger;
  q.search = stranger;
  CHECK(ht::tune(plane, f, q).size() == 20);  // no earlier trial has a y
  CHECK(stranger.ended->size() == 8);
}

TEST_CASE("known results are recorded once, also by a driver that is resumed; they need the metric") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 1;
  o.known = {{.params = {{"x", 0.5}}, .metrics = {{"value", 0.25}}}};
  const auto f = [](const Config& c) { return c.x * c.x; };
  ht::tune(line, f, o);
  o.resume = true;
  CHECK(ht::tune(line, f, o).size() == 2);
  o.known.push_back({.params = {{"x", 0.1}}, .metrics = {{"other", 1.0}}});
  CHECK_THROWS_WITH(ht::tune(line, f, o), ContainsSubstring("lacks the metric"));
}

TEST_CASE("a time limit counts from the start of the experiment, sessions together") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 1000;
  o.schedule = ht::Fifo{.max_steps = 3};
  o.executor = ht::simulated({.pool = 1});
  o.stop = ht::within(30.5);
  CHECK(ht::tune(line, endless, o).count(ht::TrialState::completed) == 10);
  TemporaryDirectory real;
  auto r = options(real);
  r.stop = ht::within(3600);
  CHECK(ht::tune(line, [](const Config& c) { return c.x; }, r).count(ht::TrialState::completed) == 12);
}
