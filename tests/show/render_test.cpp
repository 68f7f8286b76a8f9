#include "support/test.hpp"

#include <hypertune/show/detail/render.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace hypertune;

namespace {

struct Feed {
  ProgressTracker tracker;
  std::int64_t sequence = 0;
  void operator()(record::Any what, bool live = true) { tracker.add(Record{++sequence, 0, std::move(what)}, live); }
  const ExperimentProgress& p() const { return tracker.progress(); }

  void start(std::int64_t samples = 20) {
    record::ExperimentStarted e;
    e.name = "digits";
    e.objectives = {maximize("accuracy")};
    e.searcher = "random";
    e.scheduler = "asha";
    e.executor = "threads";
    e.samples = samples;
    (*this)(e);
    tracker.tick(0);
  }
  void run(TrialId trial, int steps, double value) {
    (*this)(record::TrialCreated{
        .trial = trial,
        .point = {},
        .params = {{"lr", 0.001 * static_cast<double>(trial)}, {"optimizer", std::string("größte-学习率")}}});
    (*this)(record::TrialStarted{.trial = trial, .attempt = 0, .next_step = 0, .host = "h", .cpus = {0}, .gpus = {}});
    for (int step = 0; step < steps; ++step)
      (*this)(
          record::TrialReported{.trial = trial, .attempt = 0, .step = step, .metrics = {{"accuracy", value + step}}});
  }
  void end(TrialId trial, TrialState state) {
    (*this)(record::TrialEnded{.trial = trial, .state = state, .cause = {}});
  }
};

std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const auto& line : lines) all += line + "\n";
  return all;
}

std::string without_colors(std::string text) {
  for (std::size_t at; (at = text.find('\x1b')) != std::string::npos;) text.erase(at, text.find('m', at) - at + 1);
  return text;
}

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a table's further blocks have only rows with something in them") {
  using detail::terminal::TextTable;
  TextTable table({{"trial", true}, {"state"}, {"cause", false, 20}});
  for (const char* cause : {"", "ran out of memory", "-"}) table.add({std::int64_t{7}, "completed", cause});
  CHECK(table.text(26) ==
        "trial  state\n    7  completed\n    7  completed\n    7  completed\n\n"
        "trial  cause\n    7  ran out of memory\n");
  CHECK_THAT(table.text(80), ContainsSubstring("completed\n") && ContainsSubstring("completed  -\n"));
  TextTable without({{"trial", true}, {"state"}, {"cause", false, 20}});
  without.add({std::int64_t{7}, "completed, and quite long", ""});
  CHECK(without.text(28).find("cause") == std::string::npos);
}

TEST_CASE("texts are measured and cut by columns") {
  using namespace detail::terminal;
  CHECK(wrapped("one two  three", 0) == "one two  three");
  CHECK(wrapped("one two  three", 14) == "one two  three");
  CHECK(wrapped("one two  three", 9) == "one two\n  three");
  CHECK(wrapped("größe=1 学习率=2", 9) == "größe=1\n  学习率=2");
  CHECK(wrapped("a longword b", 4) == "a\n  longword\n  b");
  CHECK(text_width("abc") == 3);
  CHECK(text_width("größe") == 5);
  CHECK(text_width("学习") == 4);
  CHECK(text_width("e\u0301") == 1);
  CHECK(text_width("😀") == 2);
  CHECK(elide("abcdef", 6) == "abcdef");
  CHECK(elide("abcdef", 5) == "abcd…");
  CHECK(elide("学习率", 5) == "学习…");
  CHECK(elide("学习率", 4) == "学…");
  CHECK(elide("学习率", 6) == "学习率");
  CHECK(elide("学", 1) == "…");
  CHECK(elide("abc", 0).empty());
  CHECK(printable("a\x1b[31m\n\xff\xc0\x80\u202e") == "a?[31m?????");
  CHECK(printable("größe 学") == "größe 学");
}

TEST_CASE("durations and counts are read at a glance") {
  CHECK(duration_text(0) == "0 s");
  CHECK(duration_text(59.9) == "59 s");
  CHECK(duration_text(185) == "3m 05s");
  CHECK(duration_text(7380) == "2h 03m");
  CHECK(duration_text(4 * 86400 + 7200) == "4d 02h");
  CHECK(duration_text(-1) == "0 s");
  CHECK(duration_text(nan_value) == "very long");
  CHECK(detail::terminal::count_text(999) == "999");
  CHECK(detail::terminal::count_text(1234567) == "1,234,567");
  CHECK(detail::terminal::count_text(-1234) == "-1,234");
  CHECK(detail::terminal::count_text(-123) == "-123");
}

