// Checkpoints in a folder that driver and hosts share: written once, taken by the driver alone, read in place.
#include "shared_folder.hpp"

#include "agent/weighty_program.hpp"
#include "agents.hpp"
#include "conforming_hosts.hpp"
#include "shared_executor.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

using namespace hypertune;
using namespace hypertune::test;
namespace fs = std::filesystem;

namespace {

remote::RemoteOptions options_for(const std::string& program, hypertune::SharedCheckpoints shared = {}) {
  remote::RemoteOptions options;
  options.program = program;
  options.timeouts = {.heartbeat = 2.5, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  options.transfer.shared = std::move(shared);
  return options;
}

/// Files called `name` below `root`.
int files_named(const fs::path& root, const std::string& name) {
  int count = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator at(root, error), end; !error && at != end; at.increment(error))
    count += at->path().filename() == name ? 1 : 0;
  return count;
}

int notices_with(ScriptedTuner& tuner, const std::string& text) {
  const auto notices = tuner.notices();
  return static_cast<int>(
      std::count_if(notices.begin(), notices.end(), [&](const auto& n) { return n.find(text) != std::string::npos; }));
}

CheckpointInfo sealed_in(LocalCheckpointStore& store, int steps, const std::string& content) {
  auto writer = store.begin(0, steps);
  std::ofstream(writer.file("state")) << content;
  return store.seal(std::move(writer));
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) { return e.what(); }
  return "no error";
}

/// A small file system of this process's own. Whatever is below `path` is gone with it.
struct SmallDisk {
  explicit SmallDisk(fs::path where, const char* size) : path(std::move(where)) {
    fs::create_directories(path);
    there = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
            ::mount("tmpfs", path.c_str(), "tmpfs", 0, size) == 0;
    if (!there) WARN("not allowed to mount a small file system: skipped");
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (there) ::umount2(path.c_str(), MNT_DETACH);
  }
  void fill() const {
    std::ofstream file(path / "filler", std::ios::binary | std::ios::app);
    while (file.write(std::string(4096, 'x').c_str(), 4096).flush()) {}
  }
  fs::path path;
  bool there = false;
};

}  // namespace

TEST_CASE("trials whose checkpoints are in a shared folder keep the laws of executors", "[thorough]") {
  const Hosts hosts;
  const TemporaryDirectory disk;
  const bool apart = GENERATE(false, true);
  INFO("a disk of its own " << apart);
  const auto make = [&](Form form) {
    return RemoteExecutor(hosts.pool(2), options_for(program_of(form), {.folder = apart ? disk.path() : fs::path()}));
  };
  executor_conformance(make, {.many = 60, .shutdowns = 3, .combinations = combinations()});
}

TEST_CASE("checkpoints in a shared folder are written once, and nothing of them goes through the connection") {
  constexpr std::uint64_t size = 2'000'000;
  const Hosts hosts(1);
  const TemporaryDirectory disk;
  const bool apart = GENERATE(false, true);
  SharedExecutor<RemoteExecutor> executor(
      hosts.pool(2), options_for(fmt::format("weighty {}", size), {.folder = apart ? disk.path() : fs::path()}));
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.id == 0 && t.steps <= 3}; };
  Plan plan{.steps = 1000};
  plan.linger_at = 4;
  tuner.add(plan);
  tuner.run([&] { return tuner[0].reports.size() == 4 && tuner[0].sealed.size() == 3; });
  for (const auto& info : tuner[0].sealed) CHECK_NOTHROW(tuner.store().open(info));
  // Another host goes on from where the first one is.
  tuner.inherited = tuner[0].sealed;
  tuner.add({.steps = 5});
  tuner.run([&] { return tuner[1].finished == 1; });
  CHECK(tuner[1].starts == std::vector<int>{3});
  const auto sum = total(*ssh);
  CHECK(sum.sent + sum.received == 0);
  CHECK(sum.shared >= 3 * size);
  CHECK(files_named(hosts.folder(), "weights") == 0);
  CHECK(files_named(apart ? disk.path() : tuner.directory(), "weights") == 3);
  CHECK(fs::is_symlink(tuner.directory() / "trials/0/checkpoints") == apart);
  tuner.stop(0);
  tuner.run();
  tuner.shutdown();
  CHECK(tuner.notices().empty());
  CHECK(eventually([&] { return hosts.all().empty(); }));
  for (const auto& root : {tuner.directory(), disk.path()}) CHECK(files_named(root, ".hosts") == 0);
}

