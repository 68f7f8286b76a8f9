// The laws of a Scheduler, for any implementation: check_scheduler([] { return MyScheduler{}; }).
#pragma once

#include "test.hpp"

#include <hypertune/random.hpp>
#include <hypertune/schedule/scheduler.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune_test {

struct SchedulerLaws {
  bool drains_itself = true;  ///< it leaves no paused trial to be ended by the Tuner
  bool never_idle = true;     ///< it never lets a slot wait while there are trials to start
  bool measure_cost = true;   ///< whether the cost of a report is measured (a second or so)
};

/// A pool that a scheduler governs: `slots` trials at once, `trials` in all.
struct PoolPlan {
  int trials = 100;
  int slots = 4;
  int own_steps = 100;         ///< steps after which a trial ends by itself
  int stride = 1;              ///< steps between two reports; 0: another number at each
  double failing = 0;          ///< probability that a trial fails at a step
  double killed = 0;           ///< probability, at each report, that somebody ends a paused trial
  double no_number = 0;        ///< probability that a loss is infinite
  bool half_infinite = false;  ///< trials with odd numbers never have a finite loss
  bool equal = false;          ///< all losses are the same
  std::uint64_t seed = 1;
};

/// What was said to a scheduler and what it answered, in order.
struct SchedulerCall {
  enum class Kind { create, report, pause, resume, exploit, end, choose } kind;
  hypertune::TrialId trial = -1;
  int steps = 0;
  double loss = 0;
  hypertune::TrialState state = hypertune::TrialState::running;
  hypertune::Pool pool{};
  hypertune::Decision decision = hypertune::Decision::proceed;
  hypertune::Choice choice{};
};

struct PoolOutcome {
  std::vector<SchedulerCall> calls;
  std::map<hypertune::TrialId, int> steps;                     ///< by trial
  std::map<hypertune::TrialId, hypertune::TrialState> states;  ///< how each ended
  int drained = 0;                                             ///< paused trials that had to be ended from outside
  bool idle = false;                                           ///< a slot waited while there were trials to start
  int max_running = 0;
};

