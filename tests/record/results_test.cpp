#include "record_support.hpp"
#include "support/test.hpp"

#include <hypertune/detail/utf8.hpp>
#include <hypertune/record/results.hpp>

#include <boost/json.hpp>

namespace ht = hypertune;
using support::TemporaryFolder;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

template <class Call>
std::string error_of(ht::Errc code, const Call& call) {
  try {
    call();
  } catch (const ht::Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "nothing was thrown";
}

/// Five trials: good, better but failed, NaN and infinite, stopped, waiting.
std::vector<ht::record::Any> story() {
  using namespace ht::record;
  const auto created = [](ht::TrialId id, ht::Params params) {
    return TrialCreated{id, {0.5 * double(id)}, std::move(params)};
  };
  const auto report = [](ht::TrialId id, int step, double accuracy, double latency) {
    return TrialReported{id, 0, step, {{"accuracy", accuracy}, {"latency_ms", latency}}};
  };
  return {
      ExperimentStarted{
          "digits", {ht::maximize("accuracy"), ht::minimize("latency_ms")}, "lr: …", "tpe", "asha", "local", 5, 9},
      created(0, {{"lr", 0.25}, {"optimizer", std::string("sgd")}, {"momentum", 0.9}}),
      created(1, {{"lr", 0.125}, {"optimizer", std::string("adam")}}),
      created(2, {{"lr", 1.0}, {"optimizer", std::string("a,\"b\"\nc")}}),
      created(3, {{"lr", 0.5}, {"optimizer", std::string("adam")}}),
      created(4, {{"lr", 0.75}, {"optimizer", std::string("adam")}}),
      TrialStarted{0, 0, 0, "localhost", {0}, {}},
      report(0, 0, 0.5, 3),
      report(0, 1, 0.875, 2),
      TrialCheckpointed{0, {0, 2, "step-2", 100, "ab"}},
      report(0, 2, 0.75, 4),
      TrialCheckpointed{0, {0, 3, "step-3", 100, "cd"}},
      CheckpointDropped{0, {0, 2, "step-2", 100, "ab"}, "retention"},
      AttemptFailed{0, 0, {ht::FailureSource::preemption, "the host went away", true, false}, true},
      TrialStarted{0, 1, 3, "localhost", {0}, {}},
      report(0, 3, nan, 1),
      TrialEnded{0, ht::TrialState::completed, {}},
      TrialStarted{1, 0, 0, "localhost", {1}, {}},
      report(1, 0, 0.99, 1),
      AttemptFailed{1, 0, {ht::FailureSource::user, "CUDA error: out of memory", true, false}, false},
      TrialEnded{1, ht::TrialState::failed, ht::Cause{ht::FailureSource::user, "CUDA error: out of memory"}},
      TrialStarted{2, 0, 0, "localhost", {1}, {}},
      report(2, 0, inf, -inf),
      report(2, 1, nan, 7),
      TrialPaused{2},
      TrialStarted{3, 0, 0, "localhost", {1}, {}},
      report(3, 0, 0.875, 5),
      TrialEnded{3, ht::TrialState::stopped, ht::Cause{ht::FailureSource::user, "scheduler"}},
  };
}

ht::Results results_of(const std::vector<ht::record::Any>& events) {
  ht::Results results;
  std::int64_t sequence = 0;
  for (const auto& event : events) {
    ++sequence;
    results.add({sequence, double(sequence) / 4, event});
  }
  return results;
}

}  // namespace

TEST_CASE("the best trial is the best finite report of one that did not fail") {
  const auto results = results_of(story());
  const auto best = results.best();
  CHECK(best.trial == 0);  // 3 is as good, but later; 1 failed; 2 is infinite
  CHECK(best.best == ht::BestReport{"accuracy", 1, 0.875});
  CHECK(best.steps == 4);
  CHECK(best.state == ht::TrialState::completed);
  CHECK(best.failures_by(ht::FailureSource::preemption) == 1);
  CHECK(best.failure_count() == 0);  // a preemption is none
  CHECK_FALSE(best.cause);
  CHECK(best.attempts == 2);
  REQUIRE(best.checkpoints.size() == 1);
  CHECK(best.checkpoints[0].name == "step-3");
  CHECK(best.first_record == 2);
  CHECK(best.last_record == 17);
  CHECK(fmt::format("{}", best) == "trial 0  accuracy=0.875 at step 1  lr=0.25 optimizer=sgd momentum=0.9");
  CHECK(results.best("latency_ms").trial == 0);
  CHECK(results.best("latency_ms").best == ht::BestReport{"latency_ms", 3, 1});
  CHECK(results.best("latency_ms", ht::Mode::maximize).trial == 2);
  CHECK(results.best("accuracy", ht::Mode::minimize).best->value == 0.5);
  CHECK(results.ranked() == std::vector<ht::TrialId>{0, 3, 1, 2, 4});
  CHECK(results.ranked(2) == std::vector<ht::TrialId>{0, 3});
}

