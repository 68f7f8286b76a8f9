// What programs print: lines and updates of a progress bar, and how metrics in them become reports.
#include "local_support.hpp"

#include <hypertune/local/command.hpp>
#include <hypertune/local/error_tail.hpp>
#include <hypertune/local/output_lines.hpp>
#include <hypertune/local/report_join.hpp>
#include <hypertune/process/program_file.hpp>

#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

using Texts = std::vector<std::string>;

/// The lines of an output that comes in pieces of `size` bytes: "text" of those that stay, "text~" of those that were
/// written over, "text+" of pieces.
Texts lines_of(std::string_view output, std::size_t size, std::size_t most = 1000) {
  local::OutputLines lines(most);
  Texts texts;
  const auto take = [&](const local::OutputLine& line) {
    texts.push_back(line.text + (line.stays ? "" : "~") + (line.whole ? "" : "+"));
  };
  for (std::size_t i = 0; i < output.size(); i += size) lines.add(output.substr(i, size), 0, take);
  lines.end(take);
  return texts;
}

/// The same in pieces of every size.
Texts lines_of(std::string_view output) {
  auto texts = lines_of(output, output.size());
  for (std::size_t size = 1; size < output.size(); ++size) {
    INFO(size);
    CHECK(lines_of(output, size) == texts);
  }
  return texts;
}

std::shared_ptr<const Program> program(std::vector<std::string> command, local::CommandOptions options = {}) {
  options.command = std::move(command);
  return std::make_shared<local::CommandProgram>(std::vector<std::string>{}, std::move(options));
}

std::shared_ptr<const Program> shell(const std::string& script, local::CommandOptions options = {}) {
  return program({"/bin/sh", "-c", script}, std::move(options));
}

std::string log_of(Bench& bench) {
  std::ifstream in(bench.directory.path() / "trials/0/log");
  return {std::istreambuf_iterator<char>(in), {}};
}

/// All reports of a trial until it finishes; `cause`: of a trial that fails.
std::vector<Metrics> reports_of(Bench& bench, std::string* cause = nullptr) {
  std::vector<Metrics> reports;
  bench.launch(0, "");
  for (;;) {
    auto event = bench.events.next_of<Reported, Finished, Failed>();
    if (auto* reported = std::get_if<Reported>(&event)) {
      reports.push_back(reported->report.metrics);
      bench.executor.perform(Continue{0, 0});
      continue;
    }
    if (auto* failed = std::get_if<Failed>(&event)) {
      INFO(failed->cause.text);
      REQUIRE(cause != nullptr);
      *cause = failed->cause.text;
    }
    return reports;
  }
}

bool there(const char* name) {
  const bool found = !process::program_file(name).empty();
  if (!found) WARN(name << " is not installed: not tried");
  return found;
}

}  // namespace

TEST_CASE("output: a line ends at a newline, whatever pieces it comes in") {
  CHECK(lines_of("one\ntwo\r\nthree\r\r\n\nfour") == Texts{"one", "two", "three", "", "four"});
  CHECK(lines_of("").empty());
}

TEST_CASE("output: of the updates of a bar the last one is passed on") {
  CHECK(lines_of("a 1%\ra 2%\ra 100%\nend\n") == Texts{"a 100%", "end"});
  CHECK(lines_of("\ra 1\ra 20\ra 1.5e-03\r") == Texts{"a 1.5e-03"});
  // What is wiped out is not lost, and what is no update of it is a line of its own.
  CHECK(lines_of("\ra 1\r    \ra 2\r    \r\n") == Texts{"a 2~"});
  CHECK(lines_of("\ra 1\ra 2\r      \rdone: 7\n") == Texts{"a 2~", "done: 7"});
  CHECK(lines_of("a 1\rERROR: no disk\ra 2\ra 3\n") == Texts{"a 1~", "ERROR: no disk~", "a 3"});
  CHECK(lines_of("[=>  ] 1/9 - loss: 0.5\r[===>] 10/90 - loss: 1e-5\n") == Texts{"[===>] 10/90 - loss: 1e-5"});
  // Each object may be a report.
  CHECK(lines_of("{\"a\": 1}\r{\"a\": 2}\r{\"a\": 3}\n") == Texts{"{\"a\": 1}~", "{\"a\": 2}~", "{\"a\": 3}"});
}

