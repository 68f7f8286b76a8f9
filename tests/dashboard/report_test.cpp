// A report: the modules of the page as one script, and the answers that it has within it.
#include "gzip.hpp"
#include "page_files.hpp"
#include "page_modules.hpp"
#include "read_once.hpp"
#include "record/record_support.hpp"
#include "report_answers.hpp"
#include "support/test.hpp"

#include <hypertune/record/journal.hpp>
#include <hypertune/show/report.hpp>

#include <boost/json/parse.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

using namespace hypertune;
namespace json = boost::json;
using dashboard::joined_modules;

namespace {

std::string joined(std::map<std::string, std::string> files) {
  return joined_modules("/a.js", [&](std::string_view path) {
    const auto found = files.find(std::string(path));
    if (found == files.end()) fail(Errc::input, "there is no {}", path);
    return found->second;
  });
}

void experiment(const std::filesystem::path& folder, const std::string& name, int trials, int steps, int metrics = 1) {
  auto journal = Journal::open(folder);
  record::ExperimentStarted start;
  start.name = name;
  start.objectives = {maximize("m0")};
  start.samples = trials;
  journal.append(1, start);
  double now = 1;
  for (int trial = 0; trial < trials; ++trial) {
    now += 1;
    journal.append(
        now, record::TrialCreated{.trial = trial,
                                  .point = {0.5},
                                  .params = {{"lr", 0.001 * trial}, {"kind", std::string(trial % 2 ? "a" : "b")}}});
    journal.append(
        now, record::TrialStarted{.trial = trial, .attempt = 0, .next_step = 0, .host = "h", .cpus = {0}, .gpus = {}});
    for (int step = 0; step < steps; ++step) {
      record::TrialReported report{.trial = trial, .attempt = 0, .step = step, .metrics = {}};
      for (int metric = 0; metric < metrics; ++metric)
        report.metrics.emplace_back("m" + std::to_string(metric), 0.01 * (trial % 97) + 0.1 * step + metric);
      journal.append(now, report);
    }
    journal.append(now, record::TrialEnded{.trial = trial, .state = TrialState::completed, .cause = {}});
  }
  journal.append(now, record::ExperimentEnded{});
}

json::object answers_of(const std::vector<std::filesystem::path>& folders, std::size_t room) {
  const auto experiments = dashboard::read_once(folders);
  const std::string text = dashboard::ReportAnswers(*experiments, {}, room).take();
  CHECK(text.size() < room + 20'000);
  CHECK(text.find('<') == std::string::npos);
  return json::parse(text).as_object();
}

std::string left_out(const json::object& answers, const char* id) {
  std::string all;
  for (const auto& one : answers.at("report").at("left_out").at(id).as_array())
    all += std::string(one.as_string()) + "\n";
  return all;
}

}  // namespace

TEST_CASE("modules become one script, each after those that it needs, and once") {
  const auto script = joined({{"/a.js", "import {b, c as d} from './x/b.js';\nimport {e} from './e.js';\nb(d, e);\n"},
                              {"/x/b.js", "import {e} from '../e.js';\nexport const b = 1;\nexport function c() {}\n"},
                              {"/e.js", "export class e {}\nexport async function f() {}\nlet own = 2;\n"}});
  CHECK(script ==
        "(() => {\n'use strict';\nconst modules = {};\n"
        "modules['/e.js'] = (() => {\nclass e {}\nasync function f() {}\nlet own = 2;\nreturn {e, f};\n})();\n"
        "modules['/x/b.js'] = (() => {\nconst {e} = modules['/e.js'];\nconst b = 1;\nfunction c() {}\nreturn {b, "
        "c};\n})();\n"
        "modules['/a.js'] = (() => {\nconst {b, c: d} = modules['/x/b.js'];\nconst {e} = modules['/e.js'];\nb(d, e);\n"
        "return {};\n})();\n})();\n");
}

TEST_CASE("what cannot be put into one script is refused, not left out") {
  for (const char* text : {"import x from './b.js';\n", "import {x} from 'react';\n", "import {\n  x} from './b.js';\n",
                           "import * as x from './b.js';\n", "export default 1;\n", "export {x};\n",
                           "export let x = 1;\n", "const x = '</script>';\n", "const x = '<!--';\n"})
    CHECK_THROWS_AS(joined({{"/a.js", text}, {"/b.js", "export const x = 1;\n"}}), Error);
  CHECK_THROWS_WITH(joined({{"/a.js", "import {b} from './b.js';\n"}, {"/b.js", "import {a} from './a.js';\n"}}),
                    ContainsSubstring("in a circle"));
}

TEST_CASE("every file of the page is in the program, whole") {
  for (const char* path : {"/index.html", "/icon.svg", "/page.css", "/views.css", "/main.js", "/chart.js",
                           "/charts/base.js", "/vendor/echarts/echarts.min.js", "/vendor/echarts/LICENSE"}) {
    CAPTURE(path);
    const auto text = dashboard::page_text(path);
    REQUIRE(text);
    CHECK(!text->empty());
    const std::string_view packed = dashboard::find_page_file(path)->gzip;
    CHECK(!dashboard::gunzipped(packed.substr(0, packed.size() - 9), 1 << 24));
    std::string broken(packed);
    broken[broken.size() / 2] = static_cast<char>(broken[broken.size() / 2] ^ 0x10);
    CHECK(dashboard::gunzipped(broken, 1 << 24) != text);
  }
  CHECK(!dashboard::page_text("/nothing.js"));
  for (const char* text : {"", "a", "ab", "abcabcabcabc"})
    CHECK(dashboard::gunzipped(dashboard::gzipped(text), 100) == text);
  CHECK(!dashboard::gunzipped(dashboard::gzipped(std::string(1000, 'a')), 999));
}

TEST_CASE("a request has one name, whatever the order of its parameters") {
  CHECK(dashboard::request_key("/api/x", {{"b", "1"}, {"a", ""}, {"c", "é&"}}) == "/api/x?b=1&c=%C3%A9%26");
  CHECK(dashboard::request_key("/api/x", {}) == "/api/x");
}

TEST_CASE("a report of a few trials has all that the page asks for") {
  support::TemporaryFolder root;
  experiment(root.path() / "one", "one", 12, 5, 2);
  const auto answers = answers_of({root.path()}, 8'000'000);
  for (const char* key :
       {"/api/experiments", "/api/summary?experiment=one", "/api/now?experiment=one",
        "/api/best?experiment=one&x=trial", "/api/best?experiment=one&x=time", "/api/points?experiment=one",
        "/api/importance?experiment=one&metric=%400", "/api/edf?experiment=one&metric=%401",
        "/api/timeline?experiment=one", "/api/curves?experiment=one&limit=100&metric=%401&x=step",
        "/api/curves?experiment=one&limit=100&metric=%400&x=time", "/api/trials?experiment=one",
        "/api/trial?experiment=one&points=500&trial=11", "/api/config?experiment=one&format=c%2B%2B&trial=11"})
    CHECK(answers.contains(key));
  CHECK(answers.at("/api/trials?experiment=one").at("rows").as_array().size() == 12);
  CHECK(answers.at("/api/points?experiment=one").at("columns").as_object().size() == 6);
  CHECK(answers.at("/api/summary?experiment=one").at("state") == "ended");
  CHECK(answers.at("/api/summary?experiment=one").as_object().if_contains("reading") == nullptr);
  CHECK(left_out(answers, "one") == "logs\n");
}

TEST_CASE("trials that a person added beyond the samples are among those planned") {
  support::TemporaryFolder root;
  experiment(root.path() / "one", "one", 2, 1);
  {
    auto journal = Journal::open(root.path() / "one");
    for (int trial = 2; trial < 4; ++trial)
      journal.append(10, record::TrialCreated{.trial = trial, .point = {0.5}, .params = {{"lr", 0.5}}});
  }
  const auto answers = answers_of({root.path()}, 8'000'000);
  CHECK(answers.at("/api/summary?experiment=one").at("planned") == 4);
  CHECK(answers.at("/api/experiments").at("experiments").at(0).at("planned") == 4);
}

TEST_CASE("a report says why it lacks an experiment that cannot be read") {
  support::TemporaryFolder root;
  experiment(root.path() / "fine", "fine", 3, 2);
  std::filesystem::create_directories(root.path() / "broken");
  std::ofstream(root.path() / "broken/experiment.db") << std::string(9000, 'x');
  const auto answers = answers_of({root.path()}, 1'000'000);
  CHECK(left_out(answers, "broken") == "all of it, which cannot be read\n");
  const auto& summary = answers.at("/api/summary?experiment=broken").as_object();
  CHECK_THAT(std::string(summary.at("error").as_string()), ContainsSubstring("no readable hypertune journal"));
  CHECK(answers.at("/api/summary?experiment=fine").as_object().if_contains("error") == nullptr);
}

TEST_CASE("a report of very many trials stays small, has the best ones, and says what it lacks") {
  support::TemporaryFolder root;
  experiment(root.path() / "many", "many", 5000, 3);
  experiment(root.path() / "few", "few", 4, 3);
  const auto answers = answers_of({root.path() / "many", root.path() / "few"}, 1'000'000);
  const auto& trials = answers.at("/api/trials?experiment=many").as_object();
  CHECK(trials.at("total") == 5000);
  CHECK(trials.at("rows").as_array().size() < 3001);
  CHECK(trials.at("rows").as_array().size() > 100);
  const auto best = answers.at("/api/summary?experiment=many").at("best").at(0).at("trial");
  CHECK(trials.at("rows").at(0).at("trial") == best);
  CHECK(answers.contains("/api/trial?experiment=many&points=500&trial=" + std::to_string(best.as_int64())));
  CHECK_THAT(left_out(answers, "many"),
             ContainsSubstring(" of 5,000 trials (the best and a sample of the others are in it)") &&
                 ContainsSubstring("the curves and attempts of "));
  // What is beside a large one has its share.
  CHECK(left_out(answers, "few") == "logs\n");
}

TEST_CASE("names within a report cannot end the element that they are in") {
  support::TemporaryFolder root;
  experiment(root.path() / "bad", "</script><script>alert(1)</script><!--", 2, 1);
  const std::string page = report_html({.folders = {root.path() / "bad"}});
  CHECK(page.find("<script>alert(1)") == std::string::npos);
  CHECK(page.find("\\u003c/script>\\u003cscript>alert(1)") != std::string::npos);
  CHECK(page.substr(0, 200).find(report_mark) != std::string::npos);
}

TEST_CASE("a report of nothing is refused") {
  support::TemporaryFolder root;
  CHECK_THROWS_WITH(report_html({.folders = {root.path()}}), ContainsSubstring("there is no experiment in"));
  CHECK_THROWS_AS(report_html({.folders = {root.path() / "nowhere"}}), Error);
}
