// Commands as the workers of one trial: under threads and under worker processes.
#include "local_support.hpp"

#include <hypertune/execute/threads.hpp>
#include <hypertune/local/command.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

std::shared_ptr<const Program> shell(const std::string& script, local::CommandOptions options = {}) {
  options.command = {"/bin/sh", "-c", script};
  return std::make_shared<local::CommandProgram>(std::vector<std::string>{"mode"}, std::move(options));
}

/// An executor with a trial of `hosts.size()` workers, and its events.
struct GangBench {
  GangBench(const std::string& kind, std::shared_ptr<const Program> program)
      : executor(kind == "threads" ? AnyExecutor(threads(8)) : AnyExecutor(processes({.pool = 8}))) {
    executor.start({.program = std::move(program), .directory = directory.path(), .sink = [this](Event event) {
                      events(std::move(event));
                    }});
  }
  ~GangBench() { executor.shutdown(); }
  void launch(std::vector<std::string> hosts, Attempt attempt = 0, bool parked = false) {
    Launch launch;
    launch.trial = 0;
    launch.attempt = attempt;
    launch.params = Params{{"mode", std::string("m")}};
    launch.allocation.others.resize(hosts.size() - 1);
    for (std::size_t rank = 0; rank < hosts.size(); ++rank)
      launch.allocation[static_cast<int>(rank)].host_name = hosts[rank];
    launch.group = true;
    launch.parked = parked;
    executor.perform(std::move(launch));
  }
  std::string text(const std::string& file) const {
    std::ifstream in(directory.path() / "trials/0" / file);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  TemporaryDirectory directory;
  Events events;
  AnyExecutor executor;
};

double metric(const Reported& reported, const std::string& name) {
  const double* value = find_metric(reported.report.metrics, name);
  return value == nullptr ? -1 : *value;
}
char state_of(int pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  const auto end = line.rfind(')');
  return end == std::string::npos ? '-' : line[end + 2];
}
/// Waits until all that `pids` names are in that state ('-': gone); false: not in time.
bool all_are(const std::vector<int>& pids, char state) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < until) {
    if (std::all_of(pids.begin(), pids.end(), [&](int pid) { return state_of(pid) == state; })) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

// Rank 0 reports a step every 50 ms as soon as all ranks have said which process they are.
const std::string steps = R"(echo $$ > $HYPERTUNE_DIRECTORY/pid-$RANK
trap 'exit 0' TERM
n=0; while :; do
  if [ $RANK = 0 ] && [ -f $HYPERTUNE_DIRECTORY/pid-1 ] && [ -f $HYPERTUNE_DIRECTORY/pid-2 ]; then
    echo "{{\"step\": $n, \"value\": $n}}"; n=$((n+1)); fi
  sleep 0.05 & wait $!; done)";
std::vector<int> pids_of(const GangBench& bench) {
  std::vector<int> pids;
  for (const char* name : {"pid-0", "pid-1", "pid-2"}) pids.push_back(std::stoi(bench.text(name)));
  return pids;
}

}  // namespace

TEST_CASE("the ranks of a gang have their places in the environment, and rank 0 alone reports") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  GangBench bench(kind, shell(R"(echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR" \
"$TORCHELASTIC_RESTART_COUNT $HYPERTUNE_RANK/$HYPERTUNE_WORLD_SIZE ${{HYPERTUNE_CHECKPOINT:+saves}}"
echo "{{\"rank\": $RANK, \"port\": $MASTER_PORT}}")"));
  bench.launch({"localhost", "localhost", "localhost"}, 2);
  const auto reported = bench.events.next<Reported>();
  CHECK(metric(reported, "rank") == 0);
  CHECK(metric(reported, "port") > 0);
  CHECK(reported.fixed);
  bench.executor.perform(Continue{0, 2});
  CHECK(bench.events.next<Finished>().attempt == 2);
  CHECK(bench.text("log") == "0 0 3 3 0 127.0.0.1 2 0/3 saves\n");
  const std::string port = std::to_string(static_cast<int>(metric(reported, "port")));
  CHECK(bench.text("worker-1.log") == "1 1 3 3 0 127.0.0.1 2 1/3 \n{\"rank\": 1, \"port\": " + port + "}\n");
  CHECK(bench.text("worker-2.log") == "2 2 3 3 0 127.0.0.1 2 2/3 \n{\"rank\": 2, \"port\": " + port + "}\n");
}

