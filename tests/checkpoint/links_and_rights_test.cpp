// What a trial may leave in its folder: links to elsewhere, and folders that nobody may change.
#include "support/checkpoint_store_conformance.hpp"
#include "support/plain_user.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/remove_tree.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

using namespace hypertune;
using namespace hypertune::test;
namespace fs = std::filesystem;

namespace {

constexpr auto read_only = fs::perms::owner_read | fs::perms::owner_exec;

/// A tree in which no folder may be changed, and one not even be looked into.
void make_read_only_tree(const fs::path& folder) {
  fs::create_directories(folder / "a/b/c");
  fs::create_directories(folder / "a/secret");
  write_file(folder / "a/b/c/file", "text");
  write_file(folder / "a/secret/file", "text");
  fs::permissions(folder / "a/secret", fs::perms::none);
  for (const auto* part : {"a/b/c", "a/b", "a"}) fs::permissions(folder / part, read_only);
}

}  // namespace

TEST_CASE("a trial's folder that is a link is not followed, neither for reading nor for deleting") {
  const TemporaryDirectory other, own;
  LocalCheckpointStore there(other), store(own, {.sync = false});
  const auto info = save(there, 3, 5, {{"state", "theirs"}});
  const auto left = there.folder(3) / ".trash-00000000-00000000-1-0";
  fs::create_directories(left);
  fs::create_directories(own.path() / "trials");
  fs::create_directory_symlink(other.path() / "trials/3", own.path() / "trials/3");

  CHECK(store.is_link(3));
  CHECK(store.list(3).empty());
  CHECK_FALSE(store.names(info));
  CHECK_THROWS_WITH(store.open(info), ContainsSubstring("is a symbolic link, which is not followed"));
  CHECK_THROWS_WITH(store.begin(3, 6), ContainsSubstring("is a symbolic link, which is not followed"));
  store.drop(info);
  store.set_aside(info);
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(48));
  store.recover(3);
  store.recover();
  CHECK(fs::exists(left));
  CHECK(there.list(3).size() == 1);
  CHECK(read_file(there.open(info).file("state")) == "theirs");

  LocalCheckpointStore::Options options;
  options.origins = {own.path()};
  const TemporaryDirectory third;
  CHECK_FALSE(LocalCheckpointStore(third, options).names(info));
  options.origins = {other.path()};
  CHECK(LocalCheckpointStore(own, options).names(info));

  // A folder of checkpoints that is elsewhere, as a shared one is.
  fs::create_directories(own.path() / "trials/4");
  fs::create_directories(other.path() / "trials/4/checkpoints");
  fs::create_directory_symlink(other.path() / "trials/4/checkpoints", own.path() / "trials/4/checkpoints");
  const auto shared = save(store, 4, 1, {{"state", "shared"}});
  CHECK(store.list(4).size() == 1);
  store.drop(shared);
  CHECK(store.list(4).empty());
}

TEST_CASE("a folder is deleted also where what is in it may not be changed") {
  const TemporaryDirectory directory;
  const auto& folder = directory.path();
  CHECK(as_plain_user(folder, [&] {
    const auto kept = folder / "kept";
    fs::create_directories(kept);
    write_file(kept / "file", "text");
    fs::permissions(kept, read_only);
    make_read_only_tree(folder / "tree");
    fs::create_directory_symlink(kept, folder / "tree/link");
    fs::permissions(folder / "tree", read_only);
    std::error_code error;
    detail::remove_tree(folder / "tree", error);
    return !error && !fs::exists(folder / "tree") && fs::exists(kept / "file") &&
           fs::status(kept).permissions() == read_only;
  }));
  std::error_code error = std::make_error_code(std::errc::io_error);
  detail::remove_tree(folder / "nothing", error);
  CHECK(!error);
}

TEST_CASE("a checkpoint with folders that may not be changed is dropped as a whole") {
  const TemporaryDirectory directory;
  CHECK(as_plain_user(directory, [&] {
    LocalCheckpointStore store(directory, {.sync = false});
    auto writer = store.begin(0, 1);
    fs::create_directories(writer.directory() / "modules/deep");
    write_file(writer.directory() / "modules/deep/state", "text");
    fs::permissions(writer.directory() / "modules/deep", read_only);
    fs::permissions(writer.directory() / "modules", read_only);
    const auto info = store.seal(std::move(writer));
    store.drop(info);
    return fs::is_empty(store.folder(0));
  }));
}
