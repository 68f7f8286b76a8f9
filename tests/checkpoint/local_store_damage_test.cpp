// What may go wrong with a checkpoint on a disk.
#include "support/checkpoint_store_conformance.hpp"
#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/random.hpp>

#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>

using namespace hypertune;
using namespace hypertune::test;
namespace fs = std::filesystem;

namespace {

std::string message(const auto& call, Errc code) {
  try {
    call();
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "no error";
}

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

const LocalCheckpointStore::Options unsynced{.sync = false};

}  // namespace

TEST_CASE("the layout is what people look for") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory);
  auto writer = store.begin(3, 27, "step-18");
  CHECK(writer.directory().filename().string().starts_with(".staging-"));
  write_file(writer.file("shards/0"), "abc");
  const auto info = store.seal(writer);
  CHECK(info.name == "step-27");
  CHECK(info.bytes == 3);
  const auto folder = directory.path() / "trials/3/checkpoints/step-27";
  CHECK(read_file(folder / "shards/0") == "abc");
  const auto manifest = parse_manifest(read_file(folder / "manifest.json"));
  CHECK(manifest.parent == "step-18");
  CHECK(manifest.files.size() == 1);
  CHECK(save(store, 3, 27, {}).name == "step-27-2");
  CHECK(LocalCheckpointStore(directory).list(3).size() == 2);
  CHECK_THROWS_AS(store.begin(3, -1), Error);
}

TEST_CASE("the first thing that is wrong is named") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, unsynced);
  const auto info = save(store, 1, 2, {{"a", "abc"}, {"deep/b", "xyz"}});
  const auto folder = store.folder(info);
  const auto open = [&] { static_cast<void>(store.open(info)); };
  const std::string who = "checkpoint 'step-2' of trial 1: ";

  SECTION("content") {
    write_file(folder / "a", "abd");
    CHECK_THAT(message(open, Errc::corrupt), ContainsSubstring(who + "the content of file 'a' has changed"));
  }
  SECTION("size") {
    write_file(folder / "deep/b", "xy");
    CHECK(message(open, Errc::corrupt) == who + "file 'deep/b' has 2 bytes, but 3 were sealed");
  }
  SECTION("a file that is missing") {
    fs::remove_all(folder / "deep");
    CHECK(message(open, Errc::corrupt) == who + "file 'deep/b' is missing");
  }
  SECTION("a link where a file was, even to the same content") {
    fs::rename(folder / "a", directory.path() / "a");
    fs::create_symlink(directory.path() / "a", folder / "a");
    CHECK(message(open, Errc::corrupt) == who + "'a' is no ordinary file any more");
  }
  SECTION("a link where a folder was") {
    fs::rename(folder / "deep", directory.path() / "deep");
    fs::create_directory_symlink(directory.path() / "deep", folder / "deep");
    CHECK_THAT(message(open, Errc::corrupt), ContainsSubstring("'deep/b'"));
  }
  SECTION("the manifest") {
    write_file(folder / "manifest.json", "{}");
    CHECK_THAT(message(open, Errc::corrupt), ContainsSubstring("manifest.json is not the one that was sealed"));
    CHECK(store.list(1).empty());
  }
  SECTION("no manifest") {
    fs::remove(folder / "manifest.json");
    CHECK(message(open, Errc::corrupt) == who + "it has no manifest.json");
    CHECK(store.list(1).empty());
  }
  SECTION("nothing at all") {
    fs::remove_all(folder);
    CHECK(message(open, Errc::corrupt) == who + "its folder is missing");
  }
  SECTION("another checkpoint in its place") {
    store.drop(info);
    static_cast<void>(save(store, 1, 2, {{"a", "new"}}));
    CHECK_THAT(message(open, Errc::corrupt), ContainsSubstring("not the one that was sealed"));
  }
  SECTION("a name from outside that leaves the folder") {
    for (const auto* name : {"../../2/checkpoints/step-1", "", ".staging-x", "a/b"}) {
      const CheckpointInfo evil{.trial = 1, .steps = 2, .name = name, .bytes = 0, .digest = ""};
      CHECK_THAT(message([&] { static_cast<void>(store.open(evil)); }, Errc::usage),
                 ContainsSubstring("is not the name of a checkpoint"));
      CHECK_THROWS_AS(store.drop(evil), Error);
      CHECK_THROWS_AS(store.set_aside(evil), Error);
    }
  }
}

