// Names that were declared by fwd.hpp are those that the headers define.
#include <hypertune/fwd.hpp>

namespace {

using hypertune::AnyCallback, hypertune::AnyExecutor, hypertune::AnyScheduler, hypertune::AnySearcher,
    hypertune::Checkpoint, hypertune::CheckpointInfo, hypertune::CheckpointWriter, hypertune::Context, hypertune::Errc,
    hypertune::Error, hypertune::Journal, hypertune::Options, hypertune::Params, hypertune::Program, hypertune::Record,
    hypertune::Report, hypertune::Resources, hypertune::Results, hypertune::SearchSpace, hypertune::StopCondition,
    hypertune::Training, hypertune::TrialResult, hypertune::TrialRun, hypertune::Tuner;
template <class... Declared>
struct All {};
using Everything = All<AnyCallback, AnyExecutor, AnyScheduler, AnySearcher, Checkpoint, CheckpointInfo,
                       CheckpointWriter, Context, Errc, Error, Journal, Options, Params, Program, Record, Report,
                       Resources, Results, SearchSpace, StopCondition, Training, TrialResult, TrialRun, Tuner,
                       hypertune::Dim<Params>, hypertune::Space<Params>, hypertune::Study<Params>>;

}  // namespace

#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/record/journal.hpp>

#include <cstddef>

namespace {

template <class... Declared>
constexpr std::size_t sizes(All<Declared...>) {
  return (sizeof(Declared) + ...);  // each is complete
}

}  // namespace

TEST_CASE("what fwd.hpp declares is what the headers define") {
  CHECK(sizes(Everything{}) > sizeof(hypertune::Tuner));
  CHECK(HYPERTUNE_VERSION == HYPERTUNE_VERSION_MAJOR * 10000 + HYPERTUNE_VERSION_MINOR * 100 + HYPERTUNE_VERSION_PATCH);
}
