// Schedulers of populations and deadlines, told what happened by hand.
#include "support/test.hpp"

#include <hypertune/random.hpp>
#include <hypertune/schedule/detail/epsilon_net.hpp>
#include <hypertune/schedule/detail/explore.hpp>
#include <hypertune/schedule/detail/welch.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/hyper_sched.hpp>
#include <hypertune/schedule/learning_curve.hpp>
#include <hypertune/schedule/mo_asha.hpp>
#include <hypertune/schedule/pb2.hpp>
#include <hypertune/schedule/pbt.hpp>
#include <hypertune/schedule/successive_halving.hpp>
#include <hypertune/space/space.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;

namespace {

struct Config {
  double lr = 0, momentum = 0;
  int layers = 1, units = 16;
  std::string optimizer;
};
Space<Config> make_space() {
  return space<Config>(dim("lr", &Config::lr, log_uniform(1e-5, 1.0)),
                       dim("momentum", &Config::momentum, uniform(0.0, 1.0)),
                       dim("layers", &Config::layers, integer(1, 8)), dim("units", &Config::units, integer(16, 256)),
                       dim("optimizer", &Config::optimizer, choice({"sgd", "adam", "lion"})));
}

Decision report(auto& scheduler, TrialId trial, int steps, double loss, Seconds now = 0, Seconds elapsed = 0) {
  const Decision decision =
      scheduler.on_report({.trial = trial, .steps = steps, .losses = {&loss, 1}, .elapsed = elapsed, .now = now});
  if constexpr (requires { scheduler.on_pause(trial); })
    if (decision == Decision::pause) scheduler.on_pause(trial);
  return decision;
}

}  // namespace

TEST_CASE("exploring stays in the space, and moves every kind of number") {
  const auto s = make_space();
  const SearchSpace& space = s.search_space();
  const auto dimensions = detail::mutable_dimensions(space, {}, "pbt");
  REQUIRE(dimensions.size() == 5);
  Rng rng(7);
  for (int i = 0; i < 3000; ++i) {
    const Point from = space.sample(rng);
    const Point to = detail::explored(space, from, dimensions, 0, 1.2, rng);
    REQUIRE_FALSE(space.invalid(to));
    for (const char* name : {"lr", "momentum"}) {
      const auto d = *space.index_of(name);
      const double ratio = to[d] / from[d];
      const bool at_end = to[d] == space.domain(d).lower || to[d] == space.domain(d).upper;
      CHECK((at_end || ratio == Approx(1.2) || ratio == Approx(0.8)));
    }
    const auto layers = *space.index_of("layers");
    CHECK((std::abs(to[layers] - from[layers]) >= 1 || to[layers] == 1 || to[layers] == 8));
    CHECK(to[*space.index_of("optimizer")] == from[*space.index_of("optimizer")]);
  }
  // Drawn anew, everything can come.
  const Point from = space.sample(rng);
  std::set<double> options;
  for (int i = 0; i < 200; ++i)
    options.insert(detail::explored(space, from, dimensions, 1, 1.2, rng)[*space.index_of("optimizer")]);
  CHECK(options.size() == 3);
}

TEST_CASE("Welch's t-test agrees with tables") {
  // t = 2.0, 10 degrees of freedom: one-sided 0.03669; t = 1, 1: 0.25.
  CHECK(0.5 * detail::incomplete_beta(5, 0.5, 10.0 / 14.0) == Approx(0.036694).epsilon(1e-4));
  CHECK(0.5 * detail::incomplete_beta(0.5, 0.5, 0.5) == Approx(0.25));
  const std::vector<double> low{1, 1.1, 0.9, 1.05, 0.95}, high{2, 2.1, 1.9, 2.05, 1.95}, same = low;
  CHECK(detail::welch_less(low, high) < 1e-6);
  CHECK(detail::welch_less(high, low) > 1 - 1e-6);
  CHECK(detail::welch_less(low, same) == Approx(0.5));
  CHECK(detail::welch_less(low, std::vector<double>{1}) == 1);
  CHECK(detail::welch_less(low, std::vector<double>{1, std::numeric_limits<double>::infinity()}) == 1);
}

