// The folder of an experiment on a host, which one agent removes while the next one begins.
#include "host_folder.hpp"

#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/error.hpp>
#include <hypertune/process/process_marks.hpp>
#include <hypertune/process/subprocess.hpp>

#include <signal.h>
#include <sys/file.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

using namespace hypertune;
using hypertune::detail::Descriptor;
using hypertune::detail::open_at;
using remote::detail::FolderHolder;
using remote::detail::HostFolder;

namespace {

void put(const std::filesystem::path& file) { std::ofstream(file) << "it"; }

/// A folder whose lock is held, by a child of this process as the lock says.
struct HeldFolder {
  TemporaryDirectory base;
  HostFolder folder{base.path(), "e", "h"};
  process::Subprocess child{{"sleep", "1000"}};
  FolderHolder holder{process::mark_name(child.pid()), 1, remote::detail::number_space(), "node17"};
  Descriptor lock = open_at(AT_FDCWD, (folder.path() / "lock").c_str(), O_RDWR);

  HeldFolder() { REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0); }
  void say(const std::string& text) const { std::ofstream(folder.path() / "lock") << text; }
};

}  // namespace

TEST_CASE("who waited for a folder that was removed meanwhile has the lock that others see") {
  const TemporaryDirectory base;
  std::optional<HostFolder> first(std::in_place, base.path(), "e", "h");
  REQUIRE(first->try_lock(1));
  HostFolder second(base.path(), "e", "h");
  CHECK_FALSE(second.try_lock(2));
  put(first->path() / "checkpoint");
  first->remove();
  CHECK_FALSE(std::filesystem::exists(base.path() / "e"));
  first.reset();  // its process ends

  bool locked = false;
  for (int i = 0; i < 3 && !locked; ++i) locked = second.try_lock(2);
  REQUIRE(locked);
  CHECK(std::filesystem::exists(second.path() / "lock"));
  HostFolder stale(base.path(), "e", "h");
  CHECK_THROWS_AS(stale.try_lock(1), Error);
}

TEST_CASE("what the next agent puts into a folder stays, whenever the one before removes it") {
  const TemporaryDirectory base;
  for (int round = 0; round < 20; ++round) {
    std::optional<HostFolder> first(std::in_place, base.path(), "e", "h");
    while (!first->try_lock(1)) {}
    for (int i = 0; i < 200; ++i) put(first->path() / std::to_string(i));
    std::thread end([&] {
      first->remove();
      first.reset();
    });
    HostFolder next(base.path(), "e", "h");
    while (!next.try_lock(2)) {}
    put(next.path() / "checkpoint");
    end.join();
    CHECK(std::filesystem::exists(next.path() / "checkpoint"));
    CHECK(std::filesystem::exists(next.path() / "lock"));
    next.remove();
  }
  CHECK(std::filesystem::is_empty(base.path()));
}

TEST_CASE("what an agent left that was killed as it removed its folder goes with the next one") {
  const TemporaryDirectory base;
  HostFolder folder(base.path(), "e", "h");
  std::filesystem::create_directories(base.path() / "e" / ".removed-1-x" / "trials");
  REQUIRE(folder.try_lock(1));
  folder.remove();
  CHECK_FALSE(std::filesystem::exists(base.path() / "e"));
}

TEST_CASE("who holds the folder of an earlier agent is killed on its own machine, and nowhere else") {
  HeldFolder held;
  SECTION("on another machine the number is another process's") {
    held.holder.space = "00000000-0000-0000-0000-000000000000/pid:[1]";
    held.say(held.holder.text());
    CHECK_FALSE(held.folder.try_lock(2));
    CHECK_THAT(held.folder.why_locked(), ContainsSubstring("machine 'node17'") &&
                                             ContainsSubstring(std::to_string(held.child.pid())) &&
                                             ContainsSubstring(held.folder.path().string()));
    CHECK_FALSE(held.child.ready(0.2).exited);
  }
  SECTION("the number was given to another process since") {
    held.holder.mark += "1";
    held.say(held.holder.text());
    CHECK_FALSE(held.folder.try_lock(2));
    CHECK_FALSE(held.child.ready(0.2).exited);
  }
  SECTION("as an agent wrote itself that told neither") {
    held.say(std::to_string(held.child.pid()) + " 1\n");
    CHECK_FALSE(held.folder.try_lock(2));
    CHECK_FALSE(held.child.ready(0.2).exited);
  }
  SECTION("it is that one") {
    held.say(held.holder.text());
    CHECK_FALSE(held.folder.try_lock(2));
    REQUIRE(held.child.ready(20).exited);
    CHECK(WTERMSIG(held.child.wait()) == SIGKILL);
    CHECK_FALSE(held.folder.try_lock(2));
    CHECK_THAT(held.folder.why_locked(), ContainsSubstring("do not end"));
    held.lock = Descriptor();
    CHECK(held.folder.try_lock(2));
  }
  SECTION("a later one than who asks") {
    held.holder.incarnation = 3;
    held.say(held.holder.text());
    CHECK_THROWS_AS(held.folder.try_lock(2), Error);
    CHECK_FALSE(held.child.ready(0.2).exited);
  }
}
