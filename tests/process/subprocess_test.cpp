#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/process/subprocess.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::process;
using ht::detail::Descriptor;

namespace {

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

struct Said {
  RunOutcome outcome;
  std::string out, err;
};
Said listen(const std::vector<std::string>& arguments, RunOptions options = {}) {
  Said said;
  const auto into = [](std::string& text) { return [&](std::string_view bytes) { return text.append(bytes), true; }; };
  options.take_out = into(said.out);
  options.take_err = into(said.err);
  said.outcome = run(arguments, std::move(options));
  return said;
}

std::string rest_of(const Descriptor& pipe) {
  std::string text;
  char bytes[256];
  for (ssize_t n = 0; (n = ht::detail::read_some(pipe.get(), bytes, sizeof bytes)) > 0;)
    text.append(bytes, static_cast<std::size_t>(n));
  return text;
}

bool no_children() { return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

}  // namespace

TEST_CASE("the status of a program that is signalled after its end is its own") {
  for (const auto keeper : {Keeper::none, Keeper::group, Keeper::all}) {
    Subprocess program(shell("exit 3"), {.keeper = keeper});
    while (!program.ready(10).exited) {}
    program.signal(SIGKILL);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(program.pid()), &info, WEXITED | WNOWAIT) == 0);  // the keeper's end, too
    CHECK(exit_code(program.wait()) == 3);
  }
}

TEST_CASE("a program is given its input, its environment and its streams, and says how it ends") {
  ::setenv("HYPERTUNE_TEST_KEPT", "kept", 1);
  ::setenv("HYPERTUNE_TEST_TAKEN", "taken", 1);
  RunOptions options;
  options.spawn.environment = {{"HYPERTUNE_TEST_NEW", "new"}, {"HYPERTUNE_TEST_TAKEN", std::nullopt}};
  std::string_view input = "of pieces";
  options.input = [&] {
    const auto piece = input.substr(0, 3);
    input.remove_prefix(piece.size());
    return piece;
  };
  const auto said =
      listen(shell("cat; echo; echo $HYPERTUNE_TEST_KEPT $HYPERTUNE_TEST_NEW ${HYPERTUNE_TEST_TAKEN-gone} >&2; exit 7"),
             options);
  CHECK(said.out == "of pieces\n");
  CHECK(said.err == "kept new gone\n");
  CHECK(said.outcome.code() == 7);
  CHECK(listen(shell("kill -TERM $$")).outcome.code() == 128 + SIGTERM);
  CHECK(no_children());
}

TEST_CASE("a program that cannot be run is an error of whoever starts it, with a keeper and without") {
  for (const auto keeper : {Keeper::none, Keeper::group, Keeper::all}) {
    CHECK_THROWS_AS(Subprocess({"/nowhere/program"}, {.keeper = keeper}), NotStarted);
    CHECK_THROWS_WITH(Subprocess({"/"}, {.keeper = keeper}), "cannot run '/': Permission denied");
    CHECK_THROWS_AS(Subprocess({}, {.keeper = keeper}), ht::Error);
    CHECK(no_children());
  }
}

TEST_CASE("a program has the descriptors that are meant for it, no handler and no blocked signal") {
  Descriptor open(::open("/dev/null", O_RDONLY));  // not close-on-exec
  ::signal(SIGUSR1, SIG_IGN);
  sigset_t usr2, now;
  sigemptyset(&usr2);
  sigaddset(&usr2, SIGUSR2);
  ::pthread_sigmask(SIG_BLOCK, &usr2, nullptr);
  const std::string script = "ls /proc/self/fd | wc -l; grep -E 'SigBlk|SigIgn' /proc/self/status | cut -f2";
  const auto closed = listen(shell(script));
  CHECK(closed.out == "4\n0000000000000000\n0000000000000000\n");  // ls itself opens the folder
  RunOptions options;
  options.spawn.keep_descriptors = true;
  const auto there = "[ -e /proc/self/fd/" + std::to_string(open.get()) + " ] && echo there";
  CHECK(listen(shell(there), options).out == "there\n");
  ::pthread_sigmask(SIG_UNBLOCK, &usr2, &now);
  CHECK(sigismember(&now, SIGUSR2) == 1);  // as it was before
  CHECK(sigismember(&now, SIGTERM) == 0);
  ::signal(SIGUSR1, SIG_DFL);
}

