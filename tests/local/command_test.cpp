#include "local_support.hpp"

#include <hypertune/detail/text.hpp>
#include <hypertune/local/command.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/error_tail.hpp>
#include <hypertune/local/number_text.hpp>
#include <hypertune/local/process_end.hpp>
#include <hypertune/local/report_line.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

std::shared_ptr<const Program> shell(const std::string& script, local::CommandOptions options = {}) {
  options.command = {"/bin/sh", "-c", script};
  return std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode", "lr"}, std::move(options));
}
std::string log_of(Bench& bench, TrialId trial = 0) {
  std::ifstream in(bench.directory.path() / "trials" / std::to_string(trial) / "log");
  return {std::istreambuf_iterator<char>(in), {}};
}
double value_of(const Reported& reported, const char* name) {
  const double* value = find_metric(reported.report.metrics, name);
  REQUIRE(value != nullptr);
  return *value;
}

}  // namespace

TEST_CASE("report lines: JSON as programs print it, and what is none") {
  const auto line = local::parse_report_line(
      R"({"step": 3, "acc": 0.91, "nan": NaN, "inf": -Infinity, "q": "NaN", "ok": true, "note": "x,}", "more": {"a": [1]}, "checkpoint": "s\u00e9"})");
  REQUIRE(line);
  CHECK(line->step == 3);
  CHECK(line->checkpoint == "s\xc3\xa9");
  REQUIRE(line->metrics.size() == 5);
  CHECK(line->metrics[0] == std::pair<std::string, double>("acc", 0.91));
  CHECK(std::isnan(line->metrics[1].second));
  CHECK(std::isinf(line->metrics[2].second));
  CHECK(line->metrics[4].second == 1);
  // null is what JSON makes of NaN; no step and no checkpoint are none.
  const auto nothing = local::parse_report_line(R"({"step": null, "acc": null, "checkpoint": null})");
  REQUIRE(nothing);
  CHECK_FALSE(nothing->step);
  CHECK_FALSE(nothing->checkpoint);
  REQUIRE(nothing->metrics.size() == 1);
  CHECK(nothing->metrics[0].first == "acc");
  CHECK(std::isnan(nothing->metrics[0].second));
  CHECK_FALSE(local::parse_report_line(R"({"step": null})"));
  for (const char* other :
       {"", "acc 3", "{", "{}", "[1]", R"({"a": })", R"({"a": 1} x)", R"({"step": -1, "a": 1})", R"({"a": "b"})",
        R"({"step": 1.5, "a": 2})", R"({"a": 1)", R"({"a": 0x1})", R"({"a\u12": 1})"})
    CHECK_FALSE(local::parse_report_line(other));
  // The later one counts, as in every reader of JSON.
  const auto twice = local::parse_report_line(R"({"a": 1, "b": 2, "a": 3})");
  REQUIRE(twice);
  CHECK(twice->metrics == Metrics{{"a", 3}, {"b", 2}});
}