/// Runs a pool to its end under a scheduler, as the Tuner does, and checks what holds for every answer.
inline PoolOutcome run_pool(hypertune::AnyScheduler scheduler, const PoolPlan& plan) {
  using hypertune::Choice;
  using hypertune::Decision;
  using hypertune::TrialId;
  using hypertune::TrialState;
  hypertune::Rng chance(plan.seed);
  const auto luck = [&] { return hypertune::uniform01(chance); };
  const auto pick = [&](std::size_t n) {
    return std::min(n - 1, static_cast<std::size_t>(luck() * static_cast<double>(n)));
  };
  struct Trial {
    double quality = 0;
    int steps = 0;
  };
  std::map<TrialId, Trial> trials;
  std::vector<TrialId> running;
  std::set<TrialId> paused;
  std::map<TrialId, int> saved;                // steps at the last pause
  std::map<TrialId, std::set<int>> saved_all;  // … at all of them
  PoolOutcome outcome;
  const int limit = scheduler.max_steps();

  const auto end = [&](TrialId t, TrialState state) {
    scheduler.on_end(t, state);
    outcome.calls.push_back({.kind = SchedulerCall::Kind::end, .trial = t, .state = state});
    outcome.steps[t] = trials.at(t).steps;
    outcome.states[t] = state;
  };
  const auto fill = [&] {
    while (static_cast<int>(running.size()) < plan.slots) {
      const hypertune::Pool pool{.running = running.size(),
                                 .paused = paused.size(),
                                 .more_trials = static_cast<int>(trials.size()) < plan.trials};
      const Choice choice = scheduler.choose_next(pool);
      outcome.calls.push_back({.kind = SchedulerCall::Kind::choose, .pool = pool, .choice = choice});
      if (choice.kind == Choice::Kind::resume || choice.kind == Choice::Kind::stop ||
          choice.kind == Choice::Kind::exploit) {
        INFO("it may only resume or stop a trial that is paused; it chose trial " << choice.trial);
        REQUIRE(paused.contains(choice.trial));
        paused.erase(choice.trial);
      }
      if (choice.kind == Choice::Kind::stop) {
        end(choice.trial, TrialState::stopped);
      } else if (choice.kind == Choice::Kind::resume || choice.kind == Choice::Kind::exploit) {
        if (choice.kind == Choice::Kind::exploit) {
          INFO("trial " << choice.trial << " takes over trial " << choice.donor << ", which must be there");
          REQUIRE(trials.contains(choice.donor));
          REQUIRE_FALSE(outcome.states.contains(choice.donor));
          const int steps = choice.steps > 0 ? choice.steps : saved.at(choice.donor);
          INFO("it takes over what the donor saved after " << steps << " steps, which must be kept");
          REQUIRE(saved_all.at(choice.donor).contains(steps));
          REQUIRE(scheduler.may_give(choice.donor, steps, saved.at(choice.donor) == steps));
          trials.at(choice.trial).steps = steps;
          saved[choice.trial] = steps;
          scheduler.on_exploit(choice.trial, choice.donor, choice.point, steps);
          outcome.calls.push_back(
              {.kind = SchedulerCall::Kind::exploit, .trial = choice.trial, .steps = steps, .choice = choice});
        }
        scheduler.on_resume(choice.trial);
        outcome.calls.push_back({.kind = SchedulerCall::Kind::resume, .trial = choice.trial});
        running.push_back(choice.trial);
      } else if (choice.kind == Choice::Kind::start_new && pool.more_trials) {
        const auto t = static_cast<TrialId>(trials.size());
        trials[t].quality = luck();
        scheduler.on_create(t);
        outcome.calls.push_back({.kind = SchedulerCall::Kind::create, .trial = t});
        running.push_back(t);
      } else {
        outcome.idle = outcome.idle || pool.more_trials;
        return;
      }
    }
    outcome.max_running = std::max(outcome.max_running, static_cast<int>(running.size()));
  };

  while (true) {
    fill();
    if (running.empty()) {
      if (paused.empty()) break;
      outcome.drained += static_cast<int>(paused.size());
      for (const TrialId t : std::exchange(paused, {})) end(t, TrialState::stopped);
      continue;
    }
    const std::size_t at = pick(running.size());
    const TrialId t = running[at];
    Trial& trial = trials.at(t);
    const auto leave = [&] { running.erase(running.begin() + static_cast<std::ptrdiff_t>(at)); };
    if (luck() < plan.failing) {
      leave();
      end(t, TrialState::failed);
      continue;
    }
    trial.steps += plan.stride > 0 ? plan.stride : 1 + static_cast<int>(pick(7));
    double loss = plan.equal ? 1.0 : trial.quality + (luck() - 0.5) / trial.steps;
    if (luck() < plan.no_number || (plan.half_infinite && t % 2 == 1)) loss = hypertune::worst_loss;
    const Decision decision = scheduler.on_report({.trial = t, .steps = trial.steps, .losses = {&loss, 1}});
    outcome.calls.push_back(
        {.kind = SchedulerCall::Kind::report, .trial = t, .steps = trial.steps, .loss = loss, .decision = decision});
    if (limit > 0 && trial.steps >= limit) {
      INFO("trial " << t << " has had its " << limit << " steps");
      REQUIRE(decision == Decision::complete);
    }
    if (decision != Decision::proceed) leave();
    if (decision == Decision::pause) {
      paused.insert(t);
      saved[t] = trial.steps;
      saved_all[t].insert(trial.steps);
      scheduler.on_pause(t);
      outcome.calls.push_back({.kind = SchedulerCall::Kind::pause, .trial = t});
    }
    if (decision == Decision::stop) end(t, TrialState::stopped);
    if (decision == Decision::complete) end(t, TrialState::completed);
    if (decision == Decision::proceed && trial.steps >= plan.own_steps) {
      leave();
      end(t, TrialState::completed);
    }
    if (!paused.empty() && luck() < plan.killed) {
      const TrialId victim = *std::next(paused.begin(), static_cast<std::ptrdiff_t>(pick(paused.size())));
      paused.erase(victim);
      end(victim, TrialState::stopped);
    }
  }
  REQUIRE(outcome.states.size() == static_cast<std::size_t>(plan.trials));
  return outcome;
}

/// A scheduler that was told the same decides the same, whether it was asked for its choices or not.
inline void check_replay(const std::function<hypertune::AnyScheduler()>& make,
                         const std::vector<SchedulerCall>& calls) {
  for (const std::size_t every : {std::size_t{1}, std::size_t{5}}) {
    hypertune::AnyScheduler scheduler = make();
    std::size_t asked = 0;
    for (const auto& call : calls) {
      switch (call.kind) {
        case SchedulerCall::Kind::create: scheduler.on_create(call.trial); break;
        case SchedulerCall::Kind::resume: scheduler.on_resume(call.trial); break;
        case SchedulerCall::Kind::pause: scheduler.on_pause(call.trial); break;
        case SchedulerCall::Kind::exploit:
          scheduler.on_exploit(call.trial, call.choice.donor, call.choice.point, call.steps);
          break;
        case SchedulerCall::Kind::end: scheduler.on_end(call.trial, call.state); break;
        case SchedulerCall::Kind::report:
          REQUIRE(scheduler.on_report({.trial = call.trial, .steps = call.steps, .losses = {&call.loss, 1}}) ==
                  call.decision);
          break;
        case SchedulerCall::Kind::choose: {
          if (asked++ % every != 0) break;
          hypertune::AnyScheduler copy = scheduler;
          for (auto* s : {&copy, &scheduler}) {
            const auto choice = s->choose_next(call.pool);
            REQUIRE(choice.kind == call.choice.kind);
            REQUIRE(choice.trial == call.choice.trial);
            REQUIRE(choice.donor == call.choice.donor);
            REQUIRE(choice.point == call.choice.point);
          }
          break;
        }
      }
    }
  }
}