TEST_CASE("what is thrown while a program runs leaves neither it nor a blocked signal behind") {
  RunOptions options;
  options.take_out = [](std::string_view) -> bool { throw std::runtime_error("enough"); };
  CHECK_THROWS_WITH(run(shell("echo said; exec sleep 100"), options), "enough");
  CHECK(no_children());
  sigset_t now;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
  CHECK(sigismember(&now, SIGPIPE) == 0);
}

TEST_CASE("bounds: time, a stall, output, a stop from another thread; and input that nobody reads") {
  RunOptions options;
  SECTION("deadline") {
    options.deadline = 0.05;
    CHECK(listen(shell("exec sleep 100"), options).outcome.late);
  }
  SECTION("stall") {
    options.stall = 0.1;
    const auto said = listen(shell("echo begun; exec sleep 100"), options);
    CHECK(said.outcome.late);
    CHECK(said.out == "begun\n");
  }
  SECTION("output") {
    options.max_output = 1000;
    CHECK(listen({"yes"}, options).outcome.too_much);
  }
  SECTION("stop, before and after it has begun") {
    std::stop_source stop;
    options.stop = stop.get_token();
    std::jthread other;
    options.take_out = [&](std::string_view) {
      other = std::jthread([&] { stop.request_stop(); });
      return true;
    };
    CHECK(run(shell("echo begun; exec sleep 100"), options).stopped);
    const auto outcome = run({"sleep", "100"}, options);
    CHECK(outcome.stopped);
    CHECK(outcome.code() == 128 + SIGKILL);
  }
  SECTION("input") {
    const std::string much(std::size_t{4} << 20U, 'x');
    options.input = [&] { return std::string_view(much); };
    CHECK(listen({"true"}, options).outcome.input_cut);
  }
  SECTION("what it leaves running and holds its pipes is not waited for") {
    const auto said = listen(shell("sleep 100 & echo $!"), options);
    CHECK(said.outcome.code() == 0);
    const pid_t left = std::stoi(said.out);
    CHECK(::kill(left, SIGKILL) == 0);  // it is there
  }
  CHECK(no_children());
}

TEST_CASE("a keeper says how the program ended, passes signals on, and ends what it left if it is told to") {
  const auto kept = [](Keeper keeper, const std::string& script) {
    return Subprocess(shell(script), {.out = Stream::pipe, .keeper = keeper});
  };
  CHECK(exit_code(kept(Keeper::group, "exit 7").wait()) == 7);
  auto waits = kept(Keeper::all, "echo here; exec sleep 100");
  char text[8];
  REQUIRE(ht::detail::read_some(waits.out.get(), text, sizeof text) == 5);
  waits.signal(SIGINT);
  CHECK(exit_code(waits.wait()) == 128 + SIGINT);
  auto leaves = kept(Keeper::all, "setsid sleep 100 & echo begun");
  CHECK(exit_code(leaves.wait()) == 0);
  CHECK(rest_of(leaves.out) == "begun\n");  // ends: nobody holds it
  CHECK(no_children());
}

TEST_CASE("a program ends with the thread that started it, or with the process") {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  static Subprocess* left = nullptr;  // nobody else ends it
  std::jthread([] { left = new Subprocess({"sleep", "100"}, {.death_signal = SIGTERM}); }).join();
  int status = 0;
  REQUIRE(::waitpid(left->pid(), &status, 0) == left->pid());
  CHECK(exit_code(status) == 128 + SIGTERM);
  for (const auto keeper : {Keeper::group, Keeper::all}) {
    auto [read, write] = ht::detail::make_pipe();
    const pid_t driver = ::fork();
    if (driver == 0) {
      const Subprocess child(shell("sleep 100 & echo begun; wait"), {.out = write.get(), .keeper = keeper});
      ::pause();
    }
    write = Descriptor();
    char text[8];
    REQUIRE(ht::detail::read_some(read.get(), text, sizeof text) == 6);
    ::kill(driver, SIGKILL);
    CHECK(rest_of(read).empty());  // ends: all that held it are gone
    while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {}
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}
