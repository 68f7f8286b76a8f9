#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/cluster/cost.hpp>
#include <hypertune/cluster/journal.hpp>
#include <hypertune/cluster/subprocess.hpp>
#include <hypertune/cluster/sync.hpp>
#include <hypertune/detail/shell_quote.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/detail/journal_lock.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

namespace ht = hypertune;
using namespace hypertune;
using namespace hypertune::cluster;

TEST_CASE("programs: input, output, exit codes, time limits, and what they leave running") {
  const std::string much(1 << 20, 'x');
  CHECK(process::collect({"cat"}, {.input = process::whole("hello")}).out == "hello");
  CHECK(process::collect({"sh", "-c", "exit 7"}).code() == 7);
  const auto failed = process::collect({"sh", "-c", "echo first >&2; echo why >&2; exit 2"});
  CHECK(why_failed(failed) == "ended with exit code 2: first | why");
  CHECK(process::collect({"sh", "-c", "kill -9 $$"}).code() == 137);
  const auto late = process::collect({"sleep", "60"}, {.deadline = 0.2});
  CHECK(late.late);
  CHECK_FALSE(late.ok());
  CHECK(process::collect({"true"}, {.input = process::whole(much)}).ok());  // reads nothing
  CHECK(process::collect({"sh", "-c", "sleep 60 & echo done"}).out == "done\n");
  CHECK_THROWS_AS(process::collect({"/nowhere/program"}), ht::Error);
  std::stop_source stop;
  stop.request_stop();
  CHECK(process::collect({"sleep", "60"}, {.stop = stop.get_token()}).stopped);
  const auto cut = process::collect({"sh", "-c", "head -c 100000 /dev/zero"}, {.max_kept = 1000});
  CHECK(cut.truncated);
  CHECK(cut.ok());
  CHECK(cut.out.size() == 1000);
}

TEST_CASE("a callback that throws leaves no program and no blocked signal behind") {
  const std::string much(1 << 20, 'x');
  const auto pipe_blocked = [] {
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, SIGPIPE) == 1;
  };
  REQUIRE_FALSE(pipe_blocked());
  CHECK_THROWS_AS(process::collect({"sh", "-c", "echo said; exec sleep 60"},
                                   {.take_out = [](std::string_view) -> bool { throw std::runtime_error("stop"); }}),
                  std::runtime_error);
  CHECK_FALSE(pipe_blocked());
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(process::collect({"true"}, {.input = process::whole(much)}).ok());
  CHECK_FALSE(pipe_blocked());
}

TEST_CASE("who drives is named, also by one that asks in the moment between the lock and the name") {
  TemporaryDirectory folder;
  const auto path = folder.path() / "driver.lock";
  std::ofstream(path) << "999999999 " << ht::detail::host_name() << "\n";  // left by one that was killed
  const ht::detail::LockFile holder(path, O_RDWR);
  struct flock lock = ht::detail::whole_file();
  REQUIRE(::fcntl(holder.get(), F_OFD_SETLK, &lock) == 0);
  SECTION("it says so a little later") {
    const auto name = fmt::format("{} {}\n", ::getpid(), "here");
    std::jthread late([&] {
      ::poll(nullptr, 0, 60);
      REQUIRE(::ftruncate(holder.get(), 0) == 0);
      ::poll(nullptr, 0, 60);
      REQUIRE(::pwrite(holder.get(), name.data(), name.size(), 0) == static_cast<ssize_t>(name.size()));
    });
    const auto expected = fmt::format("process {} on here", ::getpid());
    CHECK(ClusterJournal::driver_of(folder.path()) == expected);
    CHECK(ht::driver_of(folder.path())->pid == ::getpid());
    CHECK_THROWS_WITH(ClusterJournal(folder.path()), ContainsSubstring(expected));
    CHECK_THROWS_WITH(ht::detail::DriverLock(folder.path()), ContainsSubstring(expected));
  }
  SECTION("it never says so") {
    REQUIRE(::ftruncate(holder.get(), 0) == 0);
    CHECK_THROWS_WITH(ClusterJournal(folder.path()), ContainsSubstring("a process that has not said which"));
  }
}