TEST_CASE("a host whose folder is another disk, or that cannot write there, is told, and its checkpoints are copied") {
  constexpr std::uint64_t size = 400'000;
  const TemporaryDirectory other, nowhere;
  const auto [place, reason] =
      GENERATE_REF(std::pair(other.path().string(), std::string("another disk, or none, is mounted there")),
                   std::pair((nowhere.path() / "missing").string(), std::string("there is no folder")));
  const Hosts hosts(1);
  SharedExecutor<RemoteExecutor> executor(hosts.pool(1),
                                          options_for(fmt::format("weighty {}", size), {.on_hosts = place}));
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, planned_program(Form::object));
  tuner.attempts = 3;
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps == 1}; };
  Plan plan{.steps = 1000000};
  plan.throw_at = 2000000;
  tuner.add(plan);
  tuner.run([&] { return tuner[0].sealed.size() == 1; });
  REQUIRE(hosts.kill("a"));
  tuner.run([&] { return tuner[0].starts.size() == 2; });
  tuner.look([&] { CHECK(tuner[0].starts.back() == 1); });
  tuner.stop(0);
  tuner.run();
  const auto sum = total(*ssh);
  CHECK(sum.sent >= size);
  CHECK(sum.shared == 0);
  CHECK(notices_with(tuner, "host 'a' does not share the folder of checkpoints") == 1);
  CHECK(notices_with(tuner, reason) == 1);
}

TEST_CASE("where a shared disk becomes full, each checkpoint that is lost is told, and the trials go on") {
  const TemporaryDirectory directory;
  const SmallDisk disk(directory.path() / "disk", "size=1m");
  if (!disk.there) return;
  const Hosts hosts(2);
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(2), options_for("object", {.folder = disk.path})),
                      planned_program(Form::object));
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps % 10 == 0}; };
  for (int i = 0; i < 3; ++i) {
    Plan plan{.steps = 1000000};
    plan.throw_at = 2000000;
    tuner.add(plan);
  }
  tuner.run([&] { return !tuner[0].sealed.empty() && !tuner[1].sealed.empty() && !tuner[2].sealed.empty(); });
  disk.fill();
  tuner.run([&] { return !tuner.save_failures().empty(); });
  std::size_t reports = 0;
  tuner.look([&] { reports = tuner[0].reports.size() + tuner[1].reports.size(); });
  tuner.run([&] { return tuner[0].reports.size() + tuner[1].reports.size() > reports + 500; });
  for (int i = 0; i < 3; ++i) tuner.stop(i);
  tuner.run();
  for (const auto& failure : tuner.save_failures()) {
    CHECK_THAT(failure.why,
               ContainsSubstring("host '") && ContainsSubstring("No space left on device; free some space"));
    CHECK(failure.steps % 10 == 0);
  }
  CHECK(tuner.notices().empty());
}

TEST_CASE("where the shared disk is full from the start, its hosts are told and nothing is lost but checkpoints") {
  const TemporaryDirectory directory;
  const SmallDisk disk(directory.path() / "disk", "size=64k");
  if (!disk.there) return;
  const Hosts hosts(1);
  disk.fill();
  RemoteExecutor executor(hosts.pool(1), options_for("object", {.folder = disk.path}));
  const TemporaryDirectory experiment;
  CHECK_THAT(error_of([&] {
               executor.start({.program = planned_program(Form::object), .directory = experiment.path(), .sink = {}});
             }),
             ContainsSubstring("No space left on device"));
  executor.shutdown();
}

