#include "support/test.hpp"

#include <hypertune/cluster/autoscaler.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::cluster;

namespace {

NodeType type(const std::string& name, double cpus, double gpus, double price, int most, Spot spot = Spot::never) {
  NodeType t;
  t.name = name;
  t.resources = {.cpus = cpus, .gpus = gpus};
  t.resources_known = true;
  t.max_workers = most;
  t.price = price;
  t.spot = spot;
  if (spot != Spot::never) t.spot_price = price * 0.3;
  return t;
}

AutoscalerOptions options(std::vector<NodeType> types, int most = 10) {
  AutoscalerOptions o;
  o.types = std::move(types);
  o.max_workers = most;
  o.grow_delay = 0;
  o.idle_timeout = 60;
  return o;
}

Demand demand(std::vector<TrialShape> pending, std::map<std::string, std::vector<ht::Resources>> running = {}) {
  return {std::move(pending), std::move(running)};
}

struct Launches {
  std::map<std::string, int> by_name;  // "gpu" or "gpu*" for spot
  int all = 0;
};
Launches launches(const Autoscaler& scaler, const ScaleDecision& decision) {
  Launches found;
  for (const auto& action : decision.actions)
    if (const auto* launch = std::get_if<LaunchMachine>(&action)) {
      ++found.by_name[scaler.options().types[launch->type].name + (launch->spot ? "*" : "")];
      ++found.all;
    }
  return found;
}
int take_up(Autoscaler& scaler, const ScaleDecision& decision, double now, int& next, bool make_ready = true) {
  int n = 0;
  for (const auto& action : decision.actions)
    if (const auto* launch = std::get_if<LaunchMachine>(&action)) {
      const auto token = "m" + std::to_string(next++);
      scaler.launching(token, *launch, now);
      if (make_ready) scaler.ready(token, std::nullopt, now);
      ++n;
    }
  return n;
}
template <class A>
int number_of(const ScaleDecision& decision) {
  return static_cast<int>(std::count_if(decision.actions.begin(), decision.actions.end(),
                                        [](const auto& action) { return std::holds_alternative<A>(action); }));
}

}  // namespace

TEST_CASE("waiting trials are packed onto the cheapest machines that hold them") {
  Autoscaler scaler(options({type("small", 4, 0, 0.2, 10), type("large", 16, 0, 0.7, 10), type("gpu", 8, 1, 1.0, 10)}));
  SECTION("many small ones go together where that is cheaper") {
    const auto found = launches(scaler, scaler.decide(demand({{{.cpus = 1}, 16}}), 0));
    CHECK(found.by_name == std::map<std::string, int>{{"large", 1}});
  }
  SECTION("a few do not take a large machine") {
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 2}, 2}}), 0)).by_name ==
          std::map<std::string, int>{{"small", 1}});
  }
  SECTION("a GPU only for those that ask for one; the rest of that machine is used") {
    const auto found = launches(scaler, scaler.decide(demand({{{.cpus = 4}, 1}, {{.cpus = 4, .gpus = 1}, 1}}), 0));
    CHECK(found.by_name == std::map<std::string, int>{{"gpu", 1}});
  }
  SECTION("fractions share a GPU") {
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 1, .gpus = 0.25}, 4}}), 0)).by_name ==
          std::map<std::string, int>{{"gpu", 1}});
  }
  SECTION("what is asked for once is not asked for again") {
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 4}, 1}}), 0)).all == 1);
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 4}, 1}}), 1)).all == 0);
  }
  SECTION("what is free on machines that are there comes first") {
    scaler.machine_added("m", 1, false, false, true, 0);
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 4}, 2}}, {{"m", {{.cpus = 8}}}}), 0)).all == 0);
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 4}, 3}}, {{"m", {{.cpus = 8}}}}), 0)).all == 1);
  }
  SECTION("the head runs trials too") {
    scaler.machine_added("head", 0, false, true, true, 0);
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 4}, 1}}), 0)).all == 0);
  }
}

