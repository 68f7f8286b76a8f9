// The Controller by itself: events in, records and commands out, with no executor anywhere.
#include "support/test.hpp"

#include <hypertune/execute/detail/placement.hpp>
#include <hypertune/record/record.hpp>
#include <hypertune/space/space.hpp>
#include <hypertune/tune/detail/controller.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ht = hypertune;
namespace record = hypertune::record;
using ht::Choice;
using ht::Decision;
using ht::TrialState;

namespace {

/// Suggests 0, 1, 2, …: a trial's configuration is its number.
struct Numbers {
  std::int64_t most = 1'000'000;
  void prepare(const ht::SearchSpace&, const ht::SearchContext&) {}
  ht::Suggestion suggest(const ht::Ask& ask) {
    if (ask.trial >= most) return ht::Suggestion::exhausted();
    return ht::Suggestion{ht::Point{static_cast<double>(ask.trial)}};
  }
  void observe(const ht::Observation&) {}
};

/// A scheduler that does what the test says.
struct Script {
  std::function<Decision(const ht::Progress&)> on_report = [](const ht::Progress&) { return Decision::proceed; };
  std::function<Choice(const ht::Pool&)> choose_next = [](const ht::Pool&) { return Choice::start_new(); };
  std::function<std::string(ht::TrialId)> why = [](ht::TrialId) { return ""; };
  bool exploits = true;
};
struct Scripted {
  static constexpr bool exploits = true;
  std::shared_ptr<Script> script;
  Decision on_report(const ht::Progress& progress) { return script->on_report(progress); }
  Choice choose_next(const ht::Pool& pool) { return script->choose_next(pool); }
  std::string why(ht::TrialId trial) const { return script->why(trial); }
};
struct ScriptedAlone : Scripted {
  static constexpr bool exploits = false;
};

ht::Host host(const std::string& name, double cpus = 1) { return {.name = name, .total = {.cpus = cpus}}; }

/// A Controller, and what its last call brought about.
class Bench {
 public:
  explicit Bench(ht::ControlRules rules = {}, const std::vector<ht::Host>& hosts = {host("a")}, Script script = {})
      : script_(std::make_shared<Script>(std::move(script))),
        controller_(state(), with_resources(std::move(rules)), ht::Placement(hosts)) {
    controller_.open_session(record::ExperimentStarted{}, 0, out_);
  }

  /// Takes up an earlier one's history.
  Bench(ht::ControlRules rules, const std::vector<ht::Host>& hosts, const std::vector<record::Any>& history,
        Script script = {})
      : script_(std::make_shared<Script>(std::move(script))),
        controller_(state(), with_resources(std::move(rules)), ht::Placement(hosts)) {
    for (const auto& what : history) controller_.replay({.sequence = 1, .time = 0, .what = what});
    controller_.open_session(record::ExperimentStarted{}, 0, out_);
  }
  Bench& finish_replay(bool survivors = false) {
    out_.clear();
    controller_.finish_replay(now_, survivors, out_);
    return *this;
  }
  /// What has been said so far, and where trials are started.
  std::pair<std::vector<std::string>, std::vector<std::string>> fill_on() {
    controller_.fill(now_, out_);
    std::vector<std::string> launched;
    for (const auto& go : commands<ht::Launch>()) launched.push_back(go.allocation.lead.host_name);
    return {out_.notices, launched};
  }

  Bench& fill() {
    out_.clear();
    controller_.fill(now_, out_);
    return *this;
  }
  Bench& send(ht::Event event) {
    out_.clear();
    controller_.handle(std::move(event), ++now_, out_);
    return *this;
  }
  Bench& tick(ht::Seconds now) {
    out_.clear();
    controller_.tick(now_ = now, out_);
    return *this;
  }
  Bench& interrupt_now() {
    out_.clear();
    controller_.interrupt_now(++now_, out_);
    return *this;
  }
  Bench& report(ht::TrialId trial, double loss = 1, ht::Attempt attempt = 0) {
    return send(ht::Reported{trial, attempt, ht::Report({{"loss", loss}}), {}});
  }
  Bench& checkpoint(ht::TrialId trial, int steps, ht::Attempt attempt = 0, std::uint64_t bytes = 1) {
    return send(ht::Checkpointed{trial, attempt, sealed(trial, steps, bytes)});
  }
  Bench& fail(ht::TrialId trial, ht::Attempt attempt, ht::FailureSource source, bool retry = true,
              bool exclude_host = false) {
    return send(ht::Failed{
        trial, attempt, ht::Cause{.source = source, .text = "broken", .retry = retry, .exclude_host = exclude_host}});
  }
  static ht::CheckpointInfo sealed(ht::TrialId trial, int steps, std::uint64_t bytes = 1) {
    return {.trial = trial, .steps = steps, .name = "step-" + std::to_string(steps), .bytes = bytes, .digest = "d"};
  }

  template <class T>
  std::vector<T> commands() const {
    return all<T>(out_.commands);
  }
  template <class T>
  std::vector<T> records() const {
    return all<T>(out_.records);
  }
  /// The one command of the last call; fails the test when there are none or more.
  template <class T>
  T command() const {
    REQUIRE(out_.commands.size() == 1);
    REQUIRE(std::holds_alternative<T>(out_.commands.front()));
    return std::get<T>(out_.commands.front());
  }
  const std::vector<record::Any>& all_records() const { return out_.records; }
  bool quiet() const { return out_.records.empty() && out_.commands.empty() && out_.notices.empty(); }
  const std::vector<std::string>& notices() const { return out_.notices; }

  ht::Controller& operator*() { return controller_; }
  ht::Controller* operator->() { return &controller_; }
  const ht::TrialEntry& trial(ht::TrialId id) const { return controller_.state().trials()[id]; }
  std::int64_t count(TrialState state) const { return controller_.state().trials().counts()[state]; }
  Script& script() { return *script_; }

 private:
  template <class T, class List>
  static std::vector<T> all(const List& list) {
    std::vector<T> found;
    for (const auto& one : list)
      if (const auto* match = std::get_if<T>(&one)) found.push_back(*match);
    return found;
  }
  ht::ExperimentState state() {
    return ht::ExperimentState(
        ht::space(ht::dim("number", ht::integer(0, 1'000'000))), Numbers{},
        script_->exploits ? ht::AnyScheduler(Scripted{script_}) : ht::AnyScheduler(ScriptedAlone{{script_}}),
        {ht::minimize("loss")}, ht::StopCondition{}, ht::SearchContext{});
  }
  static ht::ControlRules with_resources(ht::ControlRules rules) {
    rules.uniform_resources = !rules.resources;
    if (!rules.resources) rules.resources = [](const ht::Params&) { return ht::Resources{}; };
    return rules;
  }

  std::shared_ptr<Script> script_ = std::make_shared<Script>();
  ht::Controller controller_;
  ht::Outcome out_;
  ht::Seconds now_ = 0;
};

/// Needs as many cores as `cores` says of the trial's number.
ht::ControlRules needing(std::function<double(std::int64_t)> cores, std::int64_t samples) {
  ht::ControlRules rules;
  rules.samples = samples;
  rules.resources = [cores = std::move(cores)](const ht::Params& params) {
    return ht::Resources{.cpus = cores(params.get<std::int64_t>("number"))};
  };
  return rules;
}

}  // namespace

TEST_CASE("a failed attempt is followed by another before new trials, as often as max_retries says") {
  Bench bench({.samples = 5, .failures = {.max = 2}});
  CHECK(bench.fill().command<ht::Launch>().attempt == 0);
  for (const ht::Attempt attempt : {0U, 1U}) {
    const auto again = bench.fail(0, attempt, ht::FailureSource::user).command<ht::Launch>();
    CHECK(again.trial == 0);
    CHECK(again.attempt == attempt + 1);
    REQUIRE(bench.records<record::AttemptFailed>().size() == 1);
    CHECK(bench.records<record::AttemptFailed>().front().retry);
  }
  CHECK(bench.fail(0, 2, ht::FailureSource::user).command<ht::Launch>().trial == 1);
  CHECK_FALSE(bench.records<record::AttemptFailed>().at(0).retry);
  REQUIRE(bench.records<record::TrialEnded>().size() == 1);
  CHECK(bench.records<record::TrialEnded>().front().cause->text == "broken");
  CHECK(bench.trial(0).state == TrialState::failed);
  CHECK(bench.trial(0).failures == 3);
}

TEST_CASE("the user's code and the infrastructure count against max_retries, preemptions do not") {
  Bench bench({.samples = 5, .failures = {.max = 1}});
  bench.fill();
  for (ht::Attempt attempt = 0; attempt < 20; ++attempt)
    CHECK(bench.fail(0, attempt, ht::FailureSource::preemption).command<ht::Launch>().attempt == attempt + 1);
  CHECK(bench.trial(0).failures == 0);
  CHECK(bench.fail(0, 20, ht::FailureSource::infrastructure).command<ht::Launch>().trial == 0);
  CHECK(bench.fail(0, 21, ht::FailureSource::preemption).command<ht::Launch>().trial == 0);
  CHECK(bench.fail(0, 22, ht::FailureSource::user).command<ht::Launch>().trial == 1);
  CHECK(bench.trial(0).state == TrialState::failed);
}

