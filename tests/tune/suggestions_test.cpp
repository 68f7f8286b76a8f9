// The searcher's work is done beside the decisions, and means the same.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/tune/detail/suggestions.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ht = hypertune;
using namespace std::chrono_literals;

namespace {

struct Config {
  double x = 0;
};
const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)));

ht::Options options(const TemporaryDirectory& directory) {
  return {.name = "test", .samples = 20, .output = directory.path() / "run", .display = ht::Display::quiet};
}

/// Opens once; who waits in vain for a minute fails the test instead of holding it up.
class Latch {
 public:
  void open() {
    const std::lock_guard guard(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, 60s, [this] { return open_; });
  }
  bool is_open() {
    const std::lock_guard guard(mutex_);
    return open_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// Random, with a hook in front of each call, and a check that no two calls overlap.
struct Hooked {
  std::function<void(const ht::Ask&)> before_ask = [](const ht::Ask&) {};
  std::function<void(const ht::Observation&)> before_observe = [](const ht::Observation&) {};
  std::shared_ptr<std::atomic<int>> inside = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<bool>> overlapped = std::make_shared<std::atomic<bool>>(false);
  ht::Random random{};

  void prepare(const ht::SearchSpace& s, const ht::SearchContext& goal) { random.prepare(s, goal); }
  ht::Suggestion suggest(const ht::Ask& ask) {
    const Inside one(*this);
    before_ask(ask);
    return random.suggest(ask);
  }
  void observe(const ht::Observation& o) {
    const Inside one(*this);
    before_observe(o);
  }
  std::string name() const { return "hooked"; }

 private:
  struct Inside {
    explicit Inside(const Hooked& h) : hooked(h) {
      if (hooked.inside->fetch_add(1) != 0) *hooked.overlapped = true;
    }
    ~Inside() { --*hooked.inside; }
    const Hooked& hooked;
  };
};

/// What it suggests is a function of all that it was told: how many trials are open, and the sum of the losses.
struct Summing {
  std::set<ht::TrialId> open{};
  double sum = 0;
  std::shared_ptr<std::vector<std::size_t>> open_at_ask = std::make_shared<std::vector<std::size_t>>();

  void prepare(const ht::SearchSpace&, const ht::SearchContext&) {}
  ht::Suggestion suggest(const ht::Ask& ask) {
    open_at_ask->push_back(open.size());
    return ht::Point{
        std::clamp(0.001 * sum + 0.01 * static_cast<double>(open.size()) + 0.1 * ht::uniform01(ask.rng), -1.0, 1.0)};
  }
  void observe(const ht::Observation& o) {
    if (o.kind == ht::Observation::Kind::started) open.insert(o.trial);
    if (o.kind == ht::Observation::Kind::ended) open.erase(o.trial);
    if (o.kind != ht::Observation::Kind::started) sum += o.loss();
  }
};

struct CheapSumming : Summing {
  static constexpr bool cheap = true;
};

std::vector<double> xs(const ht::Results& results) {
  std::vector<double> all;
  for (const auto& trial : results.trials()) all.push_back(trial.point[0]);
  return all;
}

double square(const Config& c) { return c.x * c.x; }

}  // namespace

TEST_CASE("reports are answered while the searcher computes") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 2;
  o.concurrency = 2;
  o.executor = ht::threads({.cpus = 2});
  Latch asked, reported;
  bool let_go = false;
  Hooked searcher;
  // The second suggestion is not there before the first trial has had a hundred answers.
  searcher.before_ask = [&](const ht::Ask& ask) {
    if (ask.trial != 1) return;
    asked.open();
    let_go = reported.wait();
  };
  o.search = searcher;
  const auto results = ht::tune(
      space,
      [&](Config c, ht::Context& context) -> ht::Training {
        const bool first = context.trial() == 0;
        if (first) asked.wait();
        for (int step = 0; step < (first ? 100 : 1); ++step) co_yield ht::report("value", c.x);
        if (first) reported.open();
      },
      o);
  CHECK(let_go);
  CHECK(results.count(ht::TrialState::completed) == 2);
  CHECK(results.trial(0).steps == 100);
  CHECK_FALSE(*searcher.overlapped);
}

