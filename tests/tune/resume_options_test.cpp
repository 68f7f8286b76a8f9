// What a resumption makes of each option that has changed since: docs/resume.md has a row for each.
#include "history.hpp"
#include "support/standard_error.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
};
const auto line = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0)));

ht::Training endless(Config config, ht::Context& context) {
  context.checkpoints([](ht::CheckpointWriter& out) { std::ofstream(out.file("nothing")) << 1; },
                      [](const ht::Checkpoint&) {});
  for (int step = context.next_step();; ++step) co_yield ht::report("loss", config.x).at(step);
}

std::atomic<bool> broken{false};
ht::Training brittle(Config config, ht::Context& context) {
  for (int step = context.next_step(); step < 3; ++step) {
    if (broken && config.x > 0.5 && step == 1) throw std::runtime_error("out of luck");
    co_yield ht::report("loss", config.x).at(step);
  }
}

ht::Options options(const TemporaryDirectory& directory) {
  ht::Options o;
  o.metric = "loss";
  o.search = ht::Random{};
  o.schedule = ht::Fifo{.max_steps = 3};
  o.samples = 6;
  o.seed = 5;
  o.concurrency = 1;
  o.output = directory.path() / "run";
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  o.checkpoint = {.every = 1, .keep = 1};
  return o;
}

double x_of(const ht::TrialResult& trial) { return trial.params.get<double>("x"); }
ht::Params at(double x) {
  ht::Params params;
  params.set("x", x);
  return params;
}

}  // namespace

TEST_CASE("resume: what is not given is taken from the record, what is given is meant") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.name = "experiment of before";
  const auto before = ht::tune(line, endless, o);
  REQUIRE(before.size() == 6);

  ht::Options few;
  few.schedule = ht::Fifo{.max_steps = 3};
  few.display = ht::Display::quiet;
  few.handle_signals = false;
  SECTION("nothing given") {
    const auto after = ht::resume(o.output, line, endless, few);
    CHECK(after.size() == 6);
    CHECK(after.experiment().objectives == before.experiment().objectives);
    const auto started = ht::JournalReader(o.output).last_start();
    CHECK(started->name == "experiment of before");
    CHECK(started->seed == 5);
    CHECK(started->samples == 6);
  }
  SECTION("by tune(), too") {
    few.output = o.output;
    few.resume = true;
    CHECK(ht::tune(line, endless, few).experiment().objectives == before.experiment().objectives);
    CHECK(ht::JournalReader(o.output).last_start()->seed == 5);
  }
  SECTION("a name that is the default") {
    few.name = "experiment";
    ht::resume(o.output, line, endless, few);
    CHECK(ht::JournalReader(o.output).last_start()->name == "experiment");
  }
  SECTION("a seed that is the default: a line") {
    few.seed = 0;
    CHECK_THAT(said([&] { ht::resume(o.output, line, endless, few); }),
               ContainsSubstring("the seed was 5 and is 0 now"));
    // The time after, it has been so before.
    CHECK(said([&] { ht::resume(o.output, line, endless, few); }).empty());
  }
  SECTION("a metric that is the default: an error that names both") {
    few.metric = "value";
    CHECK_THROWS_WITH(ht::resume(o.output, line, endless, few), ContainsSubstring("tunes loss (min), not value (min)"));
  }
  SECTION("another mode alone: an error") {
    few.mode = ht::Mode::maximize;
    CHECK_THROWS_WITH(ht::resume(o.output, line, endless, few), ContainsSubstring("tunes loss (min), not loss (max)"));
  }
  SECTION("the metric alone has the mode of before") {
    few.metric = "loss";
    CHECK(ht::resume(o.output, line, endless, few).size() == 6);
  }
  SECTION("other objectives: an error") {
    few.objectives = {ht::minimize("loss"), ht::maximize("gain")};
    CHECK_THROWS_WITH(ht::resume(o.output, line, endless, few),
                      ContainsSubstring("an experiment keeps its objectives"));
  }
  SECTION("more samples") {
    few.samples = 8;
    CHECK(ht::resume(o.output, line, endless, few).size() == 8);
  }
  SECTION("fewer samples than there are trials: a line") {
    few.samples = 4;
    CHECK_THAT(said([&] { CHECK(ht::resume(o.output, line, endless, few).size() == 6); }),
               ContainsSubstring("there are 6 trials, more than the 4 samples asked for now"));
  }
  SECTION("constraints: taken from the record, or those that are given judge all results") {
    few.constraints = {ht::at_least("loss", x_of(before.trial(before.ranked()[2])))};
    const auto bounded = ht::resume(o.output, line, endless, few);
    CHECK(bounded.best().trial == before.ranked()[2]);
    few.constraints.clear();
    CHECK(ht::resume(o.output, line, endless, few).best().trial == before.ranked()[2]);
  }
}