TEST_CASE("a group of one worker has a place as well, and a trial that is no group has none") {
  GangBench bench("threads", shell(R"(echo "{{\"value\": ${{WORLD_SIZE:-7}}}}")"));
  bench.launch({"localhost"});
  CHECK(metric(bench.events.next<Reported>(), "value") == 1);
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
  Launch alone;
  alone.trial = 1;
  alone.params = Params{{"mode", std::string("m")}};
  bench.executor.perform(alone);
  CHECK(metric(bench.events.next<Reported>(), "value") == 7);
}

TEST_CASE("a gang on several hosts needs a network") {
  GangBench bench("threads", shell("echo '{{\"value\": 1}}'"));
  bench.launch({"a", "b"});
  const auto failed = bench.events.next<Failed>();
  CHECK_THAT(failed.cause.text, ContainsSubstring("rank 0: ") && ContainsSubstring("group: {network: 10.1.0.0/16}"));
  CHECK(failed.cause.source == FailureSource::user);
  CHECK_FALSE(failed.cause.retry);
}

TEST_CASE("a rank that has failed fails its gang, though rank 0 ends well before the failure counts") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  local::CommandOptions options;
  options.stop_grace = 0.8;  // less than the second for which a failure waits for its cause
  GangBench bench(kind, shell(R"(cd $HYPERTUNE_DIRECTORY
if [ $RANK = 1 ]; then echo $$ > rank; mv rank fails; echo 'no shard' >&2; exit 3; fi
until [ -f fails ]; do sleep 0.01; done
while [ -d /proc/$(cat fails) ]; do sleep 0.01; done  # until its end has been noticed
echo '{{"value": 1}}')",
                              std::move(options)));
  bench.launch({"localhost", "localhost"});
  bench.events.next<Reported>();
  bench.executor.perform(Continue{0, 0});
  CHECK(bench.events.next<Failed>().cause.text == "rank 1: the command exited with code 3: no shard");
}

TEST_CASE("a gang that pauses stays in memory as a whole, and is dropped as a whole") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  GangBench bench(kind, shell(steps));
  bench.launch({"localhost", "localhost", "localhost"});
  for (int step = 0; step < 4; ++step) {
    CHECK(bench.events.next<Reported>().report.step == step);
    if (step != 1 && step != 2) {
      bench.executor.perform(Continue{0, 0});
      continue;
    }
    bench.executor.perform(Pause{0, 0});
    CHECK(bench.events.next<Paused>().parked);
    CHECK(all_are(pids_of(bench), 'T'));
    bench.launch({"localhost", "localhost", "localhost"}, 0, true);
  }
  bench.events.next<Reported>();
  bench.executor.perform(Pause{0, 0});
  CHECK(bench.events.next<Paused>().parked);
  const auto pids = pids_of(bench);
  CHECK(all_are(pids, 'T'));
  bench.executor.perform(Stop{0, 0});
  CHECK(all_are(pids, '-'));
}

TEST_CASE("rank 0 that needs the others once more before it ends for a pause has them") {
  // A collective is a question of rank 0, in a file, that rank 1 answers.
  local::CommandOptions options;
  options.stop_grace = 60;
  GangBench bench("processes", shell(R"(cd $HYPERTUNE_DIRECTORY
if [ $RANK = 1 ]; then while :; do [ -f ask ] && mv ask answer; sleep 0.01; done; fi
collective() {{ touch ask; until [ -f answer ]; do sleep 0.01; done; rm answer; }}
trap 'collective; touch in-order; exit 0' TERM
collective
mkdir $HYPERTUNE_CHECKPOINT/a; echo '{{"step": 0, "value": 1, "checkpoint": "a"}}'
while :; do sleep 60 & wait $!; done)",
                                     std::move(options)));
  bench.launch({"localhost", "localhost"});
  CHECK(bench.events.next<Reported>().checkpoint);
  bench.executor.perform(Pause{0, 0, true});
  CHECK_FALSE(bench.events.next<Paused>().parked);
  CHECK(std::filesystem::exists(bench.directory.path() / "trials/0/in-order"));
}