TEST_CASE("observations and suggestions never overlap, and nothing is told out of order") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 300;
  o.executor = ht::threads({.cpus = 8});
  std::vector<std::pair<ht::TrialId, int>> told;
  Hooked searcher;
  searcher.before_observe = [&](const ht::Observation& seen) {
    if (seen.kind == ht::Observation::Kind::report) told.emplace_back(seen.trial, seen.steps);
  };
  o.search = searcher;
  std::vector<std::pair<ht::TrialId, int>> recorded;
  ht::tune(
      space,
      [](Config c) -> ht::Training {
        for (int step = 0; step < 5; ++step) co_yield ht::report("value", c.x);
      },
      o);
  ht::read_journal(o.output, [&](const ht::Record& record) {
    if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what))
      recorded.emplace_back(r->trial, r->step + 1);
  });
  CHECK_FALSE(*searcher.overlapped);
  CHECK(recorded.size() == 1500);
  CHECK(told == recorded);
}

TEST_CASE("one after the other, a searcher suggests the same on a thread of its own") {
  std::vector<std::vector<double>> all;
  for (int kind = 0; kind < 4; ++kind) {
    TemporaryDirectory directory;
    auto o = options(directory);
    o.samples = 40;
    o.concurrency = 1;
    o.executor = ht::threads({.cpus = 1});
    o.search = Summing{};
    if (kind == 1) o.search = CheapSumming{};
    if (kind == 2) o.executor = ht::run_inline();
    if (kind == 3) o.ordered = true;
    all.push_back(xs(ht::tune(space, square, o)));
  }
  CHECK(all[0].size() == 40);
  CHECK(all[1] == all[0]);
  CHECK(all[2] == all[0]);
  CHECK(all[3] == all[0]);
}

TEST_CASE("each suggestion knows of all that are pending") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 12;
  o.concurrency = 4;
  o.executor = ht::threads({.cpus = 4});
  const Summing searcher;
  o.search = searcher;
  Latch all;
  std::atomic<int> begun{0};
  ht::tune(
      space,
      [&](Config c) {
        if (++begun == 4) all.open();
        if (!all.wait()) throw std::runtime_error("not all slots were filled");
        return c.x;
      },
      o);
  const auto& open = *searcher.open_at_ask;
  REQUIRE(open.size() >= 12);
  CHECK(std::vector(open.begin(), open.begin() + 4) == std::vector<std::size_t>{0, 1, 2, 3});
  for (const auto n : open) CHECK(n <= 3);
}

TEST_CASE("ordered, simulated and inline runs ask on the spot and are the same to the bit") {
  const auto run = [](int kind, bool cheap) {
    TemporaryDirectory directory;
    auto o = options(directory);
    o.samples = 60;
    o.schedule = ht::Asha{.grace_period = 1, .max_steps = 9, .reduction_factor = 3};
    o.search = cheap ? ht::AnySearcher(CheapSumming{}) : ht::AnySearcher(Summing{});
    if (kind == 0) o.executor = ht::simulated({.pool = 5});
    if (kind == 1) o.executor = ht::run_inline();
    if (kind == 2) {
      o.executor = ht::threads({.cpus = 5});
      o.ordered = true;
    }
    return xs(ht::tune(
        space,
        [](Config c, ht::Context& context) -> ht::Training {
          for (int step = context.next_step(); step < 9; ++step) co_yield ht::report("value", c.x / (step + 1));
        },
        o));
  };
  for (int kind = 0; kind < 3; ++kind) {
    const auto once = run(kind, false);
    CHECK(once.size() == 60);
    CHECK(run(kind, false) == once);
    CHECK(run(kind, true) == once);
  }
  CHECK(run(2, false) == run(0, false));  // what ordered means
}

