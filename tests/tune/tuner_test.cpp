#include "support/eventually.hpp"
#include "support/number_checkpoint.hpp"
#include "support/standard_error.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/record/detail/journal_reader.hpp>

#include <sys/stat.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace ht = hypertune;

namespace {

struct Config {
  double x = 0;
  int layers = 1;
};

const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(-1.0, 1.0)),
                                     ht::dim("layers", &Config::layers, ht::integer(1, 4)));

ht::Options options(const TemporaryDirectory& directory) {
  return {.name = "test",
          .samples = 20,
          .search = ht::Random{},
          .output = directory.path() / "run",
          .display = ht::Display::quiet};
}

double square(const Config& c) { return c.x * c.x; }

ht::Training climb(Config config, ht::Context& context) {
  for (int step = context.next_step(); step < 27; ++step)
    co_yield ht::report("value", config.x * config.x / (step + 1));
}

/// Every (trial, step) that the record holds, with how often it does.
std::map<std::pair<ht::TrialId, int>, int> reports(const std::filesystem::path& directory) {
  std::map<std::pair<ht::TrialId, int>, int> seen;
  ht::read_journal(directory, [&](const ht::Record& record) {
    if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what)) ++seen[{r->trial, r->step}];
  });
  return seen;
}

}  // namespace

namespace {

/// Sends an event while it is started, before there is an experiment that could take it.
class EarlySpeaker {
 public:
  std::vector<ht::Host> hosts() const { return inner_.hosts(); }
  ht::Seconds now() const { return inner_.now(); }
  void start(ht::ExecutorStart start) {
    std::thread([&start] { start.sink(ht::Notice{"said early"}); }).join();
    inner_.start(std::move(start));
  }
  void perform(ht::Command command) { inner_.perform(std::move(command)); }
  void wait(ht::Seconds deadline) { inner_.wait(deadline); }
  void notify() { inner_.notify(); }
  void shutdown() { inner_.shutdown(); }

 private:
  ht::InlineExecutor inner_;
};

}  // namespace

TEST_CASE("an event that comes before the experiment begins is taken when it does") {
  TemporaryDirectory directory;
  auto early = options(directory);
  early.executor = EarlySpeaker();
  early.display = ht::Display::plain;
  const auto lines = said([&] { CHECK(ht::tune(space, square, early).size() == 20); });
  CHECK_THAT(lines, ContainsSubstring("said early"));
}

TEST_CASE("a function is tuned to its best configuration") {
  TemporaryDirectory directory;
  auto results = ht::tune(space, square, options(directory));
  CHECK(results.size() == 20);
  CHECK(results.count(ht::TrialState::completed) == 20);
  const auto best = results.best();
  CHECK(best.best->value < 0.1);
  CHECK(space.config(best.point).x * space.config(best.point).x == best.best->value);
}

TEST_CASE("every executor gives the same results to the same seed") {
  std::set<double> values;
  for (int kind = 0; kind < 3; ++kind) {
    TemporaryDirectory directory;
    auto o = options(directory);
    if (kind == 1) o.executor = ht::run_inline();
    if (kind == 2) o.executor = ht::simulated({.pool = 4});
    values.insert(ht::tune(space, square, o).best().best->value);
  }
  CHECK(values.size() == 1);
}

TEST_CASE("ASHA stops bad trials early and lets good ones end") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 60;
  o.schedule = ht::Asha{.grace_period = 1, .max_steps = 27, .reduction_factor = 3};
  const auto results = ht::tune(space, climb, o);
  CHECK(results.count(ht::TrialState::stopped) > 20);
  CHECK(results.count(ht::TrialState::completed) >= 1);
  for (const auto& [key, times] : reports(o.output)) CHECK(times == 1);
}

TEST_CASE("promotion pauses and resumes without losing a step") {
  for (const bool inline_executor : {false, true}) {
    TemporaryDirectory directory;
    auto o = options(directory);
    o.samples = 40;
    o.schedule = ht::Asha{.grace_period = 1, .max_steps = 27, .reduction_factor = 3, .promotion = true};
    if (inline_executor) o.executor = ht::run_inline();
    const auto results = ht::tune(space, climb, o);
    CHECK(results.size() == 40);
    CHECK(results.count(ht::TrialState::completed) >= 1);
    CHECK(results.count(ht::TrialState::paused) == 0);
    for (const auto& [key, times] : reports(o.output)) CHECK(times == 1);
  }
}