TEST_CASE("the table says what a person asks") {
  Feed feed;
  feed.tracker.set_capacity({.cpus = 8, .gpus = 2, .per_trial = {.cpus = 1, .gpus = 0.5}});
  feed.start();
  feed.run(0, 3, 0.5);
  feed.run(1, 2, 0.7);
  feed.run(2, 1, nan_value);
  feed.run(3, 1, std::numeric_limits<double>::infinity());
  feed(record::TrialCreated{.trial = 4, .point = {}, .params = {}});
  feed.end(0, TrialState::completed);
  feed.tracker.tick(10);
  feed(record::AttemptFailed{.trial = 3,
                             .attempt = 0,
                             .cause = {FailureSource::user, "segmentation fault\x1b[2J", true, false},
                             .retry = true});
  feed(record::TrialPaused{.trial = 2});
  const auto lines = render(feed.p(), {.width = 200, .height = 30, .color = false});
  CHECK(lines == std::vector<std::string>{
                     "digits  10 s  about 1m 15s left",
                     "1/20 trials: 1 running, 2 pending, 1 paused, 1 completed",
                     "best  accuracy 2.5 by trial 0 at step 2  lr=0 optimizer=größte-学习率",
                     "rate  6 trials/min, 0.7 reports/s  cpus 1 of 8, gpus 0.5 of 2",
                     "fail  trial 3: segmentation fault?[2J (it is tried again)",
                     "trial    steps   accuracy     lr      optimizer",
                     "    1        2        1.7  0.001  größte-学习率",
                 });
  CHECK(without_colors(joined(render(feed.p(), {.width = 200, .height = 30, .color = true}))) == joined(lines));
  CHECK(joined(render(feed.p(), {.width = 200, .height = 30, .color = true})).find("\x1b[31m") != std::string::npos);
}

TEST_CASE("what trials have of the hosts is told where they have a share of it") {
  Feed feed;
  feed.start();
  const auto rate = [&](Capacity capacity) {
    feed.tracker.set_capacity(std::move(capacity));
    return render(feed.p(), {.width = 200, .height = 30, .color = false}).at(3);
  };
  CHECK_THAT(rate({.cpus = 2, .per_trial = {.cpus = 1}}), ContainsSubstring("cpus 0 of 2"));
  const auto begin = [&](TrialId trial) {
    feed(record::TrialCreated{.trial = trial, .point = {}, .params = {}});
    feed(record::TrialStarted{.trial = trial, .attempt = 0, .next_step = 0, .host = "h", .cpus = {}, .gpus = {}});
  };
  feed.tracker.set_capacity({.cpus = 2, .per_trial = {.cpus = 0}});
  begin(0);
  // It takes no cores: that "0 of 2" are taken while it runs would read as a mistake.
  CHECK(rate({.cpus = 2, .per_trial = {.cpus = 0}}).find("cpus") == std::string::npos);
  CHECK(rate({.cpus = 2, .cpus_used = 0.0, .per_trial = {.cpus = 0}}).find("cpus") == std::string::npos);
  feed.tracker.set_capacity({.cpus = 2, .per_trial = {.cpus = 1}});
  begin(1);
  CHECK_THAT(rate({.cpus = 2, .per_trial = {.cpus = 1}}), ContainsSubstring("cpus 1 of 2"));
  const auto counts = [&](std::size_t held) {
    feed.tracker.set_capacity({.cpus = 2, .held = held, .per_trial = {.cpus = 1}});
    return render(feed.p(), {.width = 200, .height = 30, .color = false}).at(1);
  };
  CHECK_THAT(counts(1), ContainsSubstring("2 running (1 waits for a host)"));
  CHECK_THAT(counts(2), ContainsSubstring("2 running (2 wait for a host)"));
  CHECK_THAT(counts(0), ContainsSubstring("2 running") && !ContainsSubstring("wait"));
  // Who places the trials knows better than the records: hosts that came later, fractions, needs of each trial.
  CHECK_THAT(rate({.cpus = 8, .cpus_used = 6.5, .per_trial = {.cpus = 1}}), ContainsSubstring("cpus 6.5 of 8"));
}

