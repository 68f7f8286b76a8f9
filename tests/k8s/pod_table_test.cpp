// Which pod is whose.
#include "pod_table.hpp"

#include "support/test.hpp"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

using namespace hypertune;
using k8s::PodState;
using k8s::PodTable;

namespace {

using Phase = PodState::Phase;

PodState pod(const std::string& name, const std::string& worker, Phase phase, const std::string& node = "n1") {
  return {.name = name, .uid = "u", .worker = worker, .node = node, .ip = {}, .phase = phase};
}

}  // namespace

TEST_CASE("a worker goes on in the pod that it has, unless that is of no use any more") {
  PodTable table;
  table.want("a");
  CHECK(table.usable_of("a") == nullptr);
  CHECK(table.see(pod("p1", "a", Phase::waiting), 0));
  CHECK_FALSE(table.see(pod("p1", "a", Phase::waiting), 1));
  REQUIRE(table.usable_of("a") != nullptr);
  CHECK(table.usable_of("a")->name == "p1");
  CHECK(table.usable_of("b") == nullptr);

  // Of two, the one that runs stays.
  table.see(pod("p2", "a", Phase::running), 1);
  CHECK(table.usable_of("a")->name == "p2");
  CHECK(table.superfluous() == std::vector<std::string>{"p1"});

  table.discard("p2");
  CHECK(table.usable_of("a")->name == "p1");
  auto leaving = pod("p1", "a", Phase::running);
  leaving.leaving = true;
  CHECK(table.see(leaving, 2));
  CHECK(table.usable_of("a") == nullptr);
  CHECK(table.superfluous() == std::vector<std::string>{"p2"});  // the other one goes already
  table.forget("p2");
  CHECK(table.find("p2") == nullptr);
  REQUIRE(table.find_or_last("p2") != nullptr);
  CHECK(table.find_or_last("p2")->phase == Phase::running);
  CHECK(table.find_or_last("p9") == nullptr);
  CHECK(table.superfluous().empty());
  // An object that stays behind after its end is removed, whatever ended it.
  leaving.phase = Phase::ended;
  table.see(leaving, 3);
  CHECK(table.superfluous() == std::vector<std::string>{"p1"});
}

TEST_CASE("pods of workers that nobody wants are superfluous, those of an earlier driver included") {
  PodTable table;
  table.see(pod("old", "worker-9", Phase::running), 0);
  table.see(pod("mine", "worker-1", Phase::running), 0);
  table.want("worker-1");
  CHECK(table.superfluous() == std::vector<std::string>{"old"});
  table.release("worker-1");
  CHECK(table.superfluous().size() == 2);
  CHECK(table.all().size() == 2);
}

TEST_CASE("a node where a pod was lost is avoided for a while") {
  PodTable table;
  table.avoid("", 0);
  CHECK(table.avoided(0).empty());
  table.avoid("n1", 0);
  table.avoid("n2", 50);
  CHECK(table.avoided(100) == std::vector<std::string>{"n1", "n2"});
  CHECK(table.avoided(PodTable::avoid_for + 1) == std::vector<std::string>{"n2"});
  table.clear_avoided();
  CHECK(table.avoided(PodTable::avoid_for + 1).empty());
}

TEST_CASE("how long a pod has been in doubt is counted from the first time, and not across better news") {
  PodTable table;
  auto unlikely = pod("p", "a", Phase::waiting);
  unlikely.prospect = PodState::Prospect::unlikely;
  table.see(unlikely, 5);
  table.see(unlikely, 9);
  CHECK(table.unlikely_since("p") == 5);
  table.see(pod("p", "a", Phase::waiting), 10);
  CHECK_FALSE(table.unlikely_since("p"));
  table.see(unlikely, 12);
  CHECK(table.unlikely_since("p") == 12);
  CHECK_FALSE(table.unlikely_since("q"));
}

TEST_CASE("a pod that did not answer casts doubt on its node, unless it alone was taken away") {
  PodTable table;
  const auto avoided_after = [&](const std::string& name, bool leaving, const std::string& reason) {
    auto state = pod(name, "a", Phase::running, "node-of-" + name);
    state.leaving = leaving;
    state.reason = reason;
    table.see(state, 0);
    table.discard_and_avoid_node(name, 0);
    CHECK(table.usable_of("a") == nullptr);
    const auto all = table.avoided(0);
    return std::find(all.begin(), all.end(), "node-of-" + name) != all.end();
  };
  CHECK(avoided_after("p1", false, ""));
  CHECK_FALSE(avoided_after("p2", true, ""));
  CHECK_FALSE(avoided_after("p3", true, "PreemptionByScheduler"));
  CHECK(avoided_after("p4", true, "DeletionByTaintManager"));
  table.discard_and_avoid_node("nobody", 0);
}