TEST_CASE("a checkpoint that cannot be kept costs a trial nothing, whatever the executor") {
  struct Vanishing {
    explicit Vanishing(const Config& config) : x(config.x) {}
    double step() { return x * x / ++steps; }
    void save(ht::CheckpointWriter& writer) const { std::filesystem::remove_all(writer.directory()); }
    void restore(const ht::Checkpoint&) {}
    double x;
    int steps = 0;
  };
  for (const auto& executor :
       {ht::AnyExecutor(ht::threads(2)), ht::AnyExecutor(ht::run_inline()), ht::AnyExecutor(ht::simulated({}))}) {
    TemporaryDirectory directory;
    auto o = options(directory);
    o.samples = 3;
    o.schedule = ht::Asha{.grace_period = 4, .max_steps = 4};
    o.checkpoint.every = 2;
    o.executor = executor;
    const auto results = ht::tune<Vanishing>(space, o);
    CHECK(results.count(ht::TrialState::completed) == 3);
    for (int i = 0; i < 3; ++i) CHECK(results.trial(i).steps == 4);
  }
}

TEST_CASE("a trial that throws fails alone and is tried again") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.max_retries = 2;
  std::atomic<int> calls{0};
  const auto results = ht::tune(
      space,
      [&](const Config& c, ht::Context& context) -> double {
        ++calls;
        if (context.trial() == 3) throw std::runtime_error("boom");
        if (context.trial() == 4 && context.attempt() == 0) throw std::runtime_error("once");
        return c.x;
      },
      o);
  CHECK(results.count(ht::TrialState::failed) == 1);
  CHECK(results.count(ht::TrialState::completed) == 19);
  CHECK(calls == 20 + 2 + 1);
  const auto failed = results.trial(3);
  REQUIRE(failed.cause);
  CHECK_THAT(failed.cause->text, ContainsSubstring("boom"));
}

TEST_CASE("NaN and infinite results poison nothing") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.schedule = ht::Asha{.max_steps = 9};
  const auto results = ht::tune(
      space,
      [](Config c, ht::Context& context) -> ht::Training {
        for (int step = 0; step < 9; ++step)
          co_yield ht::report("value", context.trial() % 2 == 0   ? std::numeric_limits<double>::quiet_NaN()
                                       : context.trial() % 3 == 0 ? std::numeric_limits<double>::infinity()
                                                                  : c.x * c.x);
      },
      o);
  CHECK(std::isfinite(results.best().best->value));
  CHECK(results.best().trial % 2 == 1);
}

TEST_CASE("a stop condition on the metric ends the experiment") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 100000;
  o.stop = ht::until("value", 0.01);
  const auto results = ht::tune(space, square, o);
  CHECK(results.best().best->value <= 0.01);
  CHECK(results.size() < 1000);
}

TEST_CASE("an experiment can be extended") {
  TemporaryDirectory directory;
  auto o = options(directory);
  ht::tune(space, square, o);
  CHECK_THROWS_WITH(ht::tune(space, square, o), ContainsSubstring("holds an experiment already"));
  o.resume = true;
  o.samples = 50;
  const auto results = ht::tune(space, square, o);
  CHECK(results.size() == 50);
  for (const auto& [key, times] : reports(o.output)) CHECK(times == 1);
}

TEST_CASE("known results and configurations to start with") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.known = {{.params = {{"x", 0.0}, {"layers", std::int64_t{2}}}, .metrics = {{"value", 0.0}}}};
  o.start_with = {{{"x", 0.5}, {"layers", std::int64_t{3}}}};
  const auto results = ht::tune(space, square, o);
  CHECK(results.size() == 21);
  CHECK(results.best().trial == 0);
  CHECK(results.trial(1).params.get<double>("x") == 0.5);
}

TEST_CASE("mistakes in the options are told in one line") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 0;
  CHECK_THROWS_WITH(ht::tune(space, square, o), ContainsSubstring("how many trials"));
  o = options(directory);
  o.resources.cpus = 100000;
  CHECK_THROWS_AS(ht::tune(space, square, o), ht::Error);
  o = options(directory);
  o.metric = "accuracy";
  const auto results = ht::tune(space, [](const Config&) { return ht::report("loss", 1.0); }, o);
  CHECK(results.count(ht::TrialState::failed) == 20);
  CHECK_THAT(results.trial(0).cause->text, ContainsSubstring("accuracy"));
}