TEST_CASE("spot first, on-demand when there is none, back to spot later") {
  Autoscaler scaler(options({type("gpu", 8, 1, 1.0, 10, Spot::prefer)}));
  const auto wanted = demand({{{.cpus = 1, .gpus = 1}, 1}});
  int next = 0;
  auto decision = scaler.decide(wanted, 0);
  CHECK(launches(scaler, decision).by_name == std::map<std::string, int>{{"gpu*", 1}});
  take_up(scaler, decision, 0, next, false);
  scaler.launch_failed("m0", ProviderFailure::capacity, "no spot capacity", 1);
  decision = scaler.decide(wanted, 1);
  CHECK(launches(scaler, decision).by_name == std::map<std::string, int>{{"gpu", 1}});
  take_up(scaler, decision, 1, next);
  CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 1, .gpus = 1}, 2}}), 100)).by_name ==
        std::map<std::string, int>{{"gpu*", 1}});
}

TEST_CASE("a call that failed, and a machine that never came up, are no reason to pay for on-demand") {
  auto rules = options({type("gpu", 8, 1, 1.0, 10, Spot::prefer)});
  rules.launch_timeout = 30;
  Autoscaler scaler(rules);
  const auto wanted = demand({{{.cpus = 1, .gpus = 1}, 1}});
  int next = 0;
  take_up(scaler, scaler.decide(wanted, 0), 0, next, false);
  double now = 1;
  const auto again = [&] {
    for (; now < 1000; now = std::max(now + 0.01, std::min(scaler.next_change(now), now + 5))) {
      const auto decision = scaler.decide(wanted, now);
      const auto found = launches(scaler, decision);
      if (found.all == 0) continue;
      CHECK(found.by_name == std::map<std::string, int>{{"gpu*", 1}});
      return take_up(scaler, decision, now, next, false);
    }
    return 0;
  };
  SECTION("a create that timed out") {
    scaler.launch_failed("m0", ProviderFailure::failed, "did not answer within 300 s", now);
    CHECK(again() == 1);
  }
  SECTION("a machine that was not ready in time") {
    now = 31;
    CHECK(number_of<TerminateMachine>(scaler.decide(wanted, now)) == 1);
    CHECK(again() == 1);
  }
  // Where there is none, it is.
  scaler.launch_failed("m1", ProviderFailure::capacity, "no spot capacity", now);
  CHECK(launches(scaler, scaler.decide(wanted, now)).by_name == std::map<std::string, int>{{"gpu", 1}});
}

TEST_CASE("spot only waits, with growing delays") {
  Autoscaler scaler(options({type("gpu", 8, 1, 1.0, 10, Spot::only)}));
  const auto wanted = demand({{{.cpus = 1, .gpus = 1}, 1}});
  int next = 0;
  double now = 0;
  std::vector<double> waits;
  for (int attempt = 0; attempt < 6; ++attempt) {
    const double begin = now;
    ScaleDecision decision;
    while (launches(scaler, decision = scaler.decide(wanted, now)).all == 0) {
      const double change = scaler.next_change(now);
      REQUIRE(change < 1e6);
      now = std::max(change, now + 0.01);
    }
    waits.push_back(now - begin);
    take_up(scaler, decision, now, next, false);
    scaler.launch_failed("m" + std::to_string(attempt), ProviderFailure::capacity, "none", now);
  }
  for (std::size_t i = 2; i < waits.size(); ++i) CHECK(waits[i] == Approx(2 * waits[i - 1]).margin(0.05));
  const auto held = scaler.decide(wanted, now);
  REQUIRE(held.log.size() <= 1);
}

TEST_CASE("another type when one cannot be had") {
  Autoscaler scaler(options({type("cheap", 4, 0, 0.1, 10), type("dear", 4, 0, 0.5, 10)}));
  int next = 0;
  auto decision = scaler.decide(demand({{{.cpus = 4}, 1}}), 0);
  CHECK(launches(scaler, decision).by_name.count("cheap") == 1);
  take_up(scaler, decision, 0, next, false);
  scaler.launch_failed("m0", ProviderFailure::capacity, "quota", 0);
  CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 4}, 1}}), 0)).by_name.count("dear") == 1);
}