TEST_CASE("a gang of which one has ended pauses and goes on without it") {
  GangBench bench("processes", shell("if [ $RANK = 1 ]; then touch $HYPERTUNE_DIRECTORY/pid-1; exit 0; fi\n" + steps));
  bench.launch({"localhost", "localhost", "localhost"});
  for (int step = 0; step < 3; ++step) {
    CHECK(bench.events.next<Reported>().report.step == step);
    bench.executor.perform(Pause{0, 0});
    CHECK(bench.events.next<Paused>().parked);
    bench.launch({"localhost", "localhost", "localhost"}, 0, true);
  }
  bench.executor.perform(Stop{0, 0});
  bench.events.next<Stopped>();
}

TEST_CASE("a stop reaches all ranks, and rank 0 may save") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  GangBench bench(kind, shell(R"(trap 'echo told > $HYPERTUNE_DIRECTORY/told-$RANK
if [ $RANK = 0 ]; then mkdir $HYPERTUNE_CHECKPOINT/last && echo "{{\"checkpoint\": \"last\"}}"; fi; exit 0' TERM
touch $HYPERTUNE_DIRECTORY/ready-$RANK
while [ ! -f $HYPERTUNE_DIRECTORY/ready-0 ] || [ ! -f $HYPERTUNE_DIRECTORY/ready-1 ]; do sleep 0.01; done
[ $RANK = 0 ] && echo '{{"step": 4, "value": 1}}'
while :; do sleep 60 & wait $!; done)"));
  bench.launch({"localhost", "localhost"});
  bench.events.next<Reported>();
  bench.executor.perform(Stop{0, 0, true});
  CHECK(bench.events.next<Checkpointed>().checkpoint.steps == 5);
  bench.events.next<Stopped>();
  CHECK(bench.text("told-0") == "told\n");
  CHECK(bench.text("told-1") == "told\n");
}

TEST_CASE("what ends a rank ends the gang: a signal from outside is a loss, an exit with an error is a failure") {
  const std::string kind = GENERATE("threads", "processes");
  INFO(kind);
  SECTION("a signal; the error that another rank makes of it counts for nothing") {
    GangBench bench(kind, shell("[ $RANK = 1 ] && kill -9 $$; sleep 0.05; [ $RANK = 0 ] && exit 1; sleep 60"));
    bench.launch({"localhost", "localhost", "localhost"});
    const auto failed = bench.events.next<Failed>();
    CHECK(failed.cause.source == FailureSource::infrastructure);
    CHECK_THAT(failed.cause.text, ContainsSubstring("rank 1: the command was killed by signal 9"));
  }
  SECTION("a rank that is stopped is named, and lost after a time") {
    local::CommandOptions options;
    options.stopped_timeout = 0.4;
    GangBench bench(kind, shell("[ $RANK = 1 ] && sh -c 'kill -STOP $$'; sleep 60", std::move(options)));
    bench.launch({"localhost", "localhost", "localhost"});
    const auto failed = bench.events.next<Failed>();
    CHECK(failed.cause.source == FailureSource::infrastructure);
    CHECK_THAT(failed.cause.text, ContainsSubstring("rank 1: the command was stopped (SIGSTOP) for"));
  }
  SECTION("an error") {
    GangBench bench(kind, shell("[ $RANK = 2 ] && echo 'all wrong' && exit 3; sleep 60"));
    bench.launch({"localhost", "localhost", "localhost"});
    const auto failed = bench.events.next<Failed>();
    CHECK(failed.cause.source == FailureSource::user);
    CHECK(failed.cause.text == "rank 2: the command exited with code 3: all wrong");
  }
  SECTION("an end without an error is none, and rank 0 waits for the others") {
    GangBench bench(kind, shell("[ $RANK = 1 ] && exit 0; [ $RANK = 2 ] && sleep 0.5 && "
                                "touch $HYPERTUNE_DIRECTORY/end && exit 0; echo '{{\"value\": 1}}'"));
    bench.launch({"localhost", "localhost", "localhost"});
    bench.events.next<Reported>();
    bench.executor.perform(Continue{0, 0});
    bench.events.next<Finished>();
    CHECK(std::filesystem::exists(bench.directory.path() / "trials/0/end"));
  }
}