TEST_CASE("a report line of very many names") {
  std::string text = "{";
  constexpr int names = 60'000;
  for (int i = 0; i < names; ++i) text += fmt::format("\"n{}\":{},", i, i);
  text += R"("n7": -1, "n50000": -2, "last": 3})";
  const auto line = local::parse_report_line(text);
  REQUIRE(line);
  REQUIRE(line->metrics.size() == names + 1);
  CHECK(line->metrics[7] == std::pair<std::string, double>("n7", -1));
  CHECK(line->metrics[8] == std::pair<std::string, double>("n8", 8));
  CHECK(line->metrics[50'000] == std::pair<std::string, double>("n50000", -2));
  CHECK(line->metrics.back() == std::pair<std::string, double>("last", 3));
}

TEST_CASE("report lines that are refused say why") {
  const auto why = [](const std::string& line) {
    std::string text;
    CHECK_FALSE(local::parse_report_line(line, &text));
    return text;
  };
  for (const char* step : {"-1", "1.5", "2147483648", "2147483647", "true", "1e10"})
    CHECK_THAT(why(fmt::format(R"({{"loss": 1, "step": {}}})", step)),
               ContainsSubstring(fmt::format("'step' is {}, but must be a whole number from 0 to 2147483646", step)));
  CHECK_THAT(why(R"({"step": "three", "loss": 1})"), ContainsSubstring("'step' is the text 'three'"));
  CHECK_THAT(why(R"({"step": [1], "loss": 1})"), ContainsSubstring("'step' is no number"));
  CHECK_THAT(why(R"({"loss": "0.5"})"), ContainsSubstring("'loss' is the text '0.5', no number"));
  CHECK_THAT(why("{'loss': 0.5}"), ContainsSubstring("no JSON from ''loss': 0.5}' on"));
  CHECK_THAT(why(R"({"loss": 0x1})"), ContainsSubstring("'loss' is 0x1"));
  CHECK(local::parse_report_line(R"({"step": 2147483646, "loss": 1})")->step == 2147483646);
}

TEST_CASE("a number that an expression finds is read whole or not at all") {
  std::string why;
  const auto read = [&](std::string_view text) {
    const auto value = local::number_in_text(text, why);
    INFO(text << ": " << why);
    REQUIRE(value);
    return *value;
  };
  CHECK(read("1,234.5") == 1234.5);
  CHECK(read("-12,345,678") == -12345678);
  CHECK(read("+1,234.5e-1") == 123.45);
  CHECK(read("0.93,") == 0.93);
  CHECK(read(" 5. ") == 5);
  CHECK(read("1e-3") == 1e-3);
  CHECK(read("-.5") == -.5);
  // What ends a sentence, or a bracket.
  CHECK(read("0.2312.") == 0.2312);
  CHECK(read("1.5...") == 1.5);
  CHECK(read("-1e-3).") == -1e-3);
  CHECK(read("3-") == 3);
  CHECK(read("1,234.5.") == 1234.5);
  CHECK(std::isnan(read("nan.")));
  CHECK(std::isnan(read("NaN")));
  CHECK(std::isnan(read("-nan(ind)")));
  CHECK(read("-Infinity") < 0);
  for (const char* none :
       {"",    "-",   "1.2.3", "0.93%",   "12,34", "1,2345", "1234,567", "0,123.4", "1,234.5,6", "1,23,456",
        "--1", "1 2", "0x10",  "1.234,5", ",123",  "abc",    ".",        "1.2.3.",  "1e-",       "-."}) {
    INFO(none);
    CHECK_FALSE(local::number_in_text(none, why));
    CHECK_THAT(why, ContainsSubstring("is no number"));
  }
  CHECK_FALSE(local::number_in_text("1,234", why));
  CHECK_THAT(why, ContainsSubstring("'1,234' may be 1234 or 1.234"));
  CHECK_FALSE(local::number_in_text("1,234.", why));
  CHECK_THAT(why, ContainsSubstring("'1,234.' may be 1234 or 1.234"));
}

TEST_CASE("a number is read whole, whatever part of it the expression has found") {
  struct Read {
    std::string unit, said, why;
    double value = 0;
    bool good = false;
  };
  const auto read = [](const std::string& pattern, const std::string& line, const char* unit = "") {
    INFO(pattern << " on " << line);
    std::smatch match;
    REQUIRE(std::regex_search(line, match, std::regex(pattern)));
    const auto around = local::detail::surroundings_of_group(pattern);
    const auto begin = static_cast<std::size_t>(match.position(1));
    Read read;
    const auto value =
        local::number_in_line({.line = line,
                               .begin = begin,
                               .end = begin + static_cast<std::size_t>(match.length(1)),
                               .match_end = static_cast<std::size_t>(match.position(0) + match.length(0)),
                               .before = around.before,
                               .after = around.after},
                              local::number_unit_named(unit).value_or(local::NumberUnit::none), read.why, &read.said);
    read.good = value.has_value();
    read.value = value.value_or(0);
    return read;
  };
  const auto value = [&](const std::string& pattern, const std::string& line, const char* unit = "") {
    const auto found = read(pattern, line, unit);
    INFO(pattern << " on " << line << ": " << found.why);
    CHECK(found.good);
    return found.value;
  };
  const auto refusal = [&](const std::string& pattern, const std::string& line, const char* unit = "") {
    const auto found = read(pattern, line, unit);
    INFO(pattern << " on " << line << ": " << found.value);
    CHECK_FALSE(found.good);
    return found.why;
  };
  const std::string init = "x *[=:] *([-+0-9.eE]+)", digits = "x=([0-9.]+)", greedy = "x.*([0-9.]+)",
                    word = "x=([^ ]+)";
  // Fortran, with its letter and without.
  for (const auto& pattern : {init, digits, greedy, word}) {
    CHECK(value(pattern, "x=1.2D-03") == 1.2e-3);
    CHECK(value(pattern, "x=1.2e-05, y") == 1.2e-5);
    CHECK(value(pattern, "x=0.1000000000-100 y") == 1e-101);
    CHECK(value(pattern, "x=0.1000000000+123") == 1e122);
    CHECK(value(pattern, "x=12.3k") == 12300);
    CHECK(value(pattern, "x=1204k ") == 1204000);
    CHECK(value(pattern, "x=1.5M") == 1.5e6);
    CHECK(value(pattern, "x=1,234.5") == 1234.5);
    CHECK(value(pattern, "x=1_000") == 1000);
    CHECK(value(pattern, "x=1'234.5") == 1234.5);
    CHECK(value(pattern, "x=3m12s") == 192);
    CHECK(value(pattern, "x=1h2m3.5s)") == 3723.5);
    CHECK(value(pattern, "x=1:02:03") == 3723);
    CHECK(value(pattern, "x=0.5s") == 0.5);
    CHECK(value(pattern, "x=12.3ms, y") == 12.3);
    CHECK(value(pattern, "x=45.6\xc2\xb5s") == 45.6);
    CHECK(value(pattern, "x=9.9it/s") == 9.9);
    CHECK(read(pattern, "x=9.9it/s").said == "it");
    CHECK_THAT(refusal(pattern, "x=0.91%"), ContainsSubstring("'0.91%' is no number: it is a percentage: name that by "
                                                              "'unit: percent'"));
    CHECK_THAT(refusal(pattern, "x=1,234"), ContainsSubstring("'1,234' may be 1234 or 1.234"));
    CHECK_THAT(refusal(pattern, "x=1,5"), ContainsSubstring("comma may stand before decimals"));
    CHECK_THAT(refusal(pattern, "x=1.234,56"), ContainsSubstring("may separate thousands"));
    CHECK_THAT(refusal(pattern, "x=1.2.3"), ContainsSubstring("is no number"));
    CHECK_THAT(refusal(pattern, "x=12.3K"), ContainsSubstring("1000 or 1024"));
    CHECK_THAT(refusal(pattern, "x=48.2MiB/s"), ContainsSubstring("'MiB' may be another size"));
    CHECK_THAT(refusal(pattern, "x=3:12"), ContainsSubstring("may be minutes or hours"));
    CHECK_THAT(refusal(pattern, "x=1.2*10^-3"), ContainsSubstring("power of ten"));
    CHECK(value(pattern, "x=12.3k", "count") == 12300);
    CHECK(value(pattern, "x=12.3K", "count") == 12300);
    CHECK(value(pattern, "x=1.5Mbit/s", "count") == 1.5e6);
    CHECK(value(pattern, "x=91.5%", "percent") == 91.5);
    CHECK(value(pattern, "x=91.5", "percent") == 91.5);
    CHECK(value(pattern, "x=1204kB", "bytes") == 1204000);
    CHECK(value(pattern, "x=1.5MiB/s", "bytes") == 1.5 * 1024 * 1024);
    CHECK(value(pattern, "x=500", "bytes") == 500);
    CHECK(value(pattern, "x=12.3ms", "seconds") == Approx(0.0123));
    CHECK(value(pattern, "x=45.6\xc2\xb5s", "seconds") == Approx(45.6e-6));
    CHECK(value(pattern, "x=5ms/step", "seconds") == Approx(0.005));
    CHECK(value(pattern, "x=3:12", "seconds") == 192);
    CHECK(value(pattern, "x=90", "seconds") == 90);
    CHECK(value(pattern, "x=1.5min", "seconds") == 90);
    CHECK_THAT(refusal(pattern, "x=12.3kg", "seconds"), ContainsSubstring("'kg' is no unit of time"));
    CHECK_THAT(refusal(pattern, "x=12kb", "bytes"), ContainsSubstring("'kb' is no unit of bytes"));
  }
  for (const auto& pattern : {init, word}) {
    CHECK(value(pattern, "x=1.#INF") == std::numeric_limits<double>::infinity());
    CHECK(value(pattern, "x=-1.#INF00") == -std::numeric_limits<double>::infinity());
    CHECK(std::isnan(value(pattern, "x=-1.#IND")));
    CHECK(std::isnan(value(pattern, "x=1.#QNAN")));
  }
  for (const char* broken : {"x=1e", "x=1.5e-", "x=2s3", "x=2.5s/", "x=2.5_s"})
    CHECK_THAT(refusal(word, broken), ContainsSubstring("is no number"));
  CHECK(value("x +([-0-9.,]+) +s", "x 1,234.5 s") == 1234.5);
  CHECK(value(digits + " ", "x=91.5 % of them") == 91.5);
  CHECK(value("x +([0-9.]+)", "x 3m 12s", "seconds") == 192);
  CHECK(value("x +([0-9.]+)", "x 91.5 %", "percent") == 91.5);
  CHECK(value("x +([0-9.]+)", "x 12.3 loss 5", "seconds") == 12.3);
  // Things are whole: a comma before three digits separates thousands.
  CHECK(value(digits, "x=1,234", "count") == 1234);
  CHECK(value("x=([0-9.,]+)", "x=1,234, y=2", "count") == 1234);
  CHECK(value(digits, "x=1,234 ops/s", "count") == 1234);
  CHECK(value(digits, "x=1,234,567 bytes", "bytes") == 1234567);
  CHECK(value(digits, "x=1,234 B", "bytes") == 1234);
  for (const char* line : {"x=1,234k", "x=1,234 MB"})
    for (const char* unit : {"count", "bytes"})
      CHECK_THAT(refusal(digits, line, unit), ContainsSubstring("may be 1234 or 1.234"));
  for (const char* unit : {"seconds", "percent", ""})
    CHECK_THAT(refusal(digits, "x=1,234", unit), ContainsSubstring("may be 1234 or 1.234"));
  // Before the group: what the expression has swallowed.
  CHECK(value(greedy, "x 0.57") == 0.57);
  CHECK(value(greedy, "x is -0.57") == -0.57);
  CHECK(value("x=.?([0-9.]+)", "x=-0.5") == -0.5);
  CHECK(value("x=-?([0-9.]+)", "x=-0.5") == -0.5);
  CHECK(value("x-([0-9.]+)", "x-0.5") == 0.5);
  CHECK(value("x=-([0-9.]+)", "x=-0.5") == 0.5);
  CHECK(value("x-?([0-9]+)", "x-7") == 7);
  CHECK(value("x=-?(inf)", "x=-inf") == -std::numeric_limits<double>::infinity());
  // What stands next to a number and is no part of it.
  CHECK(value(digits, "x=0.5s") == 0.5);
  CHECK(read(digits, "x=12.3ms y").said == "ms");
  CHECK(value(digits, "x=12.3ms") == 12.3);
  CHECK(value(digits, "x=0.5, y=0.6") == 0.5);
  CHECK(value(digits, "x=0.5,0.6") == 0.5);
  CHECK(value(digits, "x=0.5/1.0") == 0.5);
  CHECK(value(digits, "x=0.5.") == 0.5);
  CHECK(value("x=.([0-9.]+)", "x=(0.5)") == 0.5);
  CHECK(value(digits, "x=20x") == 20);
  CHECK(value(digits, "x=9.9it/s") == 9.9);
  CHECK(value(digits, "x=0.5-0.7") == 0.5);
  CHECK(value(digits, "x=0.5+-0.1") == 0.5);
  CHECK(value("v1.2.3 x=([0-9.]+)", "v1.2.3 x=0.5") == 0.5);
  CHECK(value("([0-9]+)/", "epoch 3/10") == 3);
  CHECK(value("epoch ([0-9]+)", "epoch 3/10") == 3);
  CHECK(value("epoch ([0-9]+)", "epoch 3: 12") == 3);
  // What the expression names itself.
  CHECK(value("x=([0-9.]+)%", "x=91.5%") == 91.5);
  CHECK(value("x=([0-9.]+) *kB", "x=12.3kB") == 12.3);
  CHECK(value("x=([0-9.]+)K", "x=12.3K") == 12.3);
  CHECK(value("([0-9]+):[0-9]+", "12:34") == 12);
  CHECK(value("[0-9]+:([0-9]+)", "12:34") == 34);
  CHECK(value("^[0-9]+,([0-9.]+),([0-9.]+)", "3,0.5,0.7") == 0.5);
  CHECK(value("^([0-9]+),([0-9.]+)", "3,0.5") == 3);
  CHECK(value("([0-9]+)\\.[0-9]+", "12.75") == 12);
  CHECK(value("x=([0-9.]+)\\D", "x=1.2D-03") == 1.2e-3);
}

TEST_CASE("the command line: names, braces, mistakes") {
  const local::CommandLine line({"./train", "--lr={lr}", "{{{trial}}}", "{mode}"}, {"lr", "mode"});
  CHECK(line({{"lr", "0.1"}, {"trial", "7"}}) == std::vector<std::string>{"./train", "--lr=0.1", "{7}", ""});
  CHECK_THROWS_WITH(local::CommandLine({"a", "{rl}"}, {"lr"}), ContainsSubstring("did you mean 'lr'"));
  CHECK_THROWS_WITH(local::CommandLine({"a", "{lr"}, {"lr"}), ContainsSubstring("does not close"));
  CHECK_THROWS_WITH(local::CommandLine({"a", "lr}"}, {"lr"}), ContainsSubstring("did not open"));
  CHECK_THROWS_WITH(local::CommandLine({}, {}), ContainsSubstring("empty"));
  CHECK_THROWS_WITH(shell("x", {.metrics = {{"a", "("}}}), ContainsSubstring("no regular expression"));
  CHECK_THROWS_WITH(shell("x", {.metrics = {{"a", "b"}}}), ContainsSubstring("needs a group"));
}

TEST_CASE("a command reports by lines; the rest is its log") {
  Bench bench(shell(R"(echo starting; echo "params $HYPERTUNE_PARAMS $HYPERTUNE_TRIAL {mode}"
echo '{{"acc": 0.5}}'; echo oops >&2; printf '{{"step": 4, "acc": NaN}}')"));
  bench.launch(0, "m");
  CHECK(bench.events.next<Started>().next_step == 0);
  CHECK(value_of(bench.events.next<Reported>(), "acc") == 0.5);
  bench.executor.perform(Continue{0, 0});
  const auto last = bench.events.next<Reported>();  // without a newline
  CHECK(std::isnan(value_of(last, "acc")));
  CHECK(last.report.step == 4);
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
  const auto log = log_of(bench);
  CHECK_THAT(log, ContainsSubstring("starting\n"));
  CHECK_THAT(log, ContainsSubstring("params {\"mode\": \"m\"} 0 m\n"));
  CHECK_THAT(log, ContainsSubstring("oops\n"));
}

TEST_CASE("texts in a command's reports are noted of the trial, also beside a checkpoint alone") {
  Bench bench(shell(R"(echo '{{"phase": "settings", "seed": "7"}}'
echo '{{"acc": 0.5, "phase": "warm-up", "list": ["x"], "deep": {{"a": "b"}}}}'
mkdir "$HYPERTUNE_CHECKPOINT/a"; echo '{{"checkpoint": "a", "saved by": "the end of the epoch"}}'
echo '{{"acc": 0.75}}'; echo '{{"acc": "high", "step": 2}}')",
                    {.objectives = {"acc"}}));
  bench.launch(0, "m");
  bench.events.next<Started>();
  CHECK(bench.events.next<Reported>().report.attributes == Attributes{{"phase", "warm-up"}});
  bench.executor.perform(Continue{0, 0});
  CHECK(bench.events.next<Reported>().report.attributes == Attributes{{"saved by", "the end of the epoch"}});
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
  CHECK_THAT(log_of(bench), ContainsSubstring("'acc' is the text 'high', no number"));
}

TEST_CASE("texts with a step and no metric are no step, and noted with the next report") {
  Bench bench(shell(R"(echo '{{"note": "only text", "step": 0}}'; echo '{{"acc": 0.5, "phase": "warm-up"}}')",
                    {.objectives = {"acc"}}));
  bench.launch(0, "m");
  const auto reported = bench.events.next<Reported>();
  CHECK(reported.report.attributes == Attributes{{"note", "only text"}, {"phase", "warm-up"}});
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
  CHECK_THAT(log_of(bench), !ContainsSubstring("hypertune:"));
}

TEST_CASE("of a command that hangs it is said that it printed nothing") {
  Bench bench(shell("sleep 1000"), {}, 0.25);
  bench.launch(0, "m");
  CHECK(bench.events.next<Failed>().cause.text == "hung: nothing was printed for 0.25 s");
}

TEST_CASE("no metric is called checkpoint") {
  const std::string value = GENERATE("5", "true", "[1]");
  Bench bench(shell(R"(echo '{{"acc": 1, "checkpoint": )" + value + R"(}}'; echo '{{"acc": 0.5}}')"));
  bench.launch(0, "m");
  const auto reported = bench.events.next<Reported>();
  CHECK(reported.report.metrics == Metrics{{"acc", 0.5}});
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
  CHECK_THAT(log_of(bench), ContainsSubstring("not taken as a report: 'checkpoint' is") &&
                                ContainsSubstring("must be the name of a folder"));
}

TEST_CASE("an unchanged program is read by regular expressions") {
  Bench bench(shell("for i in 1 2; do echo \"epoch $i acc=0.$i\"; echo \"loss: $i.5\"; done",
                    {.metrics = {{"accuracy", "acc=([0-9.]+)"}, {"loss", "loss: ([0-9.]+)"}}}));
  bench.launch(0, "");
  for (const double i : {1.0, 2.0}) {
    const auto reported = bench.events.next<Reported>();
    CHECK(value_of(reported, "accuracy") == Approx(i / 10));
    CHECK(value_of(reported, "loss") == i + 0.5);
    bench.executor.perform(Continue{0, 0});
  }
  bench.events.next<Finished>();
}

TEST_CASE("a number at the end of a sentence is read by the expression that the documents give") {
  Bench bench(shell("echo 'epoch 1 is done, loss: 0.2312.'", {.metrics = {{"loss", "loss: ([0-9.eE+-]+)"}}}));
  bench.launch(0, "");
  CHECK(value_of(bench.events.next<Reported>(), "loss") == 0.2312);
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
  CHECK_THAT(log_of(bench), !ContainsSubstring("hypertune:"));
}

TEST_CASE("thousands are read with their commas, and a number that is not sure is refused") {
  Bench bench(shell("echo 'acc=1,234.5'; echo 'acc=1,234'; echo 'acc=12'", {.metrics = {{"acc", "acc=([0-9.,]+)"}}}));
  bench.launch(0, "");
  CHECK(value_of(bench.events.next<Reported>(), "acc") == 1234.5);
  bench.executor.perform(Continue{0, 0});
  CHECK(value_of(bench.events.next<Reported>(), "acc") == 12);
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
  CHECK_THAT(log_of(bench), ContainsSubstring("acc=1,234\nhypertune: the line above is not taken as a report") &&
                                ContainsSubstring("'1,234' may be 1234 or 1.234"));
}

TEST_CASE("a trial whose reports were refused names the first of them") {
  const auto cause = [](const std::string& script, local::CommandOptions options = {}) {
    if (options.objectives.empty()) options.objectives = {"loss"};
    Bench bench(shell(script, std::move(options)));
    bench.launch(0, "");
    const auto failed = bench.events.next<Failed>(30).cause;
    CHECK_FALSE(failed.retry);
    CHECK(failed.source == FailureSource::user);
    CHECK(failed.text.size() < 500);
    return failed.text;
  };
  const auto text = cause(R"(echo '{{"lr": 1}}'; echo '{{"step": -1, "loss": 1}}'; echo '{{"step": 1.5, "loss": 1}}')");
  CHECK(text ==
        "ended without a report of 'loss': the line '{\"step\": -1, \"loss\": 1}' is not one: 'step' is -1, "
        "but must be a whole number from 0 to 2147483646");
  CHECK_THAT(cause(R"(echo '{{"step": 2147483648, "loss": 1}}')"), ContainsSubstring("'step' is 2147483648"));
  CHECK_THAT(cause(R"(echo '{{"loss": "0.5"}}')"), ContainsSubstring("'loss' is the text '0.5', no number"));
  CHECK_THAT(cause(R"(echo "{{'loss': 0.5}}")"), ContainsSubstring("no JSON from ''loss': 0.5}' on"));
  CHECK_THAT(cause(R"(echo '{{"los": 0.5}}')"), ContainsSubstring("it has no 'loss'"));
  CHECK_THAT(
      cause(R"(printf '{{"loss": 1, "x": "'; head -c 10000000 /dev/zero | tr '\0' x; echo '"}}')"),
      ContainsSubstring("the line '{\"loss\": 1, \"x\": \"xxx") && ContainsSubstring("longer than 1048576 bytes"));
  CHECK_THAT(cause("echo loss=1,234", {.metrics = {{"loss", "loss=([0-9.,]+)"}}}), ContainsSubstring("'1,234' may be"));
}

TEST_CASE("a trial whose reports lack what is tuned names the first of them") {
  Bench bench(shell(R"(echo '{{"step": 0, "los": 0.5}}')", {.objectives = {"loss"}}));
  bench.launch(0, "");
  CHECK(value_of(bench.events.next<Reported>(), "los") == 0.5);
  bench.executor.perform(Continue{0, 0});
  CHECK_THAT(bench.events.next<Failed>().cause.text,
             ContainsSubstring("'{\"step\": 0, \"los\": 0.5}' is not one: it has no 'loss': is 'los' meant?"));
}

TEST_CASE("a step that comes again within an attempt is said once in the log") {
  const auto log = [](const std::string& steps) {
    Bench bench(shell("for i in " + steps + R"(; do echo "{{\"step\": $i, \"loss\": 1}}"; done; echo '{{"loss": 2}}')",
                      {.objectives = {"loss"}}));
    bench.launch(0, "");
    const auto count = std::count(steps.begin(), steps.end(), ' ') + 2;
    for (auto i = count; i > 0; --i) {
      bench.events.next<Reported>();
      bench.executor.perform(Continue{0, 0});
    }
    bench.events.next<Finished>();
    return log_of(bench);
  };
  CHECK(log("5 3 4 2") ==
        "hypertune: the report of step 3 comes after that of step 5: it is taken for a repetition and does not count "
        "(said once)\n");
  CHECK_THAT(log("0 0"), ContainsSubstring("the report of step 0 comes after that of step 0"));
  CHECK(log("2 4 7").empty());
}

TEST_CASE("lines that an expression reads are not complained of as JSON") {
  Bench bench(shell("echo \"{{'loss': 0.5, 'lr': 1}}\"; echo \"{{'loss': 0.25}}\"",
                    {.metrics = {{"loss", "'loss': ([0-9.]+)"}}, .objectives = {"loss"}}));
  bench.launch(0, "");
  for (const double loss : {0.5, 0.25}) {
    CHECK(value_of(bench.events.next<Reported>(), "loss") == loss);
    bench.executor.perform(Continue{0, 0});
  }
  bench.events.next<Finished>();
  CHECK_THAT(log_of(bench), !ContainsSubstring("hypertune:"));
}

TEST_CASE("a line that is too long is no report, whatever its pieces look like, and what follows is read") {
  Bench bench(shell(R"(head -c 1048577 /dev/zero | tr '\0' x; echo '{{"loss": 1}}'; echo '{{"loss": 2}}')",
                    {.metrics = {}, .objectives = {"loss"}}));
  bench.launch(0, "");
  CHECK(value_of(bench.events.next<Reported>(30), "loss") == 2);
}

TEST_CASE("a command's log is bounded, and its end is where a failure looks") {
  Bench bench(shell(R"(echo first; yes '0123456789' | head -c 4000000; echo last; yes oops | head -c 2000000 >&2
echo '{{"acc": 1}}'; echo the end; exit 3)"),
              {}, 0, std::uint64_t{1} << 20U);
  bench.launch(0, "");
  CHECK(value_of(bench.events.next<Reported>(60), "acc") == 1);
  bench.executor.perform(Continue{0, 0});
  CHECK_THAT(bench.events.next<Failed>().cause.text, ContainsSubstring("exited with code 3: oops"));
  const auto log = log_of(bench);
  CHECK(log.size() < (std::size_t{1} << 20U));
  CHECK(log.starts_with("first\n0123456789\n"));
  CHECK_THAT(log, ContainsSubstring("the end\n") &&
                      ContainsSubstring("bytes of this log are left out here, log_limit is 1048576]"));
}

TEST_CASE("names that mean something else in a report's line are refused before anything runs") {
  CHECK_THROWS_WITH(shell("x", {.metrics = {{"step", "s=(.)"}}}),
                    ContainsSubstring("no metric can be called 'step'") && ContainsSubstring("(epoch, say)"));
  CHECK_THROWS_WITH(shell("x", {.objectives = {"checkpoint"}}),
                    ContainsSubstring("no metric can be called 'checkpoint'"));
  CHECK_THROWS_WITH(shell("x", {.metrics = {{"two\nlines", "s=(.)"}}}),
                    ContainsSubstring("the name of the metric 'two?lines' has control characters"));
}

TEST_CASE("what speaks of a lost connection is told from other last words") {
  for (const char* const words :
       {"BrokenPipeError: [Errno 32] Broken pipe", "Connection closed by peer [127.0.0.1]:29500",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
        "recv: CONNECTION RESET BY PEER", "EOFError", "Connection was likely closed. Did the remote server shutdown?"})
    CHECK(local::mentions_lost_connection(words));
  for (const char* const words : {"", "no such data", "CUDA out of memory", "the loss is NaN at step 3"})
    CHECK_FALSE(local::mentions_lost_connection(words));
}

TEST_CASE("a command that fails says why, and rules judge it") {
  Bench bench(shell(R"(case {mode} in exit) echo "bad thing" >&2; exit 3;; kill) kill -9 $$;; segv) kill -SEGV $$;;
ecc) echo "CUDA error: an ECC error"; exit 1;; config) echo "invalid config" >&2; exit 1;; esac)",
                    {.log_rules = {{"CUDA error.*ECC", true, false}, {"invalid config", false, true}}}));
  const auto cause = [&](const char* mode) {
    bench.launch(0, mode);
    return bench.events.next<Failed>().cause;
  };
  auto c = cause("exit");
  CHECK(c.source == FailureSource::user);
  CHECK(c.text == "the command exited with code 3: bad thing");
  CHECK((c.retry && !c.exclude_host));
  c = cause("kill");
  CHECK(c.source == FailureSource::infrastructure);
  CHECK_THAT(c.text, ContainsSubstring("the command was killed by signal 9"));
  CHECK(cause("segv").source == FailureSource::user);
  CHECK(cause("ecc").exclude_host);
  CHECK_FALSE(cause("config").retry);
}