TEST_CASE("the record of a failed attempt says whether it counts") {
  Bench bench({.samples = 9, .failures = {.max = 9}}, {host("a"), host("b")});
  bench.fill();
  const auto counts = [&] {
    REQUIRE(bench.records<record::AttemptFailed>().size() == 1);
    return bench.records<record::AttemptFailed>().front().counts;
  };
  bench.fail(0, 0, ht::FailureSource::preemption);
  CHECK(counts() == false);
  bench.fail(0, 1, ht::FailureSource::user);
  CHECK(counts() == false);                          // perhaps the host's doing
  bench.fail(1, 0, ht::FailureSource::user, false);  // to try it elsewhere is no use
  CHECK(counts() == true);
  CHECK(bench.trial(1).failures == 1);
  bench.send(ht::HostLost{0, "unplugged"});
  bench.fail(2, 0, ht::FailureSource::infrastructure);  // on a
  CHECK(counts() == false);
  CHECK(bench.trial(2).failures == 0);
}

TEST_CASE("what trying again cannot help is not tried again") {
  const auto source =
      GENERATE(ht::FailureSource::user, ht::FailureSource::infrastructure, ht::FailureSource::preemption);
  Bench bench({.samples = 5, .failures = {.max = 10}});
  bench.fill();
  CHECK(bench.fail(0, 0, source, false).command<ht::Launch>().trial == 1);
  CHECK(bench.trial(0).state == TrialState::failed);
}

TEST_CASE("a host that a rule rules out gets no trial any more, and without any host the experiment ends") {
  Bench bench({.samples = 9, .failures = {.max = 5}}, {host("a"), host("b")});
  CHECK(bench.fill().commands<ht::Launch>().size() == 2);
  CHECK(bench.fail(0, 0, ht::FailureSource::user, true, true).commands<ht::Launch>().empty());  // b is busy
  REQUIRE(bench.notices().size() == 1);
  CHECK(bench.notices().front() == "host a is not used any more: broken");
  CHECK_THAT(bench->why_pending(0), ContainsSubstring("on host 'b' 1 of 1 cpus are in use"));
  CHECK(bench.send(ht::Finished{1, 0}).command<ht::Launch>().allocation.lead.host_name == "b");
  CHECK(bench.fail(0, 1, ht::FailureSource::user, true, true).commands<ht::Launch>().empty());
  CHECK(bench.trial(0).state == TrialState::failed);
  CHECK(bench->finished());
  CHECK(bench->why_ended() == "no trial can run any more: every host is lost or excluded");
}

TEST_CASE("hosts that a rule ruled out stay so over a restart, unless none would be left") {
  const std::vector<ht::Host> hosts{host("a"), host("b")};
  std::vector<record::Any> history;
  Bench before({.samples = 9, .failures = {.max = 5}}, hosts);
  const auto keep = [&] {
    for (const auto& one : before.records<record::TrialCreated>()) history.emplace_back(one);
    for (const auto& one : before.records<record::TrialStarted>()) history.emplace_back(one);
    for (const auto& one : before.records<record::AttemptFailed>()) history.emplace_back(one);
  };
  before.fill();
  keep();
  before.fail(0, 0, ht::FailureSource::user, true, true);
  keep();
  const auto resumed = [&] {
    Bench after({.samples = 9, .failures = {.max = 5}}, hosts, history);
    return after.finish_replay().fill_on();
  };
  {
    const auto [notices, launched] = resumed();
    REQUIRE(notices.size() == 1);
    CHECK(notices.front() == "not used, as a failure there has excluded them: a");
    CHECK(launched == std::vector<std::string>{"b"});
  }
  before.fail(1, 0, ht::FailureSource::user, true, true);
  keep();
  const auto [notices, launched] = resumed();
  REQUIRE(notices.size() == 1);
  CHECK(notices.front() == "used again, as no host would be left: a, b");
  CHECK(launched == std::vector<std::string>{"a", "b"});
}

TEST_CASE("a failure that may be the host's doing does not count, and is tried again on another host") {
  Bench bench({.samples = 30}, {host("a"), host("b"), host("c")});
  REQUIRE(bench.fill().commands<ht::Launch>().size() == 3);
  // Trial 0 is on a. The other hosts are busy: a new trial begins there, as the retry is not for it.
  const auto next = bench.fail(0, 0, ht::FailureSource::user).command<ht::Launch>();
  CHECK(next.trial == 3);
  CHECK(next.allocation.lead.host_name == "a");
  REQUIRE(bench.records<record::AttemptFailed>().size() == 1);
  CHECK(bench.records<record::AttemptFailed>().front().retry);
  CHECK(bench.records<record::AttemptFailed>().front().doubted);
  CHECK(bench.trial(0).failures == 0);
  CHECK_THAT(bench->why_pending(0),
             ContainsSubstring("is to be tried on another host than it failed on: waits for 1 cpus"));
  CHECK(bench.fail(3, 0, ht::FailureSource::user).command<ht::Launch>().trial == 4);
  // The third one: a is set aside.
  CHECK(bench.fail(4, 0, ht::FailureSource::user).commands<ht::Launch>().empty());
  REQUIRE(bench.notices().size() == 1);
  CHECK(bench.notices().front() ==
        "host a is set aside: 3 trials failed there with a cause that other hosts do not have: broken");
  bench.report(1);
  const auto again = bench.send(ht::Finished{1, 0}).command<ht::Launch>();
  CHECK(again.allocation.lead.host_name == "b");
  CHECK(again.attempt == 1);
  SECTION("it is found to be the trials': it counts, and the host is used again") {
    bench.fail(again.trial, 1, ht::FailureSource::user);
    bench.report(2).send(ht::Finished{2, 0});
    const auto last = bench.command<ht::Launch>();
    CHECK(last.allocation.lead.host_name == "c");
    bench.fail(last.trial, last.attempt, ht::FailureSource::user);
    REQUIRE_FALSE(bench.notices().empty());
    CHECK(bench.notices().front() == "host a is used again: what was laid against it is no better elsewhere");
    CHECK(bench.trial(last.trial).state == TrialState::failed);
    CHECK(bench.commands<ht::Launch>().size() == 2);
  }
  SECTION("every other trial completes elsewhere") {
    std::vector<std::pair<std::string, ht::Launch>> running{{"b", again}};
    bench.report(2).send(ht::Finished{2, 0});
    running.emplace_back("c", bench.command<ht::Launch>());
    while (!running.empty()) {
      const auto go = running.back().second;
      running.pop_back();
      CHECK(go.allocation.lead.host_name != "a");
      bench.report(go.trial, 1, go.attempt).send(ht::Finished{go.trial, go.attempt});
      for (const auto& launch : bench.commands<ht::Launch>())
        running.emplace_back(launch.allocation.lead.host_name, launch);
    }
    CHECK(bench->finished());
    CHECK(bench.count(TrialState::completed) == 30);
  }
}

TEST_CASE("a retry does not wait for a host that was taken away, and counts where no other is left") {
  Bench bench({.samples = 3, .failures = {.max = 1}}, {host("a"), host("b")});
  REQUIRE(bench.fill().commands<ht::Launch>().size() == 2);
  bench.send(ht::HostLost{.host = 1, .why = "it was taken from the list", .removed = true});
  bench.send(ht::Failed{
      1, 0, ht::Cause{.source = ht::FailureSource::preemption, .text = "its host was removed", .retry = true}});
  const auto again = bench.fail(0, 0, ht::FailureSource::user).command<ht::Launch>();
  CHECK(again.allocation.lead.host_name == "a");
  CHECK(bench.trial(0).failures == 1);
}

TEST_CASE("what fails while a person's wish is carried out is the experiment's own, and ends it") {
  Bench bench({.samples = 9, .resources = [](const ht::Params&) -> ht::Resources {
                 throw ht::Error(ht::Errc::usage, "resources() is broken");
               }});
  ht::Outcome out;
  CHECK_THROWS_WITH(bench->carry_out({.kind = ht::ControlRequest::Kind::note, .params = {{"a", true}}}, 1, out),
                    ContainsSubstring("resources() is broken"));
}

TEST_CASE("a mistake of the trials' own costs few attempts more, and no host") {
  Bench bench({.samples = 40}, {host("a", 2), host("b", 2), host("c", 2)});
  std::vector<ht::Launch> running = bench.fill().commands<ht::Launch>();
  int attempts = 0;
  while (!running.empty()) {
    const auto go = running.front();
    running.erase(running.begin());
    ++attempts;
    bench.fail(go.trial, go.attempt, ht::FailureSource::user);
    for (const auto& launch : bench.commands<ht::Launch>()) running.push_back(launch);
  }
  CHECK(bench->finished());
  CHECK(bench.count(TrialState::failed) == 40);
  CHECK(attempts <= 40 + 6);
}

