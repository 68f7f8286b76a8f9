// A host's life in virtual time.
#include "support/test.hpp"

#include <hypertune/remote/host_state_machine.hpp>

using namespace hypertune;
using namespace hypertune::remote;

TEST_CASE("a silent host is doubted, then lost, and tried again after growing delays with a reason") {
  HostStateMachine host({.heartbeat = 3, .connect = 10, .first_delay = 1, .max_delay = 5, .stable = 60});
  CHECK(host.start(0).connect);
  CHECK(host.hello_received(1).gained);
  CHECK(host.usable());
  host.message_received(2);
  CHECK(host.deadline() == 3.5);
  CHECK_FALSE(host.tick(3.5).lost);
  CHECK(host.state() == HostState::suspect);
  CHECK(host.usable());
  host.message_received(3.6);
  CHECK(host.state() == HostState::ready);
  host.tick(5.1);
  const auto lost = host.tick(6.6);
  CHECK(lost.lost);
  CHECK(lost.close);
  REQUIRE(lost.unusable);
  CHECK_THAT(*lost.unusable, ContainsSubstring("no sign of life for 3.0 s") && ContainsSubstring("set aside for 1 s"));
  CHECK(host.state() == HostState::backing_off);
  CHECK_FALSE(host.tick(7).connect);
  double now = 6.6;
  for (const double delay : {1.0, 2.0, 4.0, 5.0, 5.0}) {
    CHECK(host.deadline() == now + delay);
    now += delay;
    CHECK(host.tick(now).connect);
    const auto failed = host.ended("refused", now);
    CHECK_FALSE(failed.lost);
    REQUIRE(failed.unusable);
    CHECK_THAT(*failed.unusable, ContainsSubstring("refused; set aside for"));
  }
  CHECK_THAT(host.reason(), ContainsSubstring("after 6 failures in a row"));
}

TEST_CASE("an agent that has a stream and never speaks is given up, with what it said instead") {
  HostStateMachine host({.connect = 1000, .hello = 5, .first_delay = 1, .refusals = 1});
  host.start(0);
  CHECK(host.deadline() == 1000);  // there may be no stream for long
  host.opened(100);
  CHECK(host.deadline() == 105);
  CHECK_FALSE(host.tick(104).close);
  const auto mute = host.tick(105, "it waits for a licence");
  CHECK(mute.close);
  CHECK_FALSE(mute.lost);
  CHECK(host.problem() == "its agent has not spoken within 5 s; it said: it waits for a licence");
  CHECK(host.refused());
  host.tick(host.deadline());
  CHECK(host.deadline() > 1100);  // a new attempt has no stream yet
  host.opened(500);
  CHECK(host.hello_received(501).gained);
}

TEST_CASE("a host whose trouble does not pass by itself is refused, until it is seen to work") {
  HostStateMachine host({.heartbeat = 3, .first_delay = 1, .max_delay = 300, .stable = 60, .refusals = 3});
  double now = 0;
  const auto attempt = [&](FailureClass failure, bool greets = false) {
    host.state() == HostState::gone ? host.start(now) : host.tick(now);
    if (greets) host.hello_received(now);
    host.ended("no such program", now, failure);
    now = host.deadline();
  };
  attempt(FailureClass::permanent);
  attempt(FailureClass::permanent);
  attempt(FailureClass::transient);  // the network: it may be another machine by now
  attempt(FailureClass::permanent, true);
  attempt(FailureClass::permanent, true);
  CHECK_FALSE(host.refused());
  const double before = now;
  attempt(FailureClass::permanent, true);
  CHECK(host.refused());
  CHECK(now == before + 300);
  CHECK_THAT(host.reason(), ContainsSubstring("no such program; set aside for 300 s, as this does not pass by itself"));
  CHECK(host.problem() == "no such program");
  host.tick(now);
  CHECK(host.refused());  // while it is tried once more
  host.hello_received(now);
  host.trial_started();
  CHECK_FALSE(host.refused());

  // What is not known to last has to come more often.
  HostStateMachine other({.refusals = 2});
  other.start(0);
  int attempts = 0;
  for (; !other.refused() && attempts < 100; ++attempts) {
    other.ended("ended without a word", other.deadline(), FailureClass::unknown);
    other.tick(other.deadline());
  }
  CHECK(attempts == 6);
  HostStateMachine third({});
  third.start(0);
  for (int i = 0; i < 100; ++i) {
    third.ended("no route to host", third.deadline());
    third.tick(third.deadline());
  }
  CHECK_FALSE(third.refused());
  CHECK_THROWS_AS(HostStateMachine({.refusals = 0}), Error);
}

TEST_CASE("a host that was well for long enough is as good as new") {
  HostStateMachine host({.heartbeat = 3, .first_delay = 1, .stable = 60});
  host.start(0);
  for (int i = 0; i < 3; ++i) {
    host.ended("refused", host.deadline());
    host.tick(host.deadline());
  }
  host.hello_received(100);
  host.message_received(130);
  host.ended("closed", 130);  // 30 s were not enough
  CHECK(host.failures() == 4);
  host.tick(host.deadline());
  host.hello_received(200);
  host.message_received(261);
  host.ended("closed", 261);
  CHECK(host.failures() == 1);
}