TEST_CASE("truncation: the worst quarter takes over the best quarter, nobody else does") {
  const auto s = make_space();
  Pbt pbt{.perturbation_interval = 2, .max_steps = 10};
  pbt.prepare(s.search_space(), 5);
  Rng rng(1);
  for (TrialId t = 0; t < 8; ++t) pbt.on_create(t, s.search_space().sample(rng));
  for (TrialId t = 0; t < 8; ++t) {
    CHECK(report(pbt, t, 1, 0.5) == Decision::proceed);
    CHECK(report(pbt, t, 2, t == 7 ? std::nan("") : static_cast<double>(t)) == Decision::pause);
  }
  std::set<TrialId> takers;
  for (int i = 0; i < 8; ++i) {
    const Choice choice = pbt.choose_next({.paused = 8, .more_trials = false});
    CHECK(choice.trial == i);  // equal steps: in turn
    if (choice.kind == Choice::Kind::exploit) {
      takers.insert(choice.trial);
      CHECK(choice.donor < 2);
      pbt.on_exploit(choice.trial, choice.donor, choice.point, choice.steps);
      const Choice after = pbt.choose_next({.paused = 8, .more_trials = false});
      CHECK(after.kind == Choice::Kind::resume);  // it is not asked twice
      CHECK(after.trial == choice.trial);
    }
    pbt.on_resume(choice.trial);
  }
  CHECK(takers == std::set<TrialId>{6, 7});
}

namespace {

/// The toy of the paper of population based training, with eight members and `slots` of them at a time, in virtual
/// time: its best value, and who took over from where.
struct ToyRun {
  double best = 0;
  int exploits = 0;
  int unlike = 0;  // from other than as many steps as the taker had
  double seconds = 0;
  std::size_t held = 0;  // most states that may still be taken over, beside each member's last
};
ToyRun run_toy(AnyScheduler scheduler, int slots, std::uint64_t seed, bool uneven, int members = 8, int max = 60) {
  struct Theta {
    double a = 0.9, b = 0.9;
  };
  struct Member {
    Point point;
    Theta theta;
    int steps = 0;
    std::map<int, Theta> saved = {};
    double speed = 1;
    int last = 0;
    bool over = false;
  };
  const auto s =
      space<Config>(dim("lr", &Config::lr, uniform(0.0, 1.0)), dim("momentum", &Config::momentum, uniform(0.0, 1.0)));
  scheduler.prepare(s.search_space(), seed);
  Rng rng = derived_rng(seed, {77});
  std::vector<Member> all;
  std::map<std::pair<double, TrialId>, TrialId> due;
  std::set<TrialId> paused;
  ToyRun run;
  const auto begin = [&](TrialId t) {
    due.emplace(std::pair(run.seconds + all[static_cast<std::size_t>(t)].speed, t), t);
  };
  const auto fill = [&] {
    while (static_cast<int>(due.size()) < slots) {
      const Choice choice = scheduler.choose_next(
          {.running = due.size(), .paused = paused.size(), .more_trials = static_cast<int>(all.size()) < members});
      if (choice.kind == Choice::Kind::wait) break;
      if (choice.kind == Choice::Kind::start_new) {
        const auto t = static_cast<TrialId>(all.size());
        if (static_cast<int>(all.size()) == members) break;
        all.push_back({.point = s.search_space().sample(rng), .theta = {}});
        if (uneven) all.back().speed = std::array{0.5, 1.0, 1.0, 1.0, 2.0, 3.0}[rng() % 6];
        scheduler.on_create(t, all.back().point);
        begin(t);
        continue;
      }
      REQUIRE(paused.erase(choice.trial) == 1);
      Member& member = all[static_cast<std::size_t>(choice.trial)];
      if (choice.kind == Choice::Kind::exploit) {
        const Member& donor = all[static_cast<std::size_t>(choice.donor)];
        REQUIRE(scheduler.may_give(choice.donor, choice.steps, false));
        ++run.exploits;
        run.unlike += choice.steps != member.steps;
        member.theta = donor.saved.at(choice.steps);
        member.steps = choice.steps;
        member.point = choice.point;
        scheduler.on_exploit(choice.trial, choice.donor, choice.point, choice.steps);
      }
      scheduler.on_resume(choice.trial);
      begin(choice.trial);
    }
  };
  fill();
  while (!due.empty()) {
    const auto [at, t] = *due.begin();
    due.erase(due.begin());
    run.seconds = at.first;
    Member& member = all[static_cast<std::size_t>(t)];
    member.theta.a -= 0.02 * member.point[0] * member.theta.a;
    member.theta.b -= 0.02 * member.point[1] * member.theta.b;
    const double q = 1.2 - member.theta.a * member.theta.a - member.theta.b * member.theta.b;
    run.best = std::max(run.best, q);
    const double loss = -q;
    const Decision decision = scheduler.on_report({.trial = t, .steps = ++member.steps, .losses = {&loss, 1}});
    if (decision == Decision::proceed) {
      begin(t);
      continue;
    }
    if (decision == Decision::pause) {
      member.saved[member.steps] = member.theta;
      member.last = member.steps;
      paused.insert(t);
      scheduler.on_pause(t);
      std::size_t held = 0;
      for (std::size_t i = 0; i < all.size(); ++i)
        for (const auto& [steps, theta] : all[i].saved)
          held += steps != all[i].last && !all[i].over && scheduler.may_give(static_cast<TrialId>(i), steps, false);
      run.held = std::max(run.held, held);
    } else {
      member.over = true;
      scheduler.on_end(t, TrialState::completed);
    }
    fill();
  }
  CHECK(paused.empty());
  for (const auto& member : all) CHECK(member.steps == max);
  return run;
}

}  // namespace

