#include "support/scheduler_conformance.hpp"
#include "support/test.hpp"

#include <hypertune/schedule/asha.hpp>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

using namespace hypertune;

namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

Decision report(auto& scheduler, TrialId trial, int steps, double loss) {
  return scheduler.on_report({.trial = trial, .steps = steps, .losses = {&loss, 1}});
}

/// Stopping ASHA as the definition says it, with a sort at every report.
struct NaiveStopping {
  int grace, max, reduction;
  std::map<int, std::vector<double>> rungs{};
  std::map<TrialId, int> passed{};

  Decision on_report(const Progress& p) {
    bool good = true;
    for (std::int64_t r = grace; r < max && good; r *= reduction) {
      const int rung = static_cast<int>(r);
      if (rung > p.steps || rung <= passed[p.trial]) continue;
      passed[p.trial] = rung;
      auto& losses = rungs[rung];
      losses.push_back(p.loss());
      std::sort(losses.begin(), losses.end());
      const auto best = losses.size() / static_cast<std::size_t>(reduction);
      if (best == 0) continue;
      const auto better =
          static_cast<std::size_t>(std::lower_bound(losses.begin(), losses.end(), p.loss()) - losses.begin());
      good = better < best && (p.loss() != worst_loss || losses.front() == worst_loss);
    }
    if (p.steps >= max) return Decision::complete;
    return good ? Decision::proceed : Decision::stop;
  }
  Choice choose_next(const Pool& pool) const { return pool.more_trials ? Choice::start_new() : Choice::wait(); }
  int max_steps() const { return max; }
};

/// Promotion ASHA as Algorithm 2 of the paper says it: get_job looks through all rungs from the top. Reports every
/// step.
struct NaivePromotion {
  int grace, max, reduction;
  struct Entry {
    double loss;
    TrialId trial;
    bool promoted = false;
  };
  std::vector<std::vector<Entry>> rungs{std::vector<std::vector<Entry>>(20)};
  std::map<TrialId, std::size_t> target{};
  std::set<TrialId> paused{};

  std::int64_t steps_of(std::size_t rung) const {
    std::int64_t r = grace;
    for (std::size_t k = 0; k < rung; ++k) r *= reduction;
    return r;
  }
  Decision on_report(const Progress& p) {
    if (p.steps >= max) return Decision::complete;
    const std::size_t rung = target[p.trial];
    if (p.steps < steps_of(rung)) return Decision::proceed;
    rungs[rung].push_back({p.loss(), p.trial});
    paused.insert(p.trial);
    return Decision::pause;
  }
  Choice choose_next(const Pool& pool) const {
    for (std::size_t k = rungs.size(); k-- > 0;) {
      auto entries = rungs[k];
      std::sort(entries.begin(), entries.end(),
                [](const Entry& a, const Entry& b) { return a.loss != b.loss ? a.loss < b.loss : a.trial < b.trial; });
      const std::size_t best = entries.size() / static_cast<std::size_t>(reduction);
      for (std::size_t i = 0; i < best; ++i)
        if (!entries[i].promoted && paused.contains(entries[i].trial) &&
            (entries[i].loss != worst_loss || entries.front().loss == worst_loss))
          return Choice::resume(entries[i].trial);
    }
    return pool.more_trials ? Choice::start_new() : Choice::wait();
  }
  void on_resume(TrialId trial) {
    for (auto& e : rungs[target[trial]])
      if (e.trial == trial) e.promoted = true;
    ++target[trial];
    paused.erase(trial);
  }
  void on_end(TrialId trial, TrialState) { paused.erase(trial); }
  int max_steps() const { return max; }
};

/// Both schedulers in the same random pools, call by call.
void compare(const std::function<AnyScheduler()>& fast, const std::function<AnyScheduler()>& naive, bool strides) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    hypertune_test::PoolPlan plan{.trials = 20 + static_cast<int>(seed) * 5,
                                  .slots = 1 + static_cast<int>(seed % 9),
                                  .stride = strides ? static_cast<int>(seed % 3) : 1,
                                  .failing = seed % 4 == 0 ? 0.03 : 0,
                                  .killed = seed % 5 == 0 ? 0.05 : 0,
                                  .no_number = seed % 3 == 0 ? 0.2
                                               : seed == 7   ? 1.0
                                                             : 0,
                                  .equal = seed == 8,
                                  .seed = seed};
    INFO("seed " << seed);
    hypertune_test::check_replay(naive, hypertune_test::run_pool(fast(), plan).calls);
  }
}

}  // namespace