TEST_CASE("of each attempt that does not count yet, as it may be the host's doing, one notice tells") {
  using Lines = std::vector<std::string>;
  ht::ControlRules rules{.samples = 1};
  rules.tell_changes = true;
  Bench bench(rules, {host("a"), host("b"), host("c")});
  REQUIRE(bench.fill().command<ht::Launch>().allocation.lead.host_name == "a");
  const std::string rest = " and is tried on another host first, so that this does not count yet: ";
  CHECK(bench.fail(0, 0, ht::FailureSource::user).notices() == Lines{"trial 0 failed on host a" + rest + "broken"});
  const auto second = bench.command<ht::Launch>().allocation.lead.host_name;
  CHECK(bench.fail(0, 0, ht::FailureSource::user).notices().empty());  // it is over
  CHECK(bench.send(ht::Finished{0, 1}).notices() ==
        Lines{"trial 0 failed on host " + second + rest + "ended without a report of 'loss'"});
  CHECK(bench.fail(0, 2, ht::FailureSource::user).notices().empty());  // this one counts
  CHECK(bench.trial(0).state == TrialState::failed);
  Bench excluding(rules, {host("a"), host("b")});
  excluding.fill();
  CHECK(excluding.fail(0, 0, ht::FailureSource::user, true, true).notices() ==
        Lines{"host a is not used any more: broken"});
}

TEST_CASE("a retry goes to another host, also where it counts") {
  Bench bench({.samples = 1, .failures = {.max = 5}}, {host("a", 2), host("b", 2), host("c", 2)});
  std::set<std::string> hosts{bench.fill().command<ht::Launch>().allocation.lead.host_name};
  hosts.insert(bench.fail(0, 0, ht::FailureSource::user).command<ht::Launch>().allocation.lead.host_name);
  hosts.insert(bench.fail(0, 1, ht::FailureSource::user).command<ht::Launch>().allocation.lead.host_name);
  CHECK(hosts.size() == 3);
  CHECK(bench.trial(0).failures == 0);
  for (ht::Attempt attempt = 2; attempt < 7; ++attempt)
    CHECK(bench.fail(0, attempt, ht::FailureSource::user).commands<ht::Launch>().size() ==
          1);  // nowhere else to go: it counts
  CHECK(bench.fail(0, 7, ht::FailureSource::user).commands<ht::Launch>().empty());
  CHECK(bench.trial(0).failures == 6);
}

TEST_CASE("a retry goes to another host where the cause is known on all of them") {
  Bench bench({.samples = 4, .failures = {.max = 3}}, {host("a", 2), host("b", 2)});
  REQUIRE(bench.fill().commands<ht::Launch>().size() == 4);                         // 0 and 2 on a, 1 and 3 on b
  CHECK(bench.fail(1, 0, ht::FailureSource::user).commands<ht::Launch>().empty());  // b has room: it waits for a
  const auto both = bench.fail(0, 0, ht::FailureSource::user).commands<ht::Launch>();
  CHECK(bench.trial(0).failures == 1);  // it has been seen on b as well
  REQUIRE(both.size() == 2);
  CHECK(both[0].trial == 0);
  CHECK(both[0].allocation.lead.host_name == "b");
  CHECK(both[1].trial == 1);
  CHECK(both[1].allocation.lead.host_name == "a");
}

TEST_CASE("a trial that ends without a report is tried on another host, once it is clear that it is its own it fails") {
  Bench bench({.samples = 1}, {host("a"), host("b")});
  CHECK(bench.fill().command<ht::Launch>().allocation.lead.host_name == "a");
  CHECK(bench.send(ht::Finished{0, 0}).command<ht::Launch>().allocation.lead.host_name == "b");
  bench.send(ht::Finished{0, 1});
  CHECK(bench.records<record::TrialEnded>().at(0).cause->text == "ended without a report of 'loss'");
}

TEST_CASE("a retry waits for a host that is lost for a while, not for one that stays away") {
  Bench bench({.samples = 1, .failures = {.max = 1}}, {host("a"), host("b")});
  CHECK(bench.fill().command<ht::Launch>().allocation.lead.host_name == "a");
  bench.send(ht::HostLost{1, "no answer"});
  CHECK(bench.fail(0, 0, ht::FailureSource::user).commands<ht::Launch>().empty());
  CHECK_THAT(bench->why_pending(0), ContainsSubstring("host 'b': no answer"));
  SECTION("it comes back") {
    CHECK(bench.send(ht::HostGained{1}).command<ht::Launch>().allocation.lead.host_name == "b");
  }
  SECTION("it does not") {
    int told = 1;
    while (bench.send(ht::HostLost{1, "no answer"}).commands<ht::Launch>().empty()) REQUIRE(++told < 20);
    CHECK(bench.commands<ht::Launch>().front().allocation.lead.host_name == "a");
  }
}

TEST_CASE("no trial is placed on a host that is not there yet, and one that only such a host may hold is waited for") {
  Bench bench(needing([](std::int64_t n) { return n == 0 ? 8.0 : 0.0; }, 3),
              {host("a"), {.name = "b", .total = {.cpus = 0}, .presence = ht::Presence::unknown}});
  bench.fill();
  for (const auto& go : bench.commands<ht::Launch>()) CHECK(go.allocation.lead.host_name == "a");
  CHECK(bench.commands<ht::Launch>().size() == 2);
  CHECK(bench.trial(0).state == TrialState::pending);
  bench.send(ht::HostLost{1, "is being connected to"});
  CHECK(bench.records<record::HostLost>().size() == 1);
  const auto go = bench.send(ht::HostGained{1, host("b", 8)}).command<ht::Launch>();
  CHECK(go.trial == 0);
  CHECK(go.allocation.lead.host_name == "b");
}

TEST_CASE("ordered: a host that was asked for has its slots from the start, and who is placed there waits for it") {
  ht::ControlRules rules = needing([](std::int64_t) { return 1.0; }, 3);
  rules.ordered = true;
  Bench bench(std::move(rules), {host("a", 1), host("b", 1)});
  bench->expect_hosts({0, 1}, 0);
  CHECK(bench.fill().commands<ht::Launch>().empty());
  CHECK(bench.notices().empty());  // it was never there, so that it does not come back
  CHECK(bench.records<record::TrialStarted>().size() == 2);
  CHECK(bench->held() == 2);
  CHECK(bench->why_pending(0) == "waits for host 'a'");
  CHECK(bench.send(ht::HostLost{0, "waits in a queue"}).records<record::HostLost>().empty());  // nobody has lost it
  CHECK(bench.commands<ht::Launch>().empty());
  CHECK(bench.notices().empty());
  CHECK(bench->why_pending(0) == "waits for host 'a': waits in a queue");
  const auto second = bench.send(ht::HostGained{1}).command<ht::Launch>();
  CHECK(second.trial == 1);
  CHECK(bench->held() == 1);
  CHECK(bench->why_pending(1).empty());
  CHECK(second.allocation.lead.host_name == "b");
  CHECK(bench.send(ht::HostGained{0}).command<ht::Launch>().trial == 0);
}

TEST_CASE("a host that is set aside is still so for a replay, and tried again by a new driver") {
  const std::vector<ht::Host> hosts{host("a"), host("b")};
  std::vector<record::Any> history;
  Bench before({.samples = 9}, hosts);
  const auto keep = [&] {
    for (const auto& one : before.records<record::TrialCreated>()) history.emplace_back(one);
    for (const auto& one : before.records<record::AttemptFailed>()) history.emplace_back(one);
    for (const auto& one : before.records<record::TrialStarted>()) history.emplace_back(one);
  };
  before.fill();
  keep();
  for (const ht::TrialId trial : {0, 2, 3}) {
    before.fail(trial, 0, ht::FailureSource::user);
    keep();
  }
  REQUIRE(before.notices().size() == 1);
  Bench after({.samples = 9}, hosts, history);
  for (const ht::TrialId trial : {0, 2, 3}) {
    CHECK(after.trial(trial).state == TrialState::pending);
    CHECK(after.trial(trial).failures == 0);
  }
  const auto [notices, launched] = after.finish_replay().fill_on();
  CHECK(notices.empty());
  CHECK(launched == std::vector<std::string>{"a", "b"});
  Bench outlived({.samples = 9}, hosts, history);
  CHECK(outlived.finish_replay(true).fill_on().first == before.notices());
}

TEST_CASE("more failed trials than allowed end the experiment, and what runs is stopped first") {
  Bench bench({.samples = 100, .failures = {.max_trials = 2}}, {host("a", 2)});
  bench.fill();
  bench.fail(0, 0, ht::FailureSource::user);
  bench.fail(1, 0, ht::FailureSource::infrastructure);
  CHECK_FALSE(bench->why_ended());
  CHECK(bench.fail(2, 0, ht::FailureSource::user).command<ht::Stop>().trial == 3);
  CHECK(bench->why_ended() == "more than 2 trials failed");
  CHECK_FALSE(bench->finished());
  CHECK(bench.report(3).commands<ht::Continue>().empty());  // it has been told to stop: nothing else is said
  bench.send(ht::Stopped{3, 0});
  CHECK(bench.records<record::TrialEnded>().at(0).cause->text == "more than 2 trials failed");
  CHECK(bench->finished());
}