TEST_CASE("without a result the error says what there is") {
  auto events = story();
  CHECK_THAT(error_of(ht::Errc::experiment, [] { ht::Results().best(); }), ContainsSubstring("no trials"));
  events.erase(events.begin() + 6, events.begin() + 17);  // trial 0's
  events.erase(events.end() - 3, events.end());           // trial 3's
  const auto results = results_of(events);
  const auto text = error_of(ht::Errc::experiment, [&] { results.best(); });
  CHECK_THAT(text, ContainsSubstring("all that reported a finite 'accuracy' have failed") &&
                       ContainsSubstring("1 failed") && ContainsSubstring("CUDA error: out of memory"));
  CHECK_THAT(error_of(ht::Errc::usage, [&] { results.best("acuracy"); }), ContainsSubstring("accuracy, latency_ms"));
  CHECK_THAT(error_of(ht::Errc::usage, [&] { results.trial(17); }), ContainsSubstring("no trial 17"));
  CHECK_THAT(error_of(ht::Errc::usage, [&] { results.history(0, [](const ht::Record&) {}); }),
             ContainsSubstring("Results::read"));
}

TEST_CASE("without a result the error says how to go on where the experiment was interrupted") {
  const TemporaryFolder folder;
  const auto best_after = [&](bool interrupted) {
    {
      auto journal = ht::Journal::open(folder);
      ht::record::ExperimentStarted started;
      started.objectives = {ht::maximize("accuracy")};
      journal.append(1, started);
      journal.append(2, ht::record::ExperimentEnded{interrupted, interrupted ? "Ctrl-C" : ""});
    }
    return error_of(ht::Errc::experiment, [&] { ht::Results::read(folder).best(); });
  };
  CHECK_THAT(best_after(true), ContainsSubstring("was interrupted: go on with .resume = true and .output = \"" +
                                                 std::filesystem::path(folder).string() + "\"") &&
                                   ContainsSubstring("--resume --output "));
  CHECK_THAT(best_after(false), !ContainsSubstring("go on"));
}

TEST_CASE("trials, states and causes") {
  auto events = story();
  auto results = results_of(events);
  std::vector<ht::TrialState> states;
  for (const auto& trial : results.trials()) states.push_back(trial.state);
  using enum ht::TrialState;
  CHECK(states == std::vector{completed, failed, paused, stopped, pending});
  CHECK(results.trials()[3].cause->text == "scheduler");
  CHECK(results.count(pending) == 1);
  CHECK(results.failures(ht::FailureSource::user) == 1);
  CHECK(results.metrics() == std::vector<std::string>{"accuracy", "latency_ms"});
  CHECK(std::isnan(results.trial(2).metrics[0].second));
  CHECK_FALSE(results.trial(2).best);
  CHECK(results.experiment().reports == 8);
  CHECK(results.experiment().name == "digits");
  CHECK(results.experiment().seed == 9);

  // A driver that starts again finds nothing running; what comes out of order or from nowhere harms nothing.
  results.add({29, 8, ht::record::TrialStarted{4, 0, 0, "", {}, {}}});
  CHECK(results.count(running) == 1);
  results.add({30, 8, ht::record::ExperimentStarted{"digits", {}, "", "", "", "", 9, 9, true}});
  CHECK(results.count(running) == 0);
  CHECK(results.experiment().starts == 2);
  CHECK(results.experiment().samples == 9);
  CHECK(results.experiment().objectives.size() == 2);
  results.add({31, 9, ht::record::TrialReported{77, 0, 0, {{"accuracy", 2}}}});
  results.add({32, 9, ht::record::TrialCreated{1'000'000'000'000, {}, {}}});
  results.add({33, 9, ht::record::TrialCreated{6, {}, {}}});
  CHECK(results.trial(1'000'000'000'000).trial == 1'000'000'000'000);
  CHECK(results.trials()[5].trial == 6);
  CHECK(results.size() == 7);
  results.add({34, 9, ht::record::ExperimentEnded{true, "Ctrl-C"}});
  CHECK(results.experiment().interrupted);
}

