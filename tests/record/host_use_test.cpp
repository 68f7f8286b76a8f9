#include "support/test.hpp"

#include <hypertune/record/host_ledger.hpp>
#include <hypertune/record/results.hpp>

using namespace hypertune;

namespace {
struct Ledger {
  detail::HostLedger ledger;
  std::int64_t sequence = 0;
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
  l.add(10, record::AttemptFailed{0, 0, {}, true});
  l.add(10.5, record::AttemptFailed{1, 0, {}, true});  // it had its turn later
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
  l.add(100, record::AttemptFailed{0, 2, {}, true});
  l.add(100, record::HostGained{"b"});
  l.add(101, record::TrialStarted{0, 3, 6, "b", {}, {}});
  l.add(105, record::ExperimentEnded{});
  hosts = l.ledger.hosts();
  CHECK(hosts[1].present == 19 + 5);
  CHECK(hosts[1].busy == 2 + 6 + 4);
  CHECK(hosts[1].lost == 0);
  CHECK(l.ledger.repeated_steps() == 3);
}

TEST_CASE("a state that is taken over is no step done twice") {
  Ledger l;
  l.add(0, record::TrialStarted{0, 0, 0, "a", {}, {}});
  l.add(1, record::TrialReported{0, 0, 11, {}});
  l.add(2, record::TrialPaused{0});
  l.add(2, record::TrialExploited{0, 1, {1, 8, "step-8", 0, ""}, {}, {}});
  l.add(3, record::TrialStarted{0, 1, 8, "a", {}, {}});
  CHECK(l.ledger.repeated_steps() == 0);
  l.add(4, record::AttemptFailed{0, 1, {}, true});
  l.add(5, record::TrialStarted{0, 2, 8, "a", {}, {}});
  CHECK(l.ledger.repeated_steps() == 0);
}