TEST_CASE("who calls the metric otherwise is told what was reported") {
  const auto cause = [](bool given) {
    Bench bench({.samples = 1, .metric_given = given});
    bench.fill();
    for (int step = 0; step < 2; ++step) bench.send(ht::Reported{0, 0, ht::Report({{"acc", 1.0}, {"los", 1.0}}), {}});
    bench.send(ht::Finished{0, 0});
    return bench.records<record::TrialEnded>().at(0).cause->text;
  };
  CHECK(cause(true) == "ended without a report of 'loss'; reported were: acc, los; is 'los' meant?");
  CHECK(cause(false) ==
        "ended without a report of 'loss'; reported were: acc, los; the metric is 'loss' where .metric is not set: set "
        "it");
}

TEST_CASE("a metric that is likely called otherwise is told of at the first report, once") {
  const auto notices = [](bool given, const char* reported) {
    Bench bench({.samples = 1, .metric_given = given});
    bench.fill();
    std::vector<std::string> all;
    for (int step = 0; step < 3; ++step) {
      bench.send(ht::Reported{0, 0, ht::Report({{reported, 1.0}}), {}});
      all.insert(all.end(), bench.notices().begin(), bench.notices().end());
    }
    return all;
  };
  CHECK(notices(true, "los") == std::vector<std::string>{"trial 0 has not reported 'loss' yet, without which it fails; "
                                                         "reported were: los; is 'los' meant?"});
  CHECK(notices(false, "height").size() == 1);
  CHECK(notices(true, "height").empty());  // it may come at another step
  CHECK(notices(true, "loss").empty());
}

TEST_CASE("a trial that ends without a report of the metric has failed") {
  Bench bench({.samples = 1});
  bench.fill();
  bench.send(ht::Reported{0, 0, ht::Report({{"accuracy", 1.0}}), {}});
  bench.send(ht::Finished{0, 0});
  CHECK(bench.records<record::TrialEnded>().at(0).cause->text ==
        "ended without a report of 'loss'; reported were: accuracy");
  CHECK(bench.trial(0).state == TrialState::failed);
}

TEST_CASE("a host that is on its way is no loss, and says what is waited for before there is a trial") {
  Bench bench({.samples = 2}, {{.name = "worker-1", .total = {.cpus = 2}, .presence = ht::Presence::coming}});
  bench.fill();
  CHECK(bench.send(ht::HostLost{.host = 0, .why = "waits in a queue", .coming = true})
            .records<record::HostLost>()
            .empty());
  ht::Outcome out;
  CHECK(bench->carry_out({.kind = ht::ControlRequest::Kind::why}, 1, out).text ==
        "no trial runs: waits for a worker: worker-1: waits in a queue");
  CHECK(bench.send(ht::HostGained{0}).commands<ht::Launch>().size() == 2);
  CHECK(bench->carry_out({.kind = ht::ControlRequest::Kind::why}, 2, out).text == "");
  CHECK(bench.send(ht::HostLost{0, "no answer"}).records<record::HostLost>().size() == 1);
}

TEST_CASE("what dies while the experiment is interrupted was taken away with it") {
  Bench bench({.samples = 1, .failures = {.max = 0}});
  bench.fill();
  bench.interrupt_now();
  bench.fail(0, 0, ht::FailureSource::infrastructure);
  const auto failed = bench.records<record::AttemptFailed>();
  REQUIRE(failed.size() == 1);
  CHECK(failed.front().cause.source == ht::FailureSource::preemption);
  CHECK(failed.front().cause.text == "interrupted");
  CHECK(failed.front().retry);
}

TEST_CASE("every pending trial says why it waits") {
  SECTION("no room now") {
    Bench bench(needing([](std::int64_t n) { return n == 0 ? 1.0 : 2.0; }, 2), {host("a", 2)});
    bench.fill();
    CHECK(bench->why_pending(0).empty());  // it runs
    CHECK(bench->why_pending(1) == "waits for 2 cpus: on host 'a' 1 of 2 cpus are in use");
    bench.send(ht::Finished{0, 0});
    CHECK(bench->why_pending(0).empty());  // it has ended
    CHECK(bench->why_pending(1).empty());
  }
  SECTION("concurrency, and a lost host") {
    ht::ControlRules rules = needing([](std::int64_t n) { return n == 0 ? 2.0 : 1.0; }, 3);
    rules.concurrency = 1;
    Bench bench(std::move(rules), {host("a", 2), host("b", 1)});
    bench.send(ht::HostLost{0, "no answer"});
    CHECK(bench.command<ht::Launch>().allocation.lead.host_name == "b");
    CHECK(bench->why_pending(0) == "waits for a running trial to leave: concurrency is 1");
    CHECK(bench.report(1).send(ht::Finished{1, 0}).command<ht::Launch>().trial == 2);
    bench.report(2).send(ht::Finished{2, 0});
    CHECK(bench->why_pending(0) == "waits for a host that is lost now to come back: host 'a': no answer");
    CHECK_FALSE(bench->finished());
    CHECK(bench.send(ht::HostGained{0}).command<ht::Launch>().trial == 0);
  }
  SECTION("paused") {
    Bench bench({.samples = 2});
    bench.script().on_report = [](const ht::Progress&) { return Decision::pause; };
    bench.fill().report(0).send(ht::Paused{0, 0, true});
    CHECK(bench->why_pending(0) == "paused by the scheduler: it waits to be chosen");
  }
  SECTION("interrupted") {
    Bench bench({.samples = 1, .failures = {.max = 1}});
    bench.fill();
    bench->interrupt();
    bench.fail(0, 0, ht::FailureSource::user);
    CHECK(bench->why_pending(0) == "the experiment was interrupted: resume it");
  }
}

TEST_CASE("small trials pass a big one that waits for room, but only so many") {
  Bench bench(needing([](std::int64_t n) { return n == 0 ? 1.0 : n == 4 ? 1.0 : 2.0; }, 100), {host("a", 2)});
  const auto first = bench.fill().commands<ht::Launch>();
  REQUIRE(first.size() == 2);
  CHECK(first[0].trial == 0);
  CHECK(first[1].trial == 4);
  CHECK(bench.send(ht::Finished{0, 0}).commands<ht::Launch>().empty());  // nothing small in sight
  CHECK(bench.count(TrialState::pending) == 16);
  CHECK(bench.send(ht::Finished{4, 0}).command<ht::Launch>().trial == 1);  // the first that waits is served first
}

TEST_CASE("a trial that no host can ever hold fails alone") {
  Bench bench(needing([](std::int64_t n) { return n % 2 == 0 ? 64.0 : 1.0; }, 4));
  CHECK(bench.fill().command<ht::Launch>().trial == 1);
  CHECK(bench.records<record::TrialEnded>().at(0).cause->text ==
        "needs 64 cpus, which no host has (host 'a' has 1 cpus)");
  CHECK(bench.records<record::TrialEnded>().at(0).cause->source == ht::FailureSource::infrastructure);
  bench.send(ht::Finished{1, 0});
  CHECK(bench.send(ht::Finished{3, 0}).commands<ht::Launch>().empty());
  CHECK(bench->finished());
  CHECK_FALSE(bench->why_ended());
}

TEST_CASE("resources that ask the impossible of every trial end an experiment that has no number of samples") {
  const std::string why =
      "no trial can run: the last 1000 asked for what no host has, this one needs 64 cpus, which no host has "
      "(host 'a' has 1 cpus)";
  SECTION("of the first on") {
    Bench bench(needing([](std::int64_t) { return 64.0; }, 0));
    bench.fill();
    CHECK(bench->finished());
    CHECK(bench->why_ended() == why);
    CHECK(bench.count(TrialState::failed) == 1000);
  }
  SECTION("while another runs") {
    Bench bench(needing([](std::int64_t n) { return n == 0 ? 1.0 : 64.0; }, 0), {host("a", 1)});
    bench.fill();
    CHECK(bench->why_ended() == why);
    bench.send(ht::Stopped{0, 0});
    CHECK(bench->finished());
  }
  SECTION("not where possible ones come between") {
    Bench bench(needing([](std::int64_t n) { return n % 900 == 899 ? 1.0 : 64.0; }, 0));
    bench.fill();
    for (int i = 1; i <= 5; ++i) CHECK(bench.send(ht::Finished{900 * i - 1, 0}).commands<ht::Launch>().size() == 1);
    CHECK_FALSE(bench->why_ended());
  }
}