TEST_CASE("options that contradict each other, and times that are none, are errors that name them") {
  TemporaryDirectory directory;
  const auto complaint = [&](const std::function<void(ht::Options&)>& change) {
    auto o = options(directory);
    try {
      change(o);
      ht::tune(space, square, o);
    } catch (const ht::Error& error) { return std::string(error.what()); }
    return std::string();
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(complaint([](auto& o) {
          o.objectives = {{"value", ht::Mode::minimize}};
          o.metric = "value";
        }) == ".objectives is given, and .metric as well: give one of them");
  CHECK(complaint([](auto& o) {
          o.objectives = {{"a", ht::Mode::minimize}, {"b", ht::Mode::minimize}, {"a", ht::Mode::maximize}};
        }) == ".objectives: 'a' is given twice");
  CHECK(complaint([](auto& o) { o.metric = "a\tb"; }) ==
        "the name of the metric 'a?b' has control characters ('?'), such as a line break");
  CHECK(complaint([](auto& o) { o.max_failed_trials = -1; }) ==
        ".max_failed_trials is -1: it must be 0 (no limit) or more");
  CHECK(complaint([](auto& o) { o.hang_timeout = -1; }) == ".hang_timeout is -1: it must be 0 s or more");
  CHECK(complaint([](auto& o) { o.hang_timeout = nan; }) == ".hang_timeout is nan: it must be 0 s or more");
  CHECK(complaint([](auto& o) { o.hang_timeout = 12000.0 * 86400; }) ==
        ".hang_timeout is 1036800000 s: it must be below 1e+09 s (0 is without a limit)");
  CHECK(complaint([](auto& o) { o.interrupt_grace = nan; }) == ".interrupt_grace is nan: it must be 0 s or more");
  CHECK(complaint([](auto& o) { o.executor = ht::threads({.cpus = -1}); }) ==
        "threads: .cpus is -1: it must be 0 or more");
  CHECK(complaint([](auto& o) { o.constraints = {ht::at_most("value", 1), ht::at_least("value", 2)}; }) ==
        ".constraints: 'value' cannot be at most 1 and at least 2");
  CHECK(complaint([](auto& o) { o.retry_failed = true; }) ==
        ".retry_failed is for an experiment that is resumed: set .resume as well");
  for (const char* const name : {"../../x", "a/b", "..", "", "a\nb"})
    CHECK_THAT(complaint([&](auto& o) {
                 o.name = name;
                 o.output.clear();
               }),
               ContainsSubstring("must be a word that can be a folder's name"));
}

TEST_CASE("a metric twice in one report is told once, and its first value counts") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.display = ht::Display::plain;
  const auto twice = [](const Config& c) { return ht::report("value", c.x * c.x, "value", 7.0); };
  ht::Results results;
  const auto text = said([&] { results = ht::tune(space, twice, o); });
  CHECK(results.best().best->value <= 1);
  const std::string line = "has 'value' twice in one report: the first value counts";
  CHECK_THAT(text, ContainsSubstring(line));
  CHECK(text.find(line) == text.rfind(line));
}

TEST_CASE("that trials do not save is told once, where checkpoints were asked for") {
  const std::string line = "without a checkpoint, though one was asked for after each 2";
  for (const bool saves : {false, true}) {
    TemporaryDirectory directory;
    auto o = options(directory);
    o.display = ht::Display::plain;
    o.checkpoint = {.every = 2};
    const auto train = [&](const Config& c, ht::Context& context) -> ht::Training {
      double state = 0;
      if (saves) ht::test::checkpoint_number(context, state);
      for (int step = context.next_step(); step < 3; ++step) co_yield ht::report("value", c.x * c.x);
    };
    const auto text = said([&] { ht::tune(space, train, o); });
    INFO(text);
    CHECK((text.find(line) != std::string::npos) == !saves);
    CHECK(text.find(line) == text.rfind(line));
  }
}