TEST_CASE("output: backspaces go back, and what is written then takes the place") {
  CHECK(lines_of("at 10%\b\b\b20%\b\b\b30%\n") == Texts{"at 30%"});
  CHECK(lines_of("1/3\b\b\b2/3\b\b\b3/3\n") == Texts{"3/3"});
  CHECK(lines_of("1/3 loss 2\b\b\b\b\b\b\b\b\b\b\r2/3 loss 1\n") == Texts{"2/3 loss 1"});  // Keras
  CHECK(lines_of("f\xc3\xbc\b!\n") == Texts{"f!"});
  CHECK(lines_of(" N\bNA\bAM\bM\n") == Texts{" NAM"});
  CHECK(lines_of("\b\b\bx\b\b\b\n") == Texts{"x"});
}

TEST_CASE("output: sequences for terminals are taken away") {
  CHECK(lines_of("\x1b[1;31mloss\x1b[0m: \x1b[38;5;3m0.5\x1b[K\n") == Texts{"loss: 0.5"});
  CHECK(lines_of("\x1b]0;title\x07one\x1b]8;;http://a/\x1b\\two\x1b(B\x1b=\x1b[?25l\n") == Texts{"onetwo"});
  CHECK(lines_of("a 1\x1b[2K\x1b[1Ga 2\x1b[1000Da 3\x1b[Ga 4\n") == Texts{"a 4"});
  CHECK(lines_of("a 1\r\x1b[Ka 2\r\x1b[K\n") == Texts{"a 2~"});
  CHECK(lines_of("\na 1\x1b[A\nb 1\n") == Texts{"", "a 1~", "b 1"});
  // A sequence that is none does not swallow what comes after its line.
  CHECK(lines_of("\x1b]never ended\nloss 1\n") == Texts{"", "loss 1"});
  CHECK(lines_of("x\x1b[3\nloss 1\x1b") == Texts{"x", "loss 1"});
}