TEST_CASE("of a Python traceback the cause has the exception") {
  Bench bench(shell(R"(cat >&2 <<'END'
warning: slow
Traceback (most recent call last):
  File "train.py", line 7, in <module>
    step()
    ~~~~^^
ZeroDivisionError: division by zero

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "train.py", line 9, in <module>
    raise ValueError(text)
    ^^^^^
ValueError: lr is 0.5
of two lines
END
exit 1)"));
  bench.launch(0, "exit");
  CHECK(bench.events.next<Failed>().cause.text ==
        "the command exited with code 1: ValueError: lr is 0.5 | of two lines");
}

TEST_CASE("of an exception with many lines, or of several at once, the cause has the first ones") {
  const auto text = [](std::string_view output) {
    local::detail::ErrorTail tail;
    for (std::string_view rest = output; !rest.empty();) tail.add(hypertune::detail::take_until(rest, '\n'));
    return tail.text();
  };
  CHECK(text("one\ntwo\nthree\nfour\n") == "two | three | four");
  CHECK(text("Traceback (most recent call last):\n  File \"a\", line 1\n    f()\nRuntimeError: CUDA error\nmaybe "
             "asynchronous\n\nset X=1\nfor more\n") == "RuntimeError: CUDA error | maybe asynchronous | set X=1");
  CHECK(text("Traceback (most recent call last):\n  File \"a\", line 1\nValueError: expected:\n  [1, 2]\ngot:\n") ==
        "ValueError: expected: |   [1, 2] | got:");
  CHECK(text("  + Exception Group Traceback (most recent call last):\n  |   File \"a\", line 1, in <module>\n"
             "  |     raise g\n  | ExceptionGroup: g (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
             "    | ValueError: a\n    +---------------- 2 ----------------\n    | TypeError: b\n"
             "    +------------------------------------\n") ==
        "ExceptionGroup: g (2 sub-exceptions) | ValueError: a | TypeError: b");
}

TEST_CASE("a checkpoint of a command that is not taken is told") {
  Bench bench(shell(R"(mkdir -p "$HYPERTUNE_CHECKPOINT/s1"; ln -s /nowhere "$HYPERTUNE_CHECKPOINT/s1/last"
echo '{{"loss": 1, "checkpoint": "s1"}}')"));
  bench.launch(0, "exit");
  const auto failed = bench.events.next<SaveFailed>();
  CHECK(failed.trial == 0);
  CHECK_THAT(failed.why, ContainsSubstring("the checkpoint 's1' is not taken"));
  CHECK_THAT(failed.why, ContainsSubstring("symbolic link"));
}

TEST_CASE("a program that is not there is an error that names it") {
  Bench bench(std::make_shared<local::CommandProgram>(std::vector<std::string>{},
                                                      local::CommandOptions{.command = {"./no-such"}}));
  bench.launch(0, "");
  CHECK_THAT(bench.events.next<Failed>().cause.text, ContainsSubstring("cannot run './no-such': No such file"));
}

TEST_CASE("a command's checkpoints are taken over and given back") {
  Bench bench(shell(R"(if [ -n "$HYPERTUNE_RESTORE" ]; then n=$(cat $HYPERTUNE_RESTORE/n); else n=0; fi
while :; do n=$((n+1)); mkdir $HYPERTUNE_CHECKPOINT/s$n; echo $n > $HYPERTUNE_CHECKPOINT/s$n/n
echo "{{\"step\": $((n-1)), \"n\": $n, \"checkpoint\": \"s$n\"}}"; sleep 0.05; done)"));
  bench.launch(0, "");
  const auto reported = bench.events.next<Reported>();
  REQUIRE(reported.checkpoint);
  CHECK(reported.checkpoint->steps == 1);
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
  auto again = bench.make(0, "", 1);
  again.restore = {*reported.checkpoint};
  bench.executor.perform(again);
  CHECK(bench.events.next<Started>().next_step == 1);
  CHECK(value_of(bench.events.next<Reported>(), "n") == 2);
}

TEST_CASE("a command that counts its steps anew when it goes on from a checkpoint") {
  const auto bench_of = [](bool steps_of_attempt) {
    return Bench(shell(
        R"(for i in 0 1; do mkdir $HYPERTUNE_CHECKPOINT/s$i-$HYPERTUNE_STEP
echo "[$i] loss:0.$i"; echo "{{\"checkpoint\": \"s$i-$HYPERTUNE_STEP\"}}"; done)",
        {.metrics = {{"loss", "loss:([0-9.]+)"}}, .step = "^\\[([0-9]+)\\]", .steps_of_attempt = steps_of_attempt}));
  };
  const auto both_of = [](Bench& bench) {
    std::vector<int> steps;
    std::vector<CheckpointInfo> saved;
    for (Attempt attempt = 0; attempt < 2; ++attempt) {
      auto launch = bench.make(0, "", attempt);
      launch.restore = saved;
      bench.executor.perform(launch);
      for (;;) {
        const auto event = bench.events.next_of<Reported, Checkpointed, Finished>();
        if (std::holds_alternative<Finished>(event)) break;
        if (const auto* made = std::get_if<Checkpointed>(&event)) saved = {made->checkpoint};
        if (const auto* reported = std::get_if<Reported>(&event)) {
          steps.push_back(reported->report.step.value_or(-1));
          if (reported->checkpoint) saved = {*reported->checkpoint};
          bench.executor.perform(Continue{0, attempt});
        }
      }
    }
    return steps;
  };
  auto anew = bench_of(true), on = bench_of(false);
  CHECK(both_of(anew) == std::vector<int>{0, 1, 2, 3});
  both_of(on);
  CHECK_THAT(log_of(on), ContainsSubstring("comes in a trial that goes on from step 2: it is taken for a repetition") &&
                             ContainsSubstring("say 'counts: attempt' in 'trial.step'"));
}

TEST_CASE("SIGTERM asks a command to save and leave; one that does not is ended by force") {
  const auto script =
      R"(trap 'mkdir $HYPERTUNE_CHECKPOINT/last; echo "{{\"step\": 0, \"checkpoint\": \"last\"}}"; exit 0' TERM
echo '{{"acc": 1}}'; while :; do sleep 0.02; done)";
  SECTION("between reports") {
    Bench bench(shell(script));
    bench.launch(0, "");
    bench.events.next<Reported>();
    bench.executor.perform(Stop{0, 0, true});
    CHECK(bench.events.next<Checkpointed>().checkpoint.steps == 1);
    bench.events.next<Stopped>();
  }
  SECTION("within a step") {
    Bench bench(shell(script));
    bench.launch(0, "");
    bench.events.next<Reported>();
    bench.executor.perform(Continue{0, 0});
    bench.executor.perform(Stop{0, 0, true});
    bench.events.next<Stopped>();
  }
  SECTION("deaf") {
    Bench bench(shell("trap '' TERM; echo '{{\"acc\": 1}}'; while :; do sleep 0.02; done", {.stop_grace = 0.1}));
    bench.launch(0, "");
    bench.events.next<Reported>();
    bench.executor.perform(Stop{0, 0});
    bench.events.next<Stopped>(3);
  }
}

TEST_CASE("what a command leaves behind ends with it") {
  Bench bench(shell(R"(sleep 1000 & echo "{{\"a\": $!}}"; setsid sleep 1000 & echo "{{\"a\": $!}}"; wait)"));
  bench.launch(0, "");
  const auto first = static_cast<pid_t>(value_of(bench.events.next<Reported>(), "a"));
  bench.executor.perform(Continue{0, 0});
  const auto second = static_cast<pid_t>(value_of(bench.events.next<Reported>(), "a"));
  CHECK(::kill(first, 0) == 0);
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
  // The process that serves the next trial has swept by then.
  bench.launch(1, "");
  bench.events.next<Reported>();
  CHECK(::kill(first, 0) != 0);
  CHECK(::kill(second, 0) != 0);
}
