// What a broken or hostile host can send: it loses that host, and nothing else.
#include "agents.hpp"
#include "support/executor_trials.hpp"
#include "support/scripted_tuner.hpp"

#include <algorithm>
#include <filesystem>
#include <string>

using namespace hypertune;
using namespace hypertune::test;

TEST_CASE("a host that sends what no agent does is lost, and its trial goes on elsewhere from where it was") {
  struct Case {
    const char* deed;
    const char* why;  // in the reason for which the host is lost
  };
  const auto [deed, why] = GENERATE(
      Case{"a stream of the driver's", "a stream's number is wrong"},
      Case{"streams without end", "too many streams at once"},
      Case{"credit for nothing", "credit for bytes that were never sent"},
      Case{"a driver's message", "a message that only a driver sends"}, Case{"a second Hello", "a second Hello"},
      Case{"a report with a checkpoint", "a report with a checkpoint"}, Case{"garbage", "another protocol"},
      Case{"a frame without end", "frame"}, Case{"pieces beyond the window", "was lost"},
      Case{"offers without end", "too many checkpoints at once"},
      Case{"copies without end", "too many checkpoints at once"}, Case{"names that lead elsewhere", "closed"},
      Case{"sizes that do not add up", "closed"}, Case{"bytes that are not what was offered", "closed"},
      Case{"a name by content that leads elsewhere", "closed"}, Case{"wishes for what is not its own", "closed"},
      Case{"wishes without end", "too many wishes"});
  INFO(deed);
  const Hosts hosts;
  auto pool = hosts.pool(1);
  pool.add({.name = "evil", .dialer = remote::CommandDialer({HYPERTUNE_TEST_AGENT, "hostile", deed})});
  remote::RemoteOptions options;
  options.program = "object";
  options.timeouts = {.heartbeat = 10, .connect = 20, .first_delay = 0.2, .max_delay = 1, .stable = 60};
  ScriptedTuner tuner(RemoteExecutor(pool, options), planned_program(Form::object));
  tuner.attempts = 100;
  tuner.decide = [](const ScriptedTrial& t) { return Answer{.save = t.steps == 3}; };
  tuner.before_launch = [](ScriptedTrial& t) { t.plan.linger_at = t.starts.empty() ? 4 : Plan::never; };
  Plan plan{.steps = 20};
  plan.throw_at = 100000;
  tuner.add(plan);
  bool struck = false;
  tuner.run([&] {
    if (!struck && !tuner[0].sealed.empty()) struck = hosts.kill("a");
    return tuner[0].finished == 1;
  });
  CHECK(tuner[0].finished == 1);
  CHECK(tuner[0].lost.empty());
  REQUIRE(tuner[0].starts.size() >= 2);
  CHECK(tuner[0].starts.back() == 3);
  const auto& causes = tuner[0].causes;
  CHECK(std::any_of(causes.begin(), causes.end(), [&, why = why](const Cause& cause) {
    return cause.text.find("'evil'") != std::string::npos && cause.text.find(why) != std::string::npos;
  }));
  for (const auto& cause : causes) UNSCOPED_INFO(cause.text);
  auto folder = tuner.directory() / "trials" / "0" / "checkpoints";
  for (; folder.has_relative_path(); folder = folder.parent_path())
    CHECK_FALSE(std::filesystem::exists(folder / "escaped"));
  CHECK_FALSE(std::filesystem::exists("/tmp/hypertune-escaped"));
  tuner.shutdown();
  tuner.check();
}