TEST_CASE("output: a line to which the cursor comes back is counted once") {
  // Two nested bars of tqdm. The inner one is wiped out at its end …
  const std::string up = "\x1b[A";
  const auto inner = [&](int n, double loss) {
    return "\n\rinner: " + std::to_string(n) + "/2 loss=" + std::to_string(loss).substr(0, 3) + up;
  };
  std::string text = "\router: 0/2";
  for (int epoch = 0; epoch < 2; ++epoch)
    text += inner(0, 0.9) + inner(1, 0.5) + inner(2, 0.3 - 0.1 * epoch) + "\n\r                    \r" + up +
            "\router: " + std::to_string(epoch + 1) + "/2";
  CHECK(lines_of(text + "\n") == Texts{"outer: 0/2", "outer: 2/2", "inner: 2/2 loss=0.2~"});
  // … or stays, in the outer one's place, which goes on below it.
  text = "\router: 0/2";
  for (int epoch = 0; epoch < 2; ++epoch)
    text += inner(1, 0.5) + inner(2, 0.3 - 0.1 * epoch) + "\rinner: 2/2 loss=" + (epoch == 0 ? "0.3" : "0.2") +
            "\n\router: " + std::to_string(epoch + 1) + "/2";
  CHECK(lines_of(text + "\n") == Texts{"outer: 0/2", "inner: 2/2 loss=0.3", "inner: 2/2 loss=0.3~", "outer: 1/2~",
                                       "inner: 2/2 loss=0.2", "inner: 2/2 loss=0.2~", "outer: 2/2"});
  // A block of lines that is drawn anew, by any of the ways up; its first appearance had ended.
  for (const std::string move : {"\x1b[2A", "\x1b[A\x1b[2K\x1b[1A\x1b[2K", "\x1b[2F\x1b[J", "\x1bM\x1bM\r", "\x1b[H"}) {
    INFO(move.substr(1));
    text = move == "\x1b[H" ? move : "";
    for (const std::string n : {"1", "2", "3", "4"}) text += (n == "1" ? "" : move) + "a " + n + "\nb " + n + "\n";
    CHECK(lines_of(text + "end\nmore") == Texts{"a 1", "b 1", "a 4", "b 4", "end", "more"});
  }
  // Of three lines each is drawn by itself, and the cursor goes back down.
  text = "x 1\ny 1\nz 1\n";
  for (int i = 2; i < 5; ++i)
    for (int row = 3; row > 0; --row)
      text += "\x1b[" + std::to_string(row) + "A\r" + "zyx"[row - 1] + " " + std::to_string(i) + "\r\x1b[" +
              std::to_string(row) + "B";
  CHECK(lines_of(text + "end\n") == Texts{"x 1", "y 1", "z 1", "x 4", "y 4", "z 4", "end"});
  // A line that is written above the bars comes first, and those that scroll away come when they have.
  CHECK(lines_of("\ra 1\n\rb 1" + up + "\ra 2\n\rb 2" + up + "\r\x1b[Klog\n\ra 3\n\rb 3" + up + "\ra 4\n\rb 4" + up) ==
        Texts{"a 1", "a 2~", "log", "b 2~", "a 4", "b 4"});
  // More lines up than there are, and than any terminal has.
  CHECK(lines_of("a\x1b[9Ab\n") == Texts{"a~", "b"});
  text.clear();
  for (int i = 0; i < 300; ++i) text += "line\n";
  const auto many = lines_of(text + "\x1b[999Aback\n", 7);
  CHECK(many.size() == 301);
  CHECK(many.back() == "back");
}

TEST_CASE("output: limits hold for each update, not for the line") {
  local::OutputLines lines(1000);
  std::size_t passed = 0, longest = 0;
  std::string last;
  const auto take = [&](const local::OutputLine& line) {
    ++passed;
    longest = std::max(longest, line.text.size());
    last = line.text;
    CHECK(line.whole);
  };
  std::string update;
  for (int i = 0; i < 200'000; ++i) {  // 12 MB
    update = "\r" + std::to_string(i) + "/200000 [" + std::string(40, i % 2 == 0 ? '=' : '.') + "] loss: 0.5";
    lines.add(update, 0, take);
  }
  lines.add("\n", 0, take);
  CHECK(passed == 1);
  CHECK(last.starts_with("199999/200000"));
  CHECK(longest < 100);
  CHECK(lines_of("aaaaaa\nb\rcc\rddddddd\ree\n", 3, 4) ==
        Texts{"aaaaa+", "a\n+", "b~", "cc~", "ddddd+", "dd\n~+", "ee"});
}

TEST_CASE("output: of a line that never ends the latest update is passed on every minute") {
  local::OutputLines lines(1000);
  Texts texts;
  const auto take = [&](const local::OutputLine& line) {
    CHECK(line.passing);
    texts.push_back(line.text);
  };
  for (int second = 0; second < 200; ++second) lines.add("frame=" + std::to_string(second) + "\r", second, take);
  CHECK(texts == Texts{"frame=60", "frame=120", "frame=180"});
  texts.clear();
  lines.end([&](const local::OutputLine& line) { texts.push_back(line.text); });
  CHECK(texts == Texts{"frame=199"});
}