TEST_CASE("resume: configurations to try first that are new are tried, those of before not again") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.start_with = {at(0.25), at(0.25), at(0.75)};
  ht::tune(line, endless, o);
  o.resume = true;
  CHECK(said([&] { CHECK(ht::tune(line, endless, o).size() == 6); }).empty());
  SECTION("within the samples") {
    o.start_with = {at(0.5), at(0.25), at(0.75), at(0.25)};
    o.samples = 8;
    CHECK(said([&] {
            const auto results = ht::tune(line, endless, o);
            REQUIRE(results.size() == 8);
            CHECK(x_of(results.trial(6)) == 0.5);
            CHECK(x_of(results.trial(7)) != 0.25);
          }).empty());
  }
  SECTION("beyond them: a line, and so many more") {
    o.start_with.insert(o.start_with.end(), {at(0.5), at(0.125)});
    CHECK_THAT(said([&] {
                 const auto results = ht::tune(line, endless, o);
                 REQUIRE(results.size() == 8);
                 CHECK(x_of(results.trial(6)) == 0.5);
                 CHECK(x_of(results.trial(7)) == 0.125);
                 CHECK(results.trial(7).state == ht::TrialState::completed);
               }),
               ContainsSubstring("6 samples are 2 too few for the configurations of start_with: 8 are made"));
    CHECK(ht::tune(line, endless, o).size() == 8);
  }
}

TEST_CASE("configurations to try first are tried though there are more of them than samples") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 1;
  o.start_with = {at(0.25), at(0.75)};
  CHECK_THAT(said([&] { CHECK(ht::tune(line, endless, o).size() == 2); }), ContainsSubstring("1 too few"));
}

TEST_CASE("resume: known results are added wherever they stand in the list") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  const auto known = [](double x, double loss, int steps = 1) {
    return ht::KnownResult{.params = at(x), .metrics = {{"loss", loss}}, .steps = steps};
  };
  o.known = {known(0.1, 3), known(0.2, 4, 7)};
  ht::tune(line, endless, o);
  o.resume = true;
  const auto of_known = [](const ht::Results& results) {
    std::multiset<double> losses;
    for (const auto& trial : results.trials())
      if (trial.known) losses.insert(*ht::find_metric(trial.metrics, "loss"));
    return losses;
  };
  SECTION("one put first") {
    o.known.insert(o.known.begin(), known(0.3, 5));
    CHECK(said([&] { CHECK(of_known(ht::tune(line, endless, o)) == std::multiset<double>{3, 4, 5}); }).empty());
    CHECK(ht::tune(line, endless, o).size() == 9);
  }
  SECTION("the same configuration with another result, and one left out: a line") {
    o.known = {known(0.1, -3)};
    CHECK_THAT(said([&] { CHECK(of_known(ht::tune(line, endless, o)) == std::multiset<double>{-3, 3, 4}); }),
               ContainsSubstring("2 known results of before are not in the list any more: what is recorded stays"));
  }
  SECTION("not given again") {
    o.known.clear();
    CHECK(said([&] { CHECK(of_known(ht::tune(line, endless, o)) == std::multiset<double>{3, 4}); }).empty());
  }
}

