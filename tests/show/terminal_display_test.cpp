#include "support/sanitizers.hpp"
#include "support/screen.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/record/callback.hpp>
#include <hypertune/show/detail/terminal_display.hpp>

#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>

using namespace hypertune;

static_assert(Callback<TerminalDisplay>);

namespace {

/// Both ends of a pseudo-terminal.
class Pty {
 public:
  explicit Pty(unsigned short width = 80, unsigned short height = 24) {
    const winsize size{height, width, 0, 0};
    REQUIRE(openpty(&master_, &slave_, nullptr, nullptr, &size) == 0);
    stream_ = fdopen(slave_, "w");
    REQUIRE(stream_ != nullptr);
  }
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;
  ~Pty() {
    std::fclose(stream_);
    close(master_);
  }
  std::FILE* stream() const { return stream_; }
  int master() const { return master_; }
  void resize(unsigned short width, unsigned short height) const {
    const winsize size{height, width, 0, 0};
    REQUIRE(ioctl(master_, TIOCSWINSZ, &size) == 0);
  }

 private:
  int master_ = -1, slave_ = -1;
  std::FILE* stream_ = nullptr;
};

/// Feeds the screen from `fd` until `done`, or 10 s without it.
bool read_until(int fd, Screen& screen, const std::function<bool()>& done) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    pollfd ready{fd, POLLIN, 0};
    if (std::chrono::steady_clock::now() > limit) return false;
    if (poll(&ready, 1, 1000) <= 0) continue;
    char bytes[4096];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n <= 0) return done();
    screen.feed({bytes, static_cast<std::size_t>(n)});
  }
  return true;
}

/// What has been written so far.
void read_rest(int fd, Screen& screen) {
  pollfd ready{fd, POLLIN, 0};
  while (poll(&ready, 1, 0) > 0) {
    char bytes[4096];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n <= 0) return;
    screen.feed({bytes, static_cast<std::size_t>(n)});
  }
}

struct Feed {
  TerminalDisplay& display;
  std::int64_t sequence = 0;
  void operator()(record::Any what) { display.on_record(Record{++sequence, 0, std::move(what)}); }
  void start() {
    record::ExperimentStarted e;
    e.name = "digits";
    e.objectives = {maximize("accuracy")};
    e.samples = 50;
    (*this)(e);
  }
  void run(TrialId trial) {
    (*this)(
        record::TrialCreated{.trial = trial, .point = {}, .params = {{"lr", 0.5}, {"text", std::string(300, 'x')}}});
    (*this)(record::TrialStarted{.trial = trial, .attempt = 0, .next_step = 0, .host = "h", .cpus = {0}, .gpus = {}});
  }
  void report(TrialId trial, int step, double value) {
    (*this)(record::TrialReported{.trial = trial, .attempt = 0, .step = step, .metrics = {{"accuracy", value}}});
  }
  void finish() {
    (*this)(record::TrialEnded{.trial = 0, .state = TrialState::completed, .cause = {}});
    (*this)(record::ExperimentEnded{});
  }
};

