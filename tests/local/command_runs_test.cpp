// Commands: programs that have ended, output to a terminal, exit codes, the one report that counts, repeated runs.
#include "local_support.hpp"

#include <hypertune/local/command.hpp>
#include <hypertune/local/output_timing.hpp>
#include <hypertune/local/repetitions.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

std::shared_ptr<const Program> command(std::vector<std::string> words, local::CommandOptions options = {}) {
  options.environment.emplace("PYTHONUNBUFFERED", "");  // whatever the test's own environment says
  options.command = std::move(words);
  return std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode"}, std::move(options));
}
std::shared_ptr<const Program> shell(const std::string& script, local::CommandOptions options = {}) {
  return command({"/bin/sh", "-c", script}, std::move(options));
}
double value_of(const Report& report, const std::string& name) {
  const double* value = find_metric(report.metrics, name);
  INFO(name);
  REQUIRE(value != nullptr);
  return *value;
}
double value_of(const Reported& reported, const std::string& name) { return value_of(reported.report, name); }
std::string read(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}
/// The folder of trial 0, in which the scripts below begin.
std::filesystem::path place(Bench& bench) {
  const auto folder = bench.directory.path() / "trials/0";
  std::filesystem::create_directories(folder);
  return folder;
}
void wait_for(const std::filesystem::path& file) {
  while (!std::filesystem::exists(file)) ::usleep(1000);
}
/// Waits until a program has ended, whether or not its parent has noticed.
void wait_for_end(int pid) {
  for (;; ::usleep(1000)) {
    const auto stat = read("/proc/" + std::to_string(pid) + "/stat");
    const auto name = stat.rfind(')');
    if (name == std::string::npos || stat.substr(name, 3) == ") Z") return;
  }
}
/// Whether each report of a trial is marked as one of a program that has ended; all are answered with Continue.
std::vector<bool> overs(Bench& bench, TrialId trial, int reports) {
  std::vector<bool> all;
  for (int i = 0; i < reports; ++i) {
    const auto reported = bench.events.next<Reported>();
    CHECK(value_of(reported, "loss") == i);
    all.push_back(reported.report.over);
    bench.executor.perform(Continue{trial, 0});
  }
  bench.events.next<Finished>();
  return all;
}

local::CommandOptions for_loss(local::CommandOptions options = {}) {
  options.objectives = {"loss"};
  options.modes = {{"loss", Mode::minimize}};
  return options;
}

}  // namespace

