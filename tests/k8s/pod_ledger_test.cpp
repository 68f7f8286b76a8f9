// Which pod is whose.
#include "pod_ledger.hpp"

#include "support/test.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace hypertune;
using k8s::PodLedger;
using k8s::PodState;

namespace {

using Phase = PodState::Phase;

PodState pod(const std::string& name, const std::string& worker, Phase phase, const std::string& node = "n1") {
  return {.name = name, .uid = "u", .worker = worker, .node = node, .ip = {}, .phase = phase};
}

}  // namespace

TEST_CASE("a worker goes on in the pod that it has, unless that is of no use any more") {
  PodLedger ledger;
  ledger.want("a");
  CHECK(ledger.usable_of("a") == nullptr);
  CHECK(ledger.see(pod("p1", "a", Phase::waiting), 0));
  CHECK_FALSE(ledger.see(pod("p1", "a", Phase::waiting), 1));
  REQUIRE(ledger.usable_of("a") != nullptr);
  CHECK(ledger.usable_of("a")->name == "p1");
  CHECK(ledger.usable_of("b") == nullptr);

  // Of two, the one that runs stays.
  ledger.see(pod("p2", "a", Phase::running), 1);
  CHECK(ledger.usable_of("a")->name == "p2");
  CHECK(ledger.superfluous() == std::vector<std::string>{"p1"});

  ledger.discard("p2");
  CHECK(ledger.usable_of("a")->name == "p1");
  auto leaving = pod("p1", "a", Phase::running);
  leaving.leaving = true;
  CHECK(ledger.see(leaving, 2));
  CHECK(ledger.usable_of("a") == nullptr);
  CHECK(ledger.superfluous() == std::vector<std::string>{"p2"});  // the other one goes already
  ledger.forget("p2");
  CHECK(ledger.find("p2") == nullptr);
  REQUIRE(ledger.find_or_last("p2") != nullptr);
  CHECK(ledger.find_or_last("p2")->phase == Phase::running);
  CHECK(ledger.find_or_last("p9") == nullptr);
  CHECK(ledger.superfluous().empty());
  // An object that stays behind after its end is removed, whatever ended it.
  leaving.phase = Phase::ended;
  ledger.see(leaving, 3);
  CHECK(ledger.superfluous() == std::vector<std::string>{"p1"});
}

TEST_CASE("pods of workers that nobody wants are superfluous, those of an earlier driver included") {
  PodLedger ledger;
  ledger.see(pod("old", "worker-9", Phase::running), 0);
  ledger.see(pod("mine", "worker-1", Phase::running), 0);
  ledger.want("worker-1");
  CHECK(ledger.superfluous() == std::vector<std::string>{"old"});
  ledger.release("worker-1");
  CHECK(ledger.superfluous().size() == 2);
  CHECK(ledger.all().size() == 2);
}

TEST_CASE("a node where a pod was lost is avoided for a while") {
  PodLedger ledger;
  ledger.avoid("", 0);
  CHECK(ledger.avoided(0).empty());
  ledger.avoid("n1", 0);
  ledger.avoid("n2", 50);
  CHECK(ledger.avoided(100) == std::vector<std::string>{"n1", "n2"});
  CHECK(ledger.avoided(PodLedger::avoid_for + 1) == std::vector<std::string>{"n2"});
  ledger.forgive();
  CHECK(ledger.avoided(PodLedger::avoid_for + 1).empty());
}

TEST_CASE("how long a pod has been in doubt is counted from the first time, and not across better news") {
  PodLedger ledger;
  auto doubtful = pod("p", "a", Phase::waiting);
  doubtful.hope = PodState::Hope::doubtful;
  ledger.see(doubtful, 5);
  ledger.see(doubtful, 9);
  CHECK(ledger.doubtful_since("p") == 5);
  ledger.see(pod("p", "a", Phase::waiting), 10);
  CHECK_FALSE(ledger.doubtful_since("p"));
  ledger.see(doubtful, 12);
  CHECK(ledger.doubtful_since("p") == 12);
  CHECK_FALSE(ledger.doubtful_since("q"));
}

TEST_CASE("a pod that did not answer casts doubt on its node, unless it alone was taken away") {
  PodLedger ledger;
  const auto avoided_after = [&](const std::string& name, bool leaving, const std::string& reason) {
    auto state = pod(name, "a", Phase::running, "node-of-" + name);
    state.leaving = leaving;
    state.reason = reason;
    ledger.see(state, 0);
    ledger.doubt(name, 0);
    CHECK(ledger.usable_of("a") == nullptr);
    const auto all = ledger.avoided(0);
    return std::find(all.begin(), all.end(), "node-of-" + name) != all.end();
  };
  CHECK(avoided_after("p1", false, ""));
  CHECK_FALSE(avoided_after("p2", true, ""));
  CHECK_FALSE(avoided_after("p3", true, "PreemptionByScheduler"));
  CHECK(avoided_after("p4", true, "DeletionByTaintManager"));
  ledger.doubt("nobody", 0);
}

