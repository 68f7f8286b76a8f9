// The model of the page against Results, which have the rules.
#include "record/record_support.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/record/detail/front.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/show/detail/view/answers.hpp>
#include <hypertune/show/detail/view/columns.hpp>
#include <hypertune/show/detail/view/filter.hpp>
#include <hypertune/show/detail/view/front.hpp>
#include <hypertune/show/detail/view/json_writer.hpp>
#include <hypertune/show/detail/view/space_text.hpp>

#include <boost/json/parse.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

using namespace hypertune;
namespace json = boost::json;

namespace {

// An experiment of a few trials to which everything happens, in any order.
std::vector<Record> eventful(std::uint64_t seed, bool constrained, int count) {
  support::RandomRecords random(seed);
  std::vector<Record> records;
  double now = 100;
  const auto put = [&](record::Any what) {
    now += 0.25 * static_cast<double>(random.integer(0, 8));
    records.push_back({static_cast<std::int64_t>(records.size()) + 1, now, std::move(what)});
  };
  record::ExperimentStarted start{"eventful", {maximize("loss"), minimize("other")}, "", "random", "asha", "threads", 9,
                                  3};
  if (constrained) start.constraints = {MetricBound{"other", Mode::minimize, 0.5}};
  put(start);
  TrialId created = 0;
  while (static_cast<int>(records.size()) < count) {
    if (created < 3 || random.integer(0, 30) == 0) {
      put(record::TrialCreated{created,
                               {0.5},
                               {{"lr", random.number()},
                                {"layers", random.integer(-3, 3)},
                                {"kind", random.text()},
                                {"on", random.flag()}}});
      ++created;
      continue;
    }
    auto any = random.next();
    detail::visit(
        [&]<class Event>(Event& event) {
          if constexpr (std::is_same_v<Event, record::ExperimentStarted>) {
            event = start;
            event.resumed = true;
          } else if constexpr (std::is_same_v<Event, record::TrialCreated>) {
            event.trial = -1;
          } else if constexpr (requires { event.trial; }) {
            event.trial = random.integer(0, created - 1);
          }
          if constexpr (std::is_same_v<Event, record::TrialExploited>) event.donor = random.integer(0, created - 1);
          if constexpr (std::is_same_v<Event, record::TrialReported>) {
            event.step = static_cast<int>(random.integer(0, 40));
            event.metrics.emplace_back("loss", random.number());
            if (random.flag()) event.metrics.emplace_back("other", random.number());
          }
          if constexpr (requires { event.trial; })
            if (event.trial < 0) return;
          put(event);
        },
        any);
  }
  return records;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("a sampled curve has the first, the last, the least and the greatest report, in order") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    support::RandomRecords random(seed);
    const auto n = random.integer(1, 900);
    const auto limit = static_cast<std::size_t>(random.integer(8, 64));
    const auto trend = random.integer(-1, 1);
    view::Curve curve(0);
    std::vector<view::CurvePoint> all;
    for (int i = 0; i < n; ++i) {
      const double value = random.integer(0, 9) == 0 ? random.number() : static_cast<double>(trend * i) + std::sin(i);
      all.push_back({i, static_cast<float>(i), value});
      curve.add(all.back(), limit);
      REQUIRE(curve.points().size() <= limit);
    }
    REQUIRE(curve.seen() == all.size());
    const auto& shown = curve.points();
    if (all.size() <= limit) REQUIRE(shown.size() == all.size());
    REQUIRE(shown.front().step == 0);
    REQUIRE(shown.back().step == all.back().step);
    REQUIRE(std::is_sorted(shown.begin(), shown.end(), [](auto& a, auto& b) { return a.step < b.step; }));
    double least = HUGE_VAL, greatest = -HUGE_VAL;
    bool finite = false;
    for (const auto& point : all)
      if (std::isfinite(point.value)) {
        finite = true;
        least = std::min(least, point.value);
        greatest = std::max(greatest, point.value);
      }
    REQUIRE((curve.least() != nullptr) == finite);
    if (finite) {
      REQUIRE(curve.least()->value == least);
      REQUIRE(curve.greatest()->value == greatest);
    }
    for (const auto& point : shown) REQUIRE(same(point.value, all[static_cast<std::size_t>(point.step)].value));
    // Nothing is left out over long stretches, however the best ones come.
    if (all.size() > limit) REQUIRE(shown.size() >= limit / 4);
    for (std::size_t i = 1; i < shown.size(); ++i)
      REQUIRE(shown[i].step - shown[i - 1].step <= 8 * static_cast<int>(all.size() / limit + 1));
  }
}