TEST_CASE("a checkpoint that cannot be deleted is told once, and deleted by the next driver") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 1;
  o.display = ht::Display::plain;
  o.checkpoint = {.every = 1, .keep = 1};
  o.stop = ht::steps(5);
  const auto checkpoints = o.output / "trials" / "0" / "checkpoints";
  const auto first = checkpoints / "step-1", manifest = first / "manifest.json", kept = directory.path() / "manifest";
  const auto train = [&](const Config& c, ht::Context& context) -> ht::Training {
    double state = 0;
    ht::test::checkpoint_number(context, state);
    for (int step = context.next_step(); step < 10; ++step) {
      if (step == 1) {  // from now on its first checkpoint cannot be read, nor therefore deleted: nobody opens a socket
        REQUIRE(ht::test::eventually([&] { return std::filesystem::exists(manifest); }));
        std::filesystem::rename(manifest, kept);
        REQUIRE(::mknod(manifest.c_str(), S_IFSOCK | 0600, 0) == 0);
      }
      co_yield ht::report("value", c.x * c.x);
    }
  };
  const std::string told = "checkpoint step-1 of trial 0 is not needed any more and could not be deleted (said once)";
  CHECK_THAT(said([&] { ht::tune(space, train, o); }), ContainsSubstring(told));
  CHECK(std::filesystem::exists(first));
  CHECK_FALSE(std::filesystem::exists(checkpoints / "step-2"));
  std::filesystem::remove(manifest);
  std::filesystem::rename(kept, manifest);
  o.resume = true;
  CHECK_THAT(said([&] { CHECK(ht::tune(space, train, o).size() == 1); }), !ContainsSubstring(told));
  CHECK_FALSE(std::filesystem::exists(first));
}

TEST_CASE("stop() from another thread leaves a resumable experiment") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 50;
  std::atomic<int> steps{0};
  ht::Tuner* running = nullptr;
  auto program = ht::make_program<Config>([](const ht::Point& p) { return space.config(p); },
                                          [&](Config c, ht::Context& context) -> ht::Training {
                                            for (int step = context.next_step(); step < 10; ++step) {
                                              if (++steps == 100) running->stop();
                                              co_yield ht::report("value", c.x * c.x);
                                            }
                                          },
                                          "value");
  {
    ht::Tuner tuner(space.search_space(), program, o);
    running = &tuner;
    const auto results = tuner.run();
    CHECK(results.experiment().interrupted);
    CHECK(results.count(ht::TrialState::completed) < 50);
  }
  o.resume = true;
  ht::Tuner tuner(space.search_space(), program, o);
  running = &tuner;
  const auto results = tuner.run();
  CHECK(results.count(ht::TrialState::completed) == 50);
  for (const auto& [key, times] : reports(o.output)) CHECK(times == 1);
}

TEST_CASE("an experiment that was stopped before it began starts no trial, and begins when it is resumed") {
  TemporaryDirectory directory;
  auto o = options(directory);
  {
    std::stop_source source;
    source.request_stop();
    ht::Tuner tuner = ht::make_tuner(space, square, o);
    const auto results = tuner.run(source.get_token());
    CHECK(results.size() == 0);
    CHECK(results.experiment().interrupted);
  }
  o.resume = true;
  CHECK(ht::tune(space, square, o).size() == 20);
}

TEST_CASE("ordered mode repeats a parallel run to the bit") {
  std::vector<std::string> histories;
  for (int repeat = 0; repeat < 3; ++repeat) {
    TemporaryDirectory directory;
    auto o = options(directory);
    o.samples = 40;
    o.ordered = true;
    o.schedule = ht::Asha{.max_steps = 27};
    o.executor = ht::threads(4);
    o.resources.cpus = 1;
    ht::tune(
        space,
        [](Config c, ht::Context& context) -> ht::Training {
          for (int step = 0; step < 27; ++step) {
            if (std::hash<std::thread::id>()(std::this_thread::get_id()) % 3 == 0) std::this_thread::yield();
            co_yield ht::report("value", c.x * c.x / (step + 1) + 0.001 * static_cast<double>(context.trial()));
          }
        },
        o);
    std::string history;
    ht::read_journal(o.output, [&](const ht::Record& record) {
      if (const auto* r = std::get_if<ht::record::TrialReported>(&record.what))
        history += fmt::format("r{}.{} ", r->trial, r->step);
      if (const auto* e = std::get_if<ht::record::TrialEnded>(&record.what))
        history += fmt::format("e{}.{} ", e->trial, ht::to_string(e->state));
    });
    histories.push_back(history);
  }
  CHECK(histories[0] == histories[1]);
  CHECK(histories[0] == histories[2]);
}

