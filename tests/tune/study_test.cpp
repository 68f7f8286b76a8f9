#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/tune/detail/requests/control.hpp>

#include <atomic>
#include <cmath>

namespace ht = hypertune;

namespace {
struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));
}  // namespace

TEST_CASE("ask and tell") {
  TemporaryDirectory directory;
  ht::Options options{.samples = 10, .output = directory.path() / "study", .display = ht::Display::quiet};
  {
    ht::Study study(space, ht::Random{}, options);
    for (int i = 0; i < 5; ++i) {
      auto trial = study.ask();
      REQUIRE(trial);
      CHECK(trial->id == i);
      study.tell(*trial, trial->config.x * trial->config.x);
      CHECK_THROWS_WITH(study.tell(*trial, 1.0), ContainsSubstring("completed"));
    }
    auto open = study.ask();
    REQUIRE(open);
    CHECK(study.results().size() == 6);
  }
  options.resume = true;
  ht::Study study(space, ht::Random{}, options);
  auto again = study.ask();
  REQUIRE(again);
  CHECK(again->id == 5);
  study.tell(*again, 0.5);
  for (int i = 6; i < 10; ++i) {
    auto trial = study.ask();
    REQUIRE(trial);
    study.tell(*trial, 1.0);
  }
  CHECK_FALSE(study.ask());
  CHECK(study.exhausted());
  CHECK(study.results().count(ht::TrialState::completed) == 10);
}

TEST_CASE("a study's scheduler stops, pauses and resumes") {
  TemporaryDirectory directory;
  ht::Options options{.samples = 9, .output = directory.path() / "study", .display = ht::Display::quiet};
  options.schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3, .promotion = true};
  ht::Study study(space, ht::Random{}, options);
  int completed = 0;
  std::map<ht::TrialId, int> steps;
  while (auto trial = study.ask()) {
    for (;;) {
      const auto decision = study.report(*trial, trial->config.x * trial->config.x, steps[trial->id]++);
      if (decision == ht::Decision::proceed) continue;
      completed += decision == ht::Decision::complete;
      break;
    }
  }
  CHECK(completed >= 1);
  CHECK(study.results().count(ht::TrialState::running) == 0);
}

TEST_CASE("a failed trial is asked for again while it may be") {
  TemporaryDirectory directory;
  ht::Options options{
      .samples = 1, .max_retries = 1, .output = directory.path() / "study", .display = ht::Display::quiet};
  ht::Study study(space, ht::Random{}, options);
  auto trial = study.ask();
  REQUIRE(trial);
  study.tell_failed(*trial, "boom");
  auto again = study.ask();
  REQUIRE(again);
  CHECK(again->id == trial->id);
  CHECK(again->config.x == trial->config.x);
  study.tell_failed(*again, "boom");
  CHECK_FALSE(study.ask());
  CHECK(study.results().count(ht::TrialState::failed) == 1);
}

TEST_CASE("a study hears from a person elsewhere, and notes what it is told") {
  TemporaryDirectory directory;
  using Kind = ht::ControlRequest::Kind;
  ht::Options options{.metric = "loss", .samples = 9, .output = directory.path() / "study"};
  options.display = ht::Display::quiet;
  const auto ask = [&](Kind kind, std::vector<ht::TrialId> trials = {}, ht::Params params = {}) {
    return ht::ask_driver(options.output, {.kind = kind, .trials = std::move(trials), .params = std::move(params)});
  };
  {
    ht::Study study(space, ht::Random{}, options);
    const auto first = study.ask(), second = study.ask(), third = study.ask();
    REQUIRE(third);
    CHECK(study.report(*first, ht::report("loss", 0.5).with("phase", "warm-up")) == ht::Decision::proceed);
    CHECK(ask(Kind::stop, {first->id}).done);
    CHECK(study.report(*first, 0.25) == ht::Decision::stop);
    CHECK_THROWS_WITH(study.report(*first, 0.1), ContainsSubstring("stopped"));
    CHECK(ask(Kind::stop, {second->id}).done);
    study.tell(*second, 0.125);  // it had come to its end before it could hear of it
    CHECK(ask(Kind::pause, {third->id}).done);
    CHECK(study.report(*third, 0.75) == ht::Decision::pause);
    CHECK(ask(Kind::add, {}, {{"x", 0.375}}).done);
    const auto added = study.ask();
    REQUIRE(added);
    CHECK(added->config.x == 0.375);
    study.tell(*added, ht::report("loss", 0.3).with("by", "hand"));
    CHECK(ask(Kind::pause).done);
    CHECK_FALSE(study.ask());
    CHECK_FALSE(study.exhausted());
    CHECK(ask(Kind::proceed).done);
    const auto again = study.ask();
    REQUIRE(again);
    CHECK(again->id == third->id);
    CHECK(again->next_step == 1);
    study.note(*again, {{"note", "it came back"}});
    study.note({{"dataset", "v3"}});
    CHECK_THROWS_WITH(study.note(*again, {{"", true}}), ContainsSubstring("no name"));
    std::atomic<bool> left = false;
    study.on_leave([&] { left = true; });
    CHECK(ask(Kind::leave).done);
    CHECK(left);
    CHECK_FALSE(study.ask());
    CHECK(study.exhausted());
    CHECK(study.report(*again, 0.5) == ht::Decision::pause);
    CHECK_FALSE(ask(Kind::add, {}, {{"x", 0.5}}).done);
  }
  const auto results = ht::Results::read(options.output);
  CHECK(results.trial(0).state == ht::TrialState::stopped);
  CHECK(results.trial(0).best->value == 0.25);  // its caller could not know that it was stopped
  CHECK(results.trial(1).state == ht::TrialState::completed);
  CHECK(results.trial(1).best->value == 0.125);
  CHECK(results.trial(0).attributes == ht::Attributes{{"phase", "warm-up"}});
  CHECK(results.trial(2).attributes == ht::Attributes{{"note", "it came back"}});
  CHECK(results.trial(3).attributes == ht::Attributes{{"by", "hand"}});
  CHECK(results.experiment().attributes == ht::Attributes{{"dataset", "v3"}});
  CHECK(results.experiment().interrupted);
  options.resume = true;
  ht::Study study(space, ht::Random{}, options);
  const auto again = study.ask();
  REQUIRE(again);
  CHECK(again->id == 2);
}

TEST_CASE("a study that a condition ends: whose trials are out hear of it, and what they tell is kept") {
  TemporaryDirectory directory;
  ht::Options options{.metric = "loss", .samples = 9, .stop = ht::total_steps(1), .output = directory.path() / "study"};
  options.display = ht::Display::quiet;
  ht::Study study(space, ht::Random{}, options);
  const auto first = study.ask(), second = study.ask(), third = study.ask();
  REQUIRE(third);
  study.note(*third, {{"nan", NAN}});
  study.note(*third, {{"nan", NAN}});  // has not changed
  study.tell(*first, 0.5);
  CHECK(study.exhausted());
  CHECK(study.report(*second, 0.25) == ht::Decision::stop);
  study.tell(*third, 0.125);
  const auto results = study.results();
  CHECK(results.trial(1).state == ht::TrialState::stopped);
  CHECK(results.trial(1).best->value == 0.25);
  CHECK(results.trial(2).state == ht::TrialState::completed);
  CHECK(results.trial(2).best->value == 0.125);
  int noted = 0;
  ht::read_journal(study.directory(), [&](const ht::Record& record) {
    noted += std::holds_alternative<ht::record::AttributesSet>(record.what);
  });
  CHECK(noted == 1);
}
