// HostFaults by itself: records in, suspects out.
#include "support/test.hpp"

#include <hypertune/record/detail/host_faults.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace ht = hypertune;
namespace record = hypertune::record;

namespace {

const ht::Cause not_executable{.text = "the command exited with code 126: sh: 1: ./train: Permission denied"};

/// Records of trials on hosts "a", "b", …, all of which are there.
struct Story {
  ht::HostFaults faults;
  std::vector<std::string> hosts;

  Story& start(ht::TrialId trial, const std::string& host) {
    faults.apply(record::TrialStarted{trial, 0, 0, host, {}, {}});
    return *this;
  }
  Story& end_failed(ht::TrialId trial, const ht::Cause& cause) {
    faults.apply(record::AttemptFailed{trial, 0, cause, true, faults.may_be_host_fault(trial, cause)});
    return *this;
  }
  Story& fail(ht::TrialId trial, const std::string& host, const ht::Cause& cause = not_executable) {
    return start(trial, host).end_failed(trial, cause);
  }
  Story& complete(ht::TrialId trial) {
    faults.apply(record::TrialEnded{trial, ht::TrialState::completed, {}});
    return *this;
  }
  Story& work(ht::TrialId trial, const std::string& host) { return start(trial, host).complete(trial); }
  std::vector<std::string> excluded_hosts() const {
    std::vector<std::string> names;
    for (const auto& suspect : faults.excluded_hosts([&](const std::set<std::string>& without) {
           return std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return !without.contains(host); });
         }))
      names.push_back(suspect.host);
    return names;
  }
};
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("what failures have in common is how they ended and what was said last, without what is the trial's own") {
  const auto key = [](const std::string& text) { return ht::fault_key({.text = text}); };
  CHECK(key("the command exited with code 1: x.py, line 12 | OSError: [Errno 28] No space left on device: "
            "'/e/trials/7/s'") == key("the command exited with code 1: y.py, line 9 | OSError: [Errno 28] No space "
                                      "left on device: '/e/trials/12/s'"));
  CHECK(key("the command exited with code 1: pid 4711 lost cuda:0 at 0x7f12") ==
        key("the command exited with code 1: pid 12 lost cuda:1 at 0xab3"));
  CHECK(key("the command exited with code 1") != key("the command exited with code 126"));
  CHECK(key("killed by signal 9 (Killed)") != key("killed by signal 11 (Segmentation fault)"));
  CHECK(key("OSError: [Errno 28] x") != key("OSError: [Errno 13] x"));
  CHECK(key("rank 3: killed by signal 9 (Killed)") == key("killed by signal 9 (Killed)"));
  CHECK(key("1 of 4 workers was lost: rank 2: killed by signal 9 (Killed)") == key("killed by signal 9 (Killed)"));
  CHECK(key("3 of 4 workers were lost: ranks 0, 2, 11: killed by signal 9 (Killed)") ==
        key("killed by signal 9 (Killed)"));
  CHECK(key("ranks x: killed") != key("killed"));
  CHECK(key("2 of 8 workers were lost: killed by signal 9") != key("1 of 4 workers was lost: killed by signal 11"));
  CHECK(key("killed by signal 9 (Killed); its log ends with: step: 7 of x") == key("killed by signal 9 (Killed)"));
  CHECK(key("rank x: killed") != key("killed"));
  CHECK(key("") == key(""));
  CHECK(key(std::string(100000, 'x')).size() <= 300);
}

TEST_CASE("a host where several trials fail with one cause is set aside as long as another one does not know it") {
  Story story{.faults = {}, .hosts = {"a", "b"}};
  story.fail(0, "a").fail(1, "a");
  CHECK(story.excluded_hosts().empty());
  story.fail(1, "a");  // the same trial again
  CHECK(story.excluded_hosts().empty());
  story.fail(2, "a");
  CHECK(story.excluded_hosts() == Names{"a"});
  const auto suspects = story.faults.excluded_hosts([](const auto&) { return true; });
  REQUIRE(suspects.size() == 1);
  CHECK(suspects.front().why ==
        "3 trials failed there with a cause that other hosts do not have: " + not_executable.text);
  SECTION("the last host never is") {
    story.hosts = {"a"};
    CHECK(story.excluded_hosts().empty());
  }
  SECTION("a cause that shows elsewhere as well is the trials'") {
    story.fail(3, "b");
    CHECK(story.excluded_hosts().empty());
  }
  SECTION("what began there before and ends well changes nothing; what does so later lifts it") {
    Story other{.faults = {}, .hosts = {"a", "b"}};
    other.start(10, "a").start(11, "a").start(12, "a").fail(0, "a").fail(1, "a").fail(2, "a");
    other.complete(10).complete(11).complete(12);
    CHECK(other.excluded_hosts() == Names{"a"});
    other.work(13, "a").work(14, "a").work(15, "a");
    CHECK(other.excluded_hosts().empty());
  }
  SECTION("somebody has seen to it") {
    story.faults.forget();
    CHECK(story.excluded_hosts().empty());
  }
}

