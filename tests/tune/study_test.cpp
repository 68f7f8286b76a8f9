#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

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
  options.schedule = ht::Asha{.grace = 1, .max = 9, .reduction = 3, .promotion = true};
  ht::Study study(space, ht::Random{}, options);
  int completed = 0;
  std::map<ht::TrialId, int> steps;
  while (auto trial = study.ask()) {
    for (;;) {
      const auto decision = study.report(*trial, trial->config.x * trial->config.x, steps[trial->id]++);
      if (decision == ht::Decision::go_on) continue;
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
      .samples = 1, .max_failures = 1, .output = directory.path() / "study", .display = ht::Display::quiet};
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