TEST_CASE("a paused trial is resumed where it was: as it is held, or from its checkpoint") {
  const bool parked = GENERATE(true, false);
  Bench bench({.samples = 2, .checkpoint = {.every = 100}});
  bench.script().on_report = [](const ht::Progress& p) { return p.steps == 2 ? Decision::pause : Decision::proceed; };
  bench.fill().report(0);
  CHECK(bench.report(0).command<ht::Pause>().save);
  bench.checkpoint(0, 2);
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.paused > 0 ? Choice::resume(0) : Choice::start_new();
  };
  const auto again = bench.send(ht::Paused{0, 0, parked}).command<ht::Launch>();
  CHECK(again.trial == 0);
  CHECK(again.parked == parked);
  CHECK(again.attempt == (parked ? 0 : 1));
  CHECK(again.next_step == 2);
  CHECK(again.restore.size() == (parked ? 0 : 1));
  CHECK(bench.report(0, 1, again.attempt).command<ht::Continue>().trial == 0);
  CHECK(bench.trial(0).steps == 3);
}

TEST_CASE("a trial that is promoted while it still leaves its slot waits until it has left") {
  Bench bench({.samples = 9}, {host("a", 2)});
  bench.fill();
  bench.script().on_report = [](const ht::Progress& p) { return p.trial == 0 ? Decision::pause : Decision::complete; };
  bench.report(0).command<ht::Pause>();
  bench.script().choose_next = [](const ht::Pool&) { return Choice::resume(0); };
  bench.report(1).command<ht::Stop>();
  CHECK(bench.send(ht::Stopped{1, 0}).commands<ht::Launch>().empty());  // a slot is free, but trial 0 is not
  CHECK(bench.trial(1).state == TrialState::completed);
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.paused > 0 ? Choice::resume(0) : Choice::wait();
  };
  CHECK(bench.send(ht::Paused{0, 0, true}).command<ht::Launch>().parked);
}

TEST_CASE("stopping a paused trial drops the run that is held, and expects no answer") {
  const bool parked = GENERATE(true, false);
  Bench bench({.samples = 2});
  bench.script().on_report = [](const ht::Progress&) { return Decision::pause; };
  bench.fill().report(0);
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.paused > 0 ? Choice::stop(0) : Choice::start_new();
  };
  bench.send(ht::Paused{0, 0, parked});
  REQUIRE(bench.commands<ht::Stop>().size() == (parked ? 1 : 0));
  if (parked) CHECK(bench.commands<ht::Stop>().front().attempt == 0);
  CHECK(bench.records<record::TrialEnded>().at(0).cause->text == "scheduler");
  CHECK(bench.commands<ht::Launch>().at(0).trial == 1);
  CHECK(bench.send(ht::Stopped{0, 0}).quiet());  // one that comes all the same changes nothing
}

TEST_CASE("the scheduler's words are the cause of what it stops, the same ones after a restart") {
  Script strict;
  strict.on_report = [](const ht::Progress& p) {
    return p.loss() > 5 ? Decision::pause : p.loss() > 1 ? Decision::stop : Decision::proceed;
  };
  strict.why = [](ht::TrialId trial) { return "at rung 1 of trial " + std::to_string(trial); };
  Bench bench({.samples = 3}, {host("a"), host("b"), host("c")});
  bench.script() = strict;
  std::vector<record::Any> history;
  const auto keep = [&] {
    for (const auto& what : bench.all_records()) history.push_back(what);
  };
  bench.fill();
  keep();
  bench.report(0, 2);
  keep();
  const auto until_then = history;
  bench.report(1, 1);  // another one's report comes before the end
  bench.send(ht::Stopped{0, 0});
  const std::string why = "stopped by custom at rung 1 of trial 0";
  CHECK(bench.records<record::TrialEnded>().at(0).cause->text == why);
  // A driver that died before it could say so: the next one does.
  Bench next({.samples = 3}, {host("a"), host("b"), host("c")}, until_then, strict);
  next.finish_replay();
  REQUIRE(next.records<record::TrialEnded>().size() == 1);
  CHECK(next.records<record::TrialEnded>().at(0).cause->text == why);
  // Of paused trials that it stops, and of those that wait when all is over.
  bench.report(2, 9);
  bench.script().choose_next = [](const ht::Pool& pool) { return pool.paused > 0 ? Choice::stop(2) : Choice::wait(); };
  bench.send(ht::Paused{2, 0, false});
  CHECK(bench.records<record::TrialEnded>().at(0).cause->text == "stopped by custom at rung 1 of trial 2");
  CHECK(record::gave_up(why));
  CHECK(record::gave_up("scheduler"));  // of earlier versions
  CHECK_FALSE(record::gave_up("10 steps done"));
}

TEST_CASE("a trial whose program has ended is not stopped, and a restart decides the same") {
  Script strict;
  strict.on_report = [](const ht::Progress&) { return Decision::stop; };
  const auto over = [](ht::TrialId trial, double loss, int step) {
    ht::Report report({{"loss", loss}});
    report.step = step;
    report.over = true;
    return ht::Reported{trial, 0, std::move(report), {}};
  };
  strict.exploits = false;
  Bench bench({.samples = 3}, {host("a", 3)}, strict);
  std::vector<record::Any> history;
  const auto keep = [&] {
    for (const auto& what : bench.all_records()) history.push_back(what);
  };
  bench.fill();
  keep();
  bench.send(over(0, 5, 0));
  bench.command<ht::Continue>();
  REQUIRE(bench.records<record::TrialReported>().size() == 1);
  CHECK(bench.records<record::TrialReported>().at(0).over);
  keep();
  // Without it the same report ends a trial.
  bench.report(1).command<ht::Stop>();
  // Its driver dies: the trial runs again, and does what it did.
  Bench next({.samples = 3}, {host("a", 3)}, history, strict);
  next.finish_replay();
  CHECK(next.records<record::TrialEnded>().empty());
  CHECK(next.trial(0).owed == Decision::proceed);
  SECTION("the end of the experiment, an interrupt and workers to be lost do not stop it either") {
    bench.interrupt_now();
    for (const auto& stop : bench.commands<ht::Stop>()) CHECK(stop.trial == 2);
    CHECK(bench.commands<ht::Stop>().size() == 1);
    bench.send(over(0, 1, 1));
    bench.command<ht::Continue>();
  }
  bench.send(ht::Finished{0, 0});
  REQUIRE(bench.records<record::TrialEnded>().size() == 1);
  CHECK(bench.records<record::TrialEnded>().at(0).state == TrialState::completed);
}

TEST_CASE("a population's member whose program has ended pauses, to go on from another state") {
  Bench bench({.samples = 1});
  bench.script().on_report = [](const ht::Progress& p) { return p.loss() > 1 ? Decision::stop : Decision::pause; };
  bench.fill();
  ht::Report report({{"loss", 2}});
  report.over = true;
  bench.send(ht::Reported{0, 0, report, {}}).command<ht::Continue>();
  report.metrics.front().second = 1;
  bench.send(ht::Reported{0, 0, report, {}}).command<ht::Pause>();
  CHECK(bench.interrupt_now().commands<ht::Stop>().size() == 1);
}

TEST_CASE("what a runner has seen of a program is said once") {
  Bench bench({.samples = 2}, {host("a", 2)});
  bench.fill();
  for (ht::TrialId trial = 0; trial < 2; ++trial) {
    ht::Report report({{"loss", 1}});
    report.remark = "printed all at once";
    bench.send(ht::Reported{trial, 0, std::move(report), {}});
    if (trial == 0)
      CHECK(bench.notices() == std::vector<std::string>{"trial 0 printed all at once (said once)"});
    else
      CHECK(bench.notices().empty());
  }
}

TEST_CASE("metrics and attributes whose names have control characters are left out, and said once") {
  Bench bench({.samples = 2}, {host("a", 2)});
  bench.fill();
  for (ht::TrialId trial = 0; trial < 2; ++trial) {
    ht::Report report({{"loss", 1}, {"two\nlines", 2}, {"bell\a", 3}});
    report.attributes.set("a\tb", std::string("x"));
    report.attributes.set("kept", std::string("x"));
    bench.send(ht::Reported{trial, 0, std::move(report), {}});
    REQUIRE(bench.records<record::TrialReported>().size() == 1);
    CHECK(bench.records<record::TrialReported>().at(0).metrics == ht::Metrics{{"loss", 1}});
    CHECK(bench.records<record::AttributesSet>().at(0).attributes.size() == 1);
    const std::string said =
        "trial 0: the name of the metric 'two?lines' has control characters ('?'), such as a line break: "
        "it is left out (said once)";
    CHECK(std::count(bench.notices().begin(), bench.notices().end(), said) == (trial == 0 ? 1 : 0));
  }
}

TEST_CASE("units that differ between trials are noted with the experiment, and said once") {
  Bench bench({.samples = 3}, {host("a", 3)});
  bench.fill();
  const auto report = [&](ht::TrialId trial, const std::string& unit) {
    ht::Report made({{"loss", 1}});
    made.units = {{"loss", unit}};
    bench.send(ht::Reported{trial, 0, std::move(made), {}});
    const auto set = bench.records<record::AttributesSet>();
    return set.empty() ? "" : ht::to_string(*set.at(0).attributes.find("unit of loss"));
  };
  CHECK(report(1, "ms") == "ms (trial 1)");
  CHECK(report(0, "ms") == "");
  CHECK(bench.notices().empty());
  const std::string said =
      "ms in trial 1, s in trial 2: values in different units cannot be compared; print one unit always, or name it: "
      "metrics: {loss: {match: …, unit: seconds}}";
  CHECK(report(2, "s") == said);
  CHECK(bench.notices() == std::vector<std::string>{"the unit of 'loss' is " + said});
  ht::Report again({{"loss", 1}});
  again.step = 1;
  again.units = {{"loss", "min"}};
  bench.send(ht::Reported{0, 0, std::move(again), {}});
  CHECK(bench.records<record::AttributesSet>().empty());
  CHECK(bench.notices().empty());
}