TEST_CASE("an experiment goes on after a stop as if its searcher had never been elsewhere") {
  const auto run = [](const TemporaryDirectory& directory, std::int64_t samples, bool resume) {
    auto o = options(directory);
    o.samples = samples;
    o.concurrency = 1;
    o.executor = ht::threads({.cpus = 1});
    o.search = Summing{};
    o.resume = resume;
    return xs(ht::tune(space, square, o));
  };
  TemporaryDirectory whole, parts;
  const auto expected = run(whole, 30, false);
  run(parts, 11, false);
  CHECK(run(parts, 30, true) == expected);
}

TEST_CASE("a searcher that throws ends the experiment with its name and its words") {
  for (const bool observing : {false, true})
    for (const bool inline_executor : {false, true}) {
      TemporaryDirectory directory;
      auto o = options(directory);
      if (inline_executor) o.executor = ht::run_inline();
      Hooked searcher;
      if (observing)
        searcher.before_observe = [](const ht::Observation& seen) {
          if (seen.trial == 3) throw std::runtime_error("out of ideas");
        };
      else
        searcher.before_ask = [](const ht::Ask& ask) {
          if (ask.trial == 3) throw std::runtime_error("out of ideas");
        };
      o.search = searcher;
      CHECK_THROWS_WITH(ht::tune(space, square, o), "the searcher 'hooked' failed: out of ideas");
      CHECK(ht::Results::read(o.output).size() >= 3);  // what was recorded stays
      o.search = ht::Random{};
      o.resume = true;
      CHECK(ht::tune(space, square, o).count(ht::TrialState::completed) == 20);
    }
}

TEST_CASE("an Error of a searcher keeps its kind, and what is no exception has a message, too") {
  TemporaryDirectory directory;
  auto o = options(directory);
  Hooked searcher;
  searcher.before_ask = [](const ht::Ask& ask) {
    if (ask.trial == 3) ht::fail(ht::Errc::space, "no room");
  };
  o.search = searcher;
  try {
    ht::tune(space, square, o);
    FAIL("no error");
  } catch (const ht::Error& e) {
    CHECK(e.code() == ht::Errc::space);
    CHECK(std::string(e.what()) == "no room");
  }
  searcher.before_ask = [](const ht::Ask&) { throw 42; };
  o.search = searcher;
  o.resume = true;
  CHECK_THROWS_WITH(ht::tune(space, square, o), ContainsSubstring("no std::exception"));
}

TEST_CASE("a stop while the searcher computes is recorded at once") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.concurrency = 1;
  Latch asking, cancelled;
  Hooked searcher;
  searcher.before_ask = [&](const ht::Ask& ask) {
    if (ask.trial < 2) return;
    asking.open();
    const auto end = std::chrono::steady_clock::now() + 60s;  // a model that would take a minute, and looks
    while (!ask.cancelled() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (ask.cancelled()) cancelled.open();
  };
  o.search = searcher;
  auto program = ht::make_program<Config>(ht::detail::decoder(space), square, "value");
  {
    ht::Tuner tuner(space.search_space(), program, o);
    auto results = std::async(std::launch::async, [&] { return tuner.run(); });
    REQUIRE(asking.wait());
    const auto begin = std::chrono::steady_clock::now();
    tuner.stop();
    REQUIRE(results.wait_for(30s) == std::future_status::ready);
    CHECK(std::chrono::steady_clock::now() - begin < 20s);
    CHECK(cancelled.is_open());
    CHECK(results.get().count(ht::TrialState::completed) == 2);
  }
  o.search = ht::Random{};
  o.resume = true;
  CHECK(ht::tune(space, square, o).count(ht::TrialState::completed) == 20);
}

