// Runs that decide in order find the same over hosts as in one process: whenever checkpoints arrive, and whichever
// slots are lost for a while.
#include "agents.hpp"
#include "experiments.hpp"

#include <hypertune/hypertune.hpp>

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

namespace ht = hypertune;
using namespace hypertune::test;

namespace {

ht::remote::RemoteOptions options_for(const std::string& program) {
  ht::remote::RemoteOptions options;
  options.program = program;
  options.timeouts = {.heartbeat = 5, .connect = 20, .first_delay = 0.1, .max_delay = 0.5, .stable = 60};
  options.gather = 5;
  return options;
}

/// What Learner does, by a command that saves after every third step, and never because it is asked to.
std::string third_steps(const std::filesystem::path& folder) {
  const auto script = folder / "learn";
  std::ofstream(script)
      << R"(exec awk -v x="$1" -v restore="$HYPERTUNE_RESTORE" -v folder="$HYPERTUNE_CHECKPOINT" 'BEGIN {
  if (restore != "") getline < (restore "/state")
  step = $1; sum = $2
  while (step < 24) {
    sum += x * ++step; saved = ""
    if (step % 3 == 0) {
      here = folder "/" step
      system("mkdir " here " && head -c 20000 /dev/zero > " here "/weights")
      printf "%d %.12g\n", step, sum > (here "/state"); close(here "/state")
      saved = ", \"checkpoint\": \"" step "\""
    }
    printf "{\"accuracy\": %.12g, \"sum\": %.12g%s}\n", x * (1 - exp(-0.1 * step)), sum, saved
    fflush()
  }
}')";
  return fmt::format("command {} x", script.string());
}

/// Kills agents now and then, in turn.
struct Disturb {
  const Hosts* hosts;
  std::atomic<int>* reports;
  void on_trial_report(const ht::record::TrialReported&, ht::Seconds) const {
    const int report = ++*reports;
    if (report % 40 == 0) hosts->kill(Hosts::name(report / 40 % 2), SIGKILL);
  }
};

}  // namespace

TEST_CASE("a population whose checkpoints lie between its pauses finds the same however slowly they travel") {
  TemporaryDirectory directory;
  const std::string name = third_steps(directory.path());
  const auto run_on = [&](const std::string& output, ht::AnyExecutor executor) {
    return ht::tune(Learner::search_space(), program_named(name), pbt(directory.path() / output, std::move(executor)));
  };
  const auto local = run_on("local", ht::threads(4));
  CHECK(local.failures(ht::FailureSource::user) == 0);
  INFO(story(local));
  REQUIRE(story(local).find("takes over") != std::string::npos);
  const Hosts hosts(4);
  for (const bool slow : {true, false}) {
    auto remote = options_for(name);
    if (slow) remote.transfer.rate_limit = 200'000;  // a tenth of a second each
    const auto results = run_on(slow ? "slow" : "quick", ht::RemoteExecutor(hosts.pool(2), remote));
    INFO(story(results));
    CHECK(fingerprint(results) == fingerprint(local));
    check_reports(results);
  }
}

TEST_CASE("a sweep with fewer slots than may run at once ends as it would undisturbed while hosts are lost") {
  const Hosts hosts(2);
  TemporaryDirectory directory;
  const auto make = [&](const std::string& output, ht::AnyExecutor executor) {
    auto options = asha(directory.path() / output, std::move(executor));
    options.samples = 20;
    options.schedule = ht::Asha{.grace_period = 3, .max_steps = 27, .reduction_factor = 3};
    options.concurrency = 8;
    return options;
  };
  const auto local = run(make("local", ht::threads(4)));
  std::atomic<int> reports{0};
  auto options = make("war", ht::RemoteExecutor(hosts.pool(2), options_for("learner")));
  options.callbacks.emplace_back(Disturb{&hosts, &reports});
  const auto war = run(std::move(options));
  INFO(story(war));
  CHECK(fingerprint(war) == fingerprint(local));
  check_reports(war);
  std::int64_t lost = 0;
  for (const auto& host : war.hosts()) lost += host.lost;
  CHECK(lost > 2);
}

TEST_CASE("a host that does not come back is waited for only so long, and the run goes on with the slots there are") {
  const Hosts hosts(1);
  TemporaryDirectory directory;
  std::atomic<bool> lost{false};
  auto pool = hosts.pool(1);
  pool.add({.name = "b", .dialer = ht::remote::CommandDialer([&] {
                           return lost ? std::vector<std::string>{"sleep", "1000"}
                                       : hosts.command("b");  // it says nothing any more
                         })});
  auto options = pbt(directory.path() / "run", ht::RemoteExecutor(pool, options_for("learner")));
  options.ordered_timeout = 1;
  std::atomic<int> reports{0};
  struct Lose {
    const Hosts* hosts;
    std::atomic<int>* reports;
    std::atomic<bool>* lost;
    void on_trial_report(const ht::record::TrialReported&, ht::Seconds) const {
      if (++*reports != 10) return;
      *lost = true;
      hosts->kill("b", SIGKILL);
    }
  };
  options.callbacks.emplace_back(Lose{&hosts, &reports, &lost});
  const auto results = run(std::move(options));
  INFO(story(results));
  CHECK(lost);
  CHECK(results.count(ht::TrialState::completed) == 4);
  CHECK(story(results).find("host 'b' has not come back within 1 s") != std::string::npos);
  check_reports(results);
}