TEST_CASE("two broken hosts of three are set aside, three of three are not") {
  Story story{.faults = {}, .hosts = {"a", "b", "c"}};
  for (ht::TrialId trial = 0; trial < 6; ++trial) story.fail(trial, trial % 2 == 0 ? "a" : "b");
  CHECK(story.excluded_hosts() == Names{"a", "b"});
  story.fail(6, "c");
  CHECK(story.excluded_hosts().empty());
}

TEST_CASE("two hosts that are broken in different ways are not both set aside where no third one is") {
  Story story{.faults = {}, .hosts = {"a", "b"}};
  const ht::Cause full{.text = "the command exited with code 1: No space left on device"};
  for (ht::TrialId trial = 0; trial < 3; ++trial) story.fail(trial, "b");
  for (ht::TrialId trial = 3; trial < 6; ++trial) story.fail(trial, "a", full);
  CHECK(story.excluded_hosts() == Names{"b"});  // the first
  story.hosts.emplace_back("c");
  CHECK(story.excluded_hosts() == Names{"b", "a"});
}

TEST_CASE("a program that fails now and then costs no host") {
  Story story{.faults = {}, .hosts = {"a", "b"}};
  for (ht::TrialId trial = 0; trial < 300; ++trial) {
    if (trial % 6 == 0)
      story.fail(trial, "a");
    else
      story.work(trial, "a");
    CHECK(story.excluded_hosts().empty());
  }
}

TEST_CASE("messages that are never the same set a host aside a little later") {
  Story story{.faults = {}, .hosts = {"a", "b"}};
  for (ht::TrialId trial = 0; trial < 6; ++trial) {
    CHECK(story.excluded_hosts().empty());
    story.fail(trial, "a", {.text = "exited with code 1: " + std::string(static_cast<std::size_t>(trial) + 1, 'x')});
  }
  CHECK(story.excluded_hosts() == Names{"a"});
  story.fail(7, "b", {.text = "exited with code 1: quite another"});
  CHECK(story.excluded_hosts().empty());
}

TEST_CASE("what a lost host, a preemption or the driver's end took is nobody's fault") {
  Story story{.faults = {}, .hosts = {"a", "b"}};
  for (ht::TrialId trial = 0; trial < 9; ++trial)
    story.fail(trial, "a", {.source = ht::FailureSource::preemption, .text = "x"});
  for (ht::TrialId trial = 0; trial < 9; ++trial) story.start(trial, "a");
  story.faults.apply(record::HostLost{"a", "unplugged"});
  for (ht::TrialId trial = 0; trial < 9; ++trial)
    story.end_failed(trial, {.source = ht::FailureSource::infrastructure, .text = "its host was lost"});
  CHECK(story.excluded_hosts().empty());
  CHECK_FALSE(story.faults.failed_before(0));
}

TEST_CASE("failures of workers are laid against the host of the one that failed") {
  const auto start = [](Story& story, ht::TrialId trial) {
    record::TrialStarted started{trial, 0, 0, "a", {}, {}};
    started.others = {{"b", {}, {}}, {"b", {}, {}}};
    story.faults.apply(started);
  };
  const ht::Cause broken{.text = "rank 1: the command exited with code 1: CUDA error: an illegal memory access"};
  Story story{.faults = {}, .hosts = {"a", "b"}};
  for (ht::TrialId trial = 0; trial < 3; ++trial) {
    start(story, trial);
    story.faults.apply(record::AttemptFailed{trial, 0, broken, true, true, "b"});
  }
  CHECK(story.excluded_hosts() == Names{"b"});
  CHECK(story.faults.failed_on(0) == std::set<std::string>{"b"});
  // Without a host nobody knows which one it was.
  Story unknown{.faults = {}, .hosts = {"a", "b"}};
  for (ht::TrialId trial = 0; trial < 9; ++trial) {
    start(unknown, trial);
    unknown.faults.apply(record::AttemptFailed{trial, 0, broken, true, false});
  }
  CHECK(unknown.excluded_hosts().empty());
}