TEST_CASE("all that is not on its way out, and what ended by itself, is known") {
  PodLedger ledger;
  auto leaving = pod("p2", "b", Phase::running), taken = pod("p4", "d", Phase::ended);
  leaving.leaving = true;
  taken.leaving = taken.disrupted = true;
  for (const auto& each : {pod("p1", "a", Phase::running), leaving, pod("p3", "c", Phase::ended), taken})
    ledger.see(each, 0);
  CHECK(ledger.staying() == std::vector<std::string>{"p1", "p3", "p4"});
  CHECK(ledger.own_end_of("p1") == nullptr);
  CHECK(ledger.own_end_of("p4") == nullptr);
  REQUIRE(ledger.own_end_of("p3") != nullptr);
  ledger.deleted("p3");  // as it is of no use any more; who waits for a word of it may ask how it ended only then
  CHECK(ledger.own_end_of("p3") != nullptr);
  auto deleted = pod("p3", "c", Phase::ended);
  deleted.leaving = true;
  ledger.see(deleted, 1);
  CHECK(ledger.own_end_of("p3") != nullptr);
  ledger.forget("p3");
  CHECK(ledger.own_end_of("p3") != nullptr);
  // One that was taken away and then ended has not ended by itself.
  ledger.deleted("p1");
  ledger.see(pod("p1", "a", Phase::ended), 2);
  CHECK(ledger.own_end_of("p1") == nullptr);
}

TEST_CASE("a pod runs as soon as somebody says so, whatever its status says") {
  PodLedger ledger;
  ledger.want("a");
  CHECK_FALSE(ledger.start("p"));  // nobody has heard of it
  auto waits = pod("p", "a", Phase::waiting);
  waits.hope = PodState::Hope::doubtful;
  waits.sentence = "is being started";
  ledger.see(waits, 0);
  CHECK(ledger.start("p"));
  CHECK_FALSE(ledger.start("p"));
  REQUIRE(ledger.usable_of("a") != nullptr);
  CHECK(ledger.usable_of("a")->phase == Phase::running);
  CHECK(ledger.usable_of("a")->sentence.empty());
  CHECK_FALSE(ledger.doubtful_since("p"));
  CHECK_FALSE(ledger.see(waits, 1));  // what is told later was so before
  CHECK(ledger.usable_of("a")->phase == Phase::running);
  auto taken = waits;
  taken.leaving = true;
  taken.sentence = "is preempted";
  ledger.see(taken, 1);
  CHECK(ledger.find("p")->phase == Phase::running);
  CHECK(ledger.find("p")->sentence == "is preempted");
  auto ended = pod("p", "a", Phase::ended);
  ledger.see(ended, 2);
  CHECK_FALSE(ledger.start("p"));
  CHECK(ledger.usable_of("a") == nullptr);
  // Another one of that name is another pod.
  ledger.forget("p");
  ledger.see(waits, 3);
  CHECK(ledger.usable_of("a")->phase == Phase::waiting);
}

TEST_CASE("a pod whose deletion was asked for is not deleted again, whatever becomes of it") {
  PodLedger ledger;
  auto gone = pod("p", "a", Phase::running);
  gone.leaving = gone.deleted = true;
  for (const auto phase : {Phase::running, Phase::ended}) {
    gone.phase = phase;
    ledger.see(gone, 0);
    CHECK(ledger.superfluous().empty());
    CHECK(ledger.staying().empty());
    CHECK(ledger.all().empty());
  }
  ledger.see(pod("q", "a", Phase::running), 0);
  CHECK(ledger.superfluous() == std::vector<std::string>{"q"});
  ledger.deleted("q");
  ledger.deleted("nobody");
  ledger.want("a");
  CHECK(ledger.superfluous().empty());
  CHECK(ledger.usable_of("a") == nullptr);
  // It is told of as it was before its deletion.
  ledger.see(pod("q", "a", Phase::running), 1);
  CHECK(ledger.superfluous().empty());
  CHECK(ledger.all().empty());
  CHECK(ledger.usable_of("a") == nullptr);
}

TEST_CASE("a pod that is taken away is told of once, and not where it was ours to discard") {
  PodLedger ledger;
  ledger.want("a");
  auto gone = pod("p", "a", Phase::running);
  gone.disrupted = gone.leaving = true;
  ledger.see(gone, 0);
  CHECK(ledger.newly_leaving().size() == 1);
  ledger.see(gone, 1);
  CHECK(ledger.newly_leaving().empty());
  gone.name = "q";
  ledger.discard("q");
  ledger.see(gone, 1);
  CHECK(ledger.newly_leaving().empty());
}

TEST_CASE("whatever happens, a wanted worker keeps one pod at most, and what is deleted is not the one in use") {
  std::mt19937 random(5);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    PodLedger ledger;
    for (int step = 0; step < 60; ++step) {
      const auto name = "p" + std::to_string(pick(6)), worker = "w" + std::to_string(pick(2));
      switch (pick(5)) {
        case 0: ledger.want(worker); break;
        case 1: ledger.release(worker); break;
        case 2: ledger.discard(name); break;
        case 3: ledger.forget(name); break;
        default: {
          auto state = pod(name, worker, static_cast<Phase>(pick(3)));
          state.leaving = pick(4) == 0;
          ledger.see(state, step);
        }
      }
      const auto extra = ledger.superfluous();
      for (const auto* each : {"w0", "w1"})
        if (const auto* used = ledger.usable_of(each);
            used != nullptr && std::find(extra.begin(), extra.end(), used->name) != extra.end()) {
          // only where nobody wants it
          ledger.want(each);
          const auto wanted = ledger.superfluous();
          CHECK(std::find(wanted.begin(), wanted.end(), ledger.usable_of(each)->name) == wanted.end());
          ledger.release(each);
        }
    }
  }
}
