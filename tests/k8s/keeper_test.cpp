// The first process of a pod: signals, orphans, marks, roles; as a program and as a script.
#include "pods.hpp"

#include <hypertune/process/process_marks.hpp>

#include <functional>

using namespace hypertune;
using namespace hypertune::test;

namespace {

// A way to hold a pod: its command, given the folder of the agents, whole seconds and what comes before.
struct Holder {
  std::string name;
  std::function<std::vector<std::string>(const std::string& folder, int orphan)> command;
};

std::vector<Holder> holders() {
  const auto script = [](std::vector<std::string> shell) {
    return [shell = std::move(shell)](const std::string& folder, int orphan) {
      auto command = shell;
      command.insert(command.end(),
                     {"-c", std::string(k8s::hold_script()), "hypertune-pod", folder, std::to_string(orphan)});
      return command;
    };
  };
  const auto program = [](const std::string& folder, int orphan) {
    return std::vector<std::string>{"env",
                                    "HYPERTUNE_AGENTS=" + folder,
                                    "HYPERTUNE_POD_ORPHAN=" + std::to_string(orphan),
                                    HYPERTUNE_TEST_POD,
                                    "learn",
                                    "--hypertune-pod",
                                    "host slots=1"};
  };
  std::vector<Holder> all{{"program", program}, {"sh", script({"sh"})}};
  if (::access("/usr/bin/busybox", X_OK) == 0) all.push_back({"busybox", script({"busybox", "sh"})});
  return all;
}

// Where the system lets us: a pod's processes alone, the holder the first of them.
std::vector<std::string> as_first(std::vector<std::string> command) {
  command.insert(command.begin(), {"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"});
  return command;
}
bool can_unshare() {
  static const bool can = [] {
    try {
      return process::collect(as_first({"true"})).code() == 0;
    } catch (const process::NotStarted&) { return false; }
  }();
  return can;
}

class Held {
 public:
  Held(const Holder& holder, int orphan, bool first) {
    auto command = holder.command(agents().string(), orphan);
    pod_.emplace(first ? as_first(std::move(command)) : std::move(command));
    pod_->start();
    REQUIRE(eventually([&] { return std::filesystem::is_directory(agents()); }));
    // The signal is the holder's, not that of who made its namespace.
    pid_ = pod_->pid();
    if (first)
      REQUIRE(eventually([&] {
        const auto children = process::children_of(pod_->pid());
        if (!children.empty()) pid_ = children.front();
        return !children.empty();
      }));
  }
  std::filesystem::path agents() const { return folder_.path() / "agents"; }
  void signal(int number) const { ::kill(pid_, number); }
  pid_t pid() const { return pid_; }
  Pod& pod() { return *pod_; }
  // As the driver starts one by exec: no child of the keeper's, but in its namespace.
  process::Subprocess exec(const std::string& mode, bool first) const {
    std::vector<std::string> command{HYPERTUNE_TEST_POD, mode};
    if (first) command.insert(command.begin(), {"nsenter", "--target", std::to_string(pid_), "--pid", "--mount"});
    return process::Subprocess(command, {.in = process::Stream::pipe,
                                         .out = process::Stream::pipe,
                                         .environment = {{"HYPERTUNE_AGENTS", agents().string()}}});
  }

 private:
  TemporaryDirectory folder_;
  std::optional<Pod> pod_;
  pid_t pid_ = -1;
};

bool is_up(process::Subprocess& agent) {
  char bytes[16];
  const auto n = ::read(agent.out.get(), bytes, sizeof bytes);
  return n > 0 && std::string_view(bytes, static_cast<std::size_t>(n)) == "up\n";
}

}  // namespace

TEST_CASE("who holds a pod passes its end on to agents that came by exec, and ends when they have") {
  for (const auto& holder : holders())
    for (const bool first : {false, true}) {
      if (first && !can_unshare()) continue;
      INFO(holder.name << (first ? " as the first process" : ""));
      Held held(holder, 100, first);
      auto one = held.exec("agent", first), two = held.exec("agent", first);
      REQUIRE(is_up(one));
      REQUIRE(is_up(two));
      // Numbers that belong to others by now, and what is none: this test is not to get a signal.
      const auto other = held.agents() / (std::to_string(::getpid()) + ".1");
      std::ofstream{other};
      std::ofstream{held.agents() / "no.mark"};
      std::ofstream{held.agents() / "1.1"};
      held.signal(SIGTERM);
      REQUIRE(held.pod().ended());
      CHECK(held.pod().exit_code() == 0);
      CHECK(process::exit_code(one.wait()) == 0);
      CHECK(process::exit_code(two.wait()) == 0);
      CHECK_FALSE(std::filesystem::exists(other));
    }
}

TEST_CASE("a second SIGTERM ends agents by force") {
  for (const auto& holder : holders()) {
    INFO(holder.name);
    Held held(holder, 100, false);
    auto agent = held.exec("stubborn", false);
    REQUIRE(is_up(agent));
    held.signal(SIGTERM);
    REQUIRE_FALSE(held.pod().ended(1.5));
    held.signal(SIGTERM);
    REQUIRE(held.pod().ended());
    CHECK(held.pod().exit_code() == 0);
    CHECK(agent.wait() == SIGKILL);
  }
}