TEST_CASE("the rows of a view say what Results say, whatever happens") {
  const ::TemporaryDirectory folder;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto records = eventful(seed, seed % 2 == 0, 400);
    Results results;
    view::ExperimentView seen{folder.path()};
    for (const auto& record : records) {
      results.add(record);
      seen.add(record);
      if (record.sequence % 97 == 0) seen.refresh();
    }
    seen.refresh();
    REQUIRE(seen.size() == results.size());
    REQUIRE(seen.version() == static_cast<std::int64_t>(records.size()));
    for (const auto& trial : results.trials()) {
      const auto* row = seen.row(trial.trial);
      REQUIRE(row != nullptr);
      REQUIRE(row->state == trial.state);
      REQUIRE(row->steps == trial.steps);
      REQUIRE(row->attempts == trial.attempts);
      REQUIRE(row->failures == trial.failure_count());
      REQUIRE(same(row->value, trial.best ? trial.best->value : NAN));
      REQUIRE(same(row->duration, trial.duration.value_or(NAN)));
      const auto place = static_cast<std::size_t>(row - seen.rows().data());
      for (const auto& [name, value] : trial.params) {
        const auto cell = seen.params().at(seen.params().find(name), place);
        if (const auto* text = std::get_if<std::string>(&value)) REQUIRE(*cell.text == *text);
        if (const auto* real = std::get_if<double>(&value)) REQUIRE(same(cell.number, *real));
        if (const auto* flag = std::get_if<bool>(&value)) REQUIRE(cell.number == (*flag ? 1 : 0));
      }
      // What runs, runs on one slot.
      if (row->open >= 0) REQUIRE(seen.pieces()[static_cast<std::size_t>(row->open)].trial == trial.trial);
    }
    std::vector<TrialId> front;
    for (const std::size_t at : view::front_places(seen)) front.push_back(seen.rows()[at].id);
    REQUIRE(front == pareto_front(results));

    std::size_t sum = 0;
    for (int s = 0; s <= static_cast<int>(TrialState::failed); ++s) {
      const std::string name = to_string(static_cast<TrialState>(s));
      const auto chosen = view::filtered(seen, "state:" + name).size();
      REQUIRE(chosen == results.count(static_cast<TrialState>(s)));
      sum += chosen;
    }
    REQUIRE(sum == results.size());

    // The failures of the summary are those of the table's column.
    std::int64_t counted = 0;
    for (const auto& trial : results.trials()) counted += trial.failure_count();
    const auto summary = json::parse(view::summary_answer(seen, view::Surroundings()));
    REQUIRE(summary.at("failures").at("counted").to_number<std::int64_t>() == counted);
  }
}

TEST_CASE("a constraint of which nothing is known is not met") {
  const auto row = [](bool constrained, const Metrics& reported) {
    record::ExperimentStarted start{"x", {minimize("loss")}, "", "random", "fifo", "threads", 9, 3};
    if (constrained) start.constraints = {MetricBound{"size", Mode::minimize, 0.5}};
    view::ExperimentView seen{std::filesystem::path()};
    std::int64_t n = 0;
    for (const record::Any& what : {record::Any(start), record::Any(record::TrialCreated{0, {0.5}, {{"lr", 0.5}}}),
                                    record::Any(record::TrialStarted{0, 0, 0, "a", {}, {}}),
                                    record::Any(record::TrialReported{0, 0, 0, reported}),
                                    record::Any(record::TrialEnded{0, TrialState::completed, {}})})
      seen.add({++n, 0.1 * static_cast<double>(n), what});
    seen.refresh();
    return seen.row(0)->admitted;
  };
  CHECK(!row(true, {{"loss", 1}}));
  CHECK(!row(true, {{"loss", 1}, {"size", 0.6}}));
  CHECK(row(true, {{"loss", 1}, {"size", 0.4}}));
  CHECK(row(false, {{"loss", 1}}));
}

TEST_CASE("every answer is JSON of less than a megabyte, whatever the records hold") {
  for (std::uint64_t seed = 101; seed <= 120; ++seed) {
    view::ExperimentView seen{std::filesystem::path("somewhere")};
    for (const auto& record : eventful(seed, false, 500)) seen.add(record);
    seen.refresh();
    const view::Surroundings around;
    const auto read = [](const std::string& text) {
      REQUIRE(text.size() < 1'000'000);
      return json::parse(text).as_object();
    };
    auto summary = read(view::summary_answer(seen, around));
    std::int64_t counted = 0;
    for (const auto& [state, n] : summary["counts"].as_object()) counted += n.to_number<std::int64_t>();
    REQUIRE(counted == static_cast<std::int64_t>(seen.size()));
    REQUIRE(summary["parameters"].as_array().size() == seen.params().size());
    for (const char* target : {"/x", "/x?sort=value&order=desc", "/x?sort=params.@2&limit=2", "/x?sort=@0&offset=1",
                               "/x?x=time", "/x?fields=params.@0,params.@1,value,trial,state", "/x?filter=trial:0-1"}) {
      const view::Query query(target);
      const std::string_view text = target;
      auto trials = read(view::trials_answer(seen, query));
      REQUIRE(trials["total"].to_number<std::size_t>() == seen.size());
      read(view::best_answer(seen, query));
      read(view::points_answer(seen, query));
      read(view::front_answer(seen, query));
      read(view::timeline_answer(seen, query));
      if (text.find("x=time") != std::string_view::npos || text == "/x") read(view::curves_answer(seen, query));
      read(view::edf_answer(seen, query));
      read(view::importance_answer(seen, query));
    }
    read(view::rungs_answer(seen));
    read(view::lineage_answer(seen));
    read(view::now_answer(seen, around));
    read(view::config_answer(seen, view::Query("/x?trial=0&format=c%2b%2b")));
  }
}