TEST_CASE("resume() takes what it is not told from the record") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.metric = "loss";
  o.seed = 7;
  ht::tune(space, square, o);
  const auto results = ht::resume(o.output, space, square, {.samples = 25, .display = ht::Display::quiet});
  CHECK(results.size() == 25);
  CHECK(results.experiment().seed == 7);
  CHECK(results.best().best->metric == "loss");
  CHECK_THROWS_WITH(ht::resume(directory.path() / "absent", space, square), ContainsSubstring("no experiment"));
}

TEST_CASE("each trial keeps its progress as CSV where that is asked for") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 2;
  o.progress_csv = true;
  ht::tune(space, climb, o);
  std::ifstream file(o.output / "trials" / "1" / "progress.csv");
  int lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  CHECK(lines == 28);
}

TEST_CASE("a sample is a trial of each combination of the grid that can be met") {
  struct Pair {
    int a = 0, b = 0;
  };
  const auto pairs =
      ht::space<Pair>(ht::dim("a", &Pair::a, ht::grid({1, 2, 3})), ht::dim("b", &Pair::b, ht::grid({1, 2, 3})))
          .constraint("a < b", [](const Pair& p) { return p.a < p.b; });
  const auto sum = [](const Pair& p) { return p.a + p.b; };
  TemporaryDirectory directory;
  auto o = options(directory);
  o.samples = 1;
  const auto results = ht::tune(pairs, sum, o);
  CHECK(results.experiment().samples == 3);
  REQUIRE(results.size() == 3);
  std::set<ht::Point> seen;
  for (ht::TrialId t = 0; t < 3; ++t) seen.insert(results.trial(t).point);
  CHECK(seen.size() == 3);
  o.resume = true;
  o.samples = 2;
  CHECK(ht::tune(pairs, sum, o).size() == 6);
  const auto again = ht::resume(o.output, pairs, sum);
  CHECK(again.size() == 6);
  CHECK(again.experiment().samples == 6);  // as it was extended to, not as it began
}

TEST_CASE("mistakes found at the start leave no folder behind") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.output = directory.path() / "new" / "run";
  const auto impossible =
      ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0, 1))).constraint("never", [](const Config&) {
        return false;
      });
  CHECK_THROWS_WITH(ht::tune(impossible, square, o), ContainsSubstring("'never'"));
  CHECK_FALSE(std::filesystem::exists(directory.path() / "new"));
  o.known = {{.params = {{"x", 0.5}, {"layers", std::int64_t{1}}}, .metrics = {{"vlaue", 1}}}};
  CHECK_THROWS_WITH(ht::tune(space, square, o), ContainsSubstring("'value'"));
  CHECK_FALSE(std::filesystem::exists(directory.path() / "new"));
  std::filesystem::create_directories(o.output);  // the user's own stays
  CHECK_THROWS_AS(ht::tune(space, square, o), ht::Error);
  CHECK(std::filesystem::is_empty(o.output));
  o.known.clear();
  CHECK(ht::tune(space, square, o).size() == 20);
}

TEST_CASE("a trial that fails as the experiment's folder was moved is not to blame: it goes on where the folder is") {
  for (int again = 0; again < 8; ++again) {  // whether the Journal sees it first is chance
    TemporaryDirectory directory;
    auto o = options(directory);
    o.samples = 1;
    const auto moved = directory.path() / "moved";
    const auto fail_there = [&](const Config& c) {
      if (std::filesystem::exists(moved)) return square(c);
      std::filesystem::rename(o.output, moved);
      throw std::runtime_error("there is no folder to save in");
    };
    CHECK_THROWS_WITH(ht::tune(space, fail_there, o), ContainsSubstring("was moved to '" + moved.string() + "'"));
    o.output = moved;
    o.resume = true;
    CHECK(ht::tune(space, fail_there, o).count(ht::TrialState::completed) == 1);
  }
}

TEST_CASE("a scheduler that reads one objective is refused where there are several") {
  TemporaryDirectory directory;
  auto o = options(directory);
  o.objectives = {ht::minimize("loss"), ht::minimize("latency")};
  o.schedule = ht::Asha{.grace_period = 1, .max_steps = 9};
  const auto both = [](const Config& c) { return ht::report("loss", c.x, "latency", -c.x); };
  CHECK_THROWS_WITH(ht::tune(space, both, o), ContainsSubstring("asha"));
  CHECK_FALSE(std::filesystem::exists(o.output));
  o.schedule = ht::Fifo{};
  CHECK(ht::tune(space, both, o).size() == 20);
}