TEST_CASE("a population is judged at like steps: with one or two slots it is as good as with a slot for each") {
  const std::vector<std::pair<std::string, AnyScheduler>> schedulers{
      {"pbt", Pbt{.max_steps = 60}},
      {"pbt, synchronous", Pbt{.max_steps = 60, .synchronous = true}},
      {"pbt, t-test", Pbt{.max_steps = 60, .exploit = Pbt::Exploit::t_test, .window = 4}},
      {"pb2", Pb2{.max_steps = 60}},
      {"pb2, synchronous", Pb2{.max_steps = 60, .synchronous = true}}};
  for (const auto& [name, scheduler] : schedulers)
    for (const bool uneven : {false, true}) {
      const int seeds = scheduler.name() == "pb2" ? 4 : 24;  // its model takes its time
      double alone = 0;
      for (int seed = 0; seed < seeds; ++seed)
        alone += run_toy(Fifo{.max_steps = 60}, 8, static_cast<std::uint64_t>(seed), false).best / seeds;
      std::map<int, double> best;
      for (const int slots : {1, 2, 8})
        for (int seed = 0; seed < seeds; ++seed) {
          const ToyRun run = run_toy(scheduler, slots, static_cast<std::uint64_t>(seed), uneven);
          INFO(name << ", " << slots << " slots, seed " << seed);
          CHECK(run.unlike == 0);
          CHECK(run.exploits > 0);
          CHECK(run.held <= 16);
          best[slots] += run.best / seeds;
        }
      INFO(name << (uneven ? ", uneven speeds" : "") << ": without a scheduler " << alone << ", 1 slot " << best[1]
                << ", 2 slots " << best[2] << ", 8 slots " << best[8]);
      const double chance = seeds > 10 ? 0.03 : 0.06;
      for (const int slots : {1, 2, 8}) {
        CHECK(best[slots] > alone);
        CHECK(std::abs(best[slots] - best[8]) < chance);
      }
    }
}

TEST_CASE("a synchronous population waits for the last, the other one for three of four that are close") {
  const auto s = make_space();
  for (const bool synchronous : {false, true}) {
    Pbt pbt{.perturbation_interval = 1, .max_steps = 100, .synchronous = synchronous};
    pbt.prepare(s.search_space(), 5);
    Rng rng(1);
    for (TrialId t = 0; t < 8; ++t) pbt.on_create(t, s.search_space().sample(rng));
    const auto choose = [&] { return pbt.choose_next({.running = 8, .more_trials = false}); };
    for (TrialId t = 0; t < 5; ++t) {
      report(pbt, t, 1, 1);
      CHECK(choose().kind == Choice::Kind::wait);
    }
    report(pbt, 5, 1, 9);
    if (synchronous) {
      CHECK(choose().kind == Choice::Kind::wait);
      report(pbt, 6, 1, 1);
      CHECK(choose().kind == Choice::Kind::wait);
      pbt.on_end(7, TrialState::failed);  // nobody waits for what is over
      CHECK(choose().kind == Choice::Kind::resume);
      continue;
    }
    // Two of eight are missing: the worst two of those that have come take over, as they are among the worst of all.
    for (TrialId t = 0; t < 6; ++t) {
      CHECK(choose().kind == (t < 4 ? Choice::Kind::resume : Choice::Kind::exploit));
      CHECK(choose().trial == t);
      pbt.on_resume(t);
    }
    // Those that stay behind by more than an interval hold nobody up.
    for (TrialId t = 0; t < 6; ++t) report(pbt, t, 2, 1);
    for (TrialId t = 0; t < 6; ++t) pbt.on_resume(choose().trial);
    for (int step = 3; step < 20; ++step)
      for (TrialId t = 0; t < 6; ++t) report(pbt, t, step, 1);
    // One that comes late to what all others have left long ago trains on as it is: nothing is kept for it.
    report(pbt, 6, 1, 99);
    CHECK(choose().kind == Choice::Kind::resume);
    CHECK(choose().trial == 6);
    for (TrialId t = 0; t < 6; ++t) CHECK_FALSE(pbt.may_give(t, 1));
  }
}