TEST_CASE("names of 10,000 characters leave answers below a megabyte, and say that rows are missing") {
  view::ExperimentView seen{std::filesystem::path()};
  std::int64_t sequence = 0;
  const std::string name(10'000, 'L');
  seen.add({++sequence, 1, record::ExperimentStarted{"long", {maximize(name)}, "", "", "", "", 1, 1}});
  for (TrialId id = 0; id < 300; ++id) {
    seen.add({++sequence, 2, record::TrialCreated{id, {}, {{name, name}}}});
    seen.add({++sequence, 3, record::TrialReported{id, 0, 0, {{name, 1.0}}}});
  }
  seen.refresh();
  const auto text = view::trials_answer(seen, view::Query("/x?limit=500"));
  REQUIRE(text.size() < 1'000'000);
  const auto answer = json::parse(text);
  REQUIRE(answer.at("matching").to_number<int>() == 300);
  REQUIRE(answer.at("cut").as_bool());
  REQUIRE(!answer.at("rows").as_array().empty());
}

TEST_CASE("slots in use are the average of a stretch, not what was at a moment of it") {
  // Two slots. On one trials follow each other with a gap of a millisecond, on the other one runs for half of the time.
  view::ExperimentView seen("/nowhere");
  std::int64_t sequence = 0;
  record::ExperimentStarted started;
  started.objectives = {maximize("accuracy")};
  seen.add({++sequence, 1000, started});
  const auto begin = [&](TrialId id, double time, int slot) {
    seen.add({++sequence, time, record::TrialCreated{id, {}, {{"lr", 0.5}}}});
    seen.add({++sequence, time, record::TrialStarted{id, 0, 0, "here", {slot}, {}}});
  };
  const auto end = [&](TrialId id, double time) {
    seen.add({++sequence, time, record::TrialEnded{id, TrialState::completed, std::nullopt}});
  };
  constexpr int trials = 1000;
  begin(0, 1000, 1);
  for (int i = 1; i <= trials; ++i) {
    const double at = 1000 + i - 1;
    begin(i, at, 0);
    if (i == trials / 2) end(0, at);
    end(i, at + 0.999);
  }
  seen.refresh();
  const auto answer = json::parse(view::timeline_answer(seen, view::Query("/x"))).as_object();
  const auto& use = answer.at("use").as_object();
  const auto& busy = use.at("busy").as_array();
  REQUIRE(busy.size() == use.at("time").as_array().size());
  double sum = 0;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const double value = busy[i].to_number<double>();
    INFO(i << ": " << value);
    CHECK(value > (i < 148 ? 1.98 : 0.98));
    CHECK(value < (i < 150 ? 2.001 : 1.001));
    if (i + 1 < busy.size()) sum += value / static_cast<double>(busy.size() - 1);
  }
  CHECK(sum == Approx(1.498).epsilon(0.002));  // (999 + 499) of 999.999 seconds
}

TEST_CASE("a whole number that a browser would round is given to it as a text") {
  constexpr std::int64_t limit = std::int64_t{1} << 53;
  const Params params{{"a", limit + 1}, {"b", limit}, {"c", -limit - 1}, {"d", 1.0}};
  view::JsonWriter out;
  out.pairs(params);
  CHECK(out.take() == R"({"a":"9007199254740993","b":9007199254740992,"c":"-9007199254740993","d":1.0})");
  view::ParamColumns columns;
  columns.set(0, params);
  CHECK(*columns.at(columns.find("a"), 0).text == "9007199254740993");
  CHECK(columns.at(columns.find("b"), 0).kind == view::Cell::Kind::whole);
  view::Parameter parameter;
  view::read_domain("{choice: [9007199254740993, 9007199254740992, 1]}", parameter);
  CHECK(parameter.choices == std::vector<std::string>{"\"9007199254740993\"", "9007199254740992", "1"});
}