TEST_CASE("a host that loses workers again and again is set aside, though their one trial goes on without them") {
  Story story{.faults = {}, .hosts = {"a", "b"}};
  story.faults.apply(record::TrialStarted{0, 0, 0, "a", {}, {}, {{"b", {}, {}}}});
  const std::vector<record::WorkerPlace> alone = {{"a", {}, {}}}, both = {{"a", {}, {}}, {"b", {}, {}}};
  for (std::uint32_t generation = 1; generation < 7; generation += 2) {
    CHECK(story.excluded_hosts().empty());
    story.faults.apply(
        record::TrialResized{0, 0, generation, alone, "1 of 2 workers was lost: rank 1: killed by signal 9", {"b"}});
    story.faults.apply(
        record::TrialResized{0, 0, generation + 1, both, "there is room that no other trial waits for", {}});
  }
  CHECK(story.excluded_hosts() == Names{"b"});
  CHECK_FALSE(story.faults.failed_before(0));
  // A host that is lost as a whole is another matter, and so are workers that were taken away.
  Story lost{.faults = {}, .hosts = {"a", "b"}};
  lost.faults.apply(record::TrialStarted{0, 0, 0, "a", {}, {}, {{"b", {}, {}}}});
  for (std::uint32_t generation = 1; generation < 20; generation += 2) {
    lost.faults.apply(record::HostLost{"b", "cut off"});
    lost.faults.apply(record::TrialResized{0, 0, generation, alone, "1 of 2 workers was lost: cut off", {"b"}});
    lost.faults.apply(
        record::TrialResized{0, 0, generation + 1, both, "there is room that no other trial waits for", {}});
  }
  CHECK(lost.excluded_hosts().empty());
  // What ends well with the others speaks for the host.
  story.faults.apply(record::TrialStarted{1, 0, 0, "b", {}, {}, {{"b", {}, {}}}});
  for (int i = 0; i < 3; ++i) {
    story.faults.apply(record::TrialPaused{1});
    story.faults.apply(record::TrialStarted{1, 0, 0, "b", {}, {}, {{"b", {}, {}}}});
  }
  CHECK(story.excluded_hosts().empty());
}

TEST_CASE("a failure is in doubt until trials that were given another host failed there, too") {
  Story story{.faults = {}, .hosts = {"a", "b", "c", "d", "e"}};
  CHECK(story.faults.may_be_host_fault(0, not_executable));
  story.fail(0, "a");
  CHECK(story.faults.avoided(0) == std::set<std::string>{"a"});
  CHECK(story.faults.avoided(1, "b", not_executable) == std::set<std::string>{"a", "b"});
  story.fail(0, "b");
  CHECK(story.faults.avoided(0) == std::set<std::string>{"a", "b"});
  CHECK_FALSE(story.faults.may_be_host_fault(0, not_executable));  // it has had two
  CHECK(story.faults.may_be_host_fault(1, not_executable));
  SECTION("they failed there: it is the trials' own") {
    story.fail(0, "c").fail(1, "a").fail(1, "d");
    CHECK_FALSE(story.faults.may_be_host_fault(2, not_executable));
    CHECK(story.faults.may_be_host_fault(2, {.text = "something else"}));
    CHECK(story.excluded_hosts().empty());
  }
  SECTION("they ended well there: it is the hosts'") {
    story.fail(0, "c").work(0, "e");
    for (ht::TrialId trial = 1; trial < 9; ++trial) {
      CHECK(story.faults.may_be_host_fault(trial, not_executable));
      story.fail(trial, "a").work(trial, "e");
    }
    CHECK(story.excluded_hosts() == Names{"a"});
  }
  SECTION("messages that are never the same") {
    for (ht::TrialId trial = 1; trial < 20; ++trial) {
      const ht::Cause cause{.text = "code 1: " + std::string(static_cast<std::size_t>(trial), 'x')};
      if (!story.faults.may_be_host_fault(trial, cause)) break;
      story.fail(trial, "a", cause).fail(trial, "b", cause);
    }
    CHECK_FALSE(story.faults.may_be_host_fault(99, {.text = "one more"}));
  }
}

TEST_CASE("the same records give the same answers, and many messages do not fill the memory") {
  Story one{.faults = {}, .hosts = {"a", "b"}}, two = one;
  for (ht::TrialId trial = 0; trial < 2000; ++trial) {
    const ht::Cause cause{.text = "code 1: " + std::string(static_cast<std::size_t>(trial % 500), 'x')};
    for (auto* story : {&one, &two}) story->fail(trial, trial % 3 == 0 ? "a" : "b", cause);
    REQUIRE(one.excluded_hosts() == two.excluded_hosts());
  }
}