TEST_CASE("no line is wider than the terminal, and none is too many") {
  Feed feed;
  feed.tracker.set_capacity({.cpus = 64, .gpus = 8, .per_trial = {}});
  feed.start();
  for (TrialId trial = 0; trial < 40; ++trial) feed.run(trial, 2, 0.1 * static_cast<double>(trial));
  feed(record::AttemptFailed{
      .trial = 3, .attempt = 0, .cause = {FailureSource::user, std::string(500, 'x'), true, false}, .retry = false});
  feed.tracker.tick(100);
  for (std::size_t width = 1; width <= 200; ++width)
    for (const std::size_t height : {1U, 2U, 5U, 6U, 7U, 8U, 24U, 100U}) {
      const auto lines = render(feed.p(), {.width = width, .height = height, .color = false});
      REQUIRE(lines.size() <= height);
      for (const auto& line : lines) {
        REQUIRE(detail::terminal::text_width(line) <= width);
        REQUIRE(detail::terminal::printable(line) == line);
      }
      const auto colored = render(feed.p(), {.width = width, .height = height, .color = true});
      REQUIRE(without_colors(joined(colored)) == joined(lines));
    }
  const auto lines = render(feed.p(), {.width = 80, .height = 10, .color = false});
  REQUIRE(lines.size() == 10);
  CHECK(lines.back() == "… and 37 more running");
  CHECK(render(feed.p(), {.width = 80, .height = 100, .color = false}).size() == 46);
}

TEST_CASE("numbers are rounded to what fits, never cut") {
  using namespace detail::terminal;
  CHECK(number_text(8.8254e-05, 5, 20) == "8.8254e-05");
  CHECK(number_text(8.8254e-05, 5, 9) == "8.8254e-5");
  CHECK(number_text(8.8254e-05, 5, 8) == "8.825e-5");
  CHECK(number_text(8.8254e-05, 5, 6) == "8.8e-5");
  CHECK(number_text(8.8254e-05, 5, 4) == "9e-5");
  CHECK(number_text(8.8254e-05, 5, 3) == "…");
  CHECK(number_text(0.000123456, 5, 7) == "1.23e-4");
  CHECK(number_text(0.98765, 5, 5) == "0.988");
  CHECK(number_text(-1234567, 17, 6) == "-1.2e6");
  CHECK(number_text(1e300, 5, 5) == "1e300");
  CHECK(number_text(nan_value, 5, 3) == "nan");
  for (const double value : {8.8254e-05, 0.00099996, 123456.789, -0.5, 1e-300, 9.9999e9, 0.0})
    for (std::size_t width = 6; width < 20; ++width) {
      const std::string text = number_text(value, 6, width);
      CAPTURE(value, width, text);
      REQUIRE(text.size() <= width);
      REQUIRE(std::stod(text) == Approx(value).epsilon(0.1).margin(0));
    }
}

TEST_CASE("names that are shortened stay apart") {
  using namespace detail::terminal;
  using Names = std::vector<std::string>;
  const auto at = [](const Names& names, std::size_t width) {
    return short_names(names, std::vector<std::size_t>(names.size(), width));
  };
  CHECK(at({"optimizer.lr", "optimizer.beta", "seed"}, 6) == Names{"…lr", "…beta", "seed"});
  CHECK(at({"learning_rate", "learning_rounds"}, 8) == Names{"…rate", "…rounds"});
  CHECK(at({"learning_rate", "learning_rate_decay"}, 8) == Names{"…rate", "…rate_d…"});
  CHECK(at({"optim_a_decay", "optim_a_delay", "optim_b"}, 6) == Names{"…decay", "…delay", "…b"});
  CHECK(at({"größe_学a", "größe_学b"}, 6) == Names{"…学a", "…学b"});
  CHECK(short_names({"optimizer.lr_schedule", "optimizer.momentum"}, {9, 10}) == Names{"…lr_sche…", "…momentum"});
  CHECK(at({"a_x_long1", "a_x_long2", "b_x_long1", "b_x_long2"}, 7) ==
        Names{"a_x…ng1", "a_x…ng2", "b_x…ng1", "b_x…ng2"});
  CHECK(at({"same_long_name", "same_long_name"}, 6) == Names{"same_…", "same_…"});
}