TEST_CASE("resume: a stop condition that is loosened lets trials go on that it had ended") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.schedule = ht::Fifo{};
  SECTION("steps of each trial") {
    o.stop = ht::steps(3);
    CHECK(ht::tune(line, endless, o).count(ht::TrialState::stopped) == 6);
    o.resume = true;
    CHECK(ht::tune(line, endless, o).experiment().reports == 6 * 3);  // as it was: nothing
    o.stop = ht::steps(5);
    const auto results = ht::tune(line, endless, o);
    for (const auto& trial : results.trials()) {
      CHECK(trial.steps == 5);
      CHECK(trial.state == ht::TrialState::stopped);
    }
    CHECK(results.experiment().reports == 6 * 5);
    o.stop = ht::steps(3);
    CHECK(ht::tune(line, endless, o).experiment().reports == 6 * 5);
  }
  SECTION("steps of all together") {
    o.stop = ht::total_steps(7);
    o.samples = 1;
    CHECK(ht::tune(line, endless, o).trial(0).steps == 7);
    o.resume = true;
    o.stop = ht::total_steps(9);
    CHECK(ht::tune(line, endless, o).trial(0).steps == 9);
  }
  SECTION("none any more: the trial goes on to the end of its schedule") {
    o.stop = ht::steps(2);
    ht::tune(line, endless, o);
    o.resume = true;
    o.stop = {};
    o.schedule = ht::Fifo{.max_steps = 4};
    CHECK(ht::tune(line, endless, o).count(ht::TrialState::completed) == 6);
  }
}

TEST_CASE("resume: trials that another schedule had paused go on as the present one says") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 9;
  o.schedule = ht::Asha{.max_steps = 9, .promotion = true};
  o.stop = ht::total_steps(9);  // all at their first rung or waiting to begin
  const auto before = ht::tune(line, endless, o);
  o.stop = {};
  o.resume = true;
  o.schedule = ht::Fifo{.max_steps = 4};
  const auto results = ht::tune(line, endless, o);
  REQUIRE(results.size() == 9);
  for (const auto& trial : results.trials()) {
    CHECK(trial.state == ht::TrialState::completed);
    CHECK(trial.steps >= 4);
  }
}

TEST_CASE("resume: failed trials are tried again when asked to") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 12;
  broken = true;
  const auto before = ht::tune(line, brittle, o);
  const auto failed = before.count(ht::TrialState::failed);
  REQUIRE(failed > 0);
  REQUIRE(failed < 12);
  o.resume = true;
  SECTION("not unless asked to") {
    broken = false;
    CHECK(ht::tune(line, brittle, o).count(ht::TrialState::failed) == failed);
  }
  SECTION("all of them, once more, with a clean slate") {
    o.retry_failed = true;
    o.max_retries = 1;
    CHECK_THAT(said([&] {
                 const auto still = ht::tune(line, brittle, o);  // they fail again, twice each now
                 CHECK(still.count(ht::TrialState::failed) == failed);
                 CHECK(still.failures(ht::FailureSource::user) == static_cast<std::int64_t>(3 * failed));
               }),
               ContainsSubstring(fmt::format("{} trials that failed are tried again", failed)));
    broken = false;
    const auto after = ht::tune(line, brittle, o);
    CHECK(after.size() == 12);
    CHECK(after.count(ht::TrialState::completed) == 12);
    for (const auto& trial : after.trials()) CHECK_FALSE(trial.cause.has_value());
    // A replay of that finds nothing left to do, asked to or not.
    const auto reports = after.experiment().reports;
    CHECK(ht::tune(line, brittle, o).experiment().reports == reports);
    o.retry_failed = false;
    CHECK(ht::tune(line, brittle, o).experiment().reports == reports);
  }
  SECTION("a limit of failed trials that is passed already is an error that says how to go on") {
    o.max_failed_trials = 1;
    CHECK_THROWS_WITH(ht::tune(line, brittle, o), ContainsSubstring("--retry-failed"));
    broken = false;
    o.retry_failed = true;
    CHECK(ht::tune(line, brittle, o).count(ht::TrialState::completed) == 12);
  }
  SECTION("the searcher does not hear of a failure that was tried again") {
    struct Pupil {
      std::shared_ptr<std::vector<std::pair<ht::TrialId, ht::TrialState>>> ends;
      ht::Random random{};
      void prepare(const ht::SearchSpace& s, const ht::SearchContext& g) { random.prepare(s, g); }
      ht::Suggestion suggest(const ht::Ask& ask) { return random.suggest(ask); }
      void observe(const ht::Observation& seen) {
        if (seen.kind == ht::Observation::Kind::ended) ends->emplace_back(seen.trial, seen.state);
      }
    };
    broken = false;
    o.retry_failed = true;
    const auto ends = std::make_shared<std::vector<std::pair<ht::TrialId, ht::TrialState>>>();
    for (const bool again : {true, false}) {
      ends->clear();
      o.retry_failed = again;
      o.search = Pupil{ends};
      ht::tune(line, brittle, o);
      CHECK(ends->size() == 12);
      for (const auto& [trial, state] : *ends) CHECK(state == ht::TrialState::completed);
    }
  }
}