TEST_CASE("read from a folder while it is written, with the history") {
  const TemporaryFolder folder;
  auto journal = ht::Journal::open(folder);
  const auto events = story();
  for (std::size_t i = 0; i < events.size(); ++i) journal.append(double(i + 1) / 4, events[i]);
  journal.append(9, ht::record::TrialStarted{4, 0, 0, "localhost", {}, {}});
  journal.flush();
  auto results = ht::Results::read(folder);
  CHECK(results.best().trial == 0);
  CHECK(results.count(ht::TrialState::running) == 1);
  std::vector<int> steps;
  results.history(0, [&](const ht::Record& r) { steps.push_back(std::get<ht::record::TrialReported>(r.what).step); });
  CHECK(steps == std::vector{0, 1, 2, 3});

  journal.append(9, ht::record::TrialReported{4, 0, 0, {{"accuracy", 0.9375}, {"extra", 1}}});
  journal.flush();
  const auto parsed = boost::json::parse(results.json(true)).as_array();  // as of when it was read
  REQUIRE(parsed.size() == 5);
  CHECK(parsed[4].at("history").as_array().empty());
  CHECK(parsed[0].at("history").as_array().size() == 4);
  CHECK(boost::json::serialize(parsed[0].at("history").as_array()[1]) ==
        R"({"step":1,"accuracy":8.75E-1,"latency_ms":2})");
  CHECK(parsed[0].at("history").as_array()[3].at("accuracy") == "NaN");
  CHECK(parsed[2].at("history").as_array()[0].at("latency_ms") == "-Infinity");

  results.update();
  CHECK(results.best().trial == 4);
  CHECK(boost::json::parse(results.json(true)).as_array()[4].at("history").as_array().size() == 1);
  { auto gone = std::move(journal); }  // killed, as far as the record says
  results.update();
  CHECK(results.count(ht::TrialState::running) == 0);
  CHECK(ht::Results::read(folder).trial(4).state == ht::TrialState::pending);
}

TEST_CASE("JSON has the keys of the design") {
  const auto results = results_of(story());
  const auto parsed = boost::json::parse(results.json()).as_array();
  REQUIRE(parsed.size() == 5);
  CHECK(boost::json::parse(results.json(results.best())) == parsed[0]);
  CHECK(
      parsed[0] ==
      boost::json::parse(
          R"({"trial": 0, "state": "completed", "params": {"lr": 0.25, "optimizer": "sgd", "momentum": 0.9}, "steps": 4,
          "metrics": {"accuracy": "NaN", "latency_ms": 1}, "best": {"step": 1, "accuracy": 0.875}, "failures": 0,
          "cause": null})"));
  CHECK(parsed[1].at("cause") == "CUDA error: out of memory");
  CHECK(parsed[2].at("best").is_null());
  CHECK(parsed[2].at("params").at("optimizer") == "a,\"b\"\nc");
  CHECK(boost::json::parse(ht::Results().json()).as_array().empty());
}

TEST_CASE("any text is valid JSON and the same text again") {
  support::RandomRecords random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random.text();
    std::string out;
    ht::detail::append_json(out, text);
    std::string valid;  // with what is no UTF-8 replaced
    for (std::string_view rest = text; !rest.empty();) {
      const auto character = ht::detail::decode_utf8(rest);
      valid += character.valid ? rest.substr(0, character.bytes) : std::string_view("\xEF\xBF\xBD");
      rest.remove_prefix(character.bytes);
    }
    REQUIRE(boost::json::parse(out).as_string() == valid);
    out.clear();
    const double number = random.number();
    ht::detail::append_json(out, number);
    if (std::isfinite(number)) REQUIRE(support::same(std::strtod(out.c_str(), nullptr), number));
  }
}

