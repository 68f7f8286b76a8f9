// Ctrl-C in a program that is more than its experiment.
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/tune/interrupt.hpp>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <string>

namespace ht = hypertune;

namespace {

/// A process that runs `body` and says what it does by single letters.
class Child {
 public:
  explicit Child(const std::function<void(int say)>& body) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      ::close(ends[0]);
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_DFL);
      ::alarm(60);  // whatever happens to the test
      body(ends[1]);
      ::_exit(0);
    }
    ::close(ends[1]);
    heard_ = ends[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
    ::close(heard_);
  }
  void send(int signal) const { REQUIRE(::kill(pid_, signal) == 0); }
  /// The next letter; '.' when it has ended, '?' where there is none for so long.
  char hear(int milliseconds = 20'000) const {
    pollfd in{.fd = heard_, .events = POLLIN, .revents = 0};
    if (::poll(&in, 1, milliseconds) != 1) return '?';
    char letter = '.';
    return ::read(heard_, &letter, 1) == 1 ? letter : '.';
  }
  /// How it ended: its exit code, or minus the signal.
  int end() {
    REQUIRE(hear() == '.');
    int status = 0;
    REQUIRE(::waitpid(pid_, &status, 0) == pid_);
    ended_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int heard_ = -1;
  bool ended_ = false;
};

struct Config {
  double x = 0;
};

void say(int to, char letter) { [[maybe_unused]] const auto written = ::write(to, &letter, 1); }

void wait_for_ever() {
  for (;;) ::pause();
}

int told = -1;
void of_the_host(int) { say(told, 'h'); }

/// Runs an experiment whose trial never returns; 'r' when it runs.
void stuck_experiment(int out, const std::filesystem::path& output, bool exit_if_stuck) {
  ht::Options options{.name = "stuck", .metric = "loss", .samples = 1};
  options.executor = ht::threads(1);
  options.output = output;
  options.display = ht::Display::quiet;
  options.handle_signals = true;
  options.exit_if_stuck = exit_if_stuck;
  const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0, 1)));
  ht::tune(
      space,
      [out](const Config&) {
        say(out, 'r');
        wait_for_ever();
        return 0.0;
      },
      options);
}

}  // namespace

TEST_CASE("a watch hands the signals back after the second") {
  Child child([](int out) {
    told = out;
    ::signal(SIGINT, of_the_host);
    ht::SignalWatch watch([&](int level) { say(out, static_cast<char>('0' + level)); });
    say(out, 'r');
    wait_for_ever();
  });
  REQUIRE(child.hear() == 'r');
  child.send(SIGINT);
  CHECK(child.hear() == '1');
  child.send(SIGTERM);
  CHECK(child.hear() == '2');
  for (int i = 0; i < 5; ++i) {
    child.send(SIGINT);
    CHECK(child.hear() == 'h');
  }
  child.send(SIGTERM);  // the program has no handler of that: it ends as it would without hypertune
  CHECK(child.end() == -SIGTERM);
}

TEST_CASE("a watch of a program that is nothing else leaves at the third") {
  Child child([](int out) {
    ht::SignalWatch watch([&](int level) { say(out, static_cast<char>('0' + level)); }, ht::AfterSecondSignal::leave);
    say(out, 'r');
    wait_for_ever();
  });
  REQUIRE(child.hear() == 'r');
  child.send(SIGINT);
  CHECK(child.hear() == '1');
  child.send(SIGINT);
  CHECK(child.hear() == '2');
  child.send(SIGINT);
  CHECK(child.end() == 130);
}

TEST_CASE("a second watch is refused, and the first one still gets the signals") {
  Child child([](int out) {
    ht::SignalWatch watch([&](int level) { say(out, static_cast<char>('0' + level)); });
    try {
      const ht::SignalWatch second([](int) {});
    } catch (const ht::Error& error) { say(out, error.code() == ht::Errc::usage ? 'r' : '?'); }
    wait_for_ever();
  });
  REQUIRE(child.hear() == 'r');
  child.send(SIGINT);
  CHECK(child.hear() == '1');
  child.send(SIGKILL);
  CHECK(child.end() == -SIGKILL);
}

