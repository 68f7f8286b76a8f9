// Trials that read what they go on from long after they have started: it is there, or it is brought again.
#include "agent/test_programs.hpp"
#include "conforming_hosts.hpp"
#include "shared_executor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;
namespace fs = std::filesystem;

namespace {

/// A trial of plans as a shell script: it saves after each step. One that begins goes no further than its first step,
/// and one that goes on reads nothing of its checkpoint, before they are told to.
class Script {
 public:
  static constexpr int steps = 8;

  /// `before_read`: shell commands.
  explicit Script(const std::string& before_read = "read line < $here/restored") {
    for (const char* name : {"begun", "restored"}) {
      REQUIRE(::mkfifo((folder_.path() / name).c_str(), 0600) == 0);
      // Open at both ends: nobody waits for the other one to open it.
      ends_.emplace_back(::open((folder_.path() / name).c_str(), O_RDWR | O_CLOEXEC));
      REQUIRE(ends_.back());
    }
    std::ofstream(path()) << "here=" << folder_.path().string() << "\nstate=$1 step=0\n"
                          << "if [ -n \"$HYPERTUNE_RESTORE\" ]; then\n"
                          << before_read << "\n  read step state < \"$HYPERTUNE_RESTORE/state\" || exit 1\nfi\n"
                          << "while [ $step -lt " << steps << R"( ]; do
  state=$(( (state * 1103515245 + 12345 + step) % 2147483648 )) step=$(( step + 1 ))
  mkdir "$HYPERTUNE_CHECKPOINT/$step"
  echo $step $state > "$HYPERTUNE_CHECKPOINT/$step/state"
  echo "{\"value\": 1, \"state\": $state, \"checkpoint\": \"$step\"}"
  [ $step -gt 1 ] || read line < $here/begun
done
)";
  }
  fs::path path() const { return folder_.path() / "script"; }
  void let_begun_go() const { tell(0); }
  void let_restored_read() const { tell(1); }

 private:
  void tell(std::size_t end) const { REQUIRE(::write(ends_[end].get(), "go\n", 3) == 3); }

  TemporaryDirectory folder_;
  std::vector<hypertune::detail::Descriptor> ends_;
};

remote::RemoteOptions options_for(const Script& script) {
  remote::RemoteOptions options;
  options.program = fmt::format("command {} seed", script.path().string());
  options.timeouts = {.heartbeat = 20, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  return options;
}
std::shared_ptr<const Program> program_of(const Script& script) {
  return program_named(fmt::format("command {} seed", script.path().string()));
}

/// Trial 0 saves once; trial 1 takes that over and starts. Then trial 0 saves again and again, to its end, and only
/// then trial 1 reads.
void take_over_late(ScriptedTuner& tuner, const Script& script) {
  tuner.add({.steps = Script::steps});
  tuner.run([&] { return tuner[0].sealed.size() == 1; });
  tuner.inherited = tuner[0].sealed;
  tuner.add({.steps = Script::steps});
  tuner.run([&] { return !tuner[1].starts.empty(); });
  script.let_begun_go();
  tuner.run([&] { return tuner[0].finished == 1; });
  CHECK(tuner[0].sealed.size() == Script::steps);
  script.let_restored_read();
  tuner.run();
  CHECK(tuner[1].starts == std::vector<int>{1});
  CHECK(tuner[1].causes.empty());
  CHECK(tuner[1].finished == 1);
}

}  // namespace

TEST_CASE("a donor's copy on its own host stays until who takes it over has read it, however late that is") {
  const bool whole = GENERATE(true, false);
  INFO("whole " << whole);
  const Script script;
  const Hosts hosts(2);
  auto options = options_for(script);
  if (!whole) options.transfer.inline_limit = 0;
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(1), options), program_of(script));
  take_over_late(tuner, script);
}

TEST_CASE("a copy that was brought to a host stays until it has been read there, though there is no room for it") {
  enum class Way { whole, by_content, direct };
  const Way way = GENERATE(Way::whole, Way::by_content, Way::direct);
  INFO("way " << static_cast<int>(way));
  const Script script;
  const Hosts hosts(1, 1);
  auto options = options_for(script);
  if (way != Way::whole) options.transfer.inline_limit = 0;
  options.transfer.direct = way == Way::direct;
  SharedExecutor<RemoteExecutor> executor(hosts.pool(2), options);
  const auto ssh = executor.get();
  ScriptedTuner tuner(executor, program_of(script));
  take_over_late(tuner, script);
  CHECK(total(*ssh).received + total(*ssh).direct > 0);
}

TEST_CASE("a checkpoint that vanishes on its host before it has been read is brought there again") {
  const bool direct = GENERATE(false, true);
  INFO("direct " << direct);
  const Script script("if mkdir $here/struck 2> /dev/null; then rm -r \"$HYPERTUNE_RESTORE\"; fi");
  const Hosts hosts(1);
  auto options = options_for(script);
  if (direct) options.transfer.inline_limit = 0;
  options.transfer.direct = direct;
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(2), options), program_of(script));
  take_over_late(tuner, script);
  CHECK(tuner[1].lost.empty());
  CHECK(fs::exists(script.path().parent_path() / "struck"));
}

TEST_CASE("an agent goes on whose disk does not say whether a checkpoint is there") {
  const Script script(
      "d=$(dirname \"$HYPERTUNE_RESTORE\"); mv \"$d\" \"$d.away\"; ln -s \"$(basename \"$d\")\" \"$d\"; exit 1");
  const Hosts hosts(2);
  ScriptedTuner tuner(RemoteExecutor(hosts.pool(1), options_for(script)), program_of(script));
  Plan plan{.steps = Script::steps};
  plan.throw_at = 1000;  // it may fail
  tuner.add(plan);
  tuner.run([&] { return tuner[0].sealed.size() == 1; });
  tuner.inherited = tuner[0].sealed;
  tuner.add(plan);
  tuner.run([&] { return !tuner[1].causes.empty(); });
  CHECK(tuner[1].causes.front().source == FailureSource::user);
  CHECK(tuner[0].causes.empty());
  CHECK(hosts.agents("a").size() == 1);
}
