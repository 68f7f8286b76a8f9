// Duration, processor time and peak memory of a command as metrics.
#include "local_support.hpp"

#include <hypertune/local/command.hpp>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

const std::vector<std::pair<std::string, Measured>> all_measures{
    {"duration", Measured::duration}, {"cpu_time", Measured::cpu_time}, {"memory", Measured::peak_memory}};

std::shared_ptr<const Program> shell(const std::string& script, local::CommandOptions options) {
  options.command = {"/bin/sh", "-c", script};
  return std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode"}, std::move(options));
}
double value_of(const Reported& reported, const char* name) {
  const double* value = find_metric(reported.report.metrics, name);
  INFO(name);
  REQUIRE(value != nullptr);
  return *value;
}

}  // namespace

TEST_CASE("measured: a program that prints nothing is tuned by what it uses") {
  // The processor time and the memory are those of processes that the command starts.
  const std::string script =
      "python3 -c 'import time; x = bytearray(200 << 20)\nwhile time.process_time() < 0.3: pass'; sleep 0.2";
  Bench bench(shell(script, {.measure = all_measures, .objectives = {"duration"}}));
  bench.launch(0, "m");
  const auto reported = bench.events.next<Reported>();
  CHECK(reported.report.step == 0);
  CHECK(value_of(reported, "duration") >= 0.5);
  CHECK(value_of(reported, "cpu_time") >= 0.3);
  CHECK(value_of(reported, "cpu_time") < value_of(reported, "duration"));
  CHECK(value_of(reported, "memory") >= 200 * 1024 * 1024);
  CHECK(value_of(reported, "memory") < 300 * 1024 * 1024);
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
}

TEST_CASE("measured: a small program is not taken for as large as this one") {
  Bench bench(shell(R"(echo '{{"loss": 2}}'; until [ -e "{directory}/go" ]; do sleep 0.05; done)",
                    {.measure = {{"memory", Measured::peak_memory}}, .objectives = {"loss"}}));
  bench.launch(0, "m");
  const double memory = value_of(bench.events.next<Reported>(), "memory");
  CHECK(memory > 0);
  CHECK(memory < 10 * 1024 * 1024);
  std::ofstream(bench.directory.path() / "trials/0/go");
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
}

TEST_CASE(
    "measured: one report at the end has the last of other metrics, and what the command says itself is not used") {
  Bench bench(shell(R"(echo '{{"conflicts": 1, "duration": 99}}'; echo '{{"conflicts": 7}}'; sleep 0.1)",
                    {.measure = {{"duration", Measured::duration}}, .objectives = {"duration"}}));
  bench.launch(0, "m");
  const auto reported = bench.events.next<Reported>();
  CHECK(value_of(reported, "conflicts") == 7);
  CHECK(value_of(reported, "duration") >= 0.1);
  CHECK(value_of(reported, "duration") < 99);
  CHECK(reported.report.metrics.size() == 2);
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
}

TEST_CASE("measured: beside a metric that is printed, each report has what was used until then") {
  Bench bench(shell(R"(echo '{{"loss": 2}}'; sleep 0.2; echo '{{"loss": 1}}'; sleep 1)",
                    {.measure = {{"duration", Measured::duration}}, .objectives = {"loss", "duration"}}));
  bench.launch(0, "m");
  const auto first = bench.events.next<Reported>();
  CHECK(value_of(first, "loss") == 2);
  const double before = value_of(first, "duration");
  CHECK(before > 0);
  bench.executor.perform(Continue{0, 0});
  const auto second = bench.events.next<Reported>();
  CHECK(value_of(second, "loss") == 1);
  CHECK(value_of(second, "duration") > before);
  CHECK(value_of(second, "duration") >= 0.2);
  bench.executor.perform(Continue{0, 0});
  bench.events.next<Finished>();
}

TEST_CASE("measured: a command that fails has no report, and a name that reports use is refused") {
  Bench bench(shell("exit 3", {.measure = {{"duration", Measured::duration}}, .objectives = {"duration"}}));
  bench.launch(0, "m");
  CHECK_THAT(bench.events.next<Failed>().cause.text, Catch::Contains("3"));
  CHECK_THROWS_WITH(shell("x", {.measure = {{"step", Measured::duration}}}), Catch::Contains("'step'"));
}