TEST_CASE("pb2 learns where the gain is") {
  const auto s =
      space<Config>(dim("lr", &Config::lr, uniform(0.0, 1.0)), dim("momentum", &Config::momentum, uniform(0.0, 1.0)));
  double distance = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Pb2 pb2{.perturbation_interval = 1, .max_steps = 1000, .quantile_fraction = 0.5};
    pb2.prepare(s.search_space(), seed);
    std::vector<Point> points;
    std::vector<double> loss(4, 10.0);
    Rng rng(seed);
    for (TrialId t = 0; t < 4; ++t) {
      points.push_back(s.search_space().sample(rng));
      pb2.on_create(t, points.back());
    }
    for (int step = 1; step <= 25; ++step) {
      for (TrialId t = 0; t < 4; ++t) {
        const auto i = static_cast<std::size_t>(t);
        const double dx = points[i][0] - 0.7, dy = points[i][1] - 0.3;
        loss[i] -= std::exp(-8 * (dx * dx + dy * dy));
        CHECK(report(pb2, t, step, loss[i]) == Decision::pause);
      }
      for (int k = 0; k < 4; ++k) {
        const Choice choice = pb2.choose_next({.paused = 4, .more_trials = false});
        REQUIRE((choice.kind == Choice::Kind::resume || choice.kind == Choice::Kind::exploit));
        if (choice.kind == Choice::Kind::exploit) {
          points[static_cast<std::size_t>(choice.trial)] = choice.point;
          loss[static_cast<std::size_t>(choice.trial)] = loss[static_cast<std::size_t>(choice.donor)];
          pb2.on_exploit(choice.trial, choice.donor, choice.point, choice.steps);
        }
        pb2.on_resume(choice.trial);
      }
    }
    double nearest = 1;
    for (const auto& p : points) nearest = std::min(nearest, std::hypot(p[0] - 0.7, p[1] - 0.3));
    distance += nearest / 5;
  }
  CHECK(distance < 0.12);  // of four random points the nearest is at about 0.25
}

TEST_CASE("hyper_sched explores while there is time, then trains the best ones, then ends") {
  HyperSched sched{.deadline = 100, .grace_period = 1, .reduction_factor = 3};
  for (TrialId t = 0; t < 4; ++t) sched.on_create(t);
  for (TrialId t = 0; t < 4; ++t) CHECK(report(sched, t, 1, 1.0 + static_cast<double>(t), 1, 1) == Decision::pause);
  // The best of the first rung goes on, then new ones come.
  CHECK(sched.choose_next({.paused = 4, .now = 1}).trial == 0);
  sched.on_resume(0);
  CHECK(sched.choose_next({.paused = 3, .now = 1}).kind == Choice::Kind::start_new);
  CHECK(report(sched, 0, 2, 0.9, 2, 2) == Decision::proceed);
  CHECK(report(sched, 0, 3, 0.8, 3, 3) == Decision::pause);
  // A new trial could not do three steps any more: what is there goes on, the best first.
  const Choice late = sched.choose_next({.paused = 4, .now = 98});
  CHECK(late.kind == Choice::Kind::resume);
  CHECK(late.trial == 0);
  sched.on_resume(0);
  CHECK(sched.choose_next({.paused = 3, .now = 98}).trial == 1);
  sched.on_resume(1);
  CHECK(report(sched, 0, 4, 0.7, 101, 4) == Decision::complete);
  CHECK(sched.choose_next({.paused = 2, .now = 101}).kind == Choice::Kind::stop);
}