TEST_CASE("limits: max_workers, a type's own, and the speed") {
  SECTION("max_workers, said once") {
    Autoscaler scaler(options({type("t", 1, 0, 1, 10)}, 3));
    const auto decision = scaler.decide(demand({{{.cpus = 1}, 50}}), 0);
    CHECK(launches(scaler, decision).all == 3);
    CHECK_THAT(decision.log.back(), ContainsSubstring("max_workers"));
    CHECK(scaler.decide(demand({{{.cpus = 1}, 50}}), 1).log.empty());
  }
  SECTION("of the type") {
    Autoscaler scaler(options({type("a", 1, 0, 1, 2), type("b", 1, 0, 2, 2)}, 50));
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 1}, 50}}), 0)).by_name ==
          std::map<std::string, int>{{"a", 2}, {"b", 2}});
  }
  SECTION("upscaling_speed") {
    auto o = options({type("t", 1, 0, 1, 100)}, 100);
    o.upscaling_speed = 0.5;
    Autoscaler scaler(o);
    int next = 0;
    CHECK(take_up(scaler, scaler.decide(demand({{{.cpus = 1}, 100}}), 0), 0, next) == 5);
    for (int i = 0; i < 15; ++i) scaler.machine_added("x" + std::to_string(i), 0, false, false, true, 0);
    CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 1}, 100}}), 1)).all == 10);
  }
  SECTION("min_workers, also of a type") {
    auto o = options({type("a", 1, 0, 1, 10), type("b", 1, 0, 2, 10)}, 10);
    o.min_workers = 3;
    o.types[1].min_workers = 1;
    Autoscaler scaler(o);
    CHECK(launches(scaler, scaler.decide({}, 0)).by_name == std::map<std::string, int>{{"a", 2}, {"b", 1}});
    CHECK(launches(scaler, scaler.decide({}, 1)).all == 0);
  }
}

TEST_CASE("idle machines are drained, then ended; busy and needed ones are not") {
  Autoscaler scaler(options({type("t", 4, 0, 1, 10)}));
  scaler.machine_added("m", 0, false, false, true, 0);
  CHECK(scaler.decide({}, 0).actions.empty());
  CHECK(scaler.decide({}, 59).actions.empty());
  CHECK(scaler.next_change(59) == Approx(60));
  SECTION("after the timeout, in two steps") {
    CHECK(number_of<DrainMachine>(scaler.decide({}, 60)) == 1);
    const auto ended = scaler.decide({}, 60.5);
    CHECK(number_of<TerminateMachine>(ended) == 1);
    CHECK_THAT(ended.log.back(), ContainsSubstring("idle for 6"));
    CHECK(scaler.decide({}, 100).actions.empty());
    scaler.gone("m", 101);
    CHECK(scaler.machines() == 0);
  }
  SECTION("a trial that came in between keeps it") {
    scaler.decide({}, 60);
    const auto decision = scaler.decide(demand({}, {{"m", {{.cpus = 1}}}}), 60.5);
    CHECK(number_of<UndrainMachine>(decision) == 1);
    CHECK(number_of<TerminateMachine>(decision) == 0);
  }
  SECTION("so do trials that wait again, and no other is launched") {
    scaler.decide({}, 60);
    const auto decision = scaler.decide(demand({{{.cpus = 1}, 1}}), 60.5);
    CHECK(number_of<UndrainMachine>(decision) == 1);
    CHECK(launches(scaler, decision).all == 0);
  }
  SECTION("work resets the clock") {
    scaler.decide(demand({}, {{"m", {{.cpus = 1}}}}), 59);
    CHECK(scaler.decide({}, 100).actions.empty());
    CHECK(scaler.decide({}, 159).actions.empty());
    CHECK(number_of<DrainMachine>(scaler.decide({}, 160)) == 1);
  }
}