TEST_CASE("the reports of a program that has ended say so") {
  Bench bench(shell(R"(cd {directory}; echo "{{\"loss\": 0, \"pid\": $$}}"; read line < go
echo '{{"loss": 1}}'; echo '{{"loss": 2}}')"));
  REQUIRE(::mkfifo((place(bench) / "go").c_str(), 0600) == 0);
  bench.launch(0, "");
  const auto first = bench.events.next<Reported>();
  CHECK_FALSE(first.report.over);
  std::ofstream(place(bench) / "go") << "go\n";
  wait_for_end(static_cast<int>(value_of(first, "pid")));
  bench.executor.perform(Continue{0, 0});
  for (const int loss : {1, 2}) {
    const auto reported = bench.events.next<Reported>();
    CHECK(value_of(reported, "loss") == loss);
    CHECK(reported.report.over);
    CHECK(reported.report.remark.empty());
    bench.executor.perform(Continue{0, 0});
  }
  bench.events.next<Finished>();
}

TEST_CASE("reports that come in one write wait for the end of the program, in an ordered run for however long") {
  // With `ordered` nothing depends on time: the writes say what the program does.
  const std::string block = R"(printf '{{"loss": 0}}\n{{"loss": 1}}\n{{"loss": 2}}\n')";
  SECTION("a program that prints all at once, at its end") {
    Bench bench(shell(block, {.ordered = true}));
    bench.launch(0, "");
    CHECK(overs(bench, 0, 3) == std::vector<bool>(3, true));
  }
  SECTION("a program that goes on for a while after it") {
    Bench bench(shell(block + "; sleep 0.3", {.ordered = true}));
    bench.launch(0, "");
    CHECK(overs(bench, 0, 3) == std::vector<bool>(3, true));
  }
  SECTION("more than a block of stdio, and a number in each line of which two make a report") {
    Bench bench(command({"python3", "-c", "for i in range(400): print('step', i); print('loss =', i)"},
                        {.metrics = {{"loss", "loss = ([0-9]+)"}}, .ordered = true}));
    bench.launch(0, "");
    CHECK(overs(bench, 0, 400) == std::vector<bool>(400, true));
  }
  SECTION("a program that writes each report as it is made is judged by each, also if it has ended meanwhile") {
    Bench bench(command({"python3", "-c", "for i in range(5): print('loss =', i, flush=True)"},
                        {.metrics = {{"loss", "loss = ([0-9]+)"}}, .ordered = true}));
    bench.launch(0, "");
    CHECK(overs(bench, 0, 5) == std::vector<bool>(5, false));
  }
  SECTION("two lines of one report in a write are no block") {
    Bench bench(command({"python3", "-c", "for i in range(3): print('loss = %d\\nsize = 1' % i, flush=True)"},
                        {.metrics = {{"loss", "loss = ([0-9]+)"}, {"size", "size = ([0-9]+)"}}, .ordered = true}));
    bench.launch(0, "");
    CHECK(overs(bench, 0, 3) == std::vector<bool>(3, false));
  }
}

TEST_CASE("a report that waits for the program's end is passed on when the trial is told to stop") {
  Bench bench(shell(R"(cd {directory}; printf '{{"loss": 0}}\n{{"loss": 1}}\n'; touch printed; sleep 1000)",
                    {.stop_grace = 0.1, .ordered = true}));
  bench.launch(0, "");
  wait_for(place(bench) / "printed");
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
}

TEST_CASE("what the times of reports say about buffering") {
  using local::came_at_the_end;
  CHECK(came_at_the_end({.began = 100, .first = 111.9, .ended = 112}));
  CHECK(came_at_the_end({.began = 0, .first = 0.95, .ended = 1}));
  CHECK_FALSE(came_at_the_end({.began = 0, .first = 0.85, .ended = 1}));    // within the last tenth only
  CHECK_FALSE(came_at_the_end({.began = 0, .first = 0.9, .ended = 0.95}));  // too short to tell
  CHECK_FALSE(came_at_the_end({.began = 0, .first = 95, .ended = 100}));    // five seconds are no moment
  CHECK_FALSE(came_at_the_end({.began = 0, .first = 1, .ended = 100}));
  const auto pipe = local::about_buffering({.began = 0, .first = 11.96, .ended = 12}, CommandOutput::pipe);
  CHECK_THAT(pipe, ContainsSubstring("in the last 0.04 s of 12 s"));
  CHECK_THAT(pipe, ContainsSubstring("'trial.output: line'"));
  CHECK_THAT(local::about_buffering({.began = 0, .first = 12, .ended = 12}, CommandOutput::line),
             ContainsSubstring("flush after each report"));
}

TEST_CASE("output: line gives a program a terminal, so that it prints line by line") {
  SECTION("Python waits for an answer to a line that it has not flushed") {
    Bench bench(
        command({"python3", "-c",
                 "import os\nprint('{{\"loss\": 3}}')\nopen('{directory}/go').read()\nprint('{{\"loss\": %d}}' % "
                 "os.isatty(2))\n"},
                {.output = CommandOutput::line}));
    REQUIRE(::mkfifo((place(bench) / "go").c_str(), 0600) == 0);
    bench.launch(0, "");
    CHECK(value_of(bench.events.next<Reported>(), "loss") == 3);
    bench.executor.perform(Continue{0, 0});
    std::ofstream(place(bench) / "go") << "go\n";
    CHECK(value_of(bench.events.next<Reported>(), "loss") == 0);  // standard error stays a pipe
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
  }
  SECTION("it is wide, dumb, translates nothing, echoes nothing and controls nothing") {
    const std::string script = R"(import json, os, sys, termios
os.write(1, b'raw\n')
own = os.ttyname(1)
try: os.tcgetpgrp(1); controls = 1
except OSError: controls = 0
mode = termios.tcgetattr(1)
print(json.dumps({'loss': 1, 'columns': os.get_terminal_size(1).columns, 'controls': controls,
                  'echo': bool(mode[3] & termios.ECHO), 'opost': bool(mode[1] & termios.OPOST),
                  'leads_its_group': os.getpgid(0) == os.getpid(), 'term': os.environ['TERM'],
                  'color': os.environ['NO_COLOR']}))
)";
    std::string escaped;
    for (const char c : script) escaped += c == '{' ? "{{" : c == '}' ? "}}" : std::string(1, c);
    Bench bench(
        command({"python3", "-c", escaped}, {.environment = {{"NO_COLOR", "own"}}, .output = CommandOutput::line}));
    bench.launch(0, "");
    const auto reported = bench.events.next<Reported>();
    CHECK(value_of(reported, "columns") == 240);
    CHECK(value_of(reported, "controls") == 0);
    CHECK(value_of(reported, "echo") == 0);
    CHECK(value_of(reported, "opost") == 0);
    CHECK(value_of(reported, "leads_its_group") == 1);
    CHECK(reported.report.attributes.get<std::string>("term") == "dumb");
    CHECK(reported.report.attributes.get<std::string>("color") == "own");
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
    CHECK(read(bench.directory.path() / "trials/0/log") == "raw\n");
  }
  SECTION("all of it is read, however much comes before the end and whatever outlives it") {
    Bench bench(command({"python3", "-c",
                         "import os\nfor i in range(20000): print('line', i)\nos.fork() or os.setsid() or "
                         "__import__('time').sleep(1000)\nprint('{{\"loss\": 7}}')"},
                        {.output = CommandOutput::line}));
    bench.launch(0, "");
    CHECK(value_of(bench.events.next<Reported>(), "loss") == 7);
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
    CHECK_THAT(read(bench.directory.path() / "trials/0/log"), ContainsSubstring("line 19999\n"));
  }
  SECTION("it is stopped as without it") {
    Bench bench(
        shell(R"(trap 'echo "{{\"loss\": 2}}"; exit 0' TERM; echo '{{"loss": 1}}'; while :; do sleep 0.02; done)",
              {.output = CommandOutput::line}));
    bench.launch(0, "");
    bench.events.next<Reported>();
    bench.executor.perform(Stop{0, 0});
    bench.events.next<Stopped>();
  }
}

TEST_CASE("exit codes that mean success") {
  const auto end_of = [](const std::string& script, std::vector<int> success) {
    Bench bench(shell("echo '{{\"loss\": 1}}'; " + script, {.success = std::move(success)}));
    bench.launch(0, "");
    bench.events.next<Reported>();
    bench.executor.perform(Continue{0, 0});
    return bench.events.next<Failed>().cause.text;
  };
  for (const int code : {10, 20}) {
    Bench bench(shell("echo '{{\"loss\": 1}}'; exit " + std::to_string(code), {.success = {10, 20}}));
    bench.launch(0, "");
    bench.events.next<Reported>();
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
  }
  CHECK_THAT(end_of("exit 10", {0}), ContainsSubstring("exited with code 10"));
  CHECK_THAT(end_of("exit 3", {10, 20}), ContainsSubstring("exited with code 3"));
  CHECK_THAT(end_of("exit 0", {10, 20}), ContainsSubstring("code 0, which is not among those of 'trial.success'"));
  CHECK_THAT(end_of("kill -9 $$", {0, 9, 137}), ContainsSubstring("killed by signal 9"));
}

TEST_CASE("the last or the best report alone is the trial's") {
  const std::string script = R"(for i in 5 2 3; do mkdir $HYPERTUNE_CHECKPOINT/c$i
echo "{{\"loss\": $i, \"size\": 1$i, \"checkpoint\": \"c$i\"}}"; done; echo '{{"step": 3, "size": 9}}')";
  const auto only = [&](ReportRule rule, const std::string& more, Mode mode = Mode::minimize) {
    auto options = for_loss({.report = rule});
    options.modes["loss"] = mode;
    Bench bench(shell(script + more, options));
    bench.launch(0, "");
    auto reported = bench.events.next<Reported>();
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
    CHECK(reported.report.over);
    // The checkpoints of the others are gone: no report says what they are worth.
    std::size_t left = 0;
    for (const auto& entry : std::filesystem::directory_iterator(bench.directory.path() / "trials/0/checkpoints"))
      left += entry.is_directory() && entry.path().filename().string().front() != '.';
    CHECK(left == (reported.checkpoint ? 1 : 0));
    return reported;
  };
  SECTION("the last one with what is tuned") {
    const auto last = only(ReportRule::last, "");
    CHECK(last.report.metrics == Metrics{{"loss", 3}, {"size", 13}});
    CHECK(last.report.step == 2);
    REQUIRE(last.checkpoint);
    CHECK(last.checkpoint->steps == 3);
  }
  SECTION("the best one") {
    const auto best = only(ReportRule::best, "");
    CHECK(best.report.metrics == Metrics{{"loss", 2}, {"size", 12}});
    CHECK(best.report.step == 1);
    REQUIRE(best.checkpoint);
    CHECK(best.checkpoint->steps == 2);
  }
  SECTION("the best one of what is to be large, of which NaN is none") {
    const auto best = only(ReportRule::best, "; echo '{{\"loss\": NaN}}'", Mode::maximize);
    CHECK(best.report.metrics == Metrics{{"loss", 5}, {"size", 15}});
  }
  SECTION("an infinite value is never the best one") {
    const auto best = only(ReportRule::best, "; echo '{{\"loss\": -Infinity}}'");
    CHECK(best.report.metrics == Metrics{{"loss", 2}, {"size", 12}});
  }
  SECTION("a program that fails has none") {
    Bench bench(shell("echo '{{\"loss\": 1}}'; exit 1", for_loss({.report = ReportRule::last})));
    bench.launch(0, "");
    bench.events.find<Failed>();
    CHECK(bench.events.empty() == false);  // Started
    bench.events.next<Started>();
    CHECK(bench.events.empty());
  }
}

TEST_CASE("the reports of several runs become one") {
  const auto runs = [](const std::vector<double>& losses) {
    std::vector<Report> all;
    for (const double loss : losses) all.emplace_back(Metrics{{"loss", loss}, {"size", -loss}});
    return all;
  };
  const std::map<std::string, Mode> modes{{"loss", Mode::minimize}};
  const auto loss_of = [&](const std::vector<double>& losses, RepeatRule rule) {
    return value_of(local::combined(runs(losses), rule, modes, {"loss"}), "loss");
  };
  CHECK(loss_of({3, 100, 1}, RepeatRule::median) == 3);
  CHECK(loss_of({3, 100, 1, 4}, RepeatRule::median) == 3.5);
  CHECK(loss_of({3, 100, 2}, RepeatRule::mean) == 35);
  CHECK(loss_of({3, 100, 1}, RepeatRule::min) == 1);
  CHECK(loss_of({3, 100, 1}, RepeatRule::max) == 100);
  CHECK(loss_of({3, 100, 1}, RepeatRule::worst) == 100);
  // NaN is the worst of them.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(loss_of({3, nan, 1}, RepeatRule::min) == 1);
  CHECK(loss_of({3, nan, 1}, RepeatRule::median) == 3);
  for (const auto rule : {RepeatRule::max, RepeatRule::worst, RepeatRule::mean})
    CHECK(std::isnan(loss_of({3, nan, 1}, rule)));
  CHECK(std::isnan(loss_of({nan, nan, 1}, RepeatRule::median)));
  CHECK(std::isnan(value_of(local::combined(runs({3, nan, 1}), RepeatRule::median, modes, {}), "size")));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(loss_of({infinity, infinity}, RepeatRule::median) == infinity);
  const auto worst = local::combined(runs({3, 100, 1}), RepeatRule::worst, {{"loss", Mode::maximize}}, {"loss"});
  CHECK(value_of(worst, "loss") == 1);
  CHECK(value_of(worst, "size") == -3);  // nothing says which of these is the worst
  const auto mean = local::combined(runs({1, 2, 3, 4, 5}), RepeatRule::mean, modes, {"loss"});
  CHECK(value_of(mean, "loss_std") == Approx(std::sqrt(2.5)));
  CHECK(find_metric(mean.metrics, "size_std") == nullptr);
  // A metric of some runs only says nothing of the trial, and the program's own NAME_std stays.
  auto uneven = runs({1, 2});
  uneven.front().metrics.emplace_back("extra", 1);
  uneven.back().metrics.emplace_back("loss_std", 7);
  uneven.front().metrics.emplace_back("loss_std", 5);
  const auto both = local::combined(uneven, RepeatRule::mean, modes, {"loss"});
  CHECK(find_metric(both.metrics, "extra") == nullptr);
  CHECK(value_of(both, "loss_std") == 6);
  CHECK(local::seed_of_repetition(7, 0) == 7);
  CHECK(local::seed_of_repetition(7, 1) != local::seed_of_repetition(7, 2));
}

TEST_CASE("a command that is repeated: one report, of all runs") {
  auto options = for_loss({.report = ReportRule::last, .repeat = {.times = 3, .use = RepeatRule::median}});
  SECTION("each run has its number and its seed; what it leaves behind ends with it") {
    Bench bench(shell(R"(case {repetition} in 0) l=8;; 1) l=100;; 2) l=9;; esac
sleep 1000 & echo "run $HYPERTUNE_REPETITION seed $HYPERTUNE_SEED"; echo '{{"loss": 1}}'
echo "{{\"loss\": $l, \"pid\": $!}}")",
                      options));
    bench.launch(0, "");
    const auto reported = bench.events.next<Reported>();
    CHECK(value_of(reported, "loss") == 9);
    CHECK(value_of(reported, "loss_std") == Approx(52.83).epsilon(0.001));
    CHECK(reported.report.over);
    CHECK(reported.report.step.value_or(0) == 0);
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
    const auto log = read(bench.directory.path() / "trials/0/log");
    std::vector<std::string> seeds;
    for (const int run : {0, 1, 2}) {
      const auto at = log.find("run " + std::to_string(run) + " seed ");
      REQUIRE(at != std::string::npos);
      seeds.push_back(log.substr(at + 11, log.find('\n', at) - at - 11));
    }
    CHECK(seeds[0] == "0");
    CHECK(seeds[1] != seeds[0]);
    CHECK(seeds[2] != seeds[1]);
  }
  SECTION("a run that fails fails the attempt; the next one begins with that run") {
    Bench bench(
        shell(R"(cd {directory}; echo $HYPERTUNE_REPETITION >> ran; [ {repetition} != 1 ] || [ -e fixed ] || exit 4
echo "{{\"loss\": {repetition}}}")",
              options));
    bench.launch(0, "");
    CHECK_THAT(bench.events.next<Failed>().cause.text,
               ContainsSubstring("in run 2 of 3: ") && ContainsSubstring("code 4"));
    std::ofstream(place(bench) / "fixed") << "";
    bench.launch(0, "", 1);
    CHECK(value_of(bench.events.next<Reported>(), "loss") == 1);
    bench.executor.perform(Continue{0, 1});
    bench.events.next<Finished>();
    CHECK(read(place(bench) / "ran") == "0\n1\n1\n2\n");
    // Of another configuration nothing is taken over.
    bench.launch(0, "another", 2);
    bench.events.next<Reported>();
    CHECK(read(place(bench) / "ran") == "0\n1\n1\n2\n0\n1\n2\n");
  }
  SECTION("it ends when it is told to, in the middle of a run") {
    Bench bench(shell(
        R"(echo '{{"loss": 1}}'; [ {repetition} = 0 ] || touch {directory}/second; [ {repetition} = 0 ] || sleep 1000)",
        for_loss({.stop_grace = 0.1, .report = ReportRule::last, .repeat = {.times = 3}})));
    bench.launch(0, "");
    wait_for(place(bench) / "second");
    bench.executor.perform(Stop{0, 0, true});
    bench.events.next<Stopped>();
  }
}
