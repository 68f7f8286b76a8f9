// Memory limits kept by the kernel: on folders that play cgroups everywhere, on real ones where they may be made.
#include "local_support.hpp"

#include <hypertune/local/cgroup.hpp>

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;
using local::detail::CgroupPlace;
using local::detail::CgroupTree;
namespace fs = std::filesystem;

namespace {

struct Files {
  std::string controllers = "cpu memory pids", subtree = "", type = "domain", procs = "", limit = "max";
};
void play(const fs::path& group, const Files& files) {
  fs::create_directories(group);
  std::ofstream(group / "cgroup.controllers") << files.controllers << "\n";
  std::ofstream(group / "cgroup.subtree_control") << files.subtree << "\n";
  if (!files.type.empty()) std::ofstream(group / "cgroup.type") << files.type << "\n";
  std::ofstream(group / "cgroup.procs") << files.procs;
  std::ofstream(group / "memory.max") << files.limit << "\n";
}
fs::path parent_in(const fs::path& mount, const std::string& own) {
  return CgroupTree(CgroupPlace{mount, mount / own}).path().parent_path();
}

}  // namespace

TEST_CASE("a cgroup is divided where that is allowed and leaves no limit behind") {
  TemporaryDirectory folder;
  const fs::path mount = folder.path() / "cgroup", slice = mount / "user.slice", scope = slice / "run.scope";
  const std::string me = std::to_string(::getpid()) + "\n";
  play(mount, {.subtree = "memory", .type = ""});
  play(slice, {.subtree = "cpu memory"});
  SECTION("alone in its cgroup: in there") {
    play(scope, {.procs = me});
    CHECK(parent_in(mount, "user.slice/run.scope") == scope);
  }
  SECTION("with others: above it, where it may") {
    play(scope, {.procs = me + "1\n"});
    CHECK(parent_in(mount, "user.slice/run.scope") == slice);
  }
  SECTION("a cgroup without the memory controller gives none to its children") {
    play(scope, {.controllers = "cpu", .procs = me});
    CHECK(parent_in(mount, "user.slice/run.scope") == slice);
  }
  SECTION("a limit is not escaped") {
    play(scope, {.procs = me + "1\n", .limit = "1000000"});
    CHECK(parent_in(mount, "user.slice/run.scope").empty());
    CHECK_THAT(CgroupTree(CgroupPlace{mount, scope}).why_not(), ContainsSubstring("gives memory limits"));
  }
  SECTION("one that is not writable") {
    if (::geteuid() == 0) return;  // everything is
    play(scope, {.procs = me});
    for (const auto& group : {mount, slice, scope})
      fs::permissions(group, fs::perms::owner_read | fs::perms::owner_exec);
    CHECK(parent_in(mount, "user.slice/run.scope").empty());
    for (const auto& group : {mount, slice, scope}) fs::permissions(group, fs::perms::owner_all);
  }
  SECTION("the root") { CHECK(parent_in(mount, "") == mount); }
  SECTION("none at all") {
    CgroupTree none{std::optional<CgroupPlace>()};
    CHECK_FALSE(none.prepare());
    CHECK_FALSE(none.enter(1000));
    none.remove();
  }
}

TEST_CASE("a cgroup that cannot be made leaves no trace, and the limit to somebody else") {
  TemporaryDirectory folder;
  const fs::path mount = folder.path() / "cgroup";
  play(mount, {.subtree = "memory", .type = ""});
  CgroupTree tree(CgroupPlace{mount, mount});
  CHECK(tree.why_not().empty());
  CHECK_FALSE(tree.prepare());  // a folder has no cgroup.subtree_control of its own
  CHECK_THAT(tree.why_not(), ContainsSubstring("could not be made"));
  CHECK_FALSE(fs::exists(tree.path()));
  CHECK_FALSE(tree.enter(1000));
  CHECK_FALSE(tree.holds(::getpid()));
  CHECK_FALSE(tree.killed(::getpid()));
}

TEST_CASE("the kernel ends a trial that exceeds its memory limit, and nobody else") {
  CgroupTree probe;
  if (!probe.prepare()) {
    SUCCEED("skipped: " + probe.why_not());
    WARN("skipped: " << probe.why_not());
    return;
  }
  const fs::path parent = probe.path().parent_path();
  probe.remove();
  CHECK_FALSE(fs::exists(probe.path()));
  {
    // A child of the trial takes the memory, in many small steps so that no look could be in time.
    Bench bench(program_of([](Context& context) -> Training {
                  const bool greedy = context.params().get<std::string>("mode") == "greedy";
                  co_yield report("value", 1.0);
                  if (greedy) {
                    std::vector<std::vector<char>> blocks;
                    for (int i = 0; i < 4096; ++i) blocks.emplace_back(std::size_t{1} << 20U, 'x');
                  }
                  co_yield report("value", 2.0);
                }),
                {.pool = 2, .memory_interval = 1000});
    for (TrialId trial = 0; trial < 2; ++trial) {
      auto launch = bench.make(trial, trial == 0 ? "greedy" : "modest");
      launch.allocation.lead.resources.memory = std::uint64_t{128} << 20U;
      bench.executor.perform(launch);
      bench.events.next<Reported>();
    }
    bench.executor.perform(Continue{0, 0});
    const auto cause = bench.events.next<Failed>().cause;
    CHECK_THAT(cause.text, ContainsSubstring("memory limit of 128 MiB exceeded: the kernel ended"));
    CHECK(cause.source == FailureSource::user);
    CHECK(cause.retry);
    bench.executor.perform(Continue{1, 0});
    CHECK(bench.events.next<Reported>().trial == 1);
  }
  for (const auto& entry : fs::directory_iterator(parent))  // nothing is left
    CHECK_THAT(entry.path().filename().string(), !ContainsSubstring("hypertune-" + std::to_string(::getpid())));
}
