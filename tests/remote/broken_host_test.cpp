// Hosts where trials fail though they are there, and hosts that hang on the way.
#include "agents.hpp"
#include "experiments.hpp"

#include <hypertune/execute/detail/placement.hpp>

#include <condition_variable>
#include <mutex>

using namespace hypertune;
using namespace hypertune::test;

namespace {

Options sweep(const std::filesystem::path& output, remote::HostPool pool, const std::string& program) {
  Options o;
  o.metric = "accuracy";
  o.mode = Mode::maximize;
  o.samples = 30;
  o.executor = RemoteExecutor(std::move(pool), {.program = program});
  o.output = output;
  o.display = Display::quiet;
  o.handle_signals = false;
  o.seed = 5;
  return o;
}

/// A host that nobody gets to before the request to stop.
struct HangingHost {
  std::mutex mutex;
  std::condition_variable_any changed;
  int begun = 0;
  bool cancelled = false;
  remote::RemoteHost host(const std::string& name) {
    return {.name = name, .dialer = FunctionDialer{[this](const std::stop_token& stop) -> remote::AgentStream {
                            std::unique_lock lock(mutex);
                            ++begun;
                            changed.notify_all();
                            cancelled = changed.wait(lock, stop, [] { return false; }) || stop.stop_requested();
                            fail(Errc::io, "given up");
                          }}};
  }
};

}  // namespace

TEST_CASE("where no trial can run on one host, all complete on the others, and it is set aside") {
  const Hosts hosts;
  const TemporaryDirectory folder;
  const std::string program = GENERATE("cannot run on a", "disk full on a");
  INFO(program);
  const auto results = run(sweep(folder.path() / "out", hosts.pool(3), program));
  INFO(story(results));
  CHECK(results.count(TrialState::completed) == 30);
  CHECK(results.failures(FailureSource::user) == 0);
  int used = 0;
  for (const auto& host : results.hosts()) {
    if (host.host != "a") {
      CHECK(host.excluded_why.empty());
      used += host.attempts > 0;
      continue;
    }
    CHECK_THAT(host.excluded_why, ContainsSubstring("trials failed there with a cause that other hosts do not have"));
    CHECK(host.attempts <= 6);  // those that were under way when it was found out
  }
  CHECK(used == 2);
}

TEST_CASE("a host that hangs on the way holds up neither the others nor the end") {
  const Hosts hosts;
  const TemporaryDirectory folder;
  HangingHost hanging;
  auto pool = hosts.pool(1);
  pool.add(hanging.host("b"));
  SECTION("an experiment") {
    auto options = sweep(folder.path() / "out", pool, "learner");
    options.samples = 3;
    options.stop = hypertune::steps(4);
    options.resources = {.cpus = 0};  // b would be as good as a, as far as that goes
    options.concurrency = 3;
    const auto results = run(std::move(options));
    CHECK(results.size() == 3);
    for (const auto& host : results.hosts()) CHECK((host.host == "a" || host.attempts == 0));
    CHECK(hanging.cancelled);  // the end has come all the same
  }
  SECTION("what is known of it") {
    RemoteExecutor executor(pool, {.program = "learner"});
    const auto found = executor.hosts();
    REQUIRE(found.size() == 2);
    CHECK(found[0].presence == Presence::there);
    CHECK(found[1].presence == Presence::unknown);
    const Placement placement(found);
    CHECK(placement.possible({.cpus = 100}));  // who knows
    CHECK_FALSE(placement.possible({.cpus = 100}, {"b"}));
  }
}
