// Ordered: an experiment that was killed and resumed, at whatever record, ends like one that was not.
#include "history.hpp"
#include "support/number_checkpoint.hpp"
#include "support/standard_error.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0, y = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)),
                                     ht::dim("y", &Config::y, ht::uniform(0.0, 1.0)));

ht::Training train(Config config, ht::Context& context) {
  context.checkpoints([](ht::CheckpointWriter& out) { std::ofstream(out.file("nothing")) << 1; },
                      [](const ht::Checkpoint&) {});
  for (int step = context.next_step(); step < 9; ++step)
    co_yield ht::report("loss", config.x * config.x + config.y / (step + 1)).at(step);
}

// Its state is its checkpoint: a trial that takes over an older one than it would have ends with another value.
ht::Training train_with_state(Config config, ht::Context& context) {
  double state = 1;
  ht::test::checkpoint_number(context, state);
  for (int step = context.next_step(); step < 12; ++step) {
    state = 0.9 * state + std::fabs(config.x) + config.y / (step + 1);
    co_yield ht::report("loss", state).at(step);
  }
}

using Trainer = ht::Training (*)(Config, ht::Context&);

ht::Options options(const std::filesystem::path& output) {
  ht::Options o;
  o.metric = "loss";
  o.output = output;
  o.samples = 14;
  o.seed = 3;
  o.ordered = true;
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  o.executor = ht::threads(3);
  o.checkpoint = {.every = 2, .keep = 2};
  return o;
}

/// Each trial with its configuration and its fate.
std::string outcome(const ht::Results& results) {
  std::string text;
  for (const auto& trial : results.trials())
    text += fmt::format("{} {} {} {} {}\n", trial.trial, ht::to_string(trial.state), trial.steps, trial.params,
                        trial.best ? trial.best->value : NAN);
  return text;
}

void check_resumptions(
    const std::function<void(ht::Options&)>& set_up, Trainer trainer = train,
    const std::function<bool(const ht::Record&)>& may_be_last = [](const ht::Record&) { return true; }) {
  const TemporaryDirectory directory;
  auto o = options(directory.path() / "whole");
  set_up(o);
  const std::string whole = outcome(ht::tune(space, trainer, o));
  const auto records = support::records_of(o.output);
  for (std::size_t count = 5; count < records.size(); count += 1 + records.size() / 24) {
    while (count < records.size() && !may_be_last(records[count - 1])) ++count;
    const auto folder = directory.path() / std::to_string(count);
    support::cut(o.output, records, count, folder);
    auto again = options(folder);
    set_up(again);
    again.resume = true;
    INFO("killed after record " << count << " of " << records.size());
    REQUIRE(outcome(ht::tune(space, trainer, again)) == whole);
  }
}

}  // namespace

TEST_CASE("ordered: killed at any record and resumed, a model and a scheduler that stops decide as if undisturbed") {
  check_resumptions([](ht::Options& o) {
    o.search = ht::Tpe{};
    o.schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3};
  });
}

TEST_CASE("ordered: killed at any record and resumed, trials are promoted as if undisturbed") {
  check_resumptions([](ht::Options& o) {
    o.search = ht::Tpe{};
    o.schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3, .promotion = true};
  });
}

TEST_CASE("ordered: killed at reports at which trials pause and resumed, trials are promoted as if undisturbed") {
  check_resumptions(
      [](ht::Options& o) {
        o.search = ht::Tpe{};
        o.schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 2, .promotion = true};
      },
      train,
      // The pause is not recorded any more, and often the same trial goes on at once.
      [](const ht::Record& record) {
        const auto* report = std::get_if<ht::record::TrialReported>(&record.what);
        return report != nullptr && (report->step + 1 == 2 || report->step + 1 == 4);
      });
}

TEST_CASE("ordered: killed at any record and resumed, a population takes over what it would have undisturbed") {
  check_resumptions(
      [](ht::Options& o) {
        o.search = ht::Random{};
        o.schedule = ht::Pbt{.perturbation_interval = 3, .max_steps = 12};
        o.checkpoint = {.every = 1, .keep = 100};  // a resumed driver has those of its time, too
      },
      train_with_state,
      // Often after a report at which the trial is to pause, before its checkpoint is recorded.
      [](const ht::Record& record) {
        const auto* report = std::get_if<ht::record::TrialReported>(&record.what);
        return report != nullptr && (report->step + 1) % 3 == 0;
      });
}

TEST_CASE("a population whose trials save is not told that they do not, as its best trials end") {
  // Seeds with which the last trials are to take over one that was not among the best when it paused.
  for (const int seed : {62, 78, 80, 111, 112}) {
    const TemporaryDirectory directory;
    auto o = options(directory.path() / "run");
    o.search = ht::Random{};
    o.samples = 12;
    o.seed = seed;
    o.executor = ht::threads({.cpus = 2});
    o.display = ht::Display::plain;
    o.schedule = ht::Pbt{.perturbation_interval = 3, .max_steps = 12};
    o.checkpoint = {.every = 1, .keep = 1};
    CHECK_THAT(said([&] { ht::tune(space, train_with_state, o); }), !ContainsSubstring("no checkpoint"));
  }
}

TEST_CASE("a scheduler's decision on the last report before an interruption is made at the resumption") {
  // Every trial is interrupted between its report and the answer, with its checkpoint saved.
  const TemporaryDirectory directory;
  auto o = options(directory.path() / "whole");
  o.search = ht::Random{};
  o.samples = 3;
  o.schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3};
  o.checkpoint = {.every = 1, .keep = 3};
  const std::string whole = outcome(ht::tune(space, train, o));
  const auto records = support::records_of(o.output);
  std::size_t count = 0;
  std::map<ht::TrialId, int> reports;
  while (reports.size() < 3 || reports[2] == 0) {
    const auto& record = records.at(count++);
    if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) ++reports[r->trial];
  }
  const auto folder = directory.path() / "interrupted";
  support::cut(o.output, records, count, folder);
  {
    auto journal = ht::Journal::open(folder, {.sync = ht::Sync::normal});
    for (ht::TrialId trial = 0; trial < 3; ++trial) {
      journal.append(
          records[count].time,
          ht::record::AttemptFailed{
              trial, 0, ht::Cause{.source = ht::FailureSource::preemption, .text = "interrupted", .retry = true},
              true});
    }
  }
  auto again = options(folder);
  again.search = ht::Random{};
  again.samples = 3;
  again.schedule = o.schedule;
  again.checkpoint = o.checkpoint;
  again.resume = true;
  CHECK(outcome(ht::tune(space, train, again)) == whole);
}
