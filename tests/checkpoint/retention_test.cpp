#include "support/test.hpp"

#include <hypertune/checkpoint/detail/retention.hpp>
#include <hypertune/random.hpp>

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

CheckpointInfo info(TrialId trial, int steps, std::uint64_t bytes = 1) {
  return {.trial = trial, .steps = steps, .name = fmt::format("step-{}", steps), .bytes = bytes, .digest = "d"};
}

std::vector<int> steps_of(const std::vector<CheckpointInfo>& list) {
  std::vector<int> steps;
  for (const auto& one : list) steps.push_back(one.steps);
  return steps;
}

using Steps = std::vector<int>;

}  // namespace

TEST_CASE("a checkpoint is due every so many steps") {
  CheckpointPolicy policy;
  CHECK_FALSE(policy.due(5));
  policy.every = 5;
  CHECK_FALSE(policy.due(0));
  CHECK_FALSE(policy.due(4));
  CHECK(policy.due(5));
  CHECK(policy.due(10));
}

TEST_CASE("a policy that makes no sense is refused by name") {
  CHECK_THROWS_WITH(Retention({.keep = -1}), ContainsSubstring("'keep' is -1"));
  CHECK_THROWS_WITH(CheckpointPolicy{.every = -2}.validate(), ContainsSubstring("'every' is -2"));
  CHECK_THROWS_WITH(CheckpointPolicy{.keep_best = -2}.validate(), ContainsSubstring("'keep_best'"));
}

TEST_CASE("the newest are kept") {
  Retention retention({.keep = 2});
  for (int steps = 1; steps <= 5; ++steps) retention.add(info(0, steps), 0.1 * steps);
  // The very best of all (steps = 1) stays as well.
  CHECK(steps_of(retention.take_dropped()) == Steps{2, 3});
  CHECK(retention.take_dropped().empty());
  CHECK(retention.size() == 3);
}

TEST_CASE("the best are kept besides") {
  Retention retention({.keep = 1, .keep_best = 2});
  const double losses[] = {5, 1, 4, 2, 3};
  for (int i = 0; i < 5; ++i) retention.add(info(0, i + 1), losses[i]);
  CHECK(steps_of(retention.take_dropped()) == Steps{1, 3});
  retention.add(info(0, 6), std::numeric_limits<double>::quiet_NaN());
  retention.add(info(0, 7), -std::numeric_limits<double>::infinity());
  CHECK(steps_of(retention.take_dropped()) == Steps{5, 6});
  CHECK(retention.contains(info(0, 2)));
  CHECK(retention.contains(info(0, 4)));
}

TEST_CASE("without limits by count all are kept") {
  Retention retention({.keep = 0});
  for (int steps = 1; steps <= 50; ++steps) retention.add(info(0, steps), 1);
  CHECK(retention.take_dropped().empty());
}

TEST_CASE("bytes are freed from ended trials first, the worst before the better") {
  Retention retention({.keep = 5, .max_bytes = 40});
  retention.add(info(0, 1, 10), 0.9);
  retention.add(info(1, 1, 10), 0.5);
  retention.add(info(2, 1, 10), 0.7);
  retention.add(info(3, 1, 10), 0.8);
  retention.trial_ended(1);
  retention.trial_ended(2);
  CHECK(retention.take_dropped().empty());
  retention.add(info(3, 2, 10), 0.8);
  CHECK(retention.take_dropped() == std::vector{info(2, 1, 10)});
  retention.add(info(3, 3, 10), 0.8);
  CHECK(retention.take_dropped() == std::vector{info(3, 1, 10)});  // trial 1 is the best, 0 has but one
  retention.add(info(4, 1, 25), 0.8);
  CHECK(retention.take_dropped() == std::vector{info(3, 2, 10)});
  CHECK(retention.over_budget());
  CHECK(retention.total_bytes() == 55);
  retention.trial_ended(0);
  CHECK(retention.take_dropped() == std::vector{info(0, 1, 10)});
}

