// An attempt finds what it goes on from, or says that it cannot.
#include "support/checkpoint_store_conformance.hpp"
#include "support/executor_trials.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/execute/detail/attempt_run.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("an attempt that must go on from a checkpoint fails where none is sound, and others begin anew") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory);
  const auto older = save(store, 0, 2, {{"state", "older"}}), newer = save(store, 0, 4, {{"state", "newer"}});
  std::vector<std::string> lost;
  const auto begin = [&](std::vector<CheckpointInfo> restore, bool must) {
    Launch launch{.trial = 0, .attempt = 1, .point = {}, .params = {}, .restore = std::move(restore), .allocation = {}};
    launch.must_restore = must;
    AttemptRun attempt(store, directory, launch,
                       [&](const CheckpointInfo& info, const std::string&) { lost.push_back(info.name); });
    return attempt.steps();
  };
  CHECK(begin({}, true) == 0);
  CHECK(begin({newer, older}, true) == 4);
  write_file(store.folder(newer) / "state", "other");
  CHECK(begin({newer, older}, true) == 2);
  CHECK(lost == std::vector<std::string>{"step-4"});
  write_file(store.folder(older) / "state", "other");
  try {
    begin({newer, older}, true);
    CHECK(false);
  } catch (const Error& e) {
    CHECK(e.code() == Errc::corrupt);
    CHECK_THAT(e.what(), ContainsSubstring("none of the checkpoints that trial 0 is to go on from is sound"));
  }
  CHECK(begin({newer, older}, false) == 0);
}

TEST_CASE("a report of a step that none can have fails the attempt") {
  struct Once final : TrialRun {
    explicit Once(int at) : step_(at) {}
    std::optional<Report> step() override {
      Report report(Metrics{{"loss", 1}});
      report.step = step_;
      return report;
    }
    bool can_save() const override { return false; }
    void save(CheckpointWriter&) override {}
    int step_;
  };
  struct OnceProgram final : Program {
    explicit OnceProgram(int at) : step_(at) {}
    std::unique_ptr<TrialRun> begin(Context&) const override { return std::make_unique<Once>(step_); }
    int step_;
  };
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory);
  for (const int step : {-1, 2147483647}) {
    const Launch launch{.trial = 0, .attempt = 0, .point = {}, .params = {}, .restore = {}, .allocation = {}};
    AttemptRun attempt(store, directory, launch, [](const CheckpointInfo&, const std::string&) {});
    attempt.begin(OnceProgram(step));
    CHECK_THROWS_WITH(attempt.step(), ContainsSubstring("step is " + std::to_string(step)));
    CHECK_THROWS_WITH(report("loss", 1).at(step), ContainsSubstring("step is " + std::to_string(step)));
  }
}

TEST_CASE("an attempt whose checkpoint vanishes before it has reported is not to blame for its failure") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory);
  const auto saved = save(store, 0, 2, {{"state", "saved"}});
  std::vector<std::string> lost;
  const AttemptRun::Lost lose = [&](const CheckpointInfo& info, const std::string&) { lost.push_back(info.name); };
  Plan plan{.steps = 4};
  Launch launch{.trial = 0, .attempt = 1, .point = plan.point(), .params = {}, .restore = {saved}, .allocation = {}};
  const auto program = make_program<Plan>(
      &Plan::of,
      [](Plan, Context&) -> Training {
        for (int step = 2; step < 4; ++step) co_yield report("value", 1.0);
      },
      "value");
  const int rank = GENERATE(0, 1);
  if (rank == 1) launch.seat = Seat{.member = 1, .place = {.rank = 1, .hosts = {"here", "here"}}};
  const auto group = launch.seat ? std::make_shared<Group>(launch.seat->place, [](const GroupMessage&) {}) : nullptr;
  AttemptRun attempt(store, directory, launch, lose, default_log_limit, group);
  attempt.begin(*program);
  const Cause own{.source = FailureSource::user, .text = "there is no such file"};
  CHECK(attempt.blame(own, lose).source == FailureSource::user);
  store.drop(saved);
  if (rank == 1) {  // it need not report, so that nobody knows here whether it has read it
    CHECK(attempt.blame(own, lose).source == FailureSource::user);
    CHECK(lost.empty());
    return;
  }
  SECTION("it may not have read it") {
    const Cause cause = attempt.blame(own, lose);
    CHECK(cause.source == FailureSource::preemption);
    CHECK(cause.text == "checkpoint step-2 vanished before it was read: there is no such file");
    CHECK(lost == std::vector<std::string>{"step-2"});
  }
  SECTION("it has reported, and so has read it") {
    REQUIRE(attempt.step().report);
    CHECK(attempt.blame(own, lose).source == FailureSource::user);
    CHECK(lost.empty());
  }
}
