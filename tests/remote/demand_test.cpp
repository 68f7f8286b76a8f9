#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/execute/inline.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/remote/demand.hpp>

namespace ht = hypertune;
using namespace hypertune::remote;

namespace {
ht::Launch launch(std::int64_t trial, const std::string& host) {
  ht::Launch command;
  command.trial = static_cast<ht::TrialId>(trial);
  command.allocation.lead.host_name = host;
  command.allocation.lead.resources = {.cpus = 2};
  return command;
}
}  // namespace

TEST_CASE("demand from what passes an executor") {
  DemandTracker tracker({.cpus = 2}, 5);
  CHECK(tracker.demand().pending.at(0).count == 5);
  tracker.performed(launch(0, "a"));
  tracker.performed(launch(1, "a"));
  tracker.performed(launch(2, "b"));
  CHECK(tracker.demand().pending.at(0).count == 2);
  CHECK(tracker.demand().running.at("a").size() == 2);
  tracker.happened(ht::Failed{static_cast<ht::TrialId>(0), {}, {}});  // waits again
  CHECK(tracker.demand().pending.at(0).count == 3);
  tracker.performed(launch(0, "b"));
  CHECK(tracker.demand().pending.at(0).count == 2);
  CHECK(tracker.demand().running.at("b").size() == 2);
  tracker.happened(ht::Paused{static_cast<ht::TrialId>(1), {}, true});
  tracker.happened(ht::Finished{static_cast<ht::TrialId>(2), {}});
  tracker.happened(ht::Stopped{static_cast<ht::TrialId>(0), {}});
  CHECK(tracker.demand().running.empty());
  CHECK(tracker.demand().pending.at(0).count == 2);
  tracker.ended();
  CHECK(tracker.demand().pending.empty());
}

TEST_CASE("no more is asked for than may run at once") {
  DemandTracker tracker({.cpus = 1}, 100, 3);
  CHECK(tracker.demand().pending.at(0).count == 3);
  tracker.performed(launch(0, "a"));
  CHECK(tracker.demand().pending.at(0).count == 2);
}

TEST_CASE("trials that have ended for good wait no more, and paused ones ask for one place when nothing else does") {
  DemandTracker tracker({.cpus = 1}, 2);
  tracker.performed(launch(0, "a"));
  tracker.performed(launch(1, "a"));
  tracker.happened(ht::Failed{static_cast<ht::TrialId>(0), {}, {}});
  CHECK(tracker.demand().pending.at(0).count == 1);
  tracker.trial_ended(static_cast<ht::TrialId>(0));
  CHECK(tracker.demand().pending.empty());
  tracker.happened(ht::Paused{static_cast<ht::TrialId>(1), {}, true});
  CHECK(tracker.demand().running.empty());
  CHECK(tracker.demand().pending.at(0).count == 1);  // the scheduler may go on with it
  tracker.performed(launch(1, "b"));
  CHECK(tracker.demand().pending.empty());
  tracker.happened(ht::Stopped{static_cast<ht::TrialId>(1), {}});
  tracker.trial_ended(static_cast<ht::TrialId>(1));
  CHECK(tracker.demand().pending.empty());
}

TEST_CASE("what ran on a host that has ended is not taken for work of another one that has its name") {
  DemandTracker tracker({.cpus = 1}, 2, 0, 2);
  auto group = launch(0, "a");
  group.allocation.others.emplace_back().host_name = "b";
  tracker.performed(group);
  CHECK(tracker.demand().running.size() == 2);
  tracker.host_ended("b");
  CHECK(tracker.demand().running.size() == 1);
  CHECK(tracker.demand().running.contains("a"));
  CHECK(tracker.demand().pending.at(0).count == 2);  // the trial goes on, and does not wait
}

TEST_CASE("notices go to the experiment while it takes events, else elsewhere, in their order") {
  std::vector<std::string> elsewhere, taken;
  Notices notices([&](const std::string& text) { elsewhere.push_back(text); });
  notices.say("a");
  notices.start([&](ht::Event event) { taken.push_back(std::get<ht::Notice>(event).text); });
  notices.say("b");
  CHECK(taken.empty());
  notices.flush();
  notices.say("c");
  notices.end();
  notices.say("d");
  CHECK(taken == std::vector<std::string>{"b", "c"});
  CHECK(elsewhere == std::vector<std::string>{"a", "d"});
}

TEST_CASE("workers for which there is something to do: of all trials that run at once, as many as each can use") {
  const auto useful = [](std::optional<std::int64_t> trials, std::int64_t concurrency, int most) {
    ht::Workload workload;
    workload.trials = trials;
    workload.max_workers = most;
    workload.concurrency = concurrency;
    return workload.useful_workers(8);
  };
  CHECK(useful(std::nullopt, 0, 1) == 8);
  CHECK(useful(2, 0, 1) == 2);
  CHECK(useful(2, 0, 3) == 6);
  CHECK(useful(2, 1, 3) == 3);
  CHECK(useful(std::nullopt, 2, 3) == 6);
  CHECK(useful(100, 0, 3) == 8);
  CHECK(useful(1, 0, 1'000'000'000) == 8);
}