TEST_CASE("a bit that flips anywhere is found") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, unsynced);
  Rng rng = derived_rng(1, {});
  std::string content(50'000, '\0');
  for (char& c : content) c = static_cast<char>(rng());
  const auto info = save(store, 0, 1, {{"model", content}, {"small", "x"}});
  for (const std::string file : {"model", "small", "manifest.json"}) {
    const auto path = store.folder(info) / file;
    const std::string sound = read_file(path);
    for (int i = 0; i < 200; ++i) {
      std::string flipped = sound;
      const auto at = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(sound.size()));
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << static_cast<int>(uniform01(rng) * 8)));
      write_file(path, flipped);
      REQUIRE(thrown_code([&] { static_cast<void>(store.open(info)); }) == Errc::corrupt);
      write_file(path, sound.substr(0, at));
      REQUIRE(thrown_code([&] { static_cast<void>(store.open(info)); }) == Errc::corrupt);
    }
    write_file(path, sound);
    REQUIRE_NOTHROW(store.open(info));
  }
}

TEST_CASE("what cannot be a checkpoint is refused, and removed") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, unsynced);
  auto writer = store.begin(0, 1);
  write_file(writer.file("a"), "x");
  std::string why;
  SECTION("a symbolic link") {
    fs::create_symlink("/etc/passwd", writer.directory() / "link");
    why = "'link' is a symbolic link";
  }
  SECTION("a link to a folder") {
    fs::create_directory_symlink("/etc", writer.directory() / "link");
    why = "'link' is a symbolic link";
  }
  SECTION("a socket") {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    // A socket's path must be short: it is made elsewhere and moved.
    const auto path = (directory.path() / "s").string();
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    close(fd);
    fs::rename(path, writer.directory() / "socket");
    why = "'socket' is no ordinary file";
  }
  SECTION("hypertune's own file") {
    write_file(writer.directory() / "manifest.json", "{}");
    why = "'manifest.json' is hypertune's own file";
  }
  SECTION("a name with a line break") {
    write_file(writer.directory() / "a\nb", "x");
    why = "control characters";
  }
  CHECK_THAT(message([&] { store.seal(writer); }, Errc::usage), ContainsSubstring(why));
  CHECK(entries(store.folder(TrialId{0})) == 0);
}