TEST_CASE("a filter chooses by state, host, number, parameters and metrics, and says where it is wrong") {
  view::ExperimentView seen{std::filesystem::path()};
  std::int64_t sequence = 0;
  seen.add({++sequence, 1, record::ExperimentStarted{"f", {maximize("accuracy")}, "", "", "", "", 1, 1}});
  for (TrialId id = 0; id < 10; ++id) {
    seen.add({++sequence, 2,
              record::TrialCreated{id,
                                   {},
                                   {{"lr", 0.01 * static_cast<double>(id)},
                                    {"name of it", std::string(id % 2 ? "adam" : "s\"gd")},
                                    {"on", id < 5}}}});
    seen.add({++sequence, 3, record::TrialStarted{id, 0, 0, id < 3 ? "lab1" : "lab2", {}, {}}});
    seen.add({++sequence, 4,
              record::TrialReported{
                  id, 0, 0, {{"accuracy", id == 9 ? NAN : 0.1 * static_cast<double>(id)}, {"time", 5.0}}}});
    if (id < 4) seen.add({++sequence, 5, record::TrialEnded{id, TrialState::failed, Cause{.text = "no memory left"}}});
  }
  seen.add({++sequence, 6, record::AttributesSet{7, {{"good", true}}}});
  seen.refresh();
  const auto chosen = [&](const std::string& text) {
    std::string list;
    for (const std::size_t at : view::filtered(seen, text)) list += std::to_string(seen.rows()[at].id);
    return list;
  };
  CHECK(chosen("") == "0123456789");
  CHECK(chosen("  state:failed ") == "0123");
  CHECK(chosen("host:lab1") == "012");
  CHECK(chosen("trial:3-5") == "345");
  CHECK(chosen("trial:3") == "3");
  CHECK(chosen("note:good") == "7");
  CHECK(chosen("lr<=0.02") == "012");
  CHECK(chosen("lr>0.02 lr<0.05") == "34");
  CHECK(chosen("accuracy>=0.7") == "78");
  CHECK(chosen("accuracy=\"NaN\"") == "9");
  CHECK(chosen("accuracy=NaN") == "9");
  CHECK(chosen("accuracy!=NaN accuracy>inf").empty());
  CHECK(chosen("time=5 state:running") == "456789");
  CHECK(chosen("\"name of it\"=adam host:lab1") == "1");
  CHECK(chosen("\"name of it\"!=\"s\\\"gd\"") == "13579");
  CHECK(chosen("on=true") == "01234");
  CHECK(chosen("memory") == "0123");
  CHECK(chosen("ada") == "13579");
  const auto wrong = [&](const std::string& text) -> std::string {
    try {
      view::Filter(seen, text);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::input);
      return error.what();
    }
    return "";
  };
  CHECK_THAT(wrong("lr<0.1 lx<3"), ContainsSubstring("character 8") && ContainsSubstring("'lx'"));
  CHECK_THAT(wrong("state:gone"), ContainsSubstring("there is no state 'gone'"));
  CHECK_THAT(wrong("lr<"), ContainsSubstring("a value is missing"));
  CHECK_THAT(wrong("<3"), ContainsSubstring("a name is missing"));
  CHECK_THAT(wrong("lr<many"), ContainsSubstring("no number"));
  CHECK_THAT(wrong("\"open"), ContainsSubstring("not closed"));
  CHECK_THAT(wrong("where:here"), ContainsSubstring("there is no 'where:'"));
  CHECK_THAT(wrong("trial:x"), ContainsSubstring("followed by a number"));
  CHECK_THAT(wrong("lr!3"), ContainsSubstring("a comparison is expected"));
  CHECK_THAT(wrong(std::string(70'000, 'a')), ContainsSubstring("at most 65536"));
}

TEST_CASE("a request's parameters are decoded, and refused where they are broken") {
  const view::Query query("/api/trials?filter=lr%3C0.1+%22a+b%22&limit=7&limit=8&empty#part");
  CHECK(query.path() == "/api/trials");
  CHECK(query.text("filter") == "lr<0.1 \"a b\"");
  CHECK(query.whole("limit", 1, 0, 10) == 7);
  CHECK(query.text("empty").empty());
  CHECK(query.text("nothing", "else") == "else");
  CHECK_THROWS_AS(query.whole("limit", 1, 8, 10), Error);
  CHECK_THROWS_AS(query.word("filter", {"asc", "desc"}), Error);
  CHECK_THROWS_AS(view::Query("/a?x=%4"), Error);
  CHECK_THROWS_AS(view::Query("/a?x=%zz"), Error);
  CHECK_THROWS_AS(view::Query("no/slash"), Error);
  CHECK_THROWS_AS(view::Query("/" + std::string(70'000, 'a')), Error);
}