TEST_CASE("asha decides as its definition, in the stopping form") {
  for (const auto& [grace, max, reduction] : {std::tuple{1, 81, 3}, {1, 64, 2}, {3, 50, 4}, {2, 2, 3}})
    compare([=] { return Asha{.grace_period = grace, .max_steps = max, .reduction_factor = reduction}; },
            [=] { return NaiveStopping{grace, max, reduction}; }, true);
}

TEST_CASE("asha gives out jobs as the paper's get_job, in the promotion form") {
  for (const auto& [grace, max, reduction] : {std::tuple{1, 81, 3}, {1, 64, 2}, {3, 50, 4}})
    compare(
        [=] { return Asha{.grace_period = grace, .max_steps = max, .reduction_factor = reduction, .promotion = true}; },
        [=] { return NaivePromotion{grace, max, reduction}; }, false);
}

TEST_CASE("about one trial in `reduction` goes past each rung") {
  for (const bool promotion : {false, true}) {
    const auto outcome = hypertune_test::run_pool(Asha{.max_steps = 27, .promotion = promotion},
                                                  {.trials = 2000, .slots = 16, .seed = 3});
    const auto beyond = [&](int steps) {
      return std::count_if(outcome.steps.begin(), outcome.steps.end(), [&](const auto& t) { return t.second > steps; });
    };
    CHECK((beyond(1) > 500 && beyond(1) < 900));
    CHECK((beyond(3) > 150 && beyond(3) < 350));
    CHECK((beyond(9) > 40 && beyond(9) < 140));
  }
}

TEST_CASE("reports that skip rungs are judged at each of them") {
  Asha asha{.grace_period = 1, .max_steps = 100, .reduction_factor = 2};
  for (TrialId t = 0; t < 3; ++t) report(asha, t, 1, 0.5);
  CHECK(report(asha, 10, 1, 0.1) == Decision::proceed);
  CHECK(report(asha, 11, 5, 0.2) == Decision::proceed);   // past 1, 2 and 4: good at 1, alone at 2 and 4
  CHECK(report(asha, 12, 5, 0.3) == Decision::stop);      // fit at 1 still, but not beside trial 11 at 2
  CHECK(report(asha, 10, 10, 0.1) == Decision::proceed);  // past 2, 4 and 8
  CHECK(report(asha, 13, 5, 0.9) == Decision::stop);      // at 1 already
  CHECK(report(asha, 14, 200, 0.9) == Decision::complete);
}

TEST_CASE("a trial that promotion finds past the next rung stands there at once") {
  Asha asha{.grace_period = 1, .max_steps = 100, .reduction_factor = 2, .promotion = true};
  CHECK(report(asha, 0, 3, 0.1) == Decision::pause);
  CHECK(asha.choose_next({}).kind == Choice::Kind::start_new);  // one trial is no half of anything
  CHECK(report(asha, 1, 3, 0.2) == Decision::pause);
  CHECK(asha.choose_next({}).kind == Choice::Kind::start_new);  // 0 is promoted to 2, where it is alone
  CHECK(report(asha, 2, 3, 0.05) == Decision::pause);           // the best at 1 now, and then the better half at 2
  const auto choice = asha.choose_next({});
  CHECK(choice.kind == Choice::Kind::resume);
  CHECK(choice.trial == 2);
}

TEST_CASE("a trial that goes on although asha would stop it counts once at each rung") {
  Asha asha{.max_steps = 27, .reduction_factor = 3};
  for (TrialId t = 0; t < 2; ++t) CHECK(report(asha, t, 1, static_cast<double>(t)) == Decision::proceed);
  const double bad[] = {9};
  for (int steps = 1; steps <= 8; ++steps) asha.on_report({.trial = 2, .steps = steps, .losses = bad, .over = true});
  // At the rung of one step there are 0, 1, 9 and now 0.5: one in three goes on, which 0.5 is not.
  CHECK(report(asha, 3, 1, 0.5) == Decision::stop);
  CHECK_THAT(asha.why(3, LossText{}), ContainsSubstring("of 4"));
}