TEST_CASE("resume: a trial whose driver died between its last failure and its end is tried again when asked to") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 12;
  broken = true;
  ht::tune(line, brittle, o);
  broken = false;
  const auto records = support::records_of(o.output);
  std::size_t count = 0;
  const ht::record::AttemptFailed* last = nullptr;
  while (last == nullptr || last->retry) last = std::get_if<ht::record::AttemptFailed>(&records[count++].what);
  REQUIRE(std::get<ht::record::TrialEnded>(records[count].what).trial == last->trial);
  support::cut(o.output, records, count, directory.path() / "cut");
  o.output = directory.path() / "cut";
  o.resume = true;
  SECTION("and has failed otherwise") {
    const auto results = ht::tune(line, brittle, o);
    CHECK(results.count(ht::TrialState::failed) == 1);
    CHECK(results.trial(last->trial).state == ht::TrialState::failed);
  }
  SECTION("asked to") {
    o.retry_failed = true;
    CHECK_THAT(said([&] { CHECK(ht::tune(line, brittle, o).count(ht::TrialState::completed) == 12); }),
               ContainsSubstring("1 trial that failed is tried again"));
    const auto reports = ht::Results::read(o.output).experiment().reports;
    for (const bool again : {true, false}) {  // and a replay of that finds nothing left to do
      o.retry_failed = again;
      const auto results = ht::tune(line, brittle, o);
      CHECK(results.count(ht::TrialState::completed) == 12);
      CHECK(results.experiment().reports == reports);
    }
  }
}

TEST_CASE("resume: what concerns only what is to come works") {
  const TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 2;
  ht::tune(line, endless, o);
  o.resume = true;
  o.samples = 5;
  o.schedule = ht::Fifo{.max_steps = 5};
  bool other_search = false;  // which is said
  const auto check = [&] {
    std::string text = said([&] {
      const auto results = ht::tune(line, endless, o);
      CHECK(results.size() == 5);
      CHECK(results.count(ht::TrialState::completed) == 5);
      for (const auto& trial : results.trials()) CHECK(trial.steps == 5);
    });
    CHECK(text.starts_with(other_search ? "hypertune: the search was random and is " : ""));
    CHECK(std::count(text.begin(), text.end(), '\n') == (other_search ? 1 : 0));
  };
  SECTION("search") {
    o.search = ht::Tpe{};
    other_search = true;
  }
  SECTION("repeats") {
    o.search = ht::repeat(ht::Random{}, 2);
    other_search = true;
  }
  SECTION("a warm start") {
    const TemporaryDirectory other;
    auto before = options(other);
    ht::tune(line, endless, before);
    o.search = ht::warm_start(ht::Tpe{}, {before.output});
    other_search = true;
    check();
    return;
  }
  SECTION("resources") { o.resources = {.cpus = 0.5}; }
  SECTION("resources by configuration") {
    o.resources_for = [](const ht::Params&) { return ht::Resources{.cpus = 0.25}; };
  }
  SECTION("concurrency") { o.concurrency = 3; }
  SECTION("max_retries") { o.max_retries = 3; }
  SECTION("max_failed_trials") { o.max_failed_trials = 3; }
  SECTION("hang_timeout") { o.hang_timeout = 100; }
  SECTION("checkpoint") { o.checkpoint = {.every = 2, .keep = 3}; }
  SECTION("no checkpoints") { o.checkpoint = {}; }
  SECTION("executor") { o.executor = ht::threads({.cpus = 2}); }
  SECTION("ordered") { o.ordered = true; }
  SECTION("progress_csv") { o.progress_csv = true; }
  check();
}