TEST_CASE("searchers that wait or end are heard across threads") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 200;
  o.executor = ht::threads({.cpus = 8});
  std::atomic<int> running{0}, most{0};
  o.search = ht::limit(Summing{}, 3);
  auto results = ht::tune(
      space,
      [&](Config c) {
        const int now = ++running;
        for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {}
        --running;
        return c.x;
      },
      o);
  CHECK(results.count(ht::TrialState::completed) == 200);
  CHECK(most <= 3);

  struct Five : Summing {
    ht::Suggestion suggest(const ht::Ask& ask) {
      return ask.trial < 5 ? Summing::suggest(ask) : ht::Suggestion::exhausted();
    }
    bool finite() const { return true; }
  };
  TemporaryDirectory other;
  auto finite = options(other);
  finite.samples = 0;
  finite.search = Five{};
  CHECK(ht::tune(space, square, finite).count(ht::TrialState::completed) == 5);
}

TEST_CASE("promotion finds its paused trials while suggestions are computed") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 60;
  o.executor = ht::threads({.cpus = 4});
  o.search = Summing{};
  o.schedule = ht::Asha{.grace_period = 1, .max_steps = 27, .reduction_factor = 3, .promotion = true};
  const auto results = ht::tune(
      space,
      [](Config c, ht::Context& context) -> ht::Training {
        for (int step = context.next_step(); step < 27; ++step) co_yield ht::report("value", c.x / (step + 1));
      },
      o);
  CHECK(results.size() == 60);
  CHECK(results.count(ht::TrialState::paused) == 0);
  CHECK(results.count(ht::TrialState::completed) >= 1);
}

TEST_CASE("a study answers reports while another thread asks") {
  TemporaryDirectory directory;
  auto o = options(directory);
  Latch asking, told;
  bool let_go = false;
  Hooked searcher;
  searcher.before_ask = [&](const ht::Ask& ask) {
    if (ask.trial != 1) return;
    asking.open();
    let_go = told.wait();
  };
  ht::Study study(space, searcher, o);
  const auto first = study.ask();
  REQUIRE(first);
  auto second = std::async(std::launch::async, [&] { return study.ask(); });
  REQUIRE(asking.wait());
  for (int step = 0; step < 50; ++step) CHECK(study.report(*first, 0.5, step) == ht::Decision::proceed);
  study.tell(*first, 0.25);
  CHECK(study.results().count(ht::TrialState::completed) == 1);
  told.open();
  const auto trial = second.get();
  REQUIRE(trial);
  CHECK(let_go);
  CHECK(trial->id == 1);
  CHECK_FALSE(*searcher.overlapped);
}

TEST_CASE("a study whose searcher fails once can be asked again") {
  TemporaryDirectory directory;
  int failures = 0;
  Hooked searcher;
  searcher.before_ask = [&](const ht::Ask& ask) {
    if (ask.trial == 1 && failures++ == 0) throw std::runtime_error("not today");
  };
  ht::Study study(space, searcher, options(directory));
  REQUIRE(study.ask());
  CHECK_THROWS_WITH(study.ask(), "the searcher 'hooked' failed: not today");
  const auto again = study.ask();
  REQUIRE(again);
  CHECK(again->id == 1);
}