TEST_CASE("a type's own idle timeout holds in place of the cluster's") {
  auto quick = type("quick", 4, 0, 1, 10), never = type("never", 4, 0, 1, 10);
  quick.idle_timeout = 5;
  never.idle_timeout = 1e6;
  Autoscaler scaler(options({type("usual", 4, 0, 1, 10), quick, never}));
  for (std::size_t i = 0; i < 3; ++i) scaler.machine_added("m" + std::to_string(i), i, false, false, true, 0);
  const auto drained = [&](double now) {
    std::set<std::string> tokens;
    for (const auto& action : scaler.decide({}, now).actions)
      if (const auto* drain = std::get_if<DrainMachine>(&action)) tokens.insert(drain->token);
    return tokens;
  };
  CHECK(drained(0).empty());
  CHECK(scaler.next_change(1) == Approx(5));
  CHECK(drained(5) == std::set<std::string>{"m1"});
  CHECK(drained(59).empty());
  CHECK(drained(60) == std::set<std::string>{"m0"});
  CHECK(drained(1000).empty());
}

TEST_CASE("of types that serve equally well, the one of the highest priority is launched first") {
  const auto with = [](const std::string& name, int priority, double price, double cpus = 4) {
    auto made = type(name, cpus, 0, price, 2);
    made.priority = priority;
    return made;
  };
  const auto launched = [](std::vector<NodeType> types, int trials) {
    Autoscaler scaler(options(std::move(types)));
    return launches(scaler, scaler.decide(demand({{{.cpus = 4}, trials}}), 0)).by_name;
  };
  using Names = std::map<std::string, int>;
  CHECK(launched({with("a", 0, 1), with("b", 0, 1)}, 1) == Names{{"a", 1}});  // the first in the file
  CHECK(launched({with("a", 0, 1), with("b", 3, 1)}, 1) == Names{{"b", 1}});
  CHECK(launched({with("a", -1, 1), with("b", -2, 1)}, 1) == Names{{"a", 1}});
  CHECK(launched({with("a", 0, 1), with("b", 3, 1)}, 3) == Names{{"a", 1}, {"b", 2}});  // two of b at most
  CHECK(launched({with("a", 0, 1), with("b", 3, 1.5)}, 1) == Names{{"a", 1}});          // not equally well: dearer
  auto o = options({with("a", 0, 1), with("b", 3, 1)});
  o.min_workers = 1;
  Autoscaler scaler(o);
  CHECK(launches(scaler, scaler.decide({}, 0)).by_name == Names{{"b", 1}});
}

TEST_CASE("a need of a moment launches nothing") {
  auto o = options({type("t", 1, 0, 1, 10)});
  o.grow_delay = 2;
  Autoscaler scaler(o);
  CHECK(scaler.decide(demand({{{.cpus = 1}, 1}}), 0).actions.empty());
  CHECK(scaler.next_change(0) == Approx(2));
  CHECK(scaler.decide({}, 1).actions.empty());
  CHECK(scaler.decide(demand({{{.cpus = 1}, 1}}), 2.5).actions.empty());
  CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 1}, 1}}), 4.6)).all == 1);
}

TEST_CASE("a trial that can never fit is named at once") {
  Autoscaler scaler(options({type("small", 4, 0, 1, 10), type("gpu", 8, 2, 3, 10)}));
  CHECK_FALSE(scaler.why_never({.cpus = 8, .gpus = 2}));
  for (const ht::Resources& needs :
       {ht::Resources{.cpus = 9}, ht::Resources{.cpus = 1, .gpus = 3}, ht::Resources{.cpus = 1, .gpus = 1.5},
        ht::Resources{.cpus = 1, .custom = {{"x", 1}}}}) {
    const auto why = scaler.why_never(needs);
    REQUIRE(why);
    CHECK_THAT(*why, ContainsSubstring("a trial asks for"));
    const auto decision = scaler.decide(demand({{needs, 3}}), 0);
    CHECK(decision.impossible.size() == 1);
    CHECK(decision.actions.empty());
  }
  CHECK_THAT(*scaler.why_never({.cpus = 9}), ContainsSubstring("the largest, 'gpu', has 8 cpus, 2 gpus"));
  Autoscaler none(options({type("head", 4, 0, 1, 0)}, 0));
  CHECK_FALSE(none.why_never({.cpus = 2}));  // on the head
  CHECK(none.why_never({.cpus = 5}));
}