TEST_CASE("the epsilon net ranks front after front, and spreads over each") {
  const auto epsilon_net_rank = [](const std::vector<detail::LossVector>& all, std::size_t target) {
    std::size_t quota = 1;
    while (!detail::among_first(all, target, quota)) ++quota;
    for (std::size_t more = quota; more < all.size() + 2; ++more) CHECK(detail::among_first(all, target, more));
    return quota - 1;
  };
  const std::vector<detail::LossVector> points{{0, 10}, {10, 0}, {5, 5}, {1, 9}, {6, 6}, {11, 11}};
  CHECK(epsilon_net_rank(points, 0) == 0);  // the smallest first loss
  CHECK(epsilon_net_rank(points, 1) == 1);  // the farthest from it
  CHECK(epsilon_net_rank(points, 2) == 2);
  CHECK(epsilon_net_rank(points, 3) == 3);
  CHECK(epsilon_net_rank(points, 4) == 4);  // the second front
  CHECK(epsilon_net_rank(points, 5) == 5);
  const double nan = std::numeric_limits<double>::infinity();
  CHECK(epsilon_net_rank({{1, nan}, {2, 2}, {nan, nan}}, 0) == 1);
  CHECK(epsilon_net_rank({{1, nan}, {2, 2}, {nan, nan}}, 2) == 2);
}

TEST_CASE("who is among the first is as by sorting all fronts out") {
  // The definition, word for word: fronts one after the other, each as its net grows.
  const auto ranked = [](const std::vector<detail::LossVector>& points) {
    std::vector<std::size_t> left, order;
    for (std::size_t i = 0; i < points.size(); ++i) left.push_back(i);
    while (!left.empty()) {
      std::vector<std::size_t> front, rest;
      for (const auto i : left) {
        const bool beaten =
            std::any_of(left.begin(), left.end(), [&](auto j) { return detail::dominates(points[j], points[i]); });
        (beaten ? rest : front).push_back(i);
      }
      std::vector<double> low(points[0].size(), 1e9), high(points[0].size(), -1e9);
      for (const auto i : front)
        for (std::size_t k = 0; k < low.size(); ++k) {
          low[k] = std::min(low[k], points[i][k]);
          high[k] = std::max(high[k], points[i][k]);
        }
      std::vector<std::size_t> net;
      while (net.size() < front.size()) {
        std::size_t next = points.size();
        double farthest = -1;
        for (const auto i : front) {
          if (std::find(net.begin(), net.end(), i) != net.end()) continue;
          double nearest = net.empty() ? -points[i][0] : 1e18;
          for (const auto j : net) {
            double sum = 0;
            for (std::size_t k = 0; k < low.size(); ++k)
              if (high[k] > low[k]) sum += std::pow((points[i][k] - points[j][k]) / (high[k] - low[k]), 2);
            nearest = std::min(nearest, sum);
          }
          if (next == points.size() || nearest > farthest) {
            farthest = nearest;
            next = i;
          }
        }
        net.push_back(next);
      }
      order.insert(order.end(), net.begin(), net.end());
      left = std::move(rest);
    }
    return order;
  };
  Rng rng(11);
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = 1 + static_cast<std::size_t>(uniform01(rng) * 40),
                      m = 1 + static_cast<std::size_t>(round % 3);
    std::vector<detail::LossVector> points(n, detail::LossVector(m));
    // Values that are exact in binary, so that both ways to write a distance say the same; some of them equal.
    for (auto& point : points)
      for (double& loss : point) loss = std::floor(uniform01(rng) * (round % 2 == 0 ? 1024 : 4));
    const auto order = ranked(points);
    for (std::size_t place = 0; place < n; ++place) {
      INFO("round " << round << ", place " << place);
      if (place > 0) CHECK_FALSE(detail::among_first(points, order[place], place));
      CHECK(detail::among_first(points, order[place], place + 1));
    }
  }
}

TEST_CASE("mo_asha keeps both ends of the front, asha by the first loss only one") {
  MoAsha sched{.grace_period = 1, .max_steps = 9, .reduction_factor = 3};
  Rng rng(3);
  int left = 0, right = 0, dominated = 0;
  for (TrialId t = 0; t < 300; ++t) {
    const double u = uniform01(rng);
    const bool worse = t % 3 == 0;
    const std::vector<double> losses{u + (worse ? 1 : 0), 1 - u + (worse ? 1 : 0)};
    const bool goes_on = sched.on_report({.trial = t, .steps = 1, .losses = losses}) == Decision::proceed;
    sched.on_end(t, TrialState::stopped);
    if (t < 30 || !goes_on) continue;
    if (worse)
      ++dominated;
    else
      ++(u < 0.5 ? left : right);
  }
  CHECK(dominated == 0);
  CHECK(left > 15);
  CHECK(right > 15);
}

