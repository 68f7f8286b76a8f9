// The gate takes events by round and trial, whatever the order in which they come.
#include "support/test.hpp"

#include <hypertune/tune/detail/ordered/ordered_gate.hpp>

#include <optional>
#include <string>
#include <variant>

namespace ht = hypertune;
using ht::Attempt;
using ht::TrialId;

namespace {

ht::Event reported(TrialId trial, Attempt attempt = 0) { return ht::Reported{trial, attempt, ht::Report{}, {}}; }
ht::Event lost(TrialId trial, Attempt attempt = 0) {
  return ht::Failed{trial, attempt, {.source = ht::FailureSource::infrastructure, .text = "its host was lost"}};
}

/// What the gate lets through now: r0 (a report of trial 0), p0 (paused), f0 (failed).
std::string taken(ht::OrderedGate& gate) {
  std::string text;
  while (const auto event = gate.next()) {
    if (const auto* r = std::get_if<ht::Reported>(&*event)) text += "r" + std::to_string(r->trial);
    if (const auto* p = std::get_if<ht::Paused>(&*event)) text += "p" + std::to_string(p->trial);
    if (const auto* f = std::get_if<ht::Failed>(&*event)) text += "f" + std::to_string(f->trial);
    text += ' ';
    gate.after_event();
  }
  return text;
}

}  // namespace

TEST_CASE("reports are taken by round and trial") {
  ht::OrderedGate gate;
  for (TrialId trial = 0; trial < 3; ++trial) gate.launched(trial);
  gate.offer(reported(2));
  gate.offer(reported(1));
  gate.offer(reported(1));
  CHECK(taken(gate).empty());
  gate.offer(reported(0));
  CHECK(taken(gate) == "r0 r1 r2 ");  // the second of trial 1 waits for that of trial 0
  gate.offer(reported(0));
  CHECK(taken(gate) == "r0 r1 ");
}

TEST_CASE("a trial whose host was lost keeps its turn, and does again what was lost without taking one") {
  ht::OrderedGate gate;
  gate.launched(0);
  gate.launched(1);
  gate.offer(reported(0));
  gate.offer(reported(1));
  CHECK(taken(gate) == "r0 r1 ");
  gate.offer(reported(1));
  gate.offer(lost(0));
  const auto failed = gate.next();  // at once: the others wait for it to go on
  REQUIRE(failed);
  CHECK(std::holds_alternative<ht::Failed>(*failed));
  gate.launched(0, 0);  // from the beginning
  gate.after_event();
  CHECK(taken(gate).empty());
  gate.offer(reported(0, 1));
  CHECK(taken(gate) == "r0 ");  // the step that had been told
  gate.offer(reported(0, 1));
  CHECK(taken(gate) == "r0 r1 ");
}

TEST_CASE("one that was lost and finds no room is not waited for") {
  ht::OrderedGate gate;
  gate.launched(0);
  gate.launched(1);
  gate.offer(reported(1));
  gate.offer(lost(0));
  CHECK(taken(gate) == "f0 r1 ");
}

TEST_CASE("a pause is due before anything else, also where the host is lost that was to tell of it") {
  ht::OrderedGate gate;
  gate.launched(0);
  gate.launched(1);
  gate.offer(reported(0));
  gate.offer(reported(1));
  const auto report = gate.next();
  REQUIRE(report);
  gate.ending(0, false);
  gate.after_event();
  CHECK(taken(gate).empty());
  SECTION("told") {
    gate.offer(ht::Paused{0, 0, false});
    CHECK(taken(gate) == "p0 r1 ");
    gate.launched(0, 1);
  }
  SECTION("lost, with its state saved") {
    gate.offer(lost(0));
    const auto failed = gate.next();
    REQUIRE(failed);
    gate.paused(0);
    gate.launched(0, 1);
    gate.after_event();
    CHECK(taken(gate) == "r1 ");
  }
  // Either way it has its next turn in the next round, before trial 1.
  gate.offer(reported(1));
  CHECK(taken(gate).empty());
  gate.offer(reported(0, 1));
  CHECK(taken(gate) == "r0 r1 ");
}

TEST_CASE("one that waits for its host is waited for, and launched then it has the turn that it had") {
  ht::OrderedGate gate;
  gate.launched(0);
  gate.launched(1);
  gate.offer(reported(1));
  gate.offer(lost(0));
  REQUIRE(gate.next());
  gate.held(0);
  gate.after_event();
  CHECK(taken(gate).empty());
  SECTION("it is back") {
    gate.launched(0, 0);
    gate.offer(reported(0, 1));
    CHECK(taken(gate) == "r0 r1 ");
  }
  SECTION("it is given up") {
    gate.left(0);
    CHECK(taken(gate) == "r1 ");
  }
}

TEST_CASE("steps that are recorded take no turns, from wherever a trial goes on") {
  ht::OrderedGate gate;
  gate.launched(0, 1, 3);  // from the checkpoint after its first step, though three are done
  gate.launched(1);
  gate.offer(reported(1));
  CHECK(taken(gate).empty());
  gate.offer(reported(0, 1));
  gate.offer(reported(0, 1));
  CHECK(taken(gate) == "r0 r0 ");
  gate.offer(reported(0, 1));
  CHECK(taken(gate) == "r0 r1 ");
}

TEST_CASE("a checkpoint stays behind the report that it was made after") {
  ht::OrderedGate gate;
  gate.launched(0);
  gate.launched(1);
  const auto saved = [](TrialId trial) { return ht::Checkpointed{trial, 0, {trial, 1, "step-1", 1, ""}}; };
  gate.offer(reported(1));
  gate.offer(saved(1));
  CHECK_FALSE(gate.next());  // trial 0 is before it
  gate.offer(reported(0));
  CHECK(std::holds_alternative<ht::Reported>(*gate.next()));
  gate.after_event();
  CHECK(std::get<ht::Reported>(*gate.next()).trial == 1);
  gate.after_event();
  CHECK(std::get<ht::Checkpointed>(*gate.next()).trial == 1);
  gate.after_event();
  gate.offer(saved(0));  // behind nothing
  CHECK(std::get<ht::Checkpointed>(*gate.next()).trial == 0);
}