class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value != nullptr ? setenv(name, value, 1) : unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("on a terminal a table is redrawn in place") {
  const Environment term("TERM", "xterm"), no_color("NO_COLOR", nullptr);
  const Pty pty(60, 12);
  Screen screen(60, 12);
  {
    TerminalDisplay display(
        {.stream = pty.stream(), .refresh = 0.01, .capacity = {.cpus = 4, .gpus = 0, .per_trial = {}}});
    REQUIRE(display.live());
    Feed feed{display};
    feed.start();
    REQUIRE(read_until(pty.master(), screen, [&] { return screen.shows("0/50 trials"); }));
    for (TrialId trial = 0; trial < 20; ++trial) feed.run(trial);
    for (int step = 0; step < 30; ++step) {
      feed.report(0, step, 0.1 * step);
      // Every picture is on its way before the next step.
      const auto steps = fmt::format("by trial 0 at step {}", step);
      REQUIRE(read_until(pty.master(), screen, [&] { return screen.shows(steps); }));
    }
    REQUIRE(read_until(pty.master(), screen, [&] { return screen.shows("more running") && screen.cursor_visible; }));
    CHECK(screen.lines().size() == 11);
    CHECK(screen.shows("cpus 20 of 4"));
    CHECK(screen.colored);
    display.print("a warning that stays\x1b[2J");
    REQUIRE(read_until(pty.master(), screen, [&] { return screen.shows("a warning") || screen.scrolled > 0; }));
    feed.finish();
  }
  read_rest(pty.master(), screen);
  CHECK(screen.shows("digits"));
  CHECK(screen.shows("done"));
  CHECK_FALSE(screen.shows("more running"));
  CHECK_FALSE(screen.wrapped);
  CHECK(screen.cursor_visible);
  CHECK(screen.wraps);
  CHECK(screen.column() == 0);
  CHECK(screen.row() == screen.lines().size());
  int headers = 0;
  for (const auto& line : screen.lines()) headers += line.starts_with("digits") ? 1 : 0;
  CHECK(headers == 1);
  CHECK(screen.scrolled <= 1);  // by the warning's line at most
}

TEST_CASE("a window that changes its size is followed") {
  const Environment term("TERM", "xterm");
  const Pty pty(120, 40);
  Screen wide(120, 40);
  TerminalDisplay display({.stream = pty.stream(), .refresh = 0.01});
  Feed feed{display};
  feed.start();
  for (TrialId trial = 0; trial < 10; ++trial) feed.run(trial);
  feed.report(3, 0, 1);
  REQUIRE(read_until(pty.master(), wide,
                     [&] { return wide.shows("    9 ") && wide.shows("trial 3") && wide.cursor_visible; }));
  CHECK_FALSE(wide.wrapped);
  pty.resize(30, 8);
  feed.report(3, 1, 2);
  Screen narrow(30, 8);
  REQUIRE(
      read_until(pty.master(), narrow, [&] { return narrow.shows("accuracy 2 by") && narrow.shows("more running"); }));
  feed.finish();
  read_rest(pty.master(), narrow);
  CHECK(narrow.cursor_visible);
}

TEST_CASE("a line as wide as the terminal keeps its last character") {
  const Environment term("TERM", "xterm");
  const Pty pty(60, 20);
  Screen screen(60, 20);
  TerminalDisplay display({.stream = pty.stream(), .refresh = 0.01});
  Feed feed{display};
  feed.start();
  feed.run(0);
  feed.report(0, 0, 0.5);
  REQUIRE(read_until(pty.master(), screen, [&] { return screen.shows("accuracy 0.5 by") && screen.shows("    0  "); }));
  feed.finish();
  read_rest(pty.master(), screen);
  bool full = false;
  for (const auto& line : screen.lines())
    full = full || (line.ends_with("…") && detail::terminal::text_width(line) == 60);
  CHECK(full);
}

TEST_CASE("NO_COLOR takes the colours, not the table") {
  const Environment term("TERM", "xterm"), no_color("NO_COLOR", "1");
  const Pty pty;
  Screen screen(80, 24);
  TerminalDisplay display({.stream = pty.stream(), .refresh = 0.01});
  Feed feed{display};
  feed.start();
  feed.run(0);
  REQUIRE(read_until(pty.master(), screen, [&] { return screen.shows("1 running"); }));
  feed.finish();
  read_rest(pty.master(), screen);
  CHECK(screen.shows("done"));
  CHECK_FALSE(screen.colored);
}