TEST_CASE("a pinned one is dropped when it is not needed any more") {
  Retention retention({.keep = 1});
  retention.add(info(0, 1), 5);
  retention.add(info(9, 1), 0);
  CHECK(retention.pin(info(0, 1)));
  CHECK(retention.pin(info(0, 1)));
  retention.add(info(0, 2), 5);
  retention.unpin(info(0, 1));
  CHECK(retention.take_dropped().empty());
  retention.unpin(info(0, 1));
  CHECK(retention.take_dropped() == std::vector{info(0, 1)});
  retention.unpin(info(0, 1));
  CHECK_FALSE(retention.pin(info(0, 1)));
}

TEST_CASE("a corrupt one that is forgotten gives its place to the one before") {
  Retention retention({.keep = 1, .max_bytes = 1});
  retention.add(info(0, 1), 5);
  retention.pin(info(0, 1));
  retention.add(info(0, 2), 5);
  retention.forget(info(0, 2));
  retention.unpin(info(0, 1));
  CHECK(retention.take_dropped().empty());  // the newest of a trial that has not ended
  retention.forget(info(0, 1));
  CHECK(retention.size() == 0);
  CHECK(retention.total_bytes() == 0);
}

TEST_CASE("the best trial's best is kept though its loss at a save is not the best") {
  Retention retention({.keep = 1, .max_bytes = 3});
  retention.set_best_trial(5);
  retention.add(info(5, 1), 0.9);
  retention.add(info(5, 2), 0.95);
  retention.trial_ended(5);
  retention.add(info(6, 1), 0.1);
  retention.add(info(7, 1), 0.5);
  CHECK(retention.take_dropped() == std::vector{info(5, 2)});
  retention.set_best_trial(6);
  retention.add(info(7, 2), 0.5);
  CHECK(retention.contains(info(6, 1)));
}

// The rules in the plainest words, over all checkpoints at every call: what Retention must equal in O(log n).
TEST_CASE("random histories keep the promises and the limits") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Rng rng = derived_rng(seed, {7});
    const auto draw = [&](int n) { return static_cast<int>(uniform01(rng) * n); };
    const CheckpointPolicy policy{.keep = draw(4), .keep_best = draw(3), .max_bytes = draw(2) ? 60ULL : 0ULL};
    Retention retention(policy);
    struct Held {
      CheckpointInfo info;
      double loss;
      int added;
      int pins = 0;
    };
    std::map<std::pair<TrialId, std::string>, Held> held;
    std::set<TrialId> ended;
    std::optional<TrialId> best_trial;
    std::map<TrialId, int> steps;
    int added = 0;

    const auto newest_first = [&](TrialId trial) {
      std::vector<const Held*> list;
      for (const auto& [_, h] : held)
        if (h.info.trial == trial) list.push_back(&h);
      std::sort(list.begin(), list.end(), [](auto* a, auto* b) { return a->info.steps > b->info.steps; });
      return list;
    };
    const auto best_first = [&](std::optional<TrialId> trial) {
      std::vector<const Held*> list;
      for (const auto& [_, h] : held)
        if (!trial || h.info.trial == *trial) list.push_back(&h);
      std::sort(list.begin(), list.end(),
                [](auto* a, auto* b) { return a->loss != b->loss ? a->loss < b->loss : a->added > b->added; });
      return list;
    };
    const auto needed = [&](const Held& h) {
      return h.pins > 0 || (!ended.contains(h.info.trial) && newest_first(h.info.trial).front() == &h) ||
             best_first(std::nullopt).front() == &h ||
             (best_trial == h.info.trial && best_first(h.info.trial).front() == &h);
    };
    const auto wanted = [&](const Held& h) {
      if (policy.keep == 0 && policy.keep_best == 0) return true;
      const auto newest = newest_first(h.info.trial);
      const auto best = best_first(h.info.trial);
      return std::find(newest.begin(), newest.end(), &h) - newest.begin() < policy.keep ||
             std::find(best.begin(), best.end(), &h) - best.begin() < policy.keep_best;
    };

    for (int i = 0; i < 150; ++i) {
      const TrialId trial = draw(5);
      const auto any = [&]() -> Held& { return std::next(held.begin(), draw(static_cast<int>(held.size())))->second; };
      const int what = draw(20);
      if (what < 11) {
        if (ended.contains(trial)) continue;
        const auto checkpoint = info(trial, ++steps[trial], static_cast<std::uint64_t>(draw(20)));
        const double loss = draw(5) == 0 ? worst_loss : draw(6);
        held[{trial, checkpoint.name}] = {checkpoint, loss, ++added};
        retention.add(checkpoint, loss);
      } else if (what < 13 && !held.empty()) {
        Held& h = any();
        ++h.pins;
        REQUIRE(retention.pin(h.info));
      } else if (what < 16 && !held.empty()) {
        Held& h = any();
        h.pins = std::max(0, h.pins - 1);
        retention.unpin(h.info);
      } else if (what == 16 && !held.empty()) {
        const auto gone = any().info;
        held.erase({gone.trial, gone.name});
        retention.forget(gone);
      } else if (what == 17 && retention.size() > 0) {
        if (newest_first(trial).empty()) continue;  // an end is known of trials that have checkpoints
        ended.insert(trial);
        retention.trial_ended(trial);
      } else if (what == 18) {
        ended.erase(trial);
        retention.trial_reopened(trial);
      } else if (what == 19) {
        best_trial = trial;
        retention.set_best_trial(trial);
      }
      const auto dropped = retention.take_dropped();
      for (const auto& d : dropped) {
        const auto found = held.find({d.trial, d.name});
        REQUIRE(found != held.end());
        INFO("seed " << seed << " call " << i << " dropped " << d.trial << "/" << d.name);
        REQUIRE_FALSE(needed(found->second));
        // In order: while one that nobody wants is there, or the bytes are too many.
        std::uint64_t bytes = 0;
        for (const auto& [_, h] : held) bytes += h.info.bytes;
        REQUIRE((!wanted(found->second) || (policy.max_bytes > 0 && bytes > policy.max_bytes)));
        held.erase(found);
      }
      std::erase_if(ended, [&](TrialId t) { return newest_first(t).empty(); });
      std::uint64_t bytes = 0;
      bool spare = false;
      for (const auto& [_, h] : held) {
        bytes += h.info.bytes;
        REQUIRE(retention.contains(h.info));
        REQUIRE((needed(h) || wanted(h)));
        spare = spare || !needed(h);
      }
      REQUIRE(retention.size() == held.size());
      REQUIRE(retention.total_bytes() == bytes);
      if (policy.max_bytes > 0 && bytes > policy.max_bytes) REQUIRE_FALSE(spare);
    }
  }
}