TEST_CASE("a closed terminal counts as Ctrl-C, unless the program runs under nohup") {
  const bool nohup = GENERATE(false, true);
  Child child([nohup](int out) {
    if (nohup) ::signal(SIGHUP, SIG_IGN);
    ht::SignalWatch watch([&](int level) { say(out, static_cast<char>('0' + level)); });
    say(out, 'r');
    wait_for_ever();
  });
  REQUIRE(child.hear() == 'r');
  child.send(SIGHUP);
  if (nohup) child.send(SIGINT);
  CHECK(child.hear() == '1');
  child.send(SIGTERM);
  CHECK(child.hear() == '2');
  child.send(SIGKILL);  // had the ignored one counted, the SIGTERM would have been the third
  CHECK(child.end() == -SIGKILL);
}

TEST_CASE("all that is said of a closed terminal counts as one") {
  const auto after = GENERATE(ht::AfterSecondSignal::hand_back, ht::AfterSecondSignal::leave);
  const bool asked_before = GENERATE(false, true);
  Child child([after](int out) {
    ht::SignalWatch watch([&](int level) { say(out, static_cast<char>('0' + level)); }, after);
    say(out, 'r');
    wait_for_ever();
  });
  REQUIRE(child.hear() == 'r');
  if (asked_before) {
    child.send(SIGINT);
    CHECK(child.hear() == '1');
  }
  child.send(SIGHUP);
  if (!asked_before) CHECK(child.hear() == '1');
  for (int i = 0; i < 3; ++i) {  // by the shell, by the kernel …
    child.send(SIGHUP);
    CHECK(child.hear(50) == '?');
  }
  child.send(SIGTERM);
  CHECK(child.hear() == '2');
  child.send(SIGKILL);  // had one of them counted, it would have ended already
  CHECK(child.end() == -SIGKILL);
}

TEST_CASE("tune() does not end the program that called it") {
  TemporaryDirectory directory;
  Child child([&](int out) {
    told = out;
    ::signal(SIGINT, of_the_host);
    stuck_experiment(out, directory.path() / "run", false);
  });
  REQUIRE(child.hear() == 'r');
  child.send(SIGINT);
  child.send(SIGTERM);
  char heard = '?';
  for (int i = 0; i < 400 && heard == '?'; ++i) {  // the first ones may still belong to the experiment
    child.send(SIGINT);
    heard = child.hear(50);
  }
  CHECK(heard == 'h');
  child.send(SIGKILL);
  while (child.hear() == 'h') {}
  CHECK(child.end() == -SIGKILL);
}

TEST_CASE("a program that has not asked for it keeps its signals") {
  TemporaryDirectory directory;
  Child child([&](int out) {
    told = out;
    ::signal(SIGINT, of_the_host);
    const auto space = ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0, 1)));
    ht::tune(
        space,
        [out](const Config&) {
          say(out, 'r');
          wait_for_ever();
          return 0.0;
        },
        ht::Options{.samples = 1,
                    .executor = ht::threads(1),
                    .output = directory.path() / "run",
                    .display = ht::Display::quiet});
  });
  REQUIRE(child.hear() == 'r');
  child.send(SIGINT);
  CHECK(child.hear() == 'h');
  child.send(SIGTERM);
  CHECK(child.end() == -SIGTERM);
}

TEST_CASE("tune() ends the process where that was asked for") {
  TemporaryDirectory directory;
  Child child([&](int out) { stuck_experiment(out, directory.path() / "run", true); });
  REQUIRE(child.hear() == 'r');
  child.send(SIGINT);
  child.send(SIGTERM);
  CHECK(child.end() == 130);
}
