// How fast the Journal is: build/benchmarks/benchmark_journal (Release).
#include "record/record_support.hpp"
#include "support/test.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <utility>

namespace ht = hypertune;

TEST_CASE("sustained reports per second") {
  const auto wall = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  const auto cpu = [](clockid_t clock) {
    timespec t{};
    ::clock_gettime(clock, &t);
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
  };
  for (const int metrics : {1, 4}) {
    const support::TemporaryFolder folder;
    constexpr int count = 1'000'000;
    const double start = wall();
    const double process = cpu(CLOCK_PROCESS_CPUTIME_ID);
    const double caller = cpu(CLOCK_THREAD_CPUTIME_ID);
    double caller_used = 0;
    {
      auto journal = ht::Journal::open(folder);
      for (int i = 0; i < count; ++i) {
        ht::record::TrialReported report{i % 1000, 0, i / 1000, {}};
        for (int m = 0; m < metrics; ++m)
          report.metrics.emplace_back(m == 0 ? "loss" : fmt::format("m{}", m), i * 1e-3);
        journal.append(i * 1e-4, std::move(report));
      }
      caller_used = cpu(CLOCK_THREAD_CPUTIME_ID) - caller;
      journal.flush();
    }
    const double seconds = wall() - start;
    const double writer = cpu(CLOCK_PROCESS_CPUTIME_ID) - process - caller_used;
    const double reading = wall();
    std::int64_t read = 0;
    ht::read_journal(folder, [&](const ht::Record&) { ++read; });
    fmt::print(
        "{} metric(s): {:.0f} reports/s durable; caller {:.0f} ns, writer thread {:.0f} ns each; read {:.0f}/s\n",
        metrics, count / seconds, caller_used / count * 1e9, writer / count * 1e9, double(read) / (wall() - reading));
    CHECK(read == count);
    CHECK(count / seconds > (metrics == 1 ? 100'000 : 50'000));
  }
  const support::TemporaryFolder folder;
  auto journal = ht::Journal::open(folder);
  const double start = wall();
  for (int i = 0; i < 500; ++i) journal.wait_for(journal.append(0, ht::record::TrialPaused{i}));
  fmt::print("one record, durable: {:.0f} us\n", (wall() - start) / 500 * 1e6);
}