TEST_CASE("synchronous halving promotes the best of each round exactly, whatever the order of arrival") {
  SuccessiveHalving sched{.grace_period = 1, .max_steps = 9, .reduction_factor = 3, .trials = 9};
  for (TrialId t = 0; t < 9; ++t) sched.on_create(t);
  std::vector<TrialId> order{4, 8, 0, 2, 6, 1, 3, 5};
  for (const TrialId t : order) CHECK(report(sched, t, 1, static_cast<double>(t)) == Decision::pause);
  CHECK(sched.choose_next({.running = 1, .paused = 8, .more_trials = false}).kind == Choice::Kind::wait);
  CHECK(report(sched, 7, 1, 7) == Decision::pause);
  std::set<TrialId> stopped;
  std::vector<TrialId> resumed;
  for (Choice c = sched.choose_next({.more_trials = false}); c.kind != Choice::Kind::wait;
       c = sched.choose_next({.more_trials = false})) {
    if (c.kind == Choice::Kind::stop) {
      stopped.insert(c.trial);
      sched.on_end(c.trial, TrialState::stopped);
    } else {
      resumed.push_back(c.trial);
      sched.on_resume(c.trial);
    }
  }
  CHECK(stopped == std::set<TrialId>{3, 4, 5, 6, 7, 8});
  CHECK(resumed == std::vector<TrialId>{0, 1, 2});
  for (const TrialId t : resumed) CHECK(report(sched, t, 3, static_cast<double>(t)) == Decision::pause);
  int more = 0;
  for (Choice c = sched.choose_next({.more_trials = false}); c.kind != Choice::Kind::wait;
       c = sched.choose_next({.more_trials = false})) {
    if (c.kind == Choice::Kind::stop) {
      sched.on_end(c.trial, TrialState::stopped);
    } else {
      ++more;
      sched.on_resume(c.trial);
      CHECK(report(sched, c.trial, 9, 0) == Decision::complete);
    }
  }
  CHECK(more == 1);
}

TEST_CASE("learning curves: what will be best is not stopped, what cannot be is, early") {
  Rng rng(11);
  const auto curve = [&](double level, double amount, double power, int step) {
    return level + amount * std::pow(step, -power) + 0.002 * (uniform01(rng) - 0.5);
  };
  int kept = 0, stopped = 0, steps = 0;
  constexpr int trials = 100;
  for (int i = 0; i < trials; ++i) {
    LearningCurve sched{.max_steps = 100};
    for (int step = 1; step <= 100; ++step) report(sched, 0, step, curve(0.2, 0.8, 0.7, step));
    const double power = 0.4 + 0.8 * uniform01(rng);
    // One that ends well below what is best now, slow as it may be; one that ends well above it.
    bool goes_on = true;
    for (int step = 1; step < 100 && goes_on; ++step)
      goes_on = report(sched, 1, step, curve(0.02, 0.9, power + 0.1, step)) != Decision::stop;
    kept += goes_on;
    int step = 1;
    for (; step < 100; ++step)
      if (report(sched, 2, step, curve(0.5, 0.5, power, step)) == Decision::stop) break;
    stopped += step < 100;
    steps += step;
  }
  CHECK(kept >= 93);
  CHECK(stopped >= 97);
  CHECK(steps < 40 * trials);

  LearningCurve sched{.max_steps = 50, .points = 8};
  report(sched, 0, 49, 0.1);
  for (int step = 1; step < 8; ++step) CHECK(report(sched, 1, step, 5.0) == Decision::proceed);
  CHECK(report(sched, 1, 8, 5.0) == Decision::stop);
  for (int step = 1; step < 8; ++step) CHECK(report(sched, 2, step, std::nan("")) == Decision::proceed);
  CHECK(report(sched, 2, 8, std::nan("")) == Decision::stop);
  for (int step = 1; step < 20; ++step)  // huge numbers poison nothing
    CHECK_NOTHROW(report(sched, 3, step, step % 2 == 0 ? 1e308 : -1e308));
}
