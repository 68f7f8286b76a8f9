// Whoever sets the clock of the machine: limits and durations hold, within a run and across a resume.
#include "history.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>

#include <dlfcn.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace {
std::atomic<long> wall_clock_ahead{0};  // seconds
}

// The clock of the machine, as this program sees it: the C++ library asks this one, too.
extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  static const auto real = reinterpret_cast<int (*)(clockid_t, timespec*)>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME) time->tv_sec += wall_clock_ahead.load();
  return result;
}

namespace ht = hypertune;

namespace {

constexpr long day = 24 * 3600;

struct Config {
  double x = 0;
};
const auto line = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));

struct ClockAsItWas {
  ~ClockAsItWas() { wall_clock_ahead = 0; }
};

ht::Options options(const TemporaryDirectory& directory) {
  ht::Options o;
  o.search = ht::Random{};
  o.samples = 6;
  o.concurrency = 2;
  o.output = directory.path() / "run";
  o.display = ht::Display::quiet;
  o.handle_signals = false;
  o.stop = ht::within(600);
  return o;
}
ht::Training four_steps(Config config) {
  for (int step = 0; step < 4; ++step) co_yield ht::report("value", config.x * config.x + step);
}
/// A day forward in the one trial, two days back in the next.
ht::Training and_the_clock_is_set(Config config, ht::Context& context) {
  for (int step = 0; step < 4; ++step) {
    if (step == 2) wall_clock_ahead += context.trial() % 2 == 0 ? day : -2 * day;
    co_yield ht::report("value", config.x * config.x + step);
  }
}

std::vector<ht::Record> in_order(const std::filesystem::path& directory) {
  auto records = support::records_of(directory);
  for (std::size_t i = 1; i < records.size(); ++i) {
    INFO("record " << records[i].sequence);
    CHECK(records[i - 1].time <= records[i].time);
  }
  return records;
}
void shift_record(const std::filesystem::path& directory, const std::string& by) {
  ht::detail::Database db(ht::journal_path(directory).string(), "the journal", SQLITE_OPEN_READWRITE);
  db.execute("UPDATE records SET time = time + " + by);
}

}  // namespace

TEST_CASE("the clock of this test is the one that the C++ library asks") {
  const ClockAsItWas restore;
  const auto before = std::chrono::system_clock::now();
  wall_clock_ahead = day;
  CHECK(std::chrono::system_clock::now() - before >= std::chrono::hours(24));
  const auto steady = std::chrono::steady_clock::now();
  wall_clock_ahead = -day;
  CHECK(std::chrono::steady_clock::now() - steady < std::chrono::hours(1));
}

TEST_CASE("a clock that is set while trials run ends no experiment, and no duration is wrong") {
  const ClockAsItWas restore;
  const TemporaryDirectory directory;
  ht::Options o = options(directory);
  const auto check = [&] {
    const auto results = ht::tune(line, and_the_clock_is_set, o);
    CHECK(results.trials().size() == 6);
    for (const auto& trial : results.trials()) {
      CHECK(trial.state == ht::TrialState::completed);
      REQUIRE((trial.started && trial.ended));
      CHECK(*trial.ended - *trial.started >= 0);
      CHECK(*trial.ended - *trial.started < 600);
    }
    const auto records = in_order(o.output);
    CHECK(records.back().time - records.front().time < 600);
  };
  SECTION("threads") { check(); }
  SECTION("inline") {
    o.executor = ht::run_inline();
    check();
  }
}

TEST_CASE("ask and tell lives by the same clock") {
  const ClockAsItWas restore;
  const TemporaryDirectory directory;
  ht::Options o = options(directory);
  o.samples = 3;
  ht::Study<Config> study(line, o);
  for (const long jump : {day, -3 * day, 0L}) {
    auto asked = study.ask();
    REQUIRE(asked);
    wall_clock_ahead += jump;
    study.tell(*asked, 1.0);
  }
  const auto records = in_order(o.output);
  CHECK(records.back().time - records.front().time < 600);
}

TEST_CASE("an experiment whose clock was a day ahead, or behind, goes on where it was") {
  for (const std::string shift : {"86400", "-86400"}) {
    INFO("shifted by " << shift);
    const TemporaryDirectory directory;
    ht::Options o = options(directory);
    ht::tune(line, four_steps, o);
    shift_record(o.output, shift);
    o.samples = 12;
    o.resume = true;
    const auto results = ht::tune(line, four_steps, o);
    CHECK(results.trials().size() == 12);
    for (const auto& trial : results.trials()) CHECK(trial.state == ht::TrialState::completed);
    const auto records = in_order(o.output);
    CHECK(records.back().time - records.front().time < 2 * day);
  }
}

TEST_CASE("what was recorded counts against a limit after a resume, however the clock was set meanwhile") {
  const TemporaryDirectory directory;
  ht::Options o = options(directory);
  ht::tune(line, four_steps, o);
  // The first session took 700 s, and the clock was a year ahead.
  shift_record(o.output, "700 * (kind = 14) + 365 * 86400");
  o.samples = 12;
  o.resume = true;
  const auto results = ht::tune(line, four_steps, o);
  CHECK(results.experiment().why == "the time of 600 s is over");
}