TEST_CASE("a Stop that crosses Paused ends the run that is held after all") {
  Bench bench({.samples = 3, .failures = {.max_trials = 1}}, {host("a", 3)});
  bench.script().on_report = [](const ht::Progress&) { return Decision::pause; };
  bench.fill().report(0).command<ht::Pause>();
  bench.fail(1, 0, ht::FailureSource::user);
  CHECK(bench.fail(2, 0, ht::FailureSource::user).command<ht::Stop>().trial == 0);
  CHECK(bench.send(ht::Paused{0, 0, true}).command<ht::Stop>().trial == 0);
  CHECK(bench.trial(0).state == TrialState::stopped);
  CHECK(bench->finished());
}

TEST_CASE("paused trials that nobody will resume are stopped, so that every experiment ends") {
  Bench bench({.samples = 1});
  bench.script().on_report = [](const ht::Progress&) { return Decision::pause; };
  bench.fill().report(0);
  bench.script().choose_next = [](const ht::Pool&) { return Choice::wait(); };
  CHECK(bench.send(ht::Paused{0, 0, true}).command<ht::Stop>().trial == 0);
  CHECK(bench.trial(0).state == TrialState::stopped);
  CHECK(bench->finished());
}

TEST_CASE("an interrupt stops each run once, saved, at its next report; and the trials stay to be resumed") {
  Bench bench({.samples = 9}, {host("a", 2)});
  bench.fill();
  bench->interrupt();
  CHECK(bench.report(0).command<ht::Stop>().save);
  CHECK(bench.report(0).commands<ht::Stop>().empty());  // crossed the Stop
  SECTION("in peace") {
    CHECK(bench.report(1).command<ht::Stop>().trial == 1);
    bench.send(ht::Stopped{1, 0});
  }
  SECTION("by the second signal: the one that has not been told yet") {
    CHECK(bench.interrupt_now().command<ht::Stop>().trial == 1);
    CHECK(bench.interrupt_now().quiet());
    bench.send(ht::Stopped{1, 0});
  }
  SECTION("by failing just then") { bench.fail(1, 0, ht::FailureSource::preemption); }
  CHECK_FALSE(bench->finished());
  bench.send(ht::Stopped{0, 0});
  CHECK(bench.records<record::AttemptFailed>().at(0).cause.source == ht::FailureSource::preemption);
  CHECK(bench->finished());
  CHECK(bench->interrupted());
  CHECK(bench.count(TrialState::pending) == 2);
  CHECK(bench.trial(0).failures == 0);
}

TEST_CASE("events of an attempt that is over change nothing") {
  Bench bench({.samples = 1, .failures = {.max = 1}});
  bench.fill().report(0, 5);
  bench.fail(0, 0, ht::FailureSource::user);
  const ht::CheckpointInfo late = Bench::sealed(0, 2);
  CHECK(bench.send(ht::Started{0, 0, 1}).quiet());
  CHECK(bench.report(0, 1, 0).quiet());
  CHECK(bench.send(ht::Reported{0, 0, ht::Report({{"loss", 0.0}}), late}).quiet());
  CHECK(bench.checkpoint(0, 2, 0).quiet());
  CHECK(bench.send(ht::Paused{0, 0, true}).quiet());
  CHECK(bench.send(ht::Finished{0, 0}).quiet());
  CHECK(bench.send(ht::Stopped{0, 0}).quiet());
  CHECK(bench.fail(0, 0, ht::FailureSource::user, false, true).quiet());
  CHECK(bench.send(ht::Finished{7, 0}).quiet());  // nor does what was never begun
  CHECK(bench.send(ht::Finished{0, 9}).quiet());
  CHECK(bench.trial(0).state == TrialState::running);
  CHECK(bench->state().best_loss() == 5);
}

TEST_CASE("steps that are trained again after a restart are answered, but not counted again") {
  Bench bench({.samples = 1, .failures = {.max = 1}});
  bench.fill().report(0, 3).report(0, 2);
  bench.fail(0, 0, ht::FailureSource::user);
  bench.send(ht::Started{0, 1, 0});
  CHECK(bench.report(0, 3, 1).records<record::TrialReported>().empty());
  CHECK(bench.command<ht::Continue>().attempt == 1);
  CHECK(bench.report(0, 2, 1).records<record::TrialReported>().empty());
  CHECK(bench.report(0, 1, 1).records<record::TrialReported>().at(0).step == 2);
}

TEST_CASE("hosts that come and go are recorded once each time, and only those there get trials") {
  Bench bench({.samples = 9, .failures = {.max = 1}}, {host("a"), host("b")});
  bench.fill();
  bench.send(ht::HostLost{0, "no heartbeat"});
  REQUIRE(bench.records<record::HostLost>().size() == 1);
  CHECK(bench.records<record::HostLost>().front().host == "a");
  CHECK(bench.records<record::HostLost>().front().why == "no heartbeat");
  CHECK(bench.send(ht::HostLost{0, "no heartbeat"}).quiet());
  CHECK(bench.fail(0, 0, ht::FailureSource::infrastructure).commands<ht::Launch>().empty());
  CHECK(bench->why_pending(0) == "waits for 1 cpus: on host 'b' 1 of 1 cpus are in use");
  const auto back = bench.send(ht::HostGained{0}).command<ht::Launch>();
  CHECK(back.trial == 0);
  CHECK(back.allocation.lead.host_name == "a");
  CHECK(bench.records<record::HostGained>().size() == 1);
  CHECK(bench.send(ht::HostGained{0}).quiet());
}

TEST_CASE("what a lost host took is no failure of its trials, also if it is back before they are heard of") {
  Bench bench({.samples = 2, .failures = {.max = 0}}, {host("a"), host("b")});
  bench.fill();
  bench.send(ht::HostLost{0, "no heartbeat"});
  bench.send(ht::HostGained{0});
  CHECK(bench.fail(0, 0, ht::FailureSource::infrastructure).command<ht::Launch>().attempt == 1);
  CHECK(bench.trial(0).failures == 0);
  bench.send(ht::Started{0, 1, 0});
  bench.fail(0, 1, ht::FailureSource::infrastructure);  // this time it is that of its process alone
  bench.report(1).send(ht::Finished{1, 0});
  bench.fail(0, 2, ht::FailureSource::infrastructure);  // and on the other host, too
  CHECK(bench.trial(0).state == TrialState::failed);
}

TEST_CASE("an experiment waits for a host that may come back, and ends when the last one is lost for good") {
  Bench bench({.samples = 9, .failures = {.max = 1}});
  bench.fill();
  bench.send(ht::HostLost{0, "rebooted"});
  bench.fail(0, 0, ht::FailureSource::infrastructure);
  CHECK_FALSE(bench->finished());
  CHECK(bench.trial(0).state == TrialState::pending);
  bench.send(ht::HostLost{0, "sold", true});
  CHECK(bench->finished());
  CHECK(bench.trial(0).state == TrialState::failed);
  CHECK(bench->why_ended() == "no trial can run any more: every host is lost or excluded: host 'a': sold");
}

TEST_CASE("a scheduler that names a trial that is not there, or is over, is told so") {
  const bool stop = GENERATE(true, false);
  const auto choose = [&](ht::TrialId id) {
    return [stop, id](const ht::Pool&) { return stop ? Choice::stop(id) : Choice::resume(id); };
  };
  const auto message = [](Bench& bench, ht::Event event) {
    try {
      bench.send(std::move(event));
    } catch (const ht::Error& e) {
      CHECK(e.code() == ht::Errc::usage);
      return std::string(e.what());
    }
    return std::string("no error");
  };
  Bench bench({.samples = 9});
  bench.fill();
  bench.script().choose_next = choose(GENERATE(ht::TrialId{17}, ht::TrialId{-1}));
  CHECK_THAT(message(bench, ht::Finished{0, 0}), ContainsSubstring("which does not exist"));
  Bench other({.samples = 9});
  other.fill();
  other.script().choose_next = choose(0);
  CHECK_THAT(message(other, ht::Finished{0, 0}), ContainsSubstring("the scheduler chose trial 0, which has ended"));
}