TEST_CASE("10,000 small files in nested folders") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory);
  auto writer = store.begin(0, 1);
  for (int i = 0; i < 10'000; ++i)
    write_file(writer.file(fmt::format("{}/{}/{}", i % 10, i % 100, i)), std::to_string(i));
  const auto info = store.seal(writer);
  const auto in = store.open(info);
  CHECK(read_file(in.file("9/99/9999")) == "9999");
  CHECK(parse_manifest(read_file(in.directory() / "manifest.json")).files.size() == 10'000);
  store.drop(info);
  CHECK(entries(store.folder(TrialId{0})) == 0);
}

TEST_CASE("a folder that a command wrote is adopted") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, unsynced);
  const auto folder = directory.path() / "outbox/step-3";
  fs::create_directories(folder / "deep");
  write_file(folder / "deep/model", "abc");
  SECTION("it is moved and sealed") {
    const auto info = store.adopt(4, 3, folder, "step-2");
    CHECK_FALSE(fs::exists(folder));
    CHECK(info.steps == 3);
    require_files(store, info, {{"deep/model", "abc"}});
    CHECK(store.list(4) == std::vector{info});
  }
  SECTION("from another file system it is copied") {
    if (!fs::exists("/dev/shm") || ::access("/dev/shm", W_OK) != 0) return;
    std::string name = "/dev/shm/hypertune-test-XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    write_file(fs::path(name) / "model", "abc");
    require_files(store, store.adopt(4, 3, name), {{"model", "abc"}});
    CHECK_FALSE(fs::exists(name));
  }
  SECTION("one that is no checkpoint stays where it is") {
    fs::create_symlink("model", folder / "deep/link");
    CHECK_THAT(message([&] { store.adopt(4, 3, folder); }, Errc::usage),
               ContainsSubstring("'deep/link' is a symbolic link"));
    CHECK(read_file(folder / "deep/model") == "abc");
    CHECK_FALSE(fs::exists(folder / "manifest.json"));
    CHECK(entries(store.folder(TrialId{4})) == 0);
  }
  SECTION("a link, a file or nothing is no folder") {
    fs::create_directory_symlink(folder, directory.path() / "link");
    for (const auto* name : {"link", "outbox/step-3/deep/model", "nothing"})
      CHECK_THAT(message([&] { store.adopt(4, 3, directory.path() / name); }, Errc::usage),
                 ContainsSubstring("named '" + (directory.path() / name).string() + "' as its checkpoint"));
  }
}

TEST_CASE("recovery removes what was left half done, and nothing else") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, unsynced);
  const auto kept = save(store, 0, 1, {{"a", "1"}});
  const auto bad = save(store, 0, 2, {{"a", "1"}});
  store.set_aside(bad);
  const auto folder = store.folder(TrialId{0});
  fs::create_directories(folder / ".staging-old/deep");
  fs::create_directories(folder / ".trash-old/deep");
  fs::create_directories(directory.path() / "trials/5/checkpoints/.staging-old");
  auto current = store.begin(0, 3);
  write_file(current.file("a"), "now");
  store.recover(0);
  CHECK(entries(folder) == 3);  // kept, .corrupt-step-2, current
  CHECK(entries(store.folder(TrialId{5})) == 1);
  LocalCheckpointStore(store).recover();
  CHECK(entries(store.folder(TrialId{5})) == 0);
  const auto info = store.seal(current);
  CHECK(store.list(0) == std::vector{info, kept});
  auto given_up = store.begin(0, 4);
  store.discard(given_up);
  CHECK(entries(folder) == 3);
  store.recover(99);  // has no folder
}

TEST_CASE("checkpoints are written and dropped though another process clears away at the same time") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, unsynced);
  std::vector<CheckpointInfo> all;
  for (int steps = 1; steps <= 60; ++steps) {
    auto writer = store.begin(0, steps);
    for (int file = 0; file < 40; ++file) write_file(writer.file(fmt::format("{}/{}/weights", file % 7, file)), "w");
    all.push_back(store.seal(std::move(writer)));
  }
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    // As a worker that comes to a resumed trial, but all the time, while its agent receives, or drops, checkpoints.
    try {
      LocalCheckpointStore other(directory, unsynced);
      for (bool told = false;; told = told || write(ready[1], "x", 1) == 1) other.recover(0);
    } catch (const std::exception& e) { fmt::print(stderr, "{}\n", e.what()); }
    _exit(1);
  }
  char c = 0;
  REQUIRE(read(ready[0], &c, 1) == 1);
  close(ready[0]);
  close(ready[1]);
  for (int steps = 1; steps <= 60; ++steps) {
    auto writer = store.begin(0, 1000 + steps);
    for (int file = 0; file < 10; ++file) write_file(writer.file(fmt::format("{}", file)), "w");
    CHECK_NOTHROW(all.push_back(store.seal(std::move(writer))));
  }
  for (const auto& info : all) CHECK_NOTHROW(store.drop(info));
  kill(child, SIGKILL);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));  // nor did it stumble over us
  CHECK(store.list(0).empty());
  store.recover(0);
  CHECK(entries(store.folder(TrialId{0})) == 0);
}