TEST_CASE("what a lost incarnation writes to the shared folder never becomes a checkpoint, nor destroys one") {
  using remote::detail::SharedFolder;
  const TemporaryDirectory experiment;
  const std::string first = SharedFolder::area_name((1ULL << 32U) + 1, "a/b"),
                    second = SharedFolder::area_name((1ULL << 32U) + 2, "a/b");
  CHECK(first.find('/') == std::string::npos);
  const SharedFolder folder({}, experiment, "id", 1);
  LocalCheckpointStore store(experiment);
  const auto join = [&](const std::string& area) {
    const auto said = remote::detail::prove_shared(experiment.path(), folder.proof(), area);
    folder.check(area, said);
    LocalCheckpointStore::Options options;
    options.make_root = false;
    return LocalCheckpointStore(experiment.path() / ".hosts" / area, options);
  };
  auto old = join(first);
  const auto tell = [](LocalCheckpointStore& written, int steps, const std::string& content, std::uint64_t transfer) {
    const auto made = sealed_in(written, steps, content);
    remote::detail::put_for_driver(written, made, transfer);
    return made;
  };
  const auto kept = folder.take(first, 1, tell(old, 3, "old", 1), store);
  CHECK(kept.name == "step-3");
  const auto late = tell(old, 4, "late", 2);
  auto unfinished = old.begin(0, 5);
  std::ofstream(unfinished.file("state")) << "unfinished";
  folder.retire(first);
  // It still thinks that it is there.
  CHECK_THROWS_AS(old.seal(std::move(unfinished)), Error);
  CHECK_THROWS_AS(old.begin(0, 6), Error);
  CHECK_THROWS_AS(folder.take(first, 2, late, store), Error);
  CHECK(store.list(0) == std::vector{kept});
  // The next one comes to the same step: both stay what they are.
  auto next = join(second);
  auto info = tell(next, 3, "next", 1);
  const auto taken = folder.take(second, 1, info, store);
  CHECK(taken.name == "step-3-2");
  CHECK_NOTHROW(store.open(kept));
  CHECK_NOTHROW(store.open(taken));
  CHECK(next.list(0).empty());
  // Nothing is taken that is not what it is said to be.
  info = tell(next, 7, "something", 2);
  auto wrong = info;
  wrong.digest[0] = wrong.digest[0] == '0' ? '1' : '0';
  CHECK_THAT(error_of([&] { folder.take(second, 2, wrong, store); }), ContainsSubstring("not the one that was sealed"));
  fs::resize_file(remote::detail::offered_folder(next.root(), 2) / "state", 3);
  CHECK_THAT(error_of([&] { folder.take(second, 2, info, store); }), ContainsSubstring("3 bytes, but 9 were sealed"));
  CHECK(store.list(0).size() == 2);
  // A store's own cleaning leaves alone what hosts are writing; a later driver's takes away what it was left.
  auto writing = next.begin(0, 8);
  store.recover();
  CHECK(fs::exists(writing.directory()));
  const auto newer = SharedFolder::area_name((2ULL << 32U) + 1, "c");
  fs::create_directories(experiment.path() / ".hosts" / newer);
  const SharedFolder again({}, experiment, "id", 2);
  CHECK_FALSE(fs::exists(writing.directory()));
  CHECK(fs::exists(experiment.path() / ".hosts" / newer));
  CHECK(store.list(0).size() == 2);
}

