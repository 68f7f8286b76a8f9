// What hypertune itself costs, with the journal on: trials and reports a second, time to the first report, memory.
// Each measurement runs in a child process, so that one's memory is not counted for the next. It prints a line of JSON
// a figure and fails only where a figure is absurd: a loaded machine is no defect.
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

namespace ht = hypertune;

namespace {

struct Config {
  double x;
};

struct Figures {
  double seconds = 0, first_report = 0;
  double peak_kib = 0;
  long long count = 0;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::atomic<double> first_report{0};

auto space() { return ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0))); }

ht::Options options(const std::filesystem::path& folder) {
  ht::Options options;
  options.name = "overhead";
  options.metric = "value";
  options.output = folder;
  options.display = ht::Display::quiet;
  options.handle_signals = false;
  return options;
}

ht::Training reports(Config config, int steps) {
  for (int step = 0; step < steps; ++step) {
    if (double none = 0; first_report.load(std::memory_order_relaxed) == 0)
      first_report.compare_exchange_strong(none, seconds_now());
    co_yield ht::report("value", config.x * (step + 1));
  }
}
ht::Training reports_27(Config config) { return reports(config, 27); }
ht::Training reports_1000(Config config) { return reports(config, 1000); }

template <class Measured>
Figures in_child(const Measured& measured) {
  char folder[] = "/tmp/hypertune-overhead-XXXXXX";
  REQUIRE(::mkdtemp(folder) != nullptr);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    Figures figures;
    const double begin = seconds_now();
    int status = 0;
    try {
      figures.count = measured(std::filesystem::path(folder) / "run");
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
    figures.seconds = seconds_now() - begin;
    figures.first_report = first_report == 0 ? 0 : first_report - begin;
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    figures.peak_kib = static_cast<double>(usage.ru_maxrss);
    if (::write(ends[1], &figures, sizeof figures) != static_cast<ssize_t>(sizeof figures)) status = 1;
    ::_exit(status);
  }
  ::close(ends[1]);
  Figures figures;
  const auto got = ::read(ends[0], &figures, sizeof figures);
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::filesystem::remove_all(folder);
  REQUIRE(got == static_cast<ssize_t>(sizeof figures));
  REQUIRE(status == 0);
  return figures;
}

void print(const char* name, const Figures& f) {
  double load[1] = {0};
  if (::getloadavg(load, 1) != 1) load[0] = -1;
  fmt::print(
      "{{\"figure\": \"{}\", \"count\": {}, \"seconds\": {:.3f}, \"per_second\": {:.0f}, \"first_report_ms\": {:.1f}, "
      "\"peak_mib\": {:.1f}, \"load\": {:.1f}}}\n",
      name, f.count, f.seconds, static_cast<double>(f.count) / f.seconds, f.first_report * 1e3, f.peak_kib / 1024,
      load[0]);
  std::fflush(stdout);
}

long long trials_by_threads(const std::filesystem::path& folder, long long trials,
                            ht::AnySearcher search = ht::Random{}) {
  auto o = options(folder);
  o.search = std::move(search);
  o.samples = trials;
  const auto results = ht::tune(space(), [](Config config) { return config.x; }, o);
  return static_cast<long long>(results.size());
}

long long asha(const std::filesystem::path& folder, long long trials, ht::AnyExecutor executor, int max) {
  auto o = options(folder);
  o.samples = trials;
  o.search = ht::Random{};
  o.schedule = ht::Asha{.grace_period = 1, .max_steps = max, .reduction_factor = 3};
  o.executor = std::move(executor);
  const auto results = max > 27 ? ht::tune(space(), reports_1000, o) : ht::tune(space(), reports_27, o);
  long long count = 0;
  for (const auto& trial : results.trials()) count += trial.steps;
  return count;
}

}  // namespace

TEST_CASE("no-op trials a second, by threads, journal on", "[overhead][trials]") {
  const auto f = in_child([](const auto& folder) { return trials_by_threads(folder, 20000); });
  print("no-op trials by threads", f);
  CHECK(f.count == 20000);
}

TEST_CASE("no-op trials a second with a model: suggestions come from a thread of their own", "[overhead][model]") {
  const auto f = in_child([](const auto& folder) { return trials_by_threads(folder, 20000, ht::CmaEs{}); });
  print("no-op trials by threads, cma_es", f);
  CHECK(f.count == 20000);
}

TEST_CASE("reports a second through ASHA, by threads, journal on", "[overhead][reports]") {
  const auto f = in_child([](const auto& folder) { return asha(folder, 30000, ht::threads(), 1000); });
  print("reports through ASHA by threads", f);
  CHECK(f.count > 30000);
}

TEST_CASE("time to the first report", "[overhead][start]") {
  const auto f = in_child([](const auto& folder) { return asha(folder, 1, ht::threads(), 27); });
  print("one trial, start to first report", f);
  CHECK(f.first_report > 0);
}

TEST_CASE("memory of 1,000 trials and of each further one", "[overhead][memory]") {
  const auto small = in_child([](const auto& folder) { return trials_by_threads(folder, 1000); });
  print("memory, 1,000 trials", small);
  const auto large = in_child([](const auto& folder) { return trials_by_threads(folder, 100000); });
  print("memory, 100,000 trials", large);
  const double each = (large.peak_kib - small.peak_kib) * 1024 / 99000;
  fmt::print("{{\"figure\": \"bytes a further trial\", \"bytes\": {:.0f}}}\n", each);
  CHECK(large.peak_kib >= small.peak_kib);
}

TEST_CASE("100,000 simulated trials of 27 reports under ASHA", "[overhead][simulated]") {
  for (const long long trials : {1000, 10000, 100000}) {
    const auto f = in_child([&](const auto& folder) { return asha(folder, trials, ht::simulated({}), 27); });
    print("simulated ASHA", f);
    CHECK(f.count >= trials);
  }
}