// Functions cannot be compared: what the trials have is judged by the present ones.
TEST_CASE("resume: trials that a constraint or a formula of the program no longer allows do not fit the space") {
  const TemporaryDirectory directory;
  const auto make = [](double most, double factor) {
    return ht::space(ht::dim("x", ht::uniform(0.0, 1.0)),
                     ht::dim("y", ht::derived([factor](const ht::Params& p) { return factor * p.get<double>("x"); })))
        .constraint("x is small", [most](const ht::Params& p) { return p.get<double>("x") <= most; });
  };
  const auto train = [](ht::Params params, ht::Context&) -> double { return params.get<double>("x"); };
  ht::Options o = options(directory);
  o.metric = ht::Setting<std::string>::unset("value");
  o.schedule = ht::Fifo{};
  o.checkpoint = {};
  const auto before = ht::tune(make(1, 2), train, o);
  REQUIRE(before.size() == 6);
  const auto fitting = [&](double most) {
    std::int64_t n = 0;
    for (const auto& trial : before.trials()) n += x_of(trial) <= most ? 1 : 0;
    return n;
  };
  REQUIRE((fitting(0.5) > 0 && fitting(0.5) < 6));
  o.resume = true;
  o.samples = 7;
  SECTION("as they were: nothing is said") {
    CHECK(said([&] { CHECK(ht::tune(make(1, 2), train, o).size() == 7); }).empty());
  }
  SECTION("a constraint of the same name") {
    const auto text = said([&] { ht::tune(make(0.5, 2), train, o); });
    CHECK_THAT(text, ContainsSubstring(std::to_string(6 - fitting(0.5)) + " of 6 trials do not fit it") &&
                         ContainsSubstring("violates the constraint 'x is small'"));
  }
  SECTION("a formula") {
    CHECK_THAT(said([&] { ht::tune(make(1, 3), train, o); }), ContainsSubstring("6 of 6 trials do not fit it") &&
                                                                  ContainsSubstring("parameter 'y' = ") &&
                                                                  ContainsSubstring("it is derived"));
  }
  SECTION("a warm start") {
    o.resume = false;
    o.output = directory.path() / "warm";
    o.search = ht::warm_start(ht::Random{}, {directory.path() / "run"});
    CHECK_THROWS_WITH(ht::tune(make(1, 3), train, o), ContainsSubstring("none of its 6 trials fits this space"));
    CHECK_NOTHROW(ht::tune(make(0.5, 2), train, o));
  }
}

TEST_CASE("configurations that are given meet the constraints and formulas") {
  const TemporaryDirectory directory;
  const auto space = ht::space(ht::dim("x", ht::uniform(0.0, 1.0)),
                               ht::dim("y", ht::derived([](const ht::Params& p) { return 2 * p.get<double>("x"); })))
                         .constraint("x is small", [](const ht::Params& p) { return p.get<double>("x") <= 0.5; });
  const auto train = [](ht::Params params, ht::Context&) -> double { return params.get<double>("y"); };
  auto o = options(directory);
  o.metric = ht::Setting<std::string>::unset("value");
  o.schedule = ht::Fifo{};
  o.checkpoint = {};
  SECTION("to try first") {
    o.start_with = {at(0.75)};
    CHECK_THROWS_WITH(ht::tune(space, train, o), ContainsSubstring("'x is small'"));
    o.start_with = {{{"x", 0.25}, {"y", 0.75}}};
    CHECK_THROWS_WITH(ht::tune(space, train, o), ContainsSubstring("'y' = 0.75") && ContainsSubstring("0.5 here"));
    o.start_with = {at(0.25)};
    CHECK(ht::tune(space, train, o).trial(0).params == ht::Params{{"x", 0.25}, {"y", 0.5}});
  }
  SECTION("known") {
    o.known = {{.params = at(0.75), .metrics = {{"value", 1.0}}}};
    CHECK_THROWS_WITH(ht::tune(space, train, o), ContainsSubstring("'x is small'"));
    o.output = directory.path() / "other";
    o.known = {{.params = {{"x", std::int64_t{0}}}, .metrics = {{"value", 1.0}}}};
    CHECK(ht::tune(space, train, o).trial(0).params == ht::Params{{"x", 0.0}, {"y", 0.0}});
  }
}