TEST_CASE("the cost of a checkpoint does not grow with their number") {
  const auto seconds = [](int trials) {
    Retention retention({.keep = 0, .max_bytes = static_cast<std::uint64_t>(trials) * 2});
    for (TrialId trial = 0; trial < trials; ++trial)
      retention.add(info(trial, 1), 1.0 / static_cast<double>(trial + 1));
    const auto begin = std::clock();  // processor time, so that it is the same on a busy machine
    for (int i = 0; i < 20'000; ++i) retention.add(info(i % trials, 2 + i), 2);
    static_cast<void>(retention.take_dropped());
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  };
  static_cast<void>(seconds(100));
  const double few = seconds(1'000);
  CHECK(seconds(100'000) < 20 * few + 0.05);  // linear would be 100 times
}

TEST_CASE("a superseded checkpoint is no trial's newest any more, whatever its steps") {
  Retention retention({.keep = 1});
  retention.add(info(0, 8), 0.1);  // the best of all
  retention.add(info(1, 6), 0.5);  // pinned by somebody
  retention.add(info(2, 9), 0.6);
  CHECK(retention.pin(info(1, 6)));
  for (const auto& old : {info(0, 8), info(1, 6), info(2, 9)}) retention.supersede(old);
  CHECK(steps_of(retention.take_dropped()) == Steps{9});
  retention.add(info(1, 3), 0.4);  // fewer steps, and yet the newest
  CHECK(retention.take_dropped().empty());
  retention.unpin(info(1, 6));
  CHECK(steps_of(retention.take_dropped()) == Steps{6});
  retention.add(info(0, 4), 0.05);  // a new best one
  CHECK(steps_of(retention.take_dropped()) == Steps{8});
  CHECK(retention.size() == 2);
  retention.trial_ended(0);
  retention.trial_ended(1);
  retention.forget(info(0, 4));
  retention.forget(info(1, 3));
  CHECK(retention.size() == 0);
  CHECK(retention.total_bytes() == 0);
}