TEST_CASE("all parameters of those that run are seen, with rounded numbers") {
  Feed feed;
  feed.start();
  const Params params{{"optimizer.learning_rate", 8.825467436211e-05},
                      {"optimizer.momentum", 0.98765432123456},
                      {"optimizer.weight_decay", 0.00012345678912},
                      {"architecture", std::string("transformer-encoder-decoder-large")},
                      {"layers", std::int64_t{12}},
                      {"dropout.attention", 0.12345678901234},
                      {"dropout.residual", 0.2345678901234},
                      {"batch_size", std::int64_t{256}}};
  const auto expect_all = [&](std::size_t width, std::size_t height, TrialId trials) {
    const auto lines = render(feed.p(), {.width = width, .height = height, .color = false});
    CAPTURE(width, height, joined(lines));
    REQUIRE(lines.size() <= height);
    const auto text = joined(lines);
    // The parameters' names in the titles, and for each trial a line in each block.
    for (const char* name : {"learning_rate", "momentum", "weight", "archit", "layers", "attent", "resid", "batch"})
      CHECK_THAT(text, ContainsSubstring(name));
    std::size_t blocks = 0, rows = 0;
    for (const auto& line : lines) {
      REQUIRE(detail::terminal::text_width(line) <= width);
      blocks += line.starts_with("trial ") ? 1 : 0;
      for (TrialId id = 0; id < trials; ++id) rows += line.starts_with(fmt::format("{:5}  ", id)) ? 1 : 0;
    }
    CHECK(rows == blocks * static_cast<std::size_t>(trials));
    for (const char* number : {"8.83e-5", "8.825e-5", "8.8255e-5", "8.8255e-05"})
      if (text.find(number) != std::string::npos) return;
    FAIL("the learning rate is not shown with three digits or more");
  };
  for (TrialId trial = 0; trial < 4; ++trial) {
    feed(record::TrialCreated{.trial = trial, .point = {}, .params = params});
    feed(record::TrialStarted{.trial = trial, .attempt = 0, .next_step = 0, .host = "h", .cpus = {0}, .gpus = {}});
    feed(record::TrialReported{.trial = trial, .attempt = 0, .step = 0, .metrics = {{"accuracy", 0.5}}});
  }
  expect_all(80, 23, 4);
  expect_all(60, 30, 4);
  expect_all(200, 49, 4);
  for (TrialId trial = 4; trial < 30; ++trial) {
    feed(record::TrialCreated{.trial = trial, .point = {}, .params = params});
    feed(record::TrialStarted{.trial = trial, .attempt = 0, .next_step = 0, .host = "h", .cpus = {0}, .gpus = {}});
  }
  expect_all(80, 23, 3);  // fewer trials, all of each
  CHECK_THAT(joined(render(feed.p(), {.width = 80, .height = 23, .color = false})), ContainsSubstring("more running"));
  // The best trial's parameters continue on lines of their own.
  const auto best = joined(render(feed.p(), {.width = 80, .height = 23, .color = false}));
  CHECK_THAT(best, ContainsSubstring("batch_size=256"));
  CHECK_THAT(best, ContainsSubstring("optimizer.learning_rate=8.82547e-05"));
}

TEST_CASE("several objectives have a best each, and the end says how it ended") {
  Feed feed;
  record::ExperimentStarted e;
  e.name = "two";
  e.objectives = {maximize("accuracy"), minimize("latency")};
  feed(e);
  feed.tracker.tick(5);
  feed.run(0, 0, 0);
  feed(record::TrialReported{.trial = 0, .attempt = 0, .step = 0, .metrics = {{"latency", 3}, {"accuracy", 1}}});
  feed(record::TrialReported{.trial = 0, .attempt = 0, .step = 1, .metrics = {{"latency", 2}, {"accuracy", 0.5}}});
  const auto text = joined(render(feed.p(), {.width = 200, .height = 30, .color = false}));
  CHECK_THAT(text, ContainsSubstring("best  accuracy 1 by trial 0 at step 0"));
  CHECK_THAT(text, ContainsSubstring("best  latency 2 by trial 0 at step 1"));
  CHECK_THAT(text, ContainsSubstring("\n0 trials: 1 running"));
  feed.end(0, TrialState::stopped);
  feed(record::ExperimentEnded{.interrupted = true, .why = "Ctrl-C"});
  feed.tracker.tick(7);
  CHECK_THAT(joined(render(feed.p(), {.width = 200, .height = 30, .color = false})),
             ContainsSubstring("two  2 s  interrupted"));
  CHECK(end_text(feed.p()) == "two: interrupted after 2 s: 1 trial: 1 stopped (Ctrl-C)");
}