TEST_CASE("machines of unknown size: one trial each, until one is there") {
  auto unknown = type("t", 1, 0, 0, 10);
  unknown.resources_known = false;
  Autoscaler scaler(options({unknown}));
  int next = 0;
  auto decision = scaler.decide(demand({{{.cpus = 4}, 2}}), 0);
  CHECK(launches(scaler, decision).all == 2);
  for (const auto& action : decision.actions)
    scaler.launching("m" + std::to_string(next++), std::get<LaunchMachine>(action), 0);
  scaler.ready("m0", ht::Resources{.cpus = 8}, 1);
  CHECK(scaler.options().types[0].resources.cpus == 8);
  CHECK(launches(scaler, scaler.decide(demand({{{.cpus = 4}, 4}}), 2)).all == 0);
  CHECK(scaler.why_never({.cpus = 9}));
}

TEST_CASE("a machine that never gets ready is ended, and its kind avoided for a while") {
  auto o = options({type("a", 1, 0, 1, 5), type("b", 1, 0, 2, 5)});
  o.launch_timeout = 100;
  Autoscaler scaler(o);
  int next = 0;
  const auto wanted = demand({{{.cpus = 1}, 1}});
  take_up(scaler, scaler.decide(wanted, 0), 0, next, false);
  const auto decision = scaler.decide(wanted, 101);
  CHECK(number_of<TerminateMachine>(decision) == 1);
  scaler.gone("m0", 101);
  CHECK(launches(scaler, scaler.decide(wanted, 102)).by_name == std::map<std::string, int>{{"b", 1}});
}