TEST_CASE("where there is no terminal, lines are written, and no codes") {
  const hypertune::TerminalOptions defaults;
  CHECK(defaults.stream == stderr);
  const TemporaryDirectory directory;
  const auto path = directory.path() / "out";
  const auto text = [&] {
    std::stringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  };
  const auto experiment = [&](TerminalOptions options) {
    options.stream = std::fopen(path.c_str(), "w");
    {
      TerminalDisplay display(options);
      CHECK_FALSE(display.live());
      Feed feed{display};
      feed.start();
      feed.run(0);
      feed.report(0, 0, 0.25);
      feed.report(0, 1, 0.75);
      display.print("a hint");
      feed(record::AttemptFailed{
          .trial = 0, .attempt = 0, .cause = {FailureSource::user, "boom", true, false}, .retry = true});
      feed.finish();
    }
    std::fclose(options.stream);
  };
  SECTION("start, best, failures, end") {
    experiment({});
    CHECK_THAT(text(), ContainsSubstring("digits: started, 50 trials\n"));
    CHECK_THAT(text(), ContainsSubstring("s: best accuracy 0.75 by trial 0 at step 1  lr=0.5 text="));
    CHECK_THAT(text(), ContainsSubstring("a hint\n"));
    CHECK_THAT(text(), ContainsSubstring("trial 0: boom (it is tried again)\n"));
    CHECK_THAT(text(), ContainsSubstring("digits: done after 0 s: 1/50 trials: 1 completed\n"));
    CHECK(text().find('\x1b') == std::string::npos);
  }
  SECTION("quiet") {
    experiment({.quiet = true});
    CHECK(text().empty());
  }
  SECTION("a terminal that can do nothing, or a wish for lines") {
    const Pty pty;
    const Environment term("TERM", "dumb");
    CHECK_FALSE(TerminalDisplay({.stream = pty.stream()}).live());
    const Environment xterm("TERM", "xterm");
    CHECK_FALSE(TerminalDisplay({.stream = pty.stream(), .plain = true}).live());
    CHECK(TerminalDisplay({.stream = pty.stream()}).live());
  }
}

TEST_CASE("a summary is written every so often") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::FILE* const stream = fdopen(ends[1], "w");
  Screen screen(10'000, 100);
  {
    TerminalDisplay display({.stream = stream, .summary_every = 0.02});
    Feed feed{display};
    feed.start();
    feed.run(0);
    feed.report(0, 0, 0.5);
    REQUIRE(read_until(ends[0], screen,
                       [&] { return screen.shows("1 running; best accuracy 0.5 by trial 0 at step 0; "); }));
  }
  read_rest(ends[0], screen);
  CHECK(screen.shows("digits: left after"));  // no end was recorded
  std::fclose(stream);
  close(ends[0]);
}

#ifndef HYPERTUNE_TEST_TSAN  // it allows no thread in the child of a program that had threads
TEST_CASE("Ctrl-C without a handler leaves a terminal that works") {
  const winsize size{24, 80, 0, 0};
  int master = -1;
  const pid_t child = forkpty(&master, nullptr, nullptr, &size);
  if (child == 0) {
    setenv("TERM", "xterm", 1);
    TerminalDisplay display({.refresh = 0.5});
    Feed feed{display};
    feed.start();
    feed.run(0);
    for (;;) pause();
  }
  Screen screen(80, 24);
  CHECK(read_until(master, screen, [&] { return screen.shows("1 running") && screen.cursor_visible; }));
  CHECK(write(master, "\x03", 1) == 1);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  // The terminal echoes ^C itself; all else is sound.
  CHECK(screen.wraps);
  CHECK(screen.cursor_visible);
  close(master);
}
#endif

TEST_CASE("a terminal that takes nothing holds up nobody for long") {
  const Environment term("TERM", "xterm");
  const Pty pty;
  TerminalDisplay display({.stream = pty.stream(), .refresh = 0.001});
  Feed feed{display};
  feed.start();
  for (TrialId trial = 0; trial < 20; ++trial) feed.run(trial);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 100'000; ++i) feed.report(i % 20, i / 20, 1.0 / (i + 1));  // nobody reads the master
  feed.finish();
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
}
