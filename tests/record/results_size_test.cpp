// Results stay small whatever is reported.
#include "record_support.hpp"
#include "support/sanitizers.hpp"
#include "support/test.hpp"

#include <hypertune/record/results.hpp>

#include <malloc.h>

namespace ht = hypertune;

#if !defined(HYPERTUNE_TEST_ASAN) && !defined(HYPERTUNE_TEST_TSAN)  // their allocators keep no such books
namespace {
std::size_t allocated() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}
}  // namespace

TEST_CASE("a trial costs about 500 bytes, each of its checkpoints 50, and a report nothing") {
  constexpr int trials = 20'000;
  std::int64_t sequence = 0;
  ht::Results results;
  const auto add = [&](ht::record::Any what) { results.add({++sequence, 0.5, std::move(what)}); };
  const std::size_t before = allocated();
  for (int id = 0; id < trials; ++id) {
    add(ht::record::TrialCreated{
        id,
        {1e-3, 64, 1, 0.9},
        {{"lr", 1e-3}, {"hidden", std::int64_t{64}}, {"optimizer", std::string("adam")}, {"momentum", 0.9}}});
    add(ht::record::TrialStarted{id, 0, 0, "localhost", {0}, {}});
  }
  const auto report = [&](int steps) {
    for (int step = 0; step < steps; ++step)
      for (int id = 0; id < trials; ++id)
        add(ht::record::TrialReported{id, 0, step, {{"accuracy", step * 0.01}, {"loss", 1.0 / (step + 1)}}});
  };
  report(1);
  for (int id = 0; id < trials; ++id)
    for (int k = 0; k < 2; ++k)
      add(ht::record::TrialCheckpointed{id,
                                        {id, 5 + k, fmt::format("step-{}", 5 + k), 1'000'000, std::string(32, 'd')}});
  const std::size_t after_one = allocated();
  report(10);
  const std::size_t after_all = allocated();
  for (int id = 0; id < trials; ++id) add(ht::record::TrialEnded{id, ht::TrialState::completed, {}});
  const std::size_t each = (allocated() - before) / trials;  // of those that have ended: of others there are few
  INFO(each << " bytes per trial");
  CHECK(each < 640);
  CHECK(after_all - after_one < 4096);
  CHECK(results.size() == trials);
}
#endif