TEST_CASE("checkpoints that a trial may restore from are kept until it has reported, however long ago it started") {
  Bench bench({.samples = 2, .failures = {.max = 5}, .checkpoint = {.every = 1, .keep = 2, .max_bytes = 200}},
              {host("a", 2)});
  bench.fill().report(0, 2);
  bench.checkpoint(0, 1, 0, 100);
  bench.report(0, 1);
  bench.checkpoint(0, 2, 0, 100);
  const auto again = bench.fail(0, 0, ht::FailureSource::user).command<ht::Launch>();
  REQUIRE(again.restore.size() == 2);
  CHECK(again.restore.front().steps == 2);
  bench.report(1, 9);
  CHECK(bench.checkpoint(1, 1, 0, 100).records<record::CheckpointDropped>().empty());    // too much, but all are needed
  CHECK(bench.send(ht::Started{0, 1, 2}).records<record::CheckpointDropped>().empty());  // it may read it yet
  SECTION("let go when it has") { bench.report(0, 1, 1); }
  SECTION("or when the attempt is over") {
    bench.send(ht::Stopped{0, 1});
    CHECK(bench.records<record::CheckpointDropped>().empty());  // the next attempt may need it as well
    CHECK(bench.send(ht::Started{0, 2, 2}).records<record::CheckpointDropped>().empty());
    bench.report(0, 1, 2);
  }
  REQUIRE(bench.records<record::CheckpointDropped>().size() == 1);
  CHECK(bench.records<record::CheckpointDropped>().front().checkpoint == Bench::sealed(0, 1, 100));
}

TEST_CASE("a trial that takes over a state of fewer steps keeps what it saves from then on") {
  Bench bench({.samples = 2, .checkpoint = {.keep = 1}}, {host("a")});
  bench.script().on_report = [](const ht::Progress&) { return Decision::pause; };
  bench.fill().report(0, 1);  // the donor: it stays at its first step
  bench.checkpoint(0, 1);
  bench.send(ht::Paused{0, 0, false});
  bench.report(1, 9);
  bench.checkpoint(1, 1);
  bench.script().choose_next = [](const ht::Pool&) { return Choice::resume(1); };
  for (ht::Attempt attempt = 1; attempt < 4; ++attempt) {  // three more steps, in an attempt each
    const int steps = static_cast<int>(attempt);
    bench.send(ht::Paused{1, attempt - 1, false});
    bench.send(ht::Started{1, attempt, steps});
    bench.report(1, 9, attempt);
    bench.checkpoint(1, steps + 1, attempt);
  }
  bench.script().choose_next = [](const ht::Pool&) { return Choice::exploit(1, 0, ht::Point{7.0}); };
  CHECK(bench.send(ht::Paused{1, 3, false}).records<record::TrialExploited>().size() == 1);
  CHECK(bench.commands<ht::Launch>().at(0).restore.front() == Bench::sealed(0, 1));
  bench.script().choose_next = [](const ht::Pool&) { return Choice::resume(1); };

  const auto save = [&](int steps, ht::Attempt attempt) {
    bench.send(ht::Started{1, attempt, steps - 1}).report(1, 5, attempt);
    std::set<std::string> dropped;
    bench.checkpoint(1, steps, attempt);
    for (const auto& drop : bench.records<record::CheckpointDropped>()) dropped.insert(drop.checkpoint.name);
    return dropped;
  };
  CHECK(save(2, 4) == std::set<std::string>{"step-4"});  // of the past that it has left
  const auto next = bench.send(ht::Paused{1, 4, false}).command<ht::Launch>();
  REQUIRE(next.restore.size() == 2);
  CHECK(next.restore.at(0) == Bench::sealed(1, 2));
  CHECK(next.restore.at(1) == Bench::sealed(0, 1));
  // A name of the past that it has left is given again, as its checkpoint is gone.
  const auto pause = [&](ht::Attempt attempt) {
    bench.send(ht::Paused{1, attempt, false});
    std::set<std::string> dropped;
    for (const auto& drop : bench.records<record::CheckpointDropped>()) dropped.insert(drop.checkpoint.name);
    return dropped;
  };
  CHECK(save(3, 5).empty());  // what it saved at its last pause may be taken over until the next
  CHECK(pause(5) == std::set<std::string>{"step-2"});
  CHECK(bench.command<ht::Launch>().restore.front() == Bench::sealed(1, 3));
  CHECK(save(4, 6).empty());
  CHECK(pause(6) == std::set<std::string>{"step-3"});
  CHECK(bench.command<ht::Launch>().restore.front() == Bench::sealed(1, 4));
}

TEST_CASE("what a donor is still saving is waited for") {
  Bench bench({.samples = 2}, {host("a", 2)});
  bench.script().on_report = [](const ht::Progress&) { return Decision::pause; };
  bench.fill().report(0, 1).report(1, 9);
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.paused > 0 ? Choice::exploit(1, 0, ht::Point{7.0}) : Choice::wait();
  };
  bench.checkpoint(1, 1).send(ht::Paused{1, 0, false});
  CHECK(bench.commands<ht::Launch>().empty());
  bench.checkpoint(0, 1);
  CHECK(bench.commands<ht::Launch>().empty());
  CHECK(bench.send(ht::Paused{0, 0, false}).commands<ht::Launch>().at(0).restore.front() == Bench::sealed(0, 1));
}

TEST_CASE("a donor gives the state that it is judged by, whatever it has saved since") {
  Bench bench({.samples = 2, .checkpoint = {.every = 1, .keep = 1}}, {host("a", 2)});
  bench.script().on_report = [](const ht::Progress& p) { return p.steps == 1 ? Decision::pause : Decision::proceed; };
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.more_trials ? Choice::start_new() : pool.paused > 0 ? Choice::resume(0) : Choice::wait();
  };
  bench.fill().report(0, 1);
  bench.checkpoint(0, 1);
  bench.send(ht::Paused{0, 0, false});
  bench.send(ht::Started{0, 1, 1}).report(0, 1, 1);
  const auto exploit = [](const ht::Pool& pool) {
    return pool.paused > 0 ? Choice::exploit(1, 0, ht::Point{7.0}) : Choice::wait();
  };
  SECTION("it is kept for that") {
    CHECK(bench.checkpoint(0, 2, 1).records<record::CheckpointDropped>().empty());
    bench.report(0, 1, 1);
    CHECK(bench.checkpoint(0, 3, 1).records<record::CheckpointDropped>().at(0).checkpoint == Bench::sealed(0, 2));
    bench.report(1, 9);
    bench.checkpoint(1, 1);
    bench.script().choose_next = exploit;
    CHECK(bench.send(ht::Paused{1, 0, false}).command<ht::Launch>().restore.front() == Bench::sealed(0, 1));
  }
  SECTION("unless it is lost") {
    bench.checkpoint(0, 2, 1);
    bench.send(ht::CheckpointLost{0, Bench::sealed(0, 1), "its checksum is wrong"});
    bench.report(1, 9);
    bench.checkpoint(1, 1);
    bench.script().choose_next = exploit;
    CHECK(bench.send(ht::Paused{1, 0, false}).command<ht::Launch>().restore.front() == Bench::sealed(0, 2));
  }
  SECTION("until it has ended") {
    bench.checkpoint(0, 2, 1);
    CHECK(bench.send(ht::Finished{0, 1}).records<record::CheckpointDropped>().at(0).checkpoint == Bench::sealed(0, 1));
  }
}

TEST_CASE("what a donor gives that does not save at its pauses does not depend on when its checkpoints arrive") {
  Bench bench({.samples = 2, .checkpoint = {.keep = 2}}, {host("a", 2)});
  bench.script().on_report = [](const ht::Progress& p) {
    return p.trial == 1 || p.steps % 2 == 0 ? Decision::pause : Decision::proceed;
  };
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.more_trials ? Choice::start_new() : pool.paused > 0 ? Choice::resume(0) : Choice::wait();
  };
  const bool saved_before = GENERATE(true, false);
  bench.fill().report(0, 1);
  if (saved_before) bench.checkpoint(0, 1);
  bench.report(0, 1);
  bench.send(ht::Paused{0, 0, true});
  bench.send(ht::Started{0, 0, 2}).report(0, 1);
  const bool arrived = GENERATE(true, false);
  INFO("arrived " << arrived);
  if (arrived) bench.checkpoint(0, 3);
  bench.report(1, 9);
  bench.checkpoint(1, 1);
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.paused > 0 ? Choice::exploit(1, 0, ht::Point{7.0}) : Choice::wait();
  };
  bench.send(ht::Paused{1, 0, false});
  const auto mutated = bench.records<record::TrialExploited>();
  if (saved_before) {
    REQUIRE(mutated.size() == 1);
    CHECK(mutated.front().checkpoint == Bench::sealed(0, 1));
  } else {
    CHECK(mutated.empty());
    CHECK_THAT(bench.notices().at(0), ContainsSubstring("trial 0 has no checkpoint to take over"));
  }
}

TEST_CASE("a checkpoint that arrives late is judged by the report that it was made after") {
  Bench bench({.samples = 1, .checkpoint = {.keep = 1, .keep_best = 1}}, {host("a")});
  bench.fill().report(0, 1).report(0, 9);
  CHECK(bench.checkpoint(0, 1).records<record::CheckpointDropped>().empty());
  CHECK(bench.checkpoint(0, 2).records<record::CheckpointDropped>().empty());
  bench.report(0, 8);
  CHECK(bench.checkpoint(0, 3).records<record::CheckpointDropped>().at(0).checkpoint == Bench::sealed(0, 2));
}