TEST_CASE("CSV quotes what it must and keeps to its header") {
  const auto csv = results_of(story()).csv();
  CHECK(csv.starts_with(
      "trial,state,steps,best_step,best_accuracy,best_latency_ms,params_lr,params_optimizer,params_momentum,"
      "metrics_accuracy,metrics_latency_ms,failures,cause,duration\n"
      "0,completed,4,1,0.875,1,0.25,sgd,0.9,nan,1,0,,2.500\n"
      "1,failed,1,0,0.99,1,0.125,adam,,0.99,1,1,CUDA error: out of memory,0.750\n"
      "2,paused,2,,,7,1.0,\"a,\"\"b\"\"\nc\",,nan,7,0,,\n"));
}

TEST_CASE("a metric called time has this name in every table and file") {
  namespace record = ht::record;
  ht::Results results;
  std::int64_t sequence = 0;
  const auto add = [&](record::Any what) { results.add({++sequence, 1.0, std::move(what)}); };
  record::ExperimentStarted started;
  started.objectives = {{"time"}};
  add(started);
  add(record::TrialCreated{0, {0.5}, ht::Params{{"lr", 0.5}}});
  add(record::TrialStarted{});
  add(record::TrialReported{0, 0, 0, {{"time", 0.5}, {"loss", 2}}});
  CHECK(results.csv() ==
        "trial,state,steps,best_step,best_time,params_lr,metrics_time,metrics_loss,failures,cause,duration\n"
        "0,running,1,0,0.5,0.5,0.5,2,0,,\n");
  const std::string json = results.json(results.trial(0));
  CHECK_THAT(json, ContainsSubstring("\"metrics\": {\"time\": 0.5, \"loss\": 2}"));
  CHECK_THAT(json, ContainsSubstring("\"best\": {\"step\": 0, \"time\": 0.5}"));
  CHECK_THAT(results.table(), ContainsSubstring("time"));
}