TEST_CASE("all that is not on its way out, and what ended by itself, is known") {
  PodTable table;
  auto leaving = pod("p2", "b", Phase::running), taken = pod("p4", "d", Phase::ended);
  leaving.leaving = true;
  taken.leaving = taken.disrupted = true;
  for (const auto& each : {pod("p1", "a", Phase::running), leaving, pod("p3", "c", Phase::ended), taken})
    table.see(each, 0);
  CHECK(table.remaining() == std::vector<std::string>{"p1", "p3", "p4"});
  CHECK(table.find_ended_by_itself("p1") == nullptr);
  CHECK(table.find_ended_by_itself("p4") == nullptr);
  REQUIRE(table.find_ended_by_itself("p3") != nullptr);
  table.deleted("p3");  // as it is of no use any more; who waits for a word of it may ask how it ended only then
  CHECK(table.find_ended_by_itself("p3") != nullptr);
  auto deleted = pod("p3", "c", Phase::ended);
  deleted.leaving = true;
  table.see(deleted, 1);
  CHECK(table.find_ended_by_itself("p3") != nullptr);
  table.forget("p3");
  CHECK(table.find_ended_by_itself("p3") != nullptr);
  // One that was taken away and then ended has not ended by itself.
  table.deleted("p1");
  table.see(pod("p1", "a", Phase::ended), 2);
  CHECK(table.find_ended_by_itself("p1") == nullptr);
}

TEST_CASE("a pod runs as soon as somebody says so, whatever its status says") {
  PodTable table;
  table.want("a");
  CHECK_FALSE(table.start("p"));  // nobody has heard of it
  auto waits = pod("p", "a", Phase::waiting);
  waits.prospect = PodState::Prospect::unlikely;
  waits.sentence = "is being started";
  table.see(waits, 0);
  CHECK(table.start("p"));
  CHECK_FALSE(table.start("p"));
  REQUIRE(table.usable_of("a") != nullptr);
  CHECK(table.usable_of("a")->phase == Phase::running);
  CHECK(table.usable_of("a")->sentence.empty());
  CHECK_FALSE(table.unlikely_since("p"));
  CHECK_FALSE(table.see(waits, 1));  // what is told later was so before
  CHECK(table.usable_of("a")->phase == Phase::running);
  auto taken = waits;
  taken.leaving = true;
  taken.sentence = "is preempted";
  table.see(taken, 1);
  CHECK(table.find("p")->phase == Phase::running);
  CHECK(table.find("p")->sentence == "is preempted");
  auto ended = pod("p", "a", Phase::ended);
  table.see(ended, 2);
  CHECK_FALSE(table.start("p"));
  CHECK(table.usable_of("a") == nullptr);
  // Another one of that name is another pod.
  table.forget("p");
  table.see(waits, 3);
  CHECK(table.usable_of("a")->phase == Phase::waiting);
}

TEST_CASE("a pod whose deletion was asked for is not deleted again, whatever becomes of it") {
  PodTable table;
  auto gone = pod("p", "a", Phase::running);
  gone.leaving = gone.deleted = true;
  for (const auto phase : {Phase::running, Phase::ended}) {
    gone.phase = phase;
    table.see(gone, 0);
    CHECK(table.superfluous().empty());
    CHECK(table.remaining().empty());
    CHECK(table.all().empty());
  }
  table.see(pod("q", "a", Phase::running), 0);
  CHECK(table.superfluous() == std::vector<std::string>{"q"});
  table.deleted("q");
  table.deleted("nobody");
  table.want("a");
  CHECK(table.superfluous().empty());
  CHECK(table.usable_of("a") == nullptr);
  // It is told of as it was before its deletion.
  table.see(pod("q", "a", Phase::running), 1);
  CHECK(table.superfluous().empty());
  CHECK(table.all().empty());
  CHECK(table.usable_of("a") == nullptr);
}

TEST_CASE("a pod that is taken away is told of once, and not where it was ours to discard") {
  PodTable table;
  table.want("a");
  auto gone = pod("p", "a", Phase::running);
  gone.disrupted = gone.leaving = true;
  table.see(gone, 0);
  CHECK(table.newly_leaving().size() == 1);
  table.see(gone, 1);
  CHECK(table.newly_leaving().empty());
  gone.name = "q";
  table.discard("q");
  table.see(gone, 1);
  CHECK(table.newly_leaving().empty());
}

TEST_CASE("whatever happens, a wanted worker keeps one pod at most, and what is deleted is not the one in use") {
  std::mt19937 random(5);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    PodTable table;
    for (int step = 0; step < 60; ++step) {
      const auto name = "p" + std::to_string(pick(6)), worker = "w" + std::to_string(pick(2));
      switch (pick(5)) {
        case 0: table.want(worker); break;
        case 1: table.release(worker); break;
        case 2: table.discard(name); break;
        case 3: table.forget(name); break;
        default: {
          auto state = pod(name, worker, static_cast<Phase>(pick(3)));
          state.leaving = pick(4) == 0;
          table.see(state, step);
        }
      }
      const auto extra = table.superfluous();
      for (const auto* each : {"w0", "w1"})
        if (const auto* used = table.usable_of(each);
            used != nullptr && std::find(extra.begin(), extra.end(), used->name) != extra.end()) {
          // only where nobody wants it
          table.want(each);
          const auto wanted = table.superfluous();
          CHECK(std::find(wanted.begin(), wanted.end(), table.usable_of(each)->name) == wanted.end());
          table.release(each);
        }
    }
  }
}