// Any history: a provider that fails at will, machines that are lost, trials that come and go.
TEST_CASE("laws that hold whatever happens") {
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&](double p) { return std::uniform_real_distribution<>(0, 1)(random) < p; };
    auto o = options({type("small", 4, 0, 0.2, 4, chance(0.5) ? Spot::prefer : Spot::never),
                      type("large", 16, 0, 0.7, 3, Spot::only), type("gpu", 8, 2, 2, 5)},
                     static_cast<int>(random() % 8));
    o.min_workers = std::min(o.max_workers, static_cast<int>(random() % 3));
    o.grow_delay = chance(0.5) ? 0 : 1;
    Autoscaler scaler(o);
    struct Live {
      LaunchMachine what;
      bool ready = false, drained = false;
      std::vector<ht::Resources> running;
    };
    std::map<std::string, Live> live;
    std::map<std::string, bool> idle_seen_while_drained;
    int next = 0;
    double now = 0;
    std::vector<TrialShape> pending;
    for (int step = 0; step < 400; ++step) {
      now += std::exponential_distribution<>(0.3)(random);
      const bool quiet = step > 300;  // nothing new any more
      if (!quiet && chance(0.4)) {
        const ht::Resources shapes[] = {
            {.cpus = 1}, {.cpus = 4}, {.cpus = 12}, {.cpus = 2, .gpus = 1}, {.cpus = 1, .gpus = 0.5}};
        pending.push_back({shapes[random() % 5], 1 + static_cast<int>(random() % 4)});
      }
      // trials are placed on machines that take some, and end
      for (auto& [token, machine] : live) {
        if (machine.ready && !machine.drained) {
          Room room(scaler.options().types[machine.what.type].resources);
          for (const auto& needs : machine.running) REQUIRE(room.take(needs));
          for (auto& shape : pending)
            while (shape.count > 0 && room.take(shape.needs)) {
              machine.running.push_back(shape.needs);
              --shape.count;
            }
        }
        while (!machine.running.empty() && chance(quiet ? 0.8 : 0.2)) machine.running.pop_back();
      }
      std::erase_if(pending, [](const TrialShape& shape) { return shape.count == 0; });
      if (quiet) pending.clear();
      for (auto it = live.begin(); it != live.end();) {
        if (!quiet && chance(0.02)) {  // taken away
          scaler.gone(it->first, now);
          it = live.erase(it);
        } else {
          ++it;
        }
      }
      Demand asked{pending, {}};
      for (const auto& [token, machine] : live)
        if (!machine.running.empty()) asked.running[token] = machine.running;
      const auto decision = scaler.decide(asked, now);
      for (const auto& action : decision.actions) {
        if (const auto* launch = std::get_if<LaunchMachine>(&action)) {
          REQUIRE((launch->spot || o.types[launch->type].spot != Spot::only));
          REQUIRE((!launch->spot || o.types[launch->type].spot != Spot::never));
          const auto token = "m" + std::to_string(next++);
          scaler.launching(token, *launch, now);
          if (!quiet && chance(0.3))
            scaler.launch_failed(token, chance(0.5) ? ProviderFailure::capacity : ProviderFailure::failed, "no", now);
          else
            live[token] = {*launch, false, false, {}};
        } else if (const auto* drain = std::get_if<DrainMachine>(&action)) {
          REQUIRE(live.contains(drain->token));
          REQUIRE(live[drain->token].running.empty());
          live[drain->token].drained = true;
        } else if (const auto* undrain = std::get_if<UndrainMachine>(&action)) {
          live[undrain->token].drained = false;
        } else {
          const auto& token = std::get<TerminateMachine>(action).token;
          REQUIRE(live.contains(token));
          REQUIRE(live[token].running.empty());                  // never a busy one
          REQUIRE((live[token].drained || !live[token].ready));  // never without a drain
          live.erase(token);
          scaler.gone(token, now);
        }
      }
      for (auto& [token, machine] : live)
        if (!machine.ready && chance(0.5)) {
          machine.ready = true;
          scaler.ready(token, std::nullopt, now);
        }
      REQUIRE(scaler.machines() == static_cast<int>(live.size()));
      REQUIRE(static_cast<int>(live.size()) <= o.max_workers);
      std::map<std::size_t, int> of_type;
      for (const auto& [token, machine] : live) ++of_type[machine.what.type];
      for (const auto& [index, n] : of_type) REQUIRE(n <= o.types[index].max_workers);
    }
    now += 1000;  // long idle: down to the minimum
    for (int step = 0; step < 60; ++step, now += 61) {
      const auto decision = scaler.decide({}, now);
      for (const auto& action : decision.actions) {
        if (const auto* launch = std::get_if<LaunchMachine>(&action)) {
          const auto token = "m" + std::to_string(next++);
          scaler.launching(token, *launch, now);
          scaler.ready(token, std::nullopt, now);
        } else if (const auto* end = std::get_if<TerminateMachine>(&action)) {
          scaler.gone(end->token, now);
        }
      }
    }
    REQUIRE(scaler.machines() == o.min_workers);
  }
}

TEST_CASE("the same history gives the same decisions") {
  const auto run = [] {
    Autoscaler scaler(options({type("a", 4, 0, 0.2, 4, Spot::prefer), type("b", 8, 1, 1, 4)}));
    std::string all;
    int next = 0;
    for (int i = 0; i < 50; ++i) {
      const auto decision = scaler.decide(demand({{{.cpus = 1.0 + i % 3, .gpus = i % 5 == 0 ? 1.0 : 0.0}, i % 7}}), i);
      for (const auto& line : decision.log) all += line + "\n";
      take_up(scaler, decision, i, next, i % 2 == 0);
    }
    return all;
  };
  CHECK(run() == run());
  CHECK_FALSE(run().empty());
}

TEST_CASE("ten thousand waiting trials and a hundred machines are decided at once") {
  auto o = options({type("a", 4, 0, 0.2, 500), type("b", 8, 1, 1, 500)}, 500);
  o.upscaling_speed = 100;
  Autoscaler scaler(o);
  for (int i = 0; i < 100; ++i) scaler.machine_added("x" + std::to_string(i), i % 2, false, false, true, 0);
  const auto decision = scaler.decide(demand({{{.cpus = 1}, 5000}, {{.cpus = 2, .gpus = 1}, 5000}}), 0);
  CHECK(launches(scaler, decision).all == 400);
}