/// Processor seconds per report of a pool in which `trials` trials run, `slots` at a time.
inline double seconds_per_report(const hypertune::AnyScheduler& scheduler, int trials) {
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 3; ++repetition) {
    hypertune::AnyScheduler own = scheduler;
    hypertune::Rng chance(5);
    std::deque<hypertune::TrialId> paused;
    std::int64_t reports = 0;
    const std::clock_t begin = std::clock();
    for (hypertune::TrialId t = 0; t < trials; ++t) {
      own.on_create(t);
      for (int step = 1; step <= 5; ++step) {
        ++reports;
        const double loss = hypertune::uniform01(chance);
        const auto decision = own.on_report({.trial = t, .steps = step, .losses = {&loss, 1}});
        if (decision == hypertune::Decision::pause) {
          own.on_pause(t);
          break;
        }
        if (decision == hypertune::Decision::proceed && step < 5) continue;
        own.on_end(t, hypertune::TrialState::stopped);
        break;
      }
      const auto choice = own.choose_next({.running = 1, .paused = 1, .more_trials = true});
      if (choice.kind == hypertune::Choice::Kind::stop) own.on_end(choice.trial, hypertune::TrialState::stopped);
      if (choice.kind == hypertune::Choice::Kind::resume) own.on_resume(choice.trial);
    }
    const double spent = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    best = std::min(best, spent / static_cast<double>(reports));
  }
  return best;
}

/// Puts a scheduler through the laws of scheduler.hpp in many random pools: it names only trials that are paused, ends
/// every experiment, gives no trial more than its steps, decides the same when told the same, never prefers an infinite
/// loss to finite ones, and takes as long for a report with many trials as with few.
template <class Make>
void check_scheduler(Make make_one, SchedulerLaws laws = {}) {
  const std::function<hypertune::AnyScheduler()> make = [&] { return hypertune::AnyScheduler(make_one()); };
  std::vector<PoolPlan> plans;
  for (const int trials : {1, 2, 7, 100, 400})
    for (const int slots : {1, 3, 50}) plans.push_back({.trials = trials, .slots = slots});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    PoolPlan plan{
        .trials = 10 + static_cast<int>(seed) * 11, .slots = 1 + static_cast<int>(seed * seed % 23), .seed = seed};
    plan.stride = static_cast<int>(seed % 4);
    plan.failing = seed % 3 == 0 ? 0.05 : 0;
    plan.killed = seed % 5 == 0 ? 0.1 : 0;
    plan.no_number = seed % 7 == 0 ? 0.3 : seed == 12 ? 1.0 : 0;
    plan.own_steps = seed % 6 == 1 ? 7 : 100;
    plan.equal = seed == 13;
    plans.push_back(plan);
  }
  plans.push_back({.trials = 300, .slots = 8, .failing = 1.0});
  for (const auto& plan : plans) {
    INFO("pool: " << plan.trials << " trials, " << plan.slots << " slots, stride " << plan.stride << ", seed "
                  << plan.seed);
    const auto outcome = run_pool(make(), plan);
    if (laws.drains_itself) CHECK(outcome.drained == 0);
    if (laws.never_idle) CHECK_FALSE(outcome.idle);
    check_replay(make, outcome.calls);
  }

  for (const int slots : {1, 16}) {
    const auto outcome = run_pool(make(), {.trials = 400, .slots = slots, .half_infinite = true});
    double finite = 0;
    double infinite = 0;
    for (const auto& [trial, steps] : outcome.steps) (trial % 2 == 1 ? infinite : finite) += steps;
    INFO("trials without a finite loss got " << infinite << " steps, the others " << finite);
    CHECK(infinite <= finite);
  }

  if (!laws.measure_cost) return;
  const double few = seconds_per_report(make(), 2'000);
  const double many = seconds_per_report(make(), 60'000);
  INFO("a report costs " << few * 1e9 << " ns with 2,000 trials, " << many * 1e9 << " ns with 60,000");
  CHECK(many < 12 * few + 2e-6);
}

}  // namespace hypertune_test