TEST_CASE("reports are joined of lines that complete each other") {
  using local::FoundMetrics;
  const auto join = [](std::size_t count, Texts objectives, const std::vector<FoundMetrics>& lines) {
    local::ReportJoin joiner(count, std::move(objectives));
    std::deque<local::JoinedReport> ready;
    for (const auto& line : lines) joiner.add(line, ready);
    joiner.flush(ready);
    std::vector<Metrics> reports;
    for (auto& report : ready) reports.push_back(std::move(report.metrics));
    return reports;
  };
  using All = std::vector<Metrics>;
  const auto over = [](Metrics metrics, std::uint64_t row) {
    return FoundMetrics{.metrics = std::move(metrics), .stays = false, .row = row};
  };
  const auto stays = [](Metrics metrics) { return FoundMetrics{.metrics = std::move(metrics), .row = 100}; };
  const auto error = [](Metrics metrics) { return FoundMetrics{.metrics = std::move(metrics), .error_stream = true}; };
  // All of one line belong together, whatever their names' order is.
  CHECK(join(3, {}, {stays({{"b", 1}}), stays({{"a", 2}, {"b", 2}}), stays({{"a", 3}, {"b", 3}})}) ==
        All{{{"b", 1}}, {{"a", 2}, {"b", 2}}, {{"a", 3}, {"b", 3}}});
  CHECK(join(2, {}, {stays({{"a", 1}}), stays({{"b", 1}}), stays({{"a", 2}}), stays({{"b", 2}})}) ==
        All{{{"a", 1}, {"b", 1}}, {{"a", 2}, {"b", 2}}});
  // A report needs an objective.
  CHECK(join(2, {"b"}, {stays({{"a", 1}}), stays({{"a", 2}}), stays({{"b", 3}})}) == All{{{"a", 2}, {"b", 3}}});
  CHECK(join(2, {"a"}, {stays({{"a", 1}}), stays({{"a", 2}}), stays({{"b", 3}})}) ==
        All{{{"a", 1}}, {{"a", 2}, {"b", 3}}});
  // x264: a bar, other values, and the bar's again as they are in the end.
  CHECK(join(3, {"ssim"},
             {over({{"fps", 9}, {"kbps", 90}}, 0), over({{"fps", 8}, {"kbps", 80}}, 0), stays({{"ssim", 1}}),
              stays({{"fps", 7}, {"kbps", 70}})}) == All{{{"ssim", 1}, {"fps", 7}, {"kbps", 70}}});
  CHECK(join(2, {}, {over({{"fps", 9}}, 0), stays({{"fps", 7}, {"kbps", 70}})}) == All{{{"fps", 7}, {"kbps", 70}}});
  // redis-benchmark -q: the line that stays completes its own updates, of which one had more than the next.
  CHECK(join(2, {}, {over({{"rps", 1}, {"ms", 5}}, 100), over({{"rps", 2}}, 100), stays({{"p50", 3}})}) ==
        All{{{"p50", 3}, {"ms", 5}, {"rps", 2}}});
  // zstd: bars that are never written anew.
  CHECK(join(2, {},
             {over({{"c", 9}}, 0), over({{"c", 8}, {"d", 3}}, 0), over({{"c", 7}}, 1),
              over({{"c", 6}, {"d", 2}}, 1)}) == All{{{"c", 8}, {"d", 3}}, {{"c", 6}, {"d", 2}}});
  // tqdm: an inner bar that stays leaves its last value behind where it was, too. One that never stays counts.
  const auto drawn = [](local::FoundMetrics found) { return found.drawn = true, found; };
  CHECK(join(1, {},
             {drawn(stays({{"a", 3}})), drawn(over({{"a", 3}}, 1)), drawn(stays({{"a", 2}})),
              drawn(over({{"a", 2}}, 2)), drawn(over({{"a", 1}}, 3)), drawn(stays({{"a", 1}}))}) ==
        All{{{"a", 3}}, {{"a", 2}}, {{"a", 1}}});
  CHECK(join(1, {}, {drawn(over({{"a", 2}}, 1)), drawn(over({{"a", 1}}, 2))}) == All{{{"a", 2}}, {{"a", 1}}});
  // Standard output has precedence.
  CHECK(join(1, {}, {stays({{"a", 1}}), error({{"a", 1}}), stays({{"a", 2}}), error({{"a", 2}})}) ==
        All{{{"a", 1}}, {{"a", 2}}});
  CHECK(join(2, {}, {error({{"a", 1}}), stays({{"a", 1}, {"b", 1}}), error({{"a", 2}}), stays({{"a", 2}, {"b", 2}})}) ==
        All{{{"a", 1}, {"b", 1}}, {{"a", 2}, {"b", 2}}});
}