TEST_CASE("in order, what a lost host had keeps its place, and who finds no room elsewhere waits for it") {
  ht::ControlRules rules{.samples = 5};
  rules.ordered = true;
  rules.host_timeout = 100;
  Bench bench(rules, {host("a"), host("b")});
  bench.fill();
  REQUIRE(bench.count(TrialState::running) == 2);
  CHECK(bench.send(ht::HostLost{0, "cut off"}).commands<ht::Launch>().empty());
  bench.fail(0, 0, ht::FailureSource::infrastructure);
  CHECK(bench.commands<ht::Launch>().empty());
  REQUIRE(bench.notices().size() == 1);
  CHECK_THAT(bench.notices().front(),
             ContainsSubstring("trial 0 waits for host 'a' to come back") && ContainsSubstring("at most 100 s"));
  REQUIRE(bench->next_give_up());
  CHECK(bench.trial(0).state == TrialState::running);
  CHECK(bench->why_pending(0) == "waits for host 'a' to come back: cut off");
  SECTION("which is back") {
    const auto go = bench.send(ht::HostGained{0}).command<ht::Launch>();
    CHECK(go.trial == 0);
    CHECK(go.attempt == 1);
    CHECK(go.allocation.lead.host_name == "a");
    CHECK_FALSE(bench->next_give_up());
    bench.report(0, 1, 1);
    CHECK(bench.command<ht::Continue>().trial == 0);
  }
  SECTION("which is not back when there is room elsewhere: the next trial waits instead") {
    bench.report(1);  // else its end would be a failure that another host is tried for
    bench.send(ht::Finished{1, 0});
    bench.report(1);  // nothing runs there
    bench.fill();
    CHECK(bench.trial(0).attempts == 3);
    CHECK(bench.trial(2).state == TrialState::running);
    const auto go = bench.send(ht::HostGained{0}).command<ht::Launch>();
    CHECK(go.trial == 2);
    CHECK(go.allocation.lead.host_name == "a");
  }
  SECTION("which is lost for good, or taken from the list") {
    const bool for_good = GENERATE(true, false);
    bench.send(ht::HostLost{0, "gone", for_good, !for_good});
    CHECK(bench.trial(0).state == TrialState::pending);
    CHECK(bench.trial(0).failures == 0);
    bench.report(1);
    const auto go = bench.send(ht::Finished{1, 0}).command<ht::Launch>();
    CHECK(go.trial == 0);
    CHECK(go.allocation.lead.host_name == "b");
  }
  SECTION("for which its patience ends") {
    bench.tick(*bench->next_give_up());
    REQUIRE(bench.notices().size() == 1);
    CHECK_THAT(bench.notices().front(), ContainsSubstring("host 'a' has not come back within 100 s"));
    CHECK(bench.trial(0).state == TrialState::pending);
    CHECK_FALSE(bench->next_give_up());
    const auto go = bench.send(ht::HostGained{0}).command<ht::Launch>();
    CHECK(go.trial == 0);
    CHECK(go.allocation.lead.host_name == "a");
  }
  SECTION("and is stopped with all others") {
    bench.interrupt_now();
    CHECK(bench.command<ht::Stop>().trial == 1);
    CHECK(bench.trial(0).state == TrialState::pending);
    bench.send(ht::Stopped{1, 0});
    CHECK(bench->finished());
  }
}

TEST_CASE("a parked run goes on where it is held, or leaves it for another host with its checkpoint") {
  Bench bench({.samples = 3, .checkpoint = {.every = 1}}, {host("a"), host("b")});
  bool resumes = false;
  bench.script().on_report = [](const ht::Progress& p) { return p.trial == 0 ? Decision::pause : Decision::proceed; };
  bench.script().choose_next = [&](const ht::Pool& pool) {
    return pool.more_trials ? Choice::start_new() : resumes && pool.paused > 0 ? Choice::resume(0) : Choice::wait();
  };
  bench.fill().report(0, 1);
  const bool saved = GENERATE(false, true);
  if (saved) bench.checkpoint(0, 1);
  bench.send(ht::Paused{0, 0, true});  // trial 2 takes its place
  resumes = true;
  SECTION("there is room on its host, if on another as well") {
    resumes = false;
    bench.report(2).report(1).send(ht::Finished{1, 0});
    resumes = true;
    const auto go = bench.send(ht::Finished{2, 0}).commands<ht::Launch>().at(0);
    CHECK(go.allocation.lead.host_name == "a");
    CHECK(go.parked);
    CHECK(go.attempt == 0);
  }
  SECTION("there is none") {
    bench.report(1, 1).send(ht::Finished{1, 0});
    if (saved) {
      CHECK(bench.commands<ht::Stop>().at(0).attempt == 0);  // its process is let go
      const auto go = bench.commands<ht::Launch>().at(0);
      CHECK(go.allocation.lead.host_name == "b");
      CHECK_FALSE(go.parked);
      CHECK(go.attempt == 1);
      CHECK(go.restore.front() == Bench::sealed(0, 1));
    } else {
      CHECK(bench.commands<ht::Launch>().empty());
      CHECK(bench.report(2, 1).send(ht::Finished{2, 0}).commands<ht::Launch>().at(0).parked);
    }
  }
  SECTION("its host is lost") {
    bench.send(ht::HostLost{0, "it was unplugged", true});
    const auto go = bench.report(1, 1).send(ht::Finished{1, 0}).commands<ht::Launch>().at(0);
    CHECK(go.allocation.lead.host_name == "b");
    CHECK_FALSE(go.parked);
    CHECK(go.restore.size() == (saved ? 1 : 0));
  }
}

TEST_CASE("a host that is lost while a trial pauses there: the trial has paused if its state was saved") {
  Bench bench({.samples = 1, .checkpoint = {.every = 1}}, {host("a"), host("b")});
  bench.script().on_report = [](const ht::Progress& p) { return p.steps == 2 ? Decision::pause : Decision::proceed; };
  bench.script().choose_next = [](const ht::Pool& pool) {
    return pool.more_trials ? Choice::start_new() : Choice::wait();
  };
  bench.fill().report(0, 1);
  bench.checkpoint(0, 1);
  bench.report(0, 1);
  const bool saved = GENERATE(false, true);
  if (saved) bench.checkpoint(0, 2);
  bench.send(ht::HostLost{0, "it was unplugged", false});
  bench.fail(0, 0, ht::FailureSource::infrastructure);
  CHECK(bench.records<record::TrialPaused>().size() == (saved ? 1 : 0));
  CHECK(bench.records<record::AttemptFailed>().size() == (saved ? 0 : 1));
  CHECK(bench.commands<ht::Launch>().size() == (saved ? 0 : 1));
  if (!saved) CHECK(bench.send(ht::Started{0, 1, 1}).report(0, 1, 1).commands<ht::Pause>().size() == 1);
}

TEST_CASE(
    "of checkpoints that cannot be kept the first is told, then once a minute how many, and the rest at the end") {
  Bench bench({.samples = 1});
  bench.fill();
  const auto lose = [&](int steps) {
    bench.send(ht::SaveFailed{0, steps, "no space"});  // a second later each time
    return bench.notices();
  };
  CHECK(lose(1) == std::vector<std::string>{"trial 0: the checkpoint after 1 steps is lost: no space"});
  for (int steps = 2; steps <= 60; ++steps) CHECK(lose(steps).empty());
  CHECK(lose(61) ==
        std::vector<std::string>{
            "trial 0: the checkpoint after 61 steps is lost, and 59 before it since the last such line: no space"});
  CHECK((*bench).untold_save_failures() == std::nullopt);
  CHECK(lose(62).empty());
  CHECK((*bench).untold_save_failures() == "trial 0: the checkpoint after 62 steps is lost: no space");
  CHECK((*bench).untold_save_failures() == std::nullopt);
}

TEST_CASE("a checkpoint that is lost is offered no more") {
  Bench bench({.samples = 1, .failures = {.max = 5}, .checkpoint = {.every = 1}});
  bench.fill().report(0);
  bench.checkpoint(0, 1);
  bench.report(0);
  bench.checkpoint(0, 2);
  CHECK(bench.fail(0, 0, ht::FailureSource::user).command<ht::Launch>().restore.size() == 2);
  bench.send(ht::CheckpointLost{0, Bench::sealed(0, 2), "its checksum is wrong"});
  CHECK(bench.records<record::CheckpointDropped>().at(0).why == "its checksum is wrong");
  CHECK(bench.notices().at(0) ==
        "trial 0: checkpoint step-2 cannot be used (its checksum is wrong); trying the one before it");
  bench.send(ht::Started{0, 1, 1});
  const auto again = bench.fail(0, 1, ht::FailureSource::user).command<ht::Launch>();
  REQUIRE(again.restore.size() == 1);
  CHECK(again.next_step == 1);
  CHECK(bench.send(ht::CheckpointLost{7, Bench::sealed(7, 1), "no such trial"}).quiet());
}