TEST_CASE("the desk between deciding and computing") {
  ht::Suggestions suggestions{Summing{}};
  suggestions.prepare(space.search_space(), {});
  REQUIRE(suggestions.defer());
  CHECK_FALSE(suggestions.suggest(0, 7));
  CHECK(suggestions.has_open_request());
  REQUIRE(suggestions.wait());
  CHECK(suggestions.work());
  CHECK_FALSE(suggestions.has_open_request());
  const ht::Point point{0.5};
  const auto tell = [&](ht::TrialId trial) {
    suggestions.observe({.kind = ht::Observation::Kind::started, .trial = trial, .point = point});
  };

  SECTION("an answer that a slot waits for is taken although there is news") {
    tell(5);
    CHECK(suggestions.suggest(0, 7));
  }
  SECTION("one that nobody wanted is computed again when there is news") {
    suggestions.answer_not_taken();
    tell(5);
    CHECK_FALSE(suggestions.suggest(0, 7));
    CHECK(suggestions.work());
    const auto later = suggestions.suggest(0, 7);
    REQUIRE(later);
    CHECK(later->point[0] >= 0.01);  // it knows of trial 5
  }
  SECTION("one that nobody wanted is as good as ever without news") {
    suggestions.answer_not_taken();
    CHECK(suggestions.suggest(0, 7));
  }
  SECTION("one for another trial is none") { CHECK_FALSE(suggestions.suggest(1, 7)); }
  SECTION("observations without a question are told when they are many") {
    REQUIRE(suggestions.suggest(0, 7));
    for (int i = 0; i < 300; ++i) tell(i);
    REQUIRE(suggestions.wait());  // would block for ever, were there nothing to do
    CHECK_FALSE(suggestions.work());
  }
  SECTION("nothing happens after the close") {
    suggestions.close();
    CHECK_FALSE(suggestions.wait());
    CHECK(suggestions.wait_idle(0));
  }
  SECTION("cheap searchers stay where they are") {
    for (ht::AnySearcher cheap : {ht::AnySearcher(ht::Random{}), ht::AnySearcher(ht::Grid{}),
                                  ht::AnySearcher(ht::Sobol{}), ht::AnySearcher(ht::limit(ht::Random{}, 3))})
      CHECK_FALSE(ht::Suggestions(cheap).defer());
    CHECK(ht::Suggestions(ht::Tpe{}).defer());
    CHECK(ht::Suggestions(ht::repeat(ht::Tpe{}, 2)).defer());
  }
}

namespace {

/// Quick while it knows fewer than three trials, or more than five.
struct Changing {
  std::vector<ht::TrialId> told{};
  void prepare(const ht::SearchSpace&, const ht::SearchContext&) {}
  bool quick() const { return told.size() < 3 || told.size() > 5; }
  ht::Suggestion suggest(const ht::Ask&) const {
    if (told.size() == 7) throw std::runtime_error("not today");
    return ht::Point{static_cast<double>(told.size()) / 10};
  }
  void observe(const ht::Observation& o) {
    if (o.trial == 8) throw std::runtime_error("never again");
    told.push_back(o.trial);
  }
};

}  // namespace

TEST_CASE("a quick suggestion is made at once, with all that is known") {
  ht::Suggestions suggestions{ht::AnySearcher(ht::limit(Changing{}, 100))};
  suggestions.prepare(space.search_space(), {});
  REQUIRE(suggestions.defer());
  const ht::Point point{0.5};
  const auto tell = [&](ht::TrialId trial) {
    suggestions.observe({.kind = ht::Observation::Kind::started, .trial = trial, .point = point});
  };
  const auto asked = [&](ht::TrialId trial) {
    const auto answer = suggestions.suggest(trial, 7);
    return answer ? answer->point[0] : -1;
  };
  CHECK(asked(0) == 0);
  tell(0);
  tell(1);
  CHECK(asked(2) == 0.2);
  CHECK_FALSE(suggestions.has_open_request());
  tell(2);  // from now on it is not
  CHECK(asked(3) == -1);
  REQUIRE(suggestions.has_open_request());
  for (ht::TrialId trial = 3; trial < 6; ++trial) tell(trial);
  CHECK(asked(3) == -1);  // quick again, but the other thread was asked already
  REQUIRE(suggestions.wait());
  CHECK(suggestions.work());
  CHECK(asked(3) == 0.6);
  CHECK(asked(6) == 0.6);
  tell(6);
  CHECK_THROWS_WITH(asked(7), "the searcher 'limit(custom, 100)' failed: not today");
  tell(7);
  CHECK(asked(7) == 0.8);
  tell(8);  // what it has missed it cannot be told later
  for (int i = 0; i < 2; ++i) CHECK_THROWS_WITH(asked(8), "the searcher 'limit(custom, 100)' failed: never again");
}