TEST_CASE("a connection that never says hello is given up") {
  HostStateMachine host({.connect = 10});
  host.start(5);
  CHECK(host.deadline() == 15);
  const auto actions = host.tick(15);
  CHECK(actions.close);
  CHECK_FALSE(actions.lost);
  CHECK_THAT(host.reason(), ContainsSubstring("no answer within 10 s"));
}

TEST_CASE("a draining host takes no trials, may still be lost, and is tried again when it has drained") {
  HostStateMachine host({.heartbeat = 3, .first_delay = 1});
  host.start(0);
  host.hello_received(0);
  const auto drain = host.drain("notice");
  CHECK(drain.unusable == "notice");
  CHECK_FALSE(drain.lost);
  CHECK(host.up());
  CHECK_FALSE(host.usable());
  CHECK_FALSE(host.drain("again").unusable);
  SECTION("drained") {
    const auto drained = host.drained(4);
    CHECK(drained.close);
    CHECK_FALSE(drained.lost);
    CHECK(host.state() == HostState::backing_off);
  }
  SECTION("silent") {
    const auto lost = host.tick(3);
    CHECK(lost.lost);
    CHECK_THAT(host.reason(), ContainsSubstring("notice"));
  }
}

TEST_CASE("a host that was taken from the list is gone, and comes back when it is on it again") {
  HostStateMachine host({.heartbeat = 3});
  host.start(0);
  SECTION("while it is connected to") {
    const auto actions = host.drain("taken from the list", true);
    CHECK(actions.close);
    CHECK_FALSE(actions.lost);
  }
  SECTION("while it runs trials") {
    host.hello_received(0);
    CHECK(host.drain("taken from the list", true).unusable);
    CHECK(host.drained(1).close);
  }
  SECTION("while it is set aside") {
    host.ended("refused", 1);
    CHECK(host.drain("taken from the list", true).unusable);
  }
  CHECK(host.state() == HostState::gone);
  CHECK_FALSE(host.tick(1e6).connect);
  CHECK_FALSE(host.ended("late", 2).unusable);
  CHECK(host.restored(3).connect);
}

TEST_CASE("the agent gives up before the driver does") {
  const HostTimeouts patience;
  CHECK(HostTimeouts::agent_liveness(patience.heartbeat) + patience.heartbeat_interval() <= patience.heartbeat);
  CHECK_THROWS_AS(HostStateMachine({.heartbeat = 0}), Error);
}

TEST_CASE("a host that waits for something says what for, and is not given up for it") {
  HostStateMachine host({.connect = 1000});
  host.start(0);
  CHECK(host.waiting("waits in a queue").unusable == "waits in a queue");
  CHECK_FALSE(host.waiting("waits in a queue").unusable);  // nothing new
  CHECK(host.state() == HostState::connecting);
  CHECK(host.failures() == 0);
  CHECK(host.hello_received(5).gained);
  CHECK(host.reason().empty());
  CHECK_FALSE(host.waiting("late").unusable);
  CHECK(host.reason().empty());
}

TEST_CASE("what is wrong with a host is said without what follows from it, in whatever state it is") {
  HostStateMachine host({.first_delay = 1});
  host.start(0);
  host.ended("no route", 1);
  CHECK(host.problem() == "no route");
  CHECK(host.reason() == "no route; set aside for 1 s");
  REQUIRE(host.tick(2).connect);
  CHECK(host.problem() == "no route");  // while it is tried again
  host.waiting("waits in a queue");
  CHECK(host.problem() == "waits in a queue");
  host.hello_received(3);
  CHECK(host.problem().empty());
  host.drain("notice");
  CHECK(host.problem() == "notice");
  host.drained(4);
  CHECK(host.problem() == "notice");
  CHECK(host.reason() == "notice; set aside for 2 s after 2 failures in a row");
}

TEST_CASE("a host that waits for what will never come about is refused at once, and tried seldom") {
  HostStateMachine host({.connect = 1e6, .max_delay = 300, .refusals = 3});
  host.start(0);
  const auto refused = host.refuse("nobody grants that", 1);
  CHECK(refused.close);
  CHECK_FALSE(refused.lost);
  CHECK(refused.unusable);
  CHECK(host.refused());
  CHECK(host.problem() == "nobody grants that");
  CHECK(host.reason() == "nobody grants that; set aside for 300 s, as this does not pass by itself");
  CHECK(host.deadline() == 301);
  CHECK_FALSE(host.refuse("nobody grants that", 2).unusable);  // it is set aside
  REQUIRE(host.tick(301).connect);
  CHECK(host.refused());
  host.hello_received(302);
  host.trial_started();
  CHECK_FALSE(host.refused());
  CHECK_FALSE(host.refuse("late", 303).unusable);
}

TEST_CASE("one that was there for long and goes with notice is as good as new afterwards") {
  HostStateMachine host({.stable = 60});
  Seconds now = 0;
  host.start(now);
  for (int turn = 0; turn < 5; ++turn) {
    host.hello_received(now);
    now += 100;
    host.drain("its time is nearly over");
    host.drained(now);
    CHECK(host.failures() == 1);
    now = host.deadline();
    REQUIRE(host.tick(now).connect);
  }
}