TEST_CASE("the lock of a program is its own: what it leaves running does not hold it") {
  TemporaryDirectory folder;
  const auto lock = folder.path() / "lock";
  CHECK(lock_holder(lock) == 0);
  const auto result = process::collect({"sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $!"}, {.spawn = holding(lock)});
  CHECK(result.ok());
  CHECK(lock_holder(lock) == 0);
  process::collect({"kill", result.out.substr(0, result.out.find('\n'))});
  std::atomic<int> holder{0};
  std::stop_source held;
  const std::jthread look([&](const std::stop_token& over) {
    while (!over.stop_requested() && (holder = lock_holder(lock)) == 0) std::this_thread::yield();
    held.request_stop();
  });
  // Ended as soon as it is seen, however long that takes on a busy machine.
  const auto ended =
      process::collect({"sleep", "120"}, {.spawn = holding(lock), .deadline = 300, .stop = held.get_token()});
  INFO(why_failed(ended));
  CHECK(holder > 0);
  wait_for_calls(lock, 5);
}

TEST_CASE("words for a shell") {
  for (const char* word : {"plain", "two words", "it's", "", "$HOME", "a;b", "\"q\"", "-n"}) {
    const auto said =
        process::collect({"sh", "-c", std::string("printf %s ") + hypertune::detail::shell_quote(word)}).out;
    if (std::string_view(word) != "-n") CHECK(said == word);
  }
}

TEST_CASE("patterns as rsync and .gitignore have them") {
  const auto out = [](const char* pattern, const char* path, bool folder = false) {
    return excluded({ExcludePattern(pattern)}, path, folder);
  };
  CHECK(out("*.o", "a.o"));
  CHECK(out("*.o", "deep/down/a.o"));
  CHECK_FALSE(out("*.o", "a.oo"));
  CHECK(out("**/.git", ".git", true));
  CHECK(out("**/.git", "x/y/.git", true));
  CHECK(out("**/.git/**", "x/.git/config"));
  CHECK(out("build/", "x/build", true));
  CHECK_FALSE(out("build/", "x/build", false));
  CHECK(out("/top", "top"));
  CHECK_FALSE(out("/top", "x/top"));
  CHECK(out("a/*.txt", "a/b.txt"));
  CHECK_FALSE(out("a/*.txt", "a/b/c.txt"));
  CHECK(out("a/**/c", "a/c"));
  CHECK(out("a/**/c", "a/x/y/c"));
  CHECK(out("[a-c]?", "bz"));
  CHECK_FALSE(out("[!a-c]?", "bz"));
  CHECK_FALSE(excluded({ExcludePattern("*.txt"), ExcludePattern("!keep.txt")}, "keep.txt", false));
  out("*a*a*a*a*a*a*a*a*a*a*a*b", std::string(2000, 'a').c_str());  // ends
}

TEST_CASE("what is sent of a folder, and when it has changed") {
  TemporaryDirectory folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder.path() / name).parent_path());
    std::ofstream(folder.path() / name) << text;
  };
  write("a.txt", "1");
  write("x/b.o", "2");
  write("x/.gitignore", "/c\n# comment\n\n*.tmp\n");
  write("x/c", "3");
  write("x/y/c", "4");
  write("x/y/d.tmp", "5");
  const FolderRules rules{{"*.o"}, {".gitignore"}};
  const auto files = scan_files(folder.path(), rules);
  CHECK(files.paths == std::vector<std::string>{"a.txt", "x", "x/.gitignore", "x/y", "x/y/c"});
  CHECK(scan_files(folder.path(), rules).fingerprint == files.fingerprint);
  write("x/c", "changed, but left out");
  CHECK(scan_files(folder.path(), rules).fingerprint == files.fingerprint);
  write("a.txt", "12");
  CHECK(scan_files(folder.path(), rules).fingerprint != files.fingerprint);
  CHECK_THROWS_AS(scan_files(folder.path() / "nowhere", rules), ht::Error);
}

TEST_CASE("what machines cost") {
  CostReport report;
  report.add("gpu", true, 2, 0.3, 1.0, true);
  report.add("gpu", true, 1, 0.3, 1.0, false);
  report.add("gpu", false, 1, 1.0, 1.0, false);
  report.add("head", false, 4, 0.1, 0.1, true);
  CHECK(report.hours() == Approx(8));
  CHECK(report.cost() == Approx(0.9 + 1 + 0.4));
  CHECK(report.saved() == Approx(2.1));
  CHECK(report.lines.size() == 3);
  CHECK(report.summary() == "8.00 host hours, 2.30 USD, 2.10 USD saved by spot machines");
  report.add("free", false, 1, 0, 0, false);
  CHECK_FALSE(report.complete());
  CHECK_THAT(report.summary(), ContainsSubstring("at least 2.30"));
  report.add("bad", false, std::nan(""), 1, 1, false);
  CHECK(report.hours() == Approx(9));
}

TEST_CASE("tokens are names that nobody else has") {
  std::set<std::string> seen;
  for (int i = 0; i < 2000; ++i) CHECK(seen.insert(new_token()).second);
}