TEST_CASE("a trial whose program has ended counts at asha's rungs, but is not taken for paused") {
  Asha asha{.max_steps = 27, .reduction_factor = 3, .promotion = true};
  const auto over = [&](TrialId trial, int steps, double loss) {
    return asha.on_report({.trial = trial, .steps = steps, .losses = {&loss, 1}, .over = true});
  };
  CHECK(over(0, 1, 5) == Decision::proceed);
  CHECK(over(0, 2, 5) == Decision::proceed);
  CHECK(over(0, 3, 0) == Decision::proceed);
  CHECK(report(asha, 1, 1, 1) == Decision::pause);
  CHECK(asha.choose_next({}).kind == Choice::Kind::start_new);
  CHECK(report(asha, 2, 1, 2) == Decision::pause);  // the best of three is 1, of which one is over
  const auto choice = asha.choose_next({});
  CHECK(choice.kind == Choice::Kind::resume);
  CHECK(choice.trial == 1);
}

TEST_CASE("losses that are no numbers never beat those that are") {
  Asha stopping{.max_steps = 27};
  CHECK(report(stopping, 0, 1, nan_value) == Decision::proceed);
  CHECK(report(stopping, 1, 1, nan_value) == Decision::proceed);
  CHECK(report(stopping, 2, 1, nan_value) == Decision::proceed);  // no worse than the others
  CHECK(report(stopping, 3, 1, 1e300) == Decision::proceed);
  CHECK(report(stopping, 4, 1, nan_value) == Decision::stop);
  CHECK(report(stopping, 5, 1, worst_loss) == Decision::stop);

  Asha promoting{.max_steps = 27, .promotion = true};
  for (TrialId t = 0; t < 9; ++t) report(promoting, t, 1, t == 4 ? 0.7 : nan_value);
  auto choice = promoting.choose_next({});
  CHECK(choice.trial == 4);
  promoting.on_resume(4);
  CHECK(promoting.choose_next({}).kind == Choice::Kind::start_new);  // two more places, but nobody fit for them
}

TEST_CASE("a paused trial that has ended is not resumed") {
  Asha asha{.max_steps = 27, .promotion = true};
  for (TrialId t = 0; t < 6; ++t) report(asha, t, 1, static_cast<double>(t));
  CHECK(asha.choose_next({}).trial == 0);
  asha.on_end(0, TrialState::stopped);
  CHECK(asha.choose_next({}).trial == 1);
  asha.on_resume(1);
  asha.on_end(1, TrialState::failed);
  CHECK(asha.choose_next({}).kind == Choice::Kind::start_new);
  CHECK(asha.choose_next({.more_trials = false}).kind == Choice::Kind::wait);
}

TEST_CASE("brackets begin later and get their share of the trials") {
  Asha asha{.grace_period = 1, .max_steps = 27, .reduction_factor = 3, .brackets = 3, .promotion = true};
  std::map<int, int> first_pause;
  for (TrialId t = 0; t < 3000; ++t)
    for (int step = 1; step <= 27; ++step)
      if (report(asha, t, step, 1.0) != Decision::proceed) {
        ++first_pause[step];
        break;
      }
  REQUIRE(first_pause.size() == 3);  // at 1, 3 and 9: in proportion to 1, 4/9 and 2/9
  CHECK(first_pause.at(1) == Approx(1800).epsilon(0.05));
  CHECK(first_pause.at(3) == Approx(800).epsilon(0.05));
  CHECK(first_pause.at(9) == Approx(400).epsilon(0.05));
  CHECK(report(*std::make_unique<Asha>(Asha{.max_steps = 3, .brackets = 100}), 0, 1, 1) == Decision::proceed);
}

TEST_CASE("asha refuses options that make no sense") {
  const auto message = [](const Asha& asha) {
    try {
      AnyScheduler any = asha;
      return std::string("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::usage);
      return std::string(error.what());
    }
  };
  CHECK(message({.grace_period = 0}) == "asha: grace_period is 0, but must be at least 1");
  CHECK_THAT(message({.grace_period = 9, .max_steps = 3}),
             ContainsSubstring("max_steps is 3, but must be at least grace_period, 9"));
  CHECK_THAT(message({.reduction_factor = 1}), ContainsSubstring("reduction_factor is 1"));
  CHECK_THAT(message({.brackets = 0}), ContainsSubstring("brackets is 0"));
  CHECK(message({}) == "accepted");
  CHECK(AnyScheduler(Asha{.max_steps = std::numeric_limits<int>::max(), .reduction_factor = 1000000}).max_steps() ==
        std::numeric_limits<int>::max());
}