TEST_CASE("the duration of a trial is without the time between drivers") {
  namespace record = ht::record;
  ht::Results results;
  std::int64_t sequence = 0;
  const auto add = [&](ht::Seconds time, record::Any what) { results.add({++sequence, time, std::move(what)}); };
  const auto driver = [&](ht::Seconds time) {
    record::ExperimentStarted started;
    started.objectives = {{"loss"}};
    started.resumed = sequence > 0;
    add(time, started);
  };
  driver(100);
  for (const ht::TrialId trial : {0, 1}) add(100, record::TrialCreated{trial, {}, {}});
  add(101, record::TrialStarted{0, 0, 0, "", {}, {}});
  add(102, record::TrialStarted{1, 0, 0, "", {}, {}});
  add(103, record::TrialReported{0, 0, 0, {{"loss", 1.0}}});
  add(104, record::TrialEnded{1, ht::TrialState::failed, {}});
  CHECK(results.trial(1).duration == 2.0);
  driver(80'000);  // it was killed, and goes on the next day
  add(80'001, record::TrialStarted{0, 1, 1, "", {}, {}});
  add(80'004, record::TrialEnded{0, ht::TrialState::completed, {}});
  const auto trial = results.trial(0);
  CHECK(trial.started == 101.0);
  CHECK(trial.ended == 80'004.0);
  CHECK(trial.duration == 7.0);
  CHECK_THAT(results.csv(), ContainsSubstring("0,completed,1,0,1,1,0,,7.000\n"));
  SECTION("one that goes on after its end has none until it ends again") {
    driver(90'000);
    add(90'000, record::AttemptFailed{1, 0, ht::Cause{.text = record::tried_again}, true});
    add(90'001, record::TrialStarted{1, 1, 0, "", {}, {}});
    CHECK_FALSE(results.trial(1).duration.has_value());
    CHECK_FALSE(results.trial(1).ended.has_value());
    add(90'003, record::TrialEnded{1, ht::TrialState::completed, {}});
    CHECK(results.trial(1).duration == 2.0 + 4.0 + 3.0);
  }
}

TEST_CASE("the table is aligned, best first, and fits the width") {
  const auto results = results_of(story());
  CHECK(results.table({.rows = 2}) ==
        "trial  state      steps  accuracy  latency_ms  at step    lr  optimizer  momentum  failures  cause\n"
        "    0  completed      4     0.875           1        1  0.25        sgd       0.9         0\n"
        "    3  stopped        1     0.875           5        0   0.5       adam         -         0  scheduler\n");
  const auto places = [](std::string_view line) {
    return std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
  };
  for (std::size_t width = 30; width < 140; ++width) {
    const std::string table = results.table({.rows = 0, .width = width});
    // The newline in a parameter is shown as '?'. What has no room in a line stands in another block.
    std::ptrdiff_t blocks = 0;
    for (std::size_t at = 0; at != std::string::npos; at = table.find("\n\n", at + 1)) ++blocks;
    CAPTURE(width, table);
    // Of another block's rows those without anything in it are left out.
    CHECK(std::ranges::count(table, '\n') <= 6 * blocks + (blocks - 1));
    CHECK(std::ranges::count(table, '\n') >= 6 + 3 * (blocks - 1));
    CHECK((blocks == 1) == (width >= 112));
    for (const char* title :
         {"state", "steps", "accur", "late", "at step", "lr", "optim", "momen", "failures", "cause"})
      CHECK_THAT(table, ContainsSubstring(title));
    for (std::size_t at = 0; at < table.size(); at = table.find('\n', at) + 1)
      REQUIRE(places(std::string_view(table).substr(at, table.find('\n', at) - at)) <= std::ptrdiff_t(width));
  }
  CHECK(ht::Results().table() == "trial  state  steps\n");
}

TEST_CASE("a failure of a lost host counts against no trial") {
  using namespace ht::record;
  const ht::Cause away{ht::FailureSource::infrastructure, "host 'a' was lost"};
  const auto results = results_of(
      {ExperimentStarted{}, TrialCreated{0, {}, {}}, TrialCreated{1, {}, {}}, TrialStarted{0, 0, 0, "a", {0}, {}},
       TrialStarted{1, 0, 0, "b", {0}, {}}, HostLost{"a", "no sign of life"}, AttemptFailed{0, 0, away, true},
       AttemptFailed{1, 0, {ht::FailureSource::infrastructure, "killed"}, true}, TrialStarted{0, 1, 0, "b", {0}, {}},
       AttemptFailed{0, 1, {ht::FailureSource::infrastructure, "killed"}, true}});
  CHECK(results.trial(0).failure_count() == 1);  // on b, which was there
  CHECK(results.trial(0).failures_by(ht::FailureSource::infrastructure) == 2);
  CHECK(results.trial(0).lost == 1);
  CHECK(results.trial(1).failure_count() == 1);
  const auto only_lost = results_of({ExperimentStarted{}, TrialCreated{0, {}, {}}, TrialStarted{0, 0, 0, "a", {0}, {}},
                                     HostLost{"a", "no sign of life"}, AttemptFailed{0, 0, away, true}});
  CHECK(only_lost.table().find("failures") == std::string::npos);
}

TEST_CASE("attributes: the last value of each, in every format") {
  auto events = story();
  events.emplace_back(ht::record::AttributesSet{0, {{"phase", "warm-up"}, {"keep", true}}});
  events.emplace_back(ht::record::AttributesSet{0, {{"phase", "a,b"}}});
  events.emplace_back(ht::record::AttributesSet{-1, {{"dataset", "v3"}}});
  events.emplace_back(ht::record::AttributesSet{77, {{"of", "nobody"}}});
  const auto results = results_of(events);
  CHECK(results.trial(0).attributes == ht::Attributes{{"phase", "a,b"}, {"keep", true}});
  CHECK(results.trial(1).attributes.empty());
  CHECK(results.experiment().attributes == ht::Attributes{{"dataset", "v3"}});
  const auto parsed = boost::json::parse(results.json()).as_array();
  CHECK(parsed[0].at("attributes") == boost::json::parse(R"({"phase": "a,b", "keep": true})"));
  CHECK_FALSE(parsed[1].as_object().contains("attributes"));
  CHECK_THAT(results.csv(), ContainsSubstring(",metrics_latency_ms,attributes_phase,attributes_keep,failures,"));
  CHECK_THAT(results.csv(), ContainsSubstring("\n0,completed,4,1,0.875,1,0.25,sgd,0.9,nan,1,\"a,b\",true,0,,"));
  CHECK_THAT(results.table(), ContainsSubstring("momentum  phase  keep  failures"));
}
