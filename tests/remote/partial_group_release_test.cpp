// What is held of a group in vain is given back, so that two experiments that each hold a part both end.
#include "support/test.hpp"

#include <hypertune/remote/partial_group_release.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace hypertune;
using remote::PartialGroupRelease;
using remote::WorkerStates;

namespace {

constexpr int group = 4, places = 5;
constexpr double tick = 0.25;

/// An experiment whose trials need four workers each, of one place each.
struct Experiment {
  Experiment(double patience, std::uint64_t seed) : hold(group, 1, patience, seed) {}

  void look(double now) {
    if (until > 0 && now >= until) {
      until = 0;
      --trials;
    }
    if (until == 0 && trials > 0 && std::count(up.begin(), up.end(), true) == group) until = now + 20;
    WorkerStates seen{.waiting = group * (trials - (until > 0 ? 1 : 0)),
                      .running = std::vector<int>(group, until > 0 ? 1 : 0),
                      .up = up};
    std::vector<bool> launched;
    std::set<int> stuck;
    for (int i = 0; i < group; ++i) {
      launched.push_back(scaler.launched(i));
      if (launched.back() && !up[static_cast<std::size_t>(i)]) stuck.insert(i);
    }
    for (const int i : hold.step(now, seen, launched, stuck)) {
      CHECK(until == 0);
      scaler.ended(i);
      up[static_cast<std::size_t>(i)] = false;
      ++given;
    }
    if (hold.pauses(now)) return;
    for (const int i : scaler.step(now, seen).end_workers) up[static_cast<std::size_t>(i)] = false;
  }

  remote::WorkerScaler scaler{{0, group}, 1, 5, false};
  PartialGroupRelease hold;
  std::vector<bool> up = std::vector<bool>(group, false);
  int trials = 3, given = 0;
  double until = 0;
};

/// Two of them, of which one has three places and the other one two. Returns when both have ended; -1: never.
double contend(double patience, std::uint64_t seed) {
  std::array<Experiment, 2> both{Experiment(patience, 2 * seed), Experiment(patience, 2 * seed + 1)};
  std::mt19937_64 random(seed);
  for (auto& each : both) each.look(0);
  both[0].up = {true, true, true, false};
  both[1].up = {true, true, false, false};
  for (double now = tick; now < 3600; now += tick) {
    for (auto& each : both) each.look(now);
    if (both[0].trials + both[1].trials == 0) return now;
    std::vector<std::pair<std::size_t, std::size_t>> pending;
    std::ptrdiff_t taken = 0;
    for (std::size_t e = 0; e < both.size(); ++e)
      for (std::size_t i = 0; i < group; ++i) {
        taken += both[e].up[i] ? 1 : 0;
        if (!both[e].up[i] && both[e].scaler.launched(static_cast<int>(i))) pending.emplace_back(e, i);
      }
    std::shuffle(pending.begin(), pending.end(), random);
    for (const auto& [e, i] : pending)
      if (taken++ < places) both[e].up[i] = true;
  }
  return -1;
}

}  // namespace

TEST_CASE("two experiments that each hold a part of what both need end, and would not if neither gave it back") {
  CHECK(contend(1e9, 1) == -1);
  double longest = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const double took = contend(30, seed);
    INFO("seed " << seed);
    REQUIRE(took > 0);
    longest = std::max(longest, took);
  }
  CHECK(longest < 1200);  // of which 120 s are work
}

TEST_CASE("a part of a group is given back after a while, with what is waited for, and asked for after a pause") {
  PartialGroupRelease hold(3, 1, 100, 7);
  const std::vector<bool> launched{true, true, true, true};
  const WorkerStates part{.waiting = 3, .running = {1, 0, 0, 0}, .up = {true, true, false, false}};
  CHECK(hold.step(0, part, launched, {2, 3}).empty());
  CHECK(hold.step(99, part, launched, {2, 3}).empty());
  CHECK_FALSE(hold.pauses(99));
  CHECK(hold.step(151, part, launched, {2, 3}) == std::vector{1, 2, 3});  // not the one that works
  CHECK(hold.pauses(155));
  CHECK_FALSE(hold.pauses(162));
  // The pause grows, up to the patience, until a trial has begun.
  double now = 200;
  for (int i = 0; i < 6; ++i) {
    hold.step(now, part, launched, {2, 3});
    now += 151;
    CHECK_FALSE(hold.step(now, part, launched, {2, 3}).empty());
  }
  CHECK(hold.pauses(now + 49));
  CHECK_FALSE(hold.pauses(now + 101));
}

TEST_CASE("nothing is given back that is not held in vain") {
  const std::vector<bool> launched{true, true, true};
  const auto given = [&](PartialGroupRelease hold, const WorkerStates& states, const std::set<int>& without_room) {
    hold.step(0, states, launched, without_room);
    return !hold.step(1000, states, launched, without_room).empty();
  };
  const WorkerStates part{.waiting = 3, .running = {0, 0, 0}, .up = {true, true, false}};
  CHECK(given(PartialGroupRelease(3, 1, 10, 1), part, {2}));
  CHECK_FALSE(given(PartialGroupRelease(1, 1, 10, 1), part, {2}));  // trials of one worker
  CHECK_FALSE(given(PartialGroupRelease(3, 1, 10, 1), part, {}));   // it is on its way
  CHECK_FALSE(given(PartialGroupRelease(2, 1, 10, 1), part, {2}));  // there is room for a group
  CHECK_FALSE(given(PartialGroupRelease(3, 2, 10, 1), part, {2}));  // likewise, two on each
  CHECK_FALSE(
      given(PartialGroupRelease(3, 1, 10, 1), {.running = {0, 0, 0}, .up = {true, true, false}}, {2}));  // nobody waits
  CHECK_FALSE(
      given(PartialGroupRelease(3, 1, 10, 1), {.waiting = 3, .running = {}, .up = {false, false, false}}, {0, 1, 2}));
  // One more is there: the cluster grows.
  PartialGroupRelease hold(3, 1, 10, 1);
  const WorkerStates one{.waiting = 3, .running = {0, 0, 0}, .up = {true, false, false}};
  CHECK(hold.step(0, one, launched, {1, 2}).empty());
  CHECK(hold.step(9, part, launched, {2}).empty());
  CHECK(hold.step(18, part, launched, {2}).empty());
  CHECK_FALSE(hold.step(25, part, launched, {2}).empty());
}