TEST_CASE("a trial whose checkpoints lie elsewhere since before the folder was shared keeps them together") {
  using remote::detail::SharedFolder;
  const TemporaryDirectory experiment, disk(TemporaryDirectory::memory());
  LocalCheckpointStore store(experiment);
  const auto before = sealed_in(store, 1, "before");
  const SharedFolder folder({.folder = disk.path()}, experiment, "id", 1);
  const auto area = SharedFolder::area_name((1ULL << 32U) + 1, "a");
  folder.check(area, remote::detail::prove_shared(folder.root(), folder.proof(), area));
  LocalCheckpointStore written(folder.root() / ".hosts" / area);
  const auto made = sealed_in(written, 2, "after");
  remote::detail::put_for_driver(written, made, 1);
  const auto taken = folder.take(area, 1, made, store);
  CHECK(taken.digest == made.digest);
  CHECK_NOTHROW(store.open(taken));
  CHECK(store.list(0) == std::vector{taken, before});
  CHECK(fs::is_directory(fs::symlink_status(experiment.path() / "trials/0/checkpoints")));
  CHECK_FALSE(fs::exists(remote::detail::offered_folder(written.root(), 1)));
}

TEST_CASE("a folder counts as shared only where both sides see what the other one writes") {
  using remote::detail::SharedFolder;
  const TemporaryDirectory experiment, other;
  const SharedFolder folder({}, experiment, "id", 1);
  const auto prove = [&](const fs::path& root) { return remote::detail::prove_shared(root, folder.proof(), "area"); };
  CHECK_THAT(error_of([&] { prove(other.path()); }), ContainsSubstring("another disk, or none, is mounted there"));
  // A copy of it, such as a backup or a mirror, is not it.
  fs::copy(experiment.path(), other.path(), fs::copy_options::recursive);
  const auto said = prove(other.path());
  CHECK_THAT(error_of([&] { folder.check("area", said); }), ContainsSubstring("what it writes is not seen here"));
  auto right = prove(experiment.path());
  CHECK_THAT(error_of([&] { folder.check("area", {.read = "x", .wrote = right.wrote}); }),
             ContainsSubstring("is not what was written here"));
  CHECK_THAT(error_of([&] { folder.check("area", {.read = right.read, .wrote = "x"}); }),
             ContainsSubstring("is not what is seen here"));
  CHECK_NOTHROW(folder.check("area", right));
}

TEST_CASE("agents that are stopped, then go on when their hosts are given up, leave the shared folder as it is") {
  const Hosts hosts(2);
  auto options = options_for("object");
  options.timeouts.heartbeat = 1;
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(2), options), planned_program(Form::object));
  tuner.attempts = 20;
  tuner.decide = [&](const ScriptedTrial& t) { return Answer{.save = t.steps % 3 == 0}; };
  Plan plan{.steps = 1000000};
  plan.throw_at = 2000000;
  for (int i = 0; i < 3; ++i) tuner.add(plan);
  const auto all_saved = [&](std::size_t count) {
    return tuner[0].sealed.size() > count && tuner[1].sealed.size() > count && tuner[2].sealed.size() > count;
  };
  tuner.run([&] { return all_saved(3); });
  const auto stopped = hosts.agents("a");
  REQUIRE_FALSE(stopped.empty());
  for (const pid_t pid : stopped) REQUIRE(::kill(pid, SIGSTOP) == 0);
  tuner.run([&] { return !tuner[0].causes.empty() || !tuner[1].causes.empty() || !tuner[2].causes.empty(); });
  for (const pid_t pid : stopped) ::kill(pid, SIGCONT);
  std::size_t before = 0;
  tuner.look([&] { before = std::max({tuner[0].sealed.size(), tuner[1].sealed.size(), tuner[2].sealed.size()}); });
  tuner.run([&] { return all_saved(before + 3); });
  for (int i = 0; i < 3; ++i) tuner.stop(i);
  tuner.run();
  tuner.shutdown();
  for (int i = 0; i < 3; ++i) {
    auto listed = tuner.store().list(i);
    for (const auto& info : tuner[i].sealed) {
      CHECK_NOTHROW(tuner.store().open(info));
      std::erase(listed, info);
    }
    CHECK(listed.size() <= 1);  // one that was taken as its attempt ended
  }
  CHECK(eventually([&] { return hosts.all().empty(); }));
}