namespace {

/// Random for a while, then what it is told to answer.
struct Odd {
  ht::Suggestion answer = ht::Suggestion::wait();
  int after = 0;
  ht::Random random{};
  int started_ = 0;
  void prepare(const ht::SearchSpace& s, const ht::SearchContext& goal) { random.prepare(s, goal); }
  ht::Suggestion suggest(const ht::Ask& ask) { return started_ < after ? random.suggest(ask) : answer; }
  void observe(const ht::Observation& o) { started_ += o.kind == ht::Observation::Kind::started; }
  std::string name() const { return "odd"; }
};
/// Starts nothing, or lets a trial take over itself with another configuration.
struct OddScheduler {
  static constexpr bool exploits = true;
  std::optional<ht::Point> point{};
  ht::TrialId paused_ = -1;
  ht::Decision on_report(const ht::Progress&) { return point ? ht::Decision::pause : ht::Decision::proceed; }
  void on_pause(ht::TrialId trial) { paused_ = trial; }
  ht::Choice choose_next(const ht::Pool&) {
    if (!point) return ht::Choice::wait();
    return paused_ >= 0 ? ht::Choice::exploit(paused_, paused_, *point) : ht::Choice::start_new();
  }
  std::string name() const { return "odd one"; }
};

std::string error_of(ht::Options o) {
  const auto constrained = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)))
                               .constraint("not near one", [](const Config& c) { return c.x < 0.9; });
  try {
    ht::tune(constrained, [](Config c) { return c.x; }, std::move(o));
  } catch (const ht::Error& e) { return e.what(); }
  return "";
}

}  // namespace

TEST_CASE("a searcher or scheduler that waits for nothing, or answers what cannot be, is named") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& executor :
       {ht::AnyExecutor(ht::threads(2)), ht::AnyExecutor(ht::run_inline()), ht::AnyExecutor(ht::simulated({}))}) {
    const auto with = [&](ht::AnySearcher searcher) {
      TemporaryDirectory directory;
      auto o = options(directory);
      o.executor = executor;
      o.search = std::move(searcher);
      return error_of(std::move(o));
    };
    INFO(executor.name());
    for (const int after : {0, 3}) {
      CHECK_THAT(with(Odd{.after = after}), ContainsSubstring("searcher 'odd' waits though no trial runs"));
      CHECK_THAT(with(Odd{.answer = ht::Point{nan}, .after = after}),
                 ContainsSubstring("searcher 'odd' gave a configuration") && ContainsSubstring("'x' has no value"));
      CHECK_THAT(with(Odd{.answer = ht::Point{7.0}, .after = after}),
                 ContainsSubstring("searcher 'odd' gave a configuration") && ContainsSubstring("coordinate 7"));
      CHECK_THAT(with(Odd{.answer = ht::Point{0.1, 0.2}, .after = after}),
                 ContainsSubstring("searcher 'odd' gave a point of 2 coordinates in a space of 1"));
      CHECK_THAT(with(Odd{.answer = ht::Point{0.95}, .after = after}),
                 ContainsSubstring("searcher 'odd' gave a configuration") && ContainsSubstring("'not near one'"));
    }
    CHECK(with(Odd{.answer = ht::Suggestion::exhausted(), .after = 3}).empty());
    CHECK(with(ht::limit(ht::Random{}, 1)).empty());

    TemporaryDirectory directory;
    auto o = options(directory);
    o.executor = executor;
    o.schedule = OddScheduler{};
    CHECK_THAT(error_of(o), ContainsSubstring("scheduler 'odd one' starts no trial"));
  }
  TemporaryDirectory directory;
  auto o = options(directory);
  o.executor = ht::threads(1);
  o.search = ht::Random{};
  o.schedule = OddScheduler{.point = ht::Point{nan}};
  std::string message;
  try {
    ht::tune(
        space,
        [](Config c, ht::Context& context) -> ht::Training {
          context.checkpoints([](ht::CheckpointWriter&) {}, [](const ht::Checkpoint&) {});
          for (int step = 0; step < 3; ++step) co_yield ht::report("value", c.x);
        },
        o);
  } catch (const ht::Error& e) { message = e.what(); }
  CHECK_THAT(message, ContainsSubstring("scheduler 'odd one' gave a configuration"));
}
