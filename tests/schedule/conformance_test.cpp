#include "support/scheduler_conformance.hpp"

#include <hypertune/schedule/asha.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/median_stopping.hpp>
#include <hypertune/schedule/patience.hpp>
#include <hypertune/schedule/percentile.hpp>
#include <hypertune/schedule/racing.hpp>

using namespace hypertune;
using hypertune_test::check_scheduler;

TEST_CASE("fifo keeps the laws of a scheduler") {
  check_scheduler([] { return Fifo{}; });
  check_scheduler([] { return Fifo{.max = 5}; });
}
TEST_CASE("asha keeps the laws of a scheduler in its stopping form") {
  check_scheduler([] { return Asha{}; });
  check_scheduler([] { return Asha{.grace = 2, .max = 50, .reduction = 4}; });
  check_scheduler([] { return Asha{.max = 27, .brackets = 3}; });
  check_scheduler([] { return Asha{.max = 1}; });
}
TEST_CASE("asha keeps the laws of a scheduler in its promotion form") {
  check_scheduler([] { return Asha{.promotion = true}; }, {.drains_itself = false});
  check_scheduler([] { return Asha{.grace = 2, .max = 50, .reduction = 2, .promotion = true}; },
                  {.drains_itself = false});
  check_scheduler([] { return Asha{.max = 27, .brackets = 3, .promotion = true}; }, {.drains_itself = false});
  check_scheduler([] { return Asha{.max = 1, .promotion = true}; });
}
TEST_CASE("hyperband keeps the laws of a scheduler and ends by itself") {
  check_scheduler([] { return HyperBand{}; });
  for (const int max : {1, 2, 4, 7, 16, 50})
    for (const int reduction : {2, 3, 10}) {
      INFO("max " << max << ", reduction " << reduction);
      check_scheduler([&] { return HyperBand{.max = max, .reduction = reduction}; }, {.measure_cost = false});
    }
}
TEST_CASE("median stopping keeps the laws of a scheduler") {
  check_scheduler([] { return MedianStopping{}; });
  check_scheduler([] { return MedianStopping{.grace = 5, .min_trials = 10, .max = 30}; });
}
TEST_CASE("percentile and patience keep the laws of a scheduler") {
  check_scheduler([] { return Percentile{}; });
  check_scheduler([] { return Percentile{.keep = 25, .grace = 4, .max = 30}; });
  check_scheduler([] { return Patience{}; });
  check_scheduler([] { return Patience{.patience = 3, .min_improvement = 0.01, .max = 20}; });
}

TEST_CASE("race keeps the laws of a scheduler") {
  check_scheduler([] { return Race{}; });
  check_scheduler([] { return Race{.instances = 20, .grace = 3, .test = RaceTest::wilcoxon}; });
  check_scheduler([] { return Race{.instances = 50, .reports = RaceReports::value}; });
}

namespace {

/// What a user would write.
struct StopTheHopeless {
  Decision on_report(const Progress& p) { return p.loss() > 0.9 ? Decision::stop : Decision::go_on; }
};

}  // namespace

TEST_CASE("a user's own scheduler can be put through the same laws") {
  check_scheduler([] { return StopTheHopeless{}; });
}
