#include "support/test.hpp"

#include <hypertune/record/detail/host_ledger.hpp>
#include <hypertune/record/results.hpp>

using namespace hypertune;

namespace {
struct Ledger {
  detail::HostLedger ledger;
  std::int64_t sequence = 0;
  static constexpr auto by_host = FailureSource::infrastructure;
  void add(Seconds time, record::Any what) { ledger.add({++sequence, time, std::move(what)}); }
};
}  // namespace

TEST_CASE("hosts are accounted for by when they were there, and by what ran on them") {
  Ledger l;
  l.add(0, record::ExperimentStarted{});
  l.add(1, record::HostGained{"a"});
  l.add(1, record::HostGained{"b"});
  l.add(2, record::TrialStarted{0, 0, 0, "a", {}, {}});
  l.add(3, record::TrialStarted{1, 0, 0, "a", {}, {}});
  for (int step = 0; step < 5; ++step) l.add(4 + step, record::TrialReported{0, 0, step, {}});
  l.add(10, record::HostLost{"a", "silent"});
  l.add(10, record::AttemptFailed{0, 0, {Ledger::by_host, {}}, true});
  l.add(10.5, record::AttemptFailed{1, 0, {Ledger::by_host, {}}, true});  // it had its turn later
  l.add(11, record::TrialStarted{0, 1, 3, "b", {}, {}});
  l.add(12, record::TrialReported{0, 1, 5, {}});
  l.add(13, record::TrialPaused{0});
  auto hosts = l.ledger.hosts();
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].host == "a");
  CHECK(hosts[0].present == 9);
  CHECK(hosts[0].busy == 8 + 7);
  CHECK(hosts[0].attempts == 2);
  CHECK(hosts[0].lost == 1);
  CHECK(hosts[1].present == 12);
  CHECK(hosts[1].busy == 2);
  CHECK(l.ledger.repeated_steps() == 2);  // steps 3 and 4; trial 1 had reported none

  // A driver that was killed: what ran counts up to its last record, and goes on in the next session.
  l.add(14, record::TrialStarted{0, 2, 6, "b", {}, {}});
  l.add(20, record::TrialReported{0, 2, 6, {}});
  l.add(100, record::ExperimentStarted{});
  l.add(100, record::AttemptFailed{0, 2, {Ledger::by_host, {}}, true});
  l.add(100, record::HostGained{"b"});
  l.add(101, record::TrialStarted{0, 3, 6, "b", {}, {}});
  l.add(105, record::ExperimentEnded{});
  hosts = l.ledger.hosts();
  CHECK(hosts[1].present == 19 + 5);
  CHECK(hosts[1].busy == 2 + 6 + 4);
  CHECK(hosts[1].lost == 0);
  CHECK(l.ledger.repeated_steps() == 3);
}

TEST_CASE("a host that goes as the trial has ended that it was there for is not lost") {
  Ledger l;
  const auto lost = [&] { return l.ledger.hosts().at(0).lost; };
  // Those that are used once go just before the end of their trial is recorded.
  const auto begin = [&](Seconds time, TrialId trial) {
    l.add(time, record::HostGained{"a"});
    l.add(time, record::TrialStarted{trial, 0, 0, "a", {}, {}});
    l.add(time + 1, record::HostLost{"a", "it has run its trial"});
  };
  l.add(0, record::ExperimentStarted{});
  begin(1, 0);
  CHECK(lost() == 1);  // nobody knows yet
  l.add(3, record::TrialEnded{0, TrialState::completed, {}});
  CHECK(lost() == 0);
  begin(4, 1);
  l.add(6, record::TrialPaused{1});
  begin(7, 2);
  l.add(9, record::AttemptFailed{2, 0, {FailureSource::user, "its own doing"}, true});
  CHECK(lost() == 0);
  begin(10, 3);
  l.add(12, record::AttemptFailed{3, 0, {Ledger::by_host, "it was lost"}, true});
  CHECK(lost() == 1);
  begin(13, 4);
  l.add(15, record::TrialResized{});
  CHECK(lost() == 2);  // as far as anybody knows
  l.add(16, record::ExperimentStarted{});
  CHECK(lost() == 2);
  // One that had nothing to do is lost as it goes.
  l.add(17, record::HostGained{"a"});
  l.add(18, record::HostLost{"a", "silent"});
  CHECK(lost() == 3);
}

TEST_CASE("a state that is taken over is no step done twice") {
  Ledger l;
  l.add(0, record::TrialStarted{0, 0, 0, "a", {}, {}});
  l.add(1, record::TrialReported{0, 0, 11, {}});
  l.add(2, record::TrialPaused{0});
  l.add(2, record::TrialExploited{0, 1, {1, 8, "step-8", 0, ""}, {}, {}});
  l.add(3, record::TrialStarted{0, 1, 8, "a", {}, {}});
  CHECK(l.ledger.repeated_steps() == 0);
  l.add(4, record::AttemptFailed{0, 1, {Ledger::by_host, {}}, true});
  l.add(5, record::TrialStarted{0, 2, 8, "a", {}, {}});
  CHECK(l.ledger.repeated_steps() == 0);
}