TEST_CASE("of a line of updates one report is made, with the last values") {
  Bench bench(shell(R"(for e in 1 2 3; do echo "Epoch $e/3"; for b in 1 2 3 4; do
printf '\b\b\b\b\b\b\b\b\r\033[1m%s/4\033[0m ━━━━ acc: 0.%s%s' $b $e $b; done; printf ' - val: 0.%s\n' $e; done)",
                    {.metrics = {{"acc", "acc: ([0-9.]+)"}, {"val", "val: ([0-9.]+)"}}}));
  CHECK(reports_of(bench) == std::vector<Metrics>{{{"acc", 0.14}, {"val", 0.1}},
                                                  {{"acc", 0.24}, {"val", 0.2}},
                                                  {{"acc", 0.34}, {"val", 0.3}}});
  CHECK(log_of(bench) ==
        "Epoch 1/3\n4/4 ━━━━ acc: 0.14 - val: 0.1\nEpoch 2/3\n4/4 ━━━━ acc: 0.24 - val: 0.2\nEpoch 3/3\n"
        "4/4 ━━━━ acc: 0.34 - val: 0.3\n");
}

TEST_CASE("the cause of a failure is the error, not the bar") {
  std::string cause;
  SECTION("before the bar goes on") {
    Bench bench(shell(R"(printf '\r 10%% 1/9\r 20%% 2/9' >&2; printf '\rERROR: no space on it\n' >&2
printf '\r 30%% 3/9\r 40%% 4/9\n' >&2; exit 1)"));
    reports_of(bench, &cause);
    CHECK(cause == "the command exited with code 1: ERROR: no space on it");
  }
  SECTION("behind the bar") {
    Bench bench(shell(R"(printf '\r 10%% 1/9\r 20%% 2/9Traceback (most recent call last):\n  File "a"\n    f()\n' >&2
echo 'ValueError: a is 3' >&2; printf '\r 20%% 2/9\n' >&2; exit 1)"));
    reports_of(bench, &cause);
    CHECK_THAT(cause, ContainsSubstring("exited with code 1: ValueError: a is 3"));
  }
  SECTION("nothing but a bar") {
    Bench bench(shell(R"(printf '\r 10%% 1/9\r 20%% 2/9' >&2; exit 1)"));
    reports_of(bench, &cause);
    CHECK(cause == "the command exited with code 1:  20% 2/9");
  }
}

TEST_CASE("a rule of failures.log matches what stands between carriage returns") {
  Bench bench(shell(R"(printf '\r 10%% 1/9\r\033[31minvalid\033[0m config\r 20%% 2/9\r' >&2; exit 1)",
                    {.log_rules = {{"^invalid config$", false, true}}}));
  bench.launch(0, "");
  CHECK_FALSE(bench.events.next<Failed>().cause.retry);
}

TEST_CASE("metrics are read from both streams") {
  SECTION("all of them on standard error") {
    Bench bench(shell("for i in 1 2; do echo \"P@1 0.$i\" >&2; done", {.metrics = {{"p", "P@1 ([0-9.]+)"}}}));
    CHECK(reports_of(bench) == std::vector<Metrics>{{{"p", 0.1}}, {{"p", 0.2}}});
  }
  SECTION("JSON on standard error is no report, and the cause says so") {
    std::string cause;
    Bench bench(shell(R"(echo '{{"loss": 1}}' >&2)", {.objectives = {"loss"}}));
    CHECK(reports_of(bench, &cause).empty());
    CHECK_THAT(cause, ContainsSubstring("'{\"loss\": 1}'") &&
                          ContainsSubstring("on standard error: print it on standard output"));
  }
}

TEST_CASE("an error on standard output is a cause") {
  const auto cause = [](const std::string& script) {
    std::string text;
    Bench bench(shell(script + "; exit 1", {.metrics = {{"loss", "loss: ([0-9.]+)"}}}));
    reports_of(bench, &text);
    return text;
  };
  CHECK(cause("echo start; echo 'ERROR: Unknown pair style'; echo 'Last command: pair_style x'; echo 'Total: 3'") ==
        "the command exited with code 1: ERROR: Unknown pair style | Last command: pair_style x");
  CHECK(cause("echo 'note: slow' >&2; echo 'Fatal: no grid'") == "the command exited with code 1: Fatal: no grid");
  CHECK(cause("echo 'error: on stderr' >&2; echo 'Fatal: on stdout'") ==
        "the command exited with code 1: error: on stderr");
  CHECK(cause("echo 'note: slow' >&2; echo 'test error: 0.5'") == "the command exited with code 1: note: slow");
}

TEST_CASE("the step is taken from the line, whether it counts from 0 or from 1") {
  const auto steps = [](const std::string& script, std::optional<int> first = {}) {
    Bench bench(
        shell(script, {.metrics = {{"loss", "loss=([0-9.]+)"}}, .step = "epoch ([0-9]+)", .first_step = first}));
    std::vector<std::pair<int, double>> found;
    bench.launch(0, "");
    for (;;) {
      auto event = bench.events.next_of<Reported, Finished>();
      const auto* reported = std::get_if<Reported>(&event);
      if (reported == nullptr) return found;
      found.emplace_back(reported->report.step.value_or(-1), reported->report.metrics.front().second);
      bench.executor.perform(Continue{0, 0});
    }
  };
  using Steps = std::vector<std::pair<int, double>>;
  CHECK(steps("for e in 1 2 3; do echo epoch $e/3 loss=0.$e; done") == Steps{{0, 0.1}, {1, 0.2}, {2, 0.3}});
  CHECK(steps("for e in 0 1 2; do echo epoch $e; echo loss=0.$e; done") == Steps{{0, 0}, {1, 0.1}, {2, 0.2}});
  CHECK(steps("for e in 10 20; do echo epoch $e loss=0.$e; done") == Steps{{9, 0.1}, {19, 0.2}});
  CHECK(steps("for e in 1 2; do echo epoch $e loss=0.$e; done", 0) == Steps{{1, 0.1}, {2, 0.2}});
  // One bar over all epochs: of each step the last update counts.
  CHECK(steps(R"(printf '\repoch 0/3'; for e in 1 2 3; do for b in 1 2; do printf '\repoch %s/3 loss=0.%s%s' $e $e $b
done; done)") == Steps{{0, 0.12}, {1, 0.22}, {2, 0.32}});
}

TEST_CASE("numbers in a program's lines are read whole or refused with the line") {
  SECTION("what init writes") {
    Bench bench(shell("echo 'iops: 12.3k'; echo 'iops: 1204k'; echo 'iops: 1.2D+03'; echo 'iops: 91%'; echo 'iops: 7'",
                      {.metrics = {{"iops", "iops *[=:] *([-+0-9.eE]+)"}}}));
    CHECK(reports_of(bench) ==
          std::vector<Metrics>{{{"iops", 12300}}, {{"iops", 1204000}}, {{"iops", 1200}}, {{"iops", 7}}});
    CHECK_THAT(log_of(bench),
               ContainsSubstring("iops: 91%\nhypertune: the line above is not taken as a report: what the "
                                 "expression for 'iops' finds is no number that is sure: '91%'"));
  }
  SECTION("letters that change") {
    Bench bench(shell("echo 'took 1.5s'; echo 'took 2s'; echo 'took 900ms'; echo 'took 2.5s'",
                      {.metrics = {{"t", "took ([0-9.]+)"}}}));
    CHECK(reports_of(bench) == std::vector<Metrics>{{{"t", 1.5}}, {{"t", 2}}, {{"t", 2.5}}});
    CHECK_THAT(log_of(bench), ContainsSubstring("ms follows it, and s followed the one before"));
  }
  SECTION("a unit that stands apart, or in the expression") {
    for (const std::string found : {"took ([0-9.]+)", "took ([0-9.]+) m?s"}) {
      Bench bench(shell("echo 'took 51 ms'; echo 'took 1.05 s'; echo 'took 60 msec'", {.metrics = {{"t", found}}}));
      CHECK(reports_of(bench) == std::vector<Metrics>{{{"t", 51}}, {{"t", 60}}});
      CHECK_THAT(log_of(bench), ContainsSubstring("s follows it, and ms followed the one before: name the unit"));
    }
    Bench bench(shell("echo 'took 51 of 60'; echo 'took 52 at last'; echo 'took 53 s'",
                      {.metrics = {{"t", "took ([0-9.]+)"}}}));
    CHECK(reports_of(bench).size() == 3);  // other words are about something else
  }
  SECTION("what follows them is passed on with the first report") {
    Bench bench(shell("echo 'took 51 msec, 1.5 kB, 7 times'; echo 'took 52 ms, 1.5 kB, 7 times'",
                      {.metrics = {{"t", "took ([0-9.]+)"}, {"size", ", ([0-9.]+) k"}, {"n", "([0-9]+) times"}}}));
    bench.launch(0, "");
    using Units = std::vector<std::pair<std::string, std::string>>;
    CHECK(bench.events.next<Reported>().report.units == Units{{"size", "kB"}, {"t", "ms"}});
    bench.executor.perform(Continue{0, 0});
    CHECK(bench.events.next<Reported>().report.units.empty());
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
  }
  SECTION("of repeated runs, too") {
    Bench bench(shell("echo 'took 51 ms'",
                      {.metrics = {{"t", "took ([0-9.]+)"}}, .report = ReportRule::last, .repeat = {.times = 2}}));
    bench.launch(0, "");
    CHECK(bench.events.next<Reported>().report.units.size() == 1);
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
  }
  SECTION("with a unit") {
    Bench bench(shell("echo 'took 1.5s'; echo 'took 900ms'; echo 'took 1m2s'",
                      {.metrics = {{"t", "took ([0-9.]+)"}}, .units = {{"t", "seconds"}}}));
    CHECK(reports_of(bench) == std::vector<Metrics>{{{"t", 1.5}}, {{"t", 0.9}}, {{"t", 62}}});
  }
  CHECK_THROWS_WITH(shell("x", {.metrics = {{"t", "(.)"}}, .units = {{"t", "hours"}}}),
                    ContainsSubstring("there is no unit 'hours'"));
}

TEST_CASE("real programs that draw bars are read") {
  SECTION("zstd") {
    if (!there("zstd")) return;
    Bench bench(
        shell("cd $HYPERTUNE_DIRECTORY && head -c 3000000 /dev/zero | tr '\\0' a > zeros; zstd -b1 -e2 -i1 zeros",
              {.metrics = {{"ratio", "\\(x([0-9.]+)\\)"}, {"speed", "MB/s, *([0-9.]+) MB/s"}}}));
    const auto reports = reports_of(bench);
    REQUIRE(reports.size() == 2);  // of levels 1 and 2
    for (const auto& report : reports) CHECK(report.size() == 2);
  }
  SECTION("ffmpeg") {
    if (!there("ffmpeg")) return;
    Bench bench(program({"ffmpeg", "-hide_banner", "-stats_period", "0.01", "-f", "lavfi", "-i",
                         "testsrc=duration=3:size=320x240:rate=25", "-f", "null", "-"},
                        {.metrics = {{"frame", "frame= *([0-9]+)"}, {"speed", "speed= *([0-9.e+]+)x"}}}));
    const auto reports = reports_of(bench);
    REQUIRE(reports.size() == 1);
    CHECK(*find_metric(reports.front(), "frame") == 75);
    CHECK(find_metric(reports.front(), "speed") != nullptr);
  }
  SECTION("x264") {
    if (!there("ffmpeg") || !there("x264")) return;
    Bench bench(
        shell("cd $HYPERTUNE_DIRECTORY && ffmpeg -loglevel error -f lavfi -i testsrc=duration=1:size=320x240:rate=25 "
              "-pix_fmt yuv420p -y "
              "t.y4m && x264 --ssim --tune ssim -o t.264 t.y4m",
              {.metrics = {{"fps", "([0-9.]+) fps"}, {"kbps", "([0-9.]+) kb/s"}, {"ssim", "SSIM Mean Y:([0-9.]+)"}},
               .objectives = {"ssim"}}));
    const auto reports = reports_of(bench);
    REQUIRE(reports.size() == 1);
    const auto log = log_of(bench);
    const auto last = log.rfind("encoded 25 frames, ");
    REQUIRE(last != std::string::npos);
    CHECK(std::stod(log.substr(last + 19)) == *find_metric(reports.front(), "fps"));
    CHECK(reports.front().size() == 3);
  }
  SECTION("redis-benchmark") {
    if (!there("redis-server") || !there("redis-benchmark")) return;
    Bench bench(shell(R"(cd $HYPERTUNE_DIRECTORY; redis-server --port 0 --unixsocket s --save "" > /dev/null & n=0
until redis-cli -s s ping > /dev/null 2>&1; do n=$((n+1)); [ $n -lt 3000 ] || exit 3; done
redis-benchmark -s s -q -t set,get -n 30000; kill $!)",
                      {.metrics = {{"rps", "([0-9.]+) requests per second"}, {"average", "avg_msec=([^ ]+)"}}}));
    std::string cause;
    const auto reports = reports_of(bench, &cause);
    CHECK(cause == "");
    REQUIRE(reports.size() == 2);  // of SET and GET
    for (const auto& report : reports) CHECK(report.size() == 2);
  }
  SECTION("tqdm") {
    if (!there("python3") || std::system("python3 -c 'import tqdm' 2> /dev/null") != 0) return;
    Bench bench(program({"python3", "-c",
                         "import tqdm\nfor e in range(3):\n  b = tqdm.tqdm(range(500), mininterval=0)\n"
                         "  for i in b: b.set_postfix(loss=1000 * e + i)\n"},
                        {.metrics = {{"loss", "loss=([0-9.e+]+)"}}}));
    CHECK(reports_of(bench) == std::vector<Metrics>{{{"loss", 499}}, {{"loss", 1500}}, {{"loss", 2500}}});
    for (const bool leave : {true, false}) {  // nested: what is redrawn counts once
      Bench nested(program({"python3", "-c",
                            "import sys, tqdm\nfor e in tqdm.tqdm(range(3)):\n"
                            "  b = tqdm.tqdm(range(50), mininterval=0, leave=sys.argv[1] == '1')\n"
                            "  for i in b: b.set_postfix(loss=100 * e + i)\n",
                            leave ? "1" : "0"},
                           {.metrics = {{"loss", "loss=([0-9.e+]+)"}}}));
      const auto reports = reports_of(nested);
      if (leave)
        CHECK(reports == std::vector<Metrics>{{{"loss", 49}}, {{"loss", 149}}, {{"loss", 249}}});
      else
        CHECK(reports == std::vector<Metrics>{{{"loss", 249}}});
    }
  }
}
