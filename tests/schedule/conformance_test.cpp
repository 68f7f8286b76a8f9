#include "support/scheduler_conformance.hpp"

#include <hypertune/schedule/asha.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/hyper_sched.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/learning_curve.hpp>
#include <hypertune/schedule/median_stopping.hpp>
#include <hypertune/schedule/mo_asha.hpp>
#include <hypertune/schedule/patience.hpp>
#include <hypertune/schedule/pb2.hpp>
#include <hypertune/schedule/pbt.hpp>
#include <hypertune/schedule/percentile.hpp>
#include <hypertune/schedule/racing.hpp>
#include <hypertune/schedule/successive_halving.hpp>
#include <hypertune/search/replay.hpp>
#include <hypertune/space/space.hpp>

using namespace hypertune;
using hypertune_test::check_scheduler;

TEST_CASE("fifo keeps the laws of a scheduler") {
  check_scheduler([] { return Fifo{}; });
  check_scheduler([] { return Fifo{.max_steps = 5}; });
}
TEST_CASE("asha keeps the laws of a scheduler in its stopping form") {
  check_scheduler([] { return Asha{}; });
  check_scheduler([] { return Asha{.grace_period = 2, .max_steps = 50, .reduction_factor = 4}; });
  check_scheduler([] { return Asha{.max_steps = 27, .brackets = 3}; });
  check_scheduler([] { return Asha{.max_steps = 1}; });
}
TEST_CASE("asha keeps the laws of a scheduler in its promotion form") {
  check_scheduler([] { return Asha{.promotion = true}; }, {.drains_itself = false});
  check_scheduler([] { return Asha{.grace_period = 2, .max_steps = 50, .reduction_factor = 2, .promotion = true}; },
                  {.drains_itself = false});
  check_scheduler([] { return Asha{.max_steps = 27, .brackets = 3, .promotion = true}; }, {.drains_itself = false});
  check_scheduler([] { return Asha{.max_steps = 1, .promotion = true}; });
}
TEST_CASE("hyperband keeps the laws of a scheduler and ends by itself") {
  check_scheduler([] { return HyperBand{}; });
  for (const int max : {1, 2, 4, 7, 16, 50})
    for (const int reduction : {2, 3, 10}) {
      INFO("max " << max << ", reduction " << reduction);
      check_scheduler([&] { return HyperBand{.max_steps = max, .reduction_factor = reduction}; },
                      {.measure_cost = false});
    }
}
TEST_CASE("median stopping keeps the laws of a scheduler") {
  check_scheduler([] { return MedianStopping{}; });
  check_scheduler([] { return MedianStopping{.grace_period = 5, .min_trials = 10, .max_steps = 30}; });
}
TEST_CASE("percentile and patience keep the laws of a scheduler") {
  check_scheduler([] { return Percentile{}; });
  check_scheduler([] { return Percentile{.percentile = 25, .grace_period = 4, .max_steps = 30}; });
  check_scheduler([] { return Patience{}; });
  check_scheduler([] { return Patience{.patience = 3, .min_delta = 0.01, .max_steps = 20}; });
}

TEST_CASE("race keeps the laws of a scheduler") {
  check_scheduler([] { return Race{}; });
  check_scheduler([] { return Race{.instances = 20, .grace_period = 3, .test = RaceTest::wilcoxon}; });
  check_scheduler([] { return Race{.instances = 20, .grace_period = 3, .test = RaceTest::friedman}; });
  check_scheduler([] { return Race{.instances = 50, .reports = RaceReports::value}; });
}

TEST_CASE("pbt keeps the laws of a scheduler") {
  check_scheduler([] { return Pbt{.perturbation_interval = 25}; });
  check_scheduler(
      [] { return Pbt{.perturbation_interval = 5, .max_steps = 20, .quantile_fraction = 0.5, .population_size = 12}; },
      {.never_idle = false, .measure_cost = false});
  check_scheduler(
      [] {
        return Pbt{.perturbation_interval = 17, .max_steps = 60, .exploit = Pbt::Exploit::t_test, .burn_in_period = 20};
      },
      {.measure_cost = false});
  check_scheduler([] { return Pbt{.max_steps = 1}; }, {.measure_cost = false});
}
TEST_CASE("pb2 keeps the laws of a scheduler") {
  check_scheduler([] { return Pb2{.perturbation_interval = 25}; }, {.measure_cost = false});
  check_scheduler(
      [] {
        return Pb2{.perturbation_interval = 10,
                   .max_steps = 40,
                   .quantile_fraction = 0.5,
                   .history = 20,
                   .population_size = 8};
      },
      {.never_idle = false, .measure_cost = false});
}
TEST_CASE("replay keeps the laws of a scheduler") {
  const auto searched = space(dim("x", uniform(0.0, 1.0))).search_space();
  const auto replay = [&](std::vector<int> starts, int max) {
    Replay made{.schedule = {}, .max_steps = max};
    for (const int from : starts) made.schedule.push_back({from, {{"x", 0.01 * from}}});
    made.prepare(searched, std::uint64_t{1});
    return made;
  };
  check_scheduler([&] { return replay({0}, 0); }, {.measure_cost = false});
  check_scheduler([&] { return replay({0, 7, 20, 21}, 50); }, {.measure_cost = false});
}
TEST_CASE("mo_asha keeps the laws of a scheduler") {
  check_scheduler([] { return MoAsha{.history = 30}; });
  check_scheduler([] { return MoAsha{}; }, {.measure_cost = false});
  check_scheduler([] { return MoAsha{.grace_period = 2, .max_steps = 50, .reduction_factor = 4, .history = 50}; },
                  {.measure_cost = false});
}
TEST_CASE("synchronous successive halving keeps the laws of a scheduler and ends by itself") {
  check_scheduler([] { return SuccessiveHalving{.trials = 27}; });
  check_scheduler([] { return SuccessiveHalving{}; }, {.measure_cost = false});
  check_scheduler(
      [] { return SuccessiveHalving{.grace_period = 3, .max_steps = 40, .reduction_factor = 2, .trials = 10}; },
      {.measure_cost = false});
  check_scheduler([] { return SuccessiveHalving{.max_steps = 1, .trials = 1}; }, {.measure_cost = false});
}
TEST_CASE("learning-curve stopping keeps the laws of a scheduler") {
  check_scheduler([] { return LearningCurve{.max_steps = 40}; });
  check_scheduler([] { return LearningCurve{.max_steps = 5, .points = 4, .chance = 0.3}; }, {.measure_cost = false});
}
TEST_CASE("hyper_sched keeps the laws of a scheduler and ends by itself") {
  check_scheduler([] { return HyperSched{.max_steps = 81}; }, {.measure_cost = false});
  check_scheduler([] { return HyperSched{.grace_period = 3, .reduction_factor = 2}; }, {.measure_cost = false});
}

namespace {

/// What a user would write.
struct StopTheHopeless {
  Decision on_report(const Progress& p) { return p.loss() > 0.9 ? Decision::stop : Decision::proceed; }
};

}  // namespace

TEST_CASE("a user's own scheduler can be put through the same laws") {
  check_scheduler([] { return StopTheHopeless{}; });
}
