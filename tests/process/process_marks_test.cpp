// Marks of processes: who has left one, and who has its number now.
#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/process/process_marks.hpp>
#include <hypertune/process/subprocess.hpp>

#include <poll.h>

#include <filesystem>
#include <fstream>

using namespace hypertune;

TEST_CASE("a process is found by its mark as long as it lives, and no other one is") {
  const TemporaryDirectory folder;
  CHECK(process::marked_processes(folder.path()).empty());
  CHECK(process::marked_processes(folder.path() / "none").empty());
  process::Subprocess child({"sleep", "1000"});
  const auto name = process::mark_name(child.pid());
  std::ofstream{folder.path() / name};
  std::ofstream{folder.path() / (std::to_string(::getpid()) + ".1")};  // this one started at another time
  std::ofstream{folder.path() / std::to_string(::getpid())};
  std::ofstream{folder.path() / "x.y"};
  auto found = process::marked_processes(folder.path());
  REQUIRE(found.size() == 1);
  CHECK(found.front().pid() == child.pid());
  CHECK_FALSE(std::filesystem::exists(folder.path() / (std::to_string(::getpid()) + ".1")));
  found.front().signal(SIGTERM);
  pollfd polled{.fd = found.front().exit_event(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&polled, 1, 20'000) == 1);
  CHECK(process::marked_processes(folder.path()).empty());  // it has ended, though nobody has waited for it
  CHECK(WTERMSIG(child.wait()) == SIGTERM);
  CHECK_FALSE(std::filesystem::exists(folder.path() / name));
}

TEST_CASE("a mark goes with its owner, and where none can be left it says so") {
  const TemporaryDirectory folder;
  {
    const process::ProcessMark mark(folder.path());
    CHECK(mark.left());
    REQUIRE(process::marked_processes(folder.path()).size() == 1);
    CHECK(process::marked_processes(folder.path()).front().pid() == ::getpid());
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK_FALSE(process::ProcessMark(folder.path() / "none").left());
}

TEST_CASE("what /proc says of a process") {
  CHECK(process::parent_of(::getpid()) == ::getppid());
  CHECK(process::start_of(::getpid()) > 0);
  CHECK(process::is_alive(::getpid()));
  process::Subprocess child({"true"});
  REQUIRE(child.ready(20).exited);
  CHECK(process::start_of(child.pid()) > 0);
  CHECK_FALSE(process::is_alive(child.pid()));
  child.wait();
  CHECK(process::start_of(child.pid()) == 0);
  CHECK(process::parent_of(child.pid()) == 0);
}