TEST_CASE("what runs is partly done: the time left knows it") {
  Feed feed;
  feed.start(4);
  feed.run(0, 100, 0.5);
  for (TrialId trial = 1; trial < 4; ++trial) feed.run(trial, 95, 0.5);
  feed.tracker.tick(385);
  CHECK_FALSE(feed.p().time_left());
  feed.end(0, TrialState::completed);
  CHECK(feed.p().time_left().value() == Approx(15));
  feed(record::TrialPaused{.trial = 1});  // also what waits
  CHECK(feed.p().time_left().value() == Approx(15));
  feed(record::TrialStarted{.trial = 1, .attempt = 1, .next_step = 95, .host = "h", .cpus = {0}, .gpus = {}});
  for (TrialId trial = 1; trial < 3; ++trial) feed.end(trial, TrialState::completed);
  CHECK(feed.p().time_left().value() == Approx(5.0 / 3));
}

TEST_CASE("trials that a person added beyond the samples, and known results, are among those planned") {
  Feed feed;
  feed.start(2);
  feed(record::TrialCreated{.trial = 0, .point = {}, .params = {}, .known = true});
  feed.end(0, TrialState::completed);
  const auto done = [&] { return joined(render(feed.p(), {.width = 200, .height = 30, .color = false})); };
  CHECK_THAT(done(), ContainsSubstring("\n1/3 trials: 1 completed\n"));
  for (TrialId trial = 1; trial < 5; ++trial) feed.run(trial, 10, 0.5);
  for (TrialId trial = 1; trial < 4; ++trial) feed.end(trial, TrialState::completed);
  CHECK_THAT(done(), ContainsSubstring("\n4/5 trials: 1 running, 4 completed\n"));
  feed(record::TrialCreated{.trial = 5, .point = {}, .params = {}});
  CHECK_THAT(done(), ContainsSubstring("\n4/6 trials: 1 running, 1 pending, 4 completed\n"));
  feed.tracker.tick(40);
  CHECK(feed.p().time_left().value() == Approx(10));  // all of trial 5
  auto again = feed.p().started();
  again.resumed = true;
  feed(again);
  CHECK_THAT(start_text(feed.p()), ContainsSubstring("digits: resumed, 6 trials, "));
}

TEST_CASE("a resumed experiment goes on counting, but its pace is of now") {
  Feed feed;
  feed.start();
  feed.run(0, 3, 0.5);
  Feed again;
  again.start();
  const auto old = [&](record::Any what) { again(std::move(what), false); };
  old(record::TrialCreated{.trial = 0, .point = {}, .params = {{"lr", 1.0}}});
  old(record::TrialStarted{.trial = 0, .attempt = 0, .next_step = 0, .host = "h", .cpus = {}, .gpus = {}});
  old(record::TrialReported{.trial = 0, .attempt = 0, .step = 0, .metrics = {{"accuracy", 0.9}}});
  old(record::TrialEnded{.trial = 0, .state = TrialState::completed, .cause = {}});
  old(record::TrialCreated{.trial = 1, .point = {}, .params = {{"lr", 2.0}}});
  old(record::TrialStarted{.trial = 1, .attempt = 0, .next_step = 0, .host = "h", .cpus = {}, .gpus = {}});
  auto e = feed.p().started();
  e.resumed = true;
  again(e);
  again.tracker.tick(10);
  CHECK(again.p().count(TrialState::pending) == 1);
  CHECK(again.p().running().empty());
  CHECK(again.p().best().front()->value == 0.9);
  CHECK_FALSE(again.p().time_left());
  CHECK(again.p().rates().trials_per_minute == 0);
  CHECK(start_text(again.p()) == "digits: resumed, 20 trials, search random, schedule asha, executor threads");
  again(record::TrialStarted{.trial = 1, .attempt = 1, .next_step = 0, .host = "h", .cpus = {}, .gpus = {}});
  CHECK(again.p().running().at(1).params == "lr=2");
}

TEST_CASE("one is one trial, one report") {
  Feed feed;
  feed.start(1);
  CHECK(start_text(feed.p()) == "digits: started, 1 trial, search random, schedule asha, executor threads");
  feed.run(0, 60, 1);
  feed.end(0, TrialState::completed);
  feed.tracker.tick(60);
  const std::string line = summary_line(feed.p());
  CHECK_THAT(line, ContainsSubstring("1/1 trial: "));
  CHECK_THAT(line, ContainsSubstring("1 trial/min, 1 report/s"));
  CHECK_THAT(end_text(feed.p()), ContainsSubstring("1/1 trial: 1 completed"));
}
