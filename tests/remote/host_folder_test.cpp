// The folder of an experiment on a host, which one agent removes while the next one begins.
#include "host_folder.hpp"

#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/error.hpp>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

using namespace hypertune;
using remote::detail::HostFolder;

namespace {

void put(const std::filesystem::path& file) { std::ofstream(file) << "it"; }

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