// Runs `body` in a child whose file system at `directory` has one mebibyte; nullopt where that is not allowed.
TEST_CASE("a folder of a checkpoint that cannot be made is an error of the disk, not of the trial") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory.path());
  const auto writer = store.begin(0, 1);
  write_file(writer.file("shards"), "a file where the next name needs a folder");
  try {
    static_cast<void>(writer.file("shards/0"));
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(e.code() == Errc::io);
    CHECK_THAT(e.what(), ContainsSubstring("cannot make the folder"));
    CHECK_THAT(e.what(), ContainsSubstring("Not a directory"));
  }
}

TEST_CASE("a full disk is a clear error, and leaves room") {
  const TemporaryDirectory directory;
  const auto report = directory.path() / "report";
  const auto disk = directory.path() / "disk";
  fs::create_directory(disk);
  const pid_t child = fork();
  if (child == 0) {
    const bool mounted = (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
                         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") == 0;
    if (!mounted) _exit(77);
    std::string out;
    try {
      LocalCheckpointStore store(disk);
      const auto kept = save(store, 0, 1, {{"a", "kept"}});
      auto writer = store.begin(0, 2);
      write_file(writer.file("a"), std::string(2'000'000, 'x'));  // as much as fits
      try {
        store.seal(writer);
      } catch (const Error& e) { out = fmt::format("{}: {}", to_string(e.code()), e.what()); }
      out += fmt::format("; {} entries", entries(store.folder(TrialId{0})));
      static_cast<void>(store.open(kept));
    } catch (const std::exception& e) { out += e.what(); }
    write_file(report, out);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    WARN("not allowed to mount a small file system: skipped");
    return;
  }
  CHECK_THAT(read_file(report), ContainsSubstring("io: checkpoint of trial 0 after 2 steps: cannot"));
  CHECK_THAT(read_file(report), ContainsSubstring("No space left on device; free some space"));
  CHECK_THAT(read_file(report), ContainsSubstring("; 1 entries"));
}

TEST_CASE("killed at any moment, every listed checkpoint is whole") {
  const TemporaryDirectory directory;
  Rng rng = derived_rng(5, {});
  int seen = 0;
  for (int round = 0; round < 60; ++round) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      // Saves and drops without end; the parent kills it at a random moment.
      try {
        LocalCheckpointStore store(directory, unsynced);
        store.recover(0);
        static_cast<void>(!write(ready[1], "x", 1));
        for (int steps = round * 1000;; ++steps) {
          const std::string content = fmt::format("{:08}", steps);
          static_cast<void>(
              save(store, 0, steps, {{"a", content}, {"deep/b", std::string(20'000, content.back())}, {"c", ""}}));
          const auto list = store.list(0);
          for (std::size_t i = 3; i < list.size(); ++i) store.drop(list[i]);
        }
      } catch (...) { _exit(1); }
    }
    char c = 0;
    REQUIRE(read(ready[0], &c, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    // The moment of the kill is what is random here: in the child's own time, as on a busy machine it may wait for
    // long.
    clockid_t clock = {};
    REQUIRE(clock_getcpuclockid(child, &clock) == 0);
    const auto worked = [&] {
      timespec time{};
      clock_gettime(clock, &time);
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    const double moment = worked() + uniform01(rng) * 0.015;
    REQUIRE(hypertune::test::eventually([&] { return worked() >= moment; }));
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));

    LocalCheckpointStore store(directory, unsynced);
    for (const auto& info : store.list(0)) {
      const auto in = store.open(info);
      const std::string content = fmt::format("{:08}", info.steps);
      REQUIRE(read_file(in.file("a")) == content);
      REQUIRE(read_file(in.file("deep/b")) == std::string(20'000, content.back()));
      ++seen;
    }
    store.recover();
    for (const auto& entry : fs::directory_iterator(store.folder(TrialId{0})))
      REQUIRE(entry.path().filename().string().starts_with("step-"));
  }
  CHECK(seen > 60);
}