TEST_CASE("a SIGTERM that comes as the folder of the agents is made is not lost") {
  // A mkdir that signals the shell as soon as the folder exists.
  const TemporaryDirectory folder;
  std::filesystem::create_directory(folder.path() / "bin");
  const auto mkdir = folder.path() / "bin" / "mkdir";
  std::ofstream{mkdir} << "#!/bin/sh\nPATH=/usr/bin:/bin mkdir \"$@\" && kill -TERM $PPID\n";
  std::filesystem::permissions(mkdir, std::filesystem::perms::owner_all);
  Pod pod({"env", "PATH=" + (folder.path() / "bin").string() + ":/usr/bin:/bin", "sh", "-c",
           std::string(k8s::hold_script()), "hypertune-pod", (folder.path() / "agents").string(), "100"});
  pod.start();
  REQUIRE(pod.ended());
  CHECK(std::filesystem::is_directory(folder.path() / "agents"));
  CHECK(pod.exit_code() == 0);
}

TEST_CASE("a pod that nobody comes to ends; an agent, or who says so, holds it") {
  for (const auto& holder : holders()) {
    INFO(holder.name);
    Held held(holder, 1, false);
    auto agent = held.exec("agent", false);
    REQUIRE(is_up(agent));
    CHECK_FALSE(held.pod().ended(2.5));
    std::ofstream{held.agents() / "alive"};
    agent.end();
    CHECK(eventually([&] { return !std::filesystem::exists(held.agents() / "alive"); }));
    REQUIRE(held.pod().ended());
    CHECK(held.pod().exit_code() == 0);
    CHECK_THAT(held.pod().log(), ContainsSubstring("no driver has been here for 1 s, so that this pod ends"));
  }
}

TEST_CASE("who holds a pod reaps what is left to it") {
  if (!can_unshare()) {
    WARN("skipped: no namespaces can be made here");
    return;
  }
  for (const auto& holder : holders()) {
    INFO(holder.name);
    Held held(holder, 100, true);
    // Its parent ends first: the orphan is the first process's.
    auto parent = process::Subprocess({"nsenter", "--target", std::to_string(held.pid()), "--pid", "--mount", "sh",
                                       "-c", "exec 3<&0; (read x <&3; exit 0) & echo $!"},
                                      {.in = process::Stream::pipe, .out = process::Stream::pipe});
    CHECK(process::exit_code(parent.wait()) == 0);
    REQUIRE(eventually([&] { return process::children_of(held.pid()).size() >= 1; }));
    const auto orphans = process::children_of(held.pid());
    parent.in = {};
    CHECK(eventually([&] {
      for (const pid_t pid : orphans)
        if (process::start_of(pid) != 0) return false;  // a zombie is still there
      return true;
    }));
  }
}

TEST_CASE("a program that links the library is a keeper where it is called as one, before its main() does anything") {
  Pod pod({HYPERTUNE_TEST_POD, "learn", "--hypertune-pod", "host slots=1"}, {{"HYPERTUNE_POD_ORPHAN", "0.2"}});
  pod.start();
  REQUIRE(pod.ended());
  CHECK(pod.exit_code() == 0);
  CHECK_FALSE(std::filesystem::exists(pod.folder() / "notes"));
  const auto code = [](std::vector<std::string> arguments, std::string orphan) {
    arguments.insert(arguments.begin(), HYPERTUNE_TEST_POD);
    process::RunOptions options;
    const TemporaryDirectory folder;
    options.spawn.environment = {{"HYPERTUNE_POD_ORPHAN", orphan}, {"HYPERTUNE_AGENTS", folder.path().string()}};
    const auto ended = process::collect(arguments, options);
    return std::to_string(ended.code()) + " " + ended.err;
  };
  CHECK(code({"asked"}, "1") == "7 ");
  CHECK_THAT(code({"asked", "--hypertune-pod", "host"}, "0.2"), ContainsSubstring("0 hypertune: no driver"));
  CHECK_THAT(code({"asked", "--hypertune-pod", "host"}, "soon"),
             ContainsSubstring("2 hypertune: HYPERTUNE_POD_ORPHAN is 'soon'"));
  CHECK_THAT(code({"learn", "--hypertune-pod", "host"}, "-1"),
             ContainsSubstring("2 hypertune: HYPERTUNE_POD_ORPHAN is '-1'"));
}

TEST_CASE("a pod that is to call home says what it lacks, without its token") {
  Pod pod({HYPERTUNE_TEST_POD, "learn", "--hypertune-pod", "host"},
          {{"HYPERTUNE_POD_TOKEN", "0123456789abcdef0123"}, {"HYPERTUNE_POD_NAME", "no name"}});
  pod.start();
  REQUIRE(pod.ended());
  CHECK(pod.exit_code() == 2);
  CHECK(pod.log() == "hypertune: HYPERTUNE_POD_NAME is 'no name', which is not a valid name of a worker\n");
  Pod other({HYPERTUNE_TEST_POD, "learn", "--hypertune-pod", "host"}, {{"HYPERTUNE_POD_TOKEN", "tiny"}});
  other.start();
  REQUIRE(other.ended());
  CHECK(other.exit_code() == 2);
  CHECK_THAT(other.log(), ContainsSubstring("HYPERTUNE_POD_TOKEN") && !ContainsSubstring("tiny"));
}
