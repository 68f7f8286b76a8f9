// Trials of several workers: what the Controller decides, and whole experiments in virtual time.
#include "history.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/tune/detail/controller.hpp>

#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ht = hypertune;
namespace record = hypertune::record;

namespace {

ht::Host host(const std::string& name, double cpus) { return {.name = name, .total = {.cpus = cpus}}; }

ht::ControlRules rules_of(ht::Workers workers, std::int64_t samples, std::function<int(const ht::RunningGroup&)> resize,
                          ht::Seconds loss_patience, int every) {
  ht::ControlRules rules;
  rules.samples = samples;
  rules.workers = workers;
  rules.resources = [](const ht::Params&) { return ht::Resources{}; };
  rules.checkpoint = {.every = every};
  rules.failures.max = 3;
  rules.resize = std::move(resize);
  rules.loss_patience = loss_patience;
  rules.tell_changes = true;
  return rules;
}

/// A Controller with trials of several workers, and what its last call brought about.
struct Bench {
  ht::Controller controller;
  ht::Outcome out;
  ht::Seconds now = 0;
  std::vector<ht::Record> history = {};

  Bench(ht::Workers workers, std::int64_t samples, const std::vector<ht::Host>& hosts,
        std::function<int(const ht::RunningGroup&)> resize = {}, ht::Seconds loss_patience = 0, int every = 1)
      : controller(ht::ExperimentState(ht::space(ht::dim("x", ht::uniform(0.0, 1.0))), ht::Random{}, ht::Fifo{},
                                       {ht::minimize("loss")}, ht::StopCondition{}, ht::SearchContext{}),
                   rules_of(workers, samples, std::move(resize), loss_patience, every),
                   ht::Placement(hosts, {.network = "10.1.0.0/16"})) {}
  Bench& begin() {
    controller.open_session({}, now, out);
    controller.finish_replay(now, false, out);
    return next();
  }
  Bench& next() {
    keep();
    out.clear();
    controller.fill(now, out);
    keep();
    return *this;
  }
  Bench& send(ht::Event event) {
    out.clear();
    controller.handle(std::move(event), ++now, out);
    keep();
    return *this;
  }
  Bench& tick(ht::Seconds at) {
    out.clear();
    controller.tick(now = at, out);
    keep();
    return *this;
  }
  Bench& report(ht::TrialId trial, ht::Attempt attempt = 0) {
    return send(ht::Reported{trial, attempt, ht::Report({{"loss", 1.0}}), {}});
  }
  void keep() {
    for (const auto& what : out.records)
      history.push_back({.sequence = static_cast<std::int64_t>(history.size()) + 1, .time = now, .what = what});
  }
  template <class T>
  std::vector<T> commands() const {
    std::vector<T> found;
    for (const auto& command : out.commands)
      if (const auto* match = std::get_if<T>(&command)) found.push_back(*match);
    return found;
  }
  template <class T>
  std::vector<T> records() const {
    std::vector<T> found;
    for (const auto& what : out.records)
      if (const auto* match = std::get_if<T>(&what)) found.push_back(*match);
    return found;
  }
  double used() const { return controller.placement().usage().cpus_used; }
};

ht::Cause lost() { return {.source = ht::FailureSource::infrastructure, .text = "cut off"}; }
std::string names(const ht::Allocation& allocation) {
  std::string text;
  for (int rank = 0; rank < allocation.workers(); ++rank) text += allocation[rank].host_name;
  return text;
}

}  // namespace

TEST_CASE("all workers of a trial are launched at once, or it holds nothing and says what it waits for") {
  Bench bench({4}, 3, {host("a", 3), host("b", 3)});
  bench.begin();
  const auto launched = bench.commands<ht::Launch>();
  REQUIRE(launched.size() == 1);
  CHECK(launched[0].allocation.workers() == 4);
  CHECK(bench.used() == 4);
  const auto started = bench.records<record::TrialStarted>();
  REQUIRE(started.size() == 1);
  CHECK(started[0].others.size() == 3);
  CHECK(bench.controller.why_pending(0).empty());
  // One that a person wants waits, and says for what.
  bench.controller.add({{"x", 0.5}}, ++bench.now, bench.out);
  bench.next();
  CHECK(bench.commands<ht::Launch>().empty());
  CHECK(bench.controller.why_pending(1) == "waits for 4 workers with 1 cpu each: 2 are free");
  CHECK(bench.used() == 4);
  bench.report(0).send(ht::Finished{0, 0});
  CHECK(bench.commands<ht::Launch>().size() == 1);
  CHECK(bench.used() == 4);
}

TEST_CASE("a worker that is lost costs no failure, as long as the trial comes further now and then") {
  Bench bench({2}, 1, {host("a", 2)});
  bench.begin();
  ht::Attempt attempt = 0;
  const auto lose = [&] {
    bench.send(ht::Failed{0, attempt, lost()});
    const auto failed = bench.records<record::AttemptFailed>();
    REQUIRE(failed.size() == 1);
    const auto source = failed[0].cause.source;
    ++attempt;
    bench.next();
    return source;
  };
  for (int i = 0; i < 3; ++i) CHECK(lose() == ht::FailureSource::preemption);
  CHECK(lose() == ht::FailureSource::infrastructure);
  bench.report(0, attempt);
  CHECK(lose() == ht::FailureSource::preemption);
  // What its own code has done counts, whoever was lost before; three failures are allowed.
  for (int failures = 2; failures <= 4; ++failures, ++attempt) {
    bench.send(ht::Failed{0, attempt, {.text = "wrong"}});
    const auto failed = bench.records<record::AttemptFailed>();
    REQUIRE(failed.size() == 1);
    CHECK(failed[0].retry == (failures < 4));
    bench.next();
  }
}

TEST_CASE("a number of workers that no hosts can ever have is an error at once") {
  Bench bench({7}, 2, {host("a", 3), host("b", 3)});
  bench.begin();
  REQUIRE(bench.controller.why_ended());
  CHECK(*bench.controller.why_ended() ==
        "no trial can run any more: needs 7 workers with 1 cpu each, but the hosts have room for 6");

  const auto refused = [](ht::Workers workers, ht::AnyExecutor executor) {
    const TemporaryDirectory directory(TemporaryDirectory::memory());
    try {
      ht::Options options{.samples = 1, .executor = std::move(executor), .output = directory.path() / "run"};
      options.workers = workers;
      options.display = ht::Display::quiet;
      ht::tune(ht::space(ht::dim("x", ht::uniform(0.0, 1.0))), [](const ht::Params&) { return 1.0; }, options);
    } catch (const ht::Error& error) { return std::string(error.what()); }
    return std::string();
  };
  CHECK_THAT(refused({7}, ht::simulated({.pool = 6})), ContainsSubstring("needs 7 workers with 1 cpu each"));
  CHECK_THAT(refused({2}, ht::InlineExecutor()), ContainsSubstring("runs one worker for a trial, not 2"));
  CHECK_THAT(refused({.min = 0, .max = 2}, ht::simulated({})), ContainsSubstring("at least one worker, not 0"));
  CHECK_THAT(refused({.min = 3, .max = 2}, ht::simulated({})), ContainsSubstring("max must be min or more"));
}

TEST_CASE("lost workers are replaced where there is room; the others keep their order, and late words change nothing") {
  Bench bench({.min = 2, .max = 3}, 1, {host("a", 2), host("b", 2), host("c", 2)});
  bench.begin();
  const auto go = bench.commands<ht::Launch>().at(0);
  REQUIRE(names(go.allocation) == "aab");
  bench.report(0);
  CHECK(bench.commands<ht::Continue>().size() == 1);
  bench.send(ht::HostLost{0, "cut off"}).send(ht::MemberLost{0, 0, 0, {1, 0, 1}, lost()});
  const auto resize = bench.commands<ht::Resize>().at(0);
  CHECK(names(resize.allocation) == "bbc");
  CHECK(resize.allocation.generation == 1);
  CHECK(resize.from == std::vector{2, -1, -1});
  const auto resized = bench.records<record::TrialResized>().at(0);
  CHECK(resized.generation == 1);
  CHECK(resized.why == "2 of 3 workers were lost: cut off");
  CHECK(bench.used() == 3);
  CHECK(bench.send(ht::MemberLost{0, 0, 0, {2}, lost()}).out.commands.empty());  // of the generation before
  CHECK(bench.send(ht::Resized{0, 0, 0}).out.commands.empty());
  bench.send(ht::Resized{0, 0, 1}).report(0);
  CHECK(bench.controller.state().trials()[0].steps == 2);
  // What one that is left needs least.
  bench.send(ht::HostLost{1, "cut off"}).send(ht::MemberLost{0, 0, 1, {0, 1}, lost()});
  CHECK(names(bench.commands<ht::Resize>().at(0).allocation) == "cc");
  // Of the last two one is lost, and there is no room for another.
  bench.send(ht::MemberLost{0, 0, 2, {0}, lost()});
  CHECK(names(bench.commands<ht::Resize>().at(0).allocation) == "cc");  // its place is free, and as good as another
  bench.send(ht::HostLost{2, "cut off"});
  bench.send(ht::MemberLost{0, 0, 3, {1}, lost()});
  REQUIRE(bench.commands<ht::Stop>().size() == 1);
  CHECK(bench.commands<ht::Resize>().empty());
  bench.send(ht::Stopped{0, 0});
  const auto failed = bench.records<record::AttemptFailed>().at(0);
  CHECK(failed.retry);
  CHECK(failed.cause.text == "1 of 2 workers was lost: cut off");
  CHECK(bench.controller.state().trials()[0].failures == 0);  // hosts were lost
  CHECK(bench.used() == 0);
  bench.send(ht::HostGained{1});
  const auto again = bench.commands<ht::Launch>().at(0);
  CHECK(again.attempt == 1);
  CHECK(names(again.allocation) == "bb");
  CHECK(again.allocation.generation == 0);
}

TEST_CASE("workers that are lost within a moment make one change of workers, which names them all") {
  const auto killed = [](int rank, int signal = 9) {
    return ht::Cause{.source = ht::FailureSource::infrastructure,
                     .text = "rank " + std::to_string(rank) + ": killed by signal " + std::to_string(signal),
                     .rank = rank};
  };
  constexpr ht::Seconds patience = 10;  // Bench lets a second pass with each event
  Bench bench({.min = 1, .max = 5}, 1, {host("a", 5)}, {}, patience);
  bench.begin();
  CHECK_FALSE(bench.controller.next_give_up());
  bench.send(ht::MemberLost{0, 0, 0, {3}, killed(3)});
  const ht::Seconds until = bench.now + patience;
  CHECK(bench.out.tick_earlier);
  CHECK(bench.out.commands.empty());
  bench.send(ht::MemberLost{0, 0, 0, {2}, killed(2, 11)}).send(ht::MemberLost{0, 0, 0, {1}, killed(1)});
  CHECK(bench.out.commands.empty());
  CHECK(bench.used() == 5);
  REQUIRE(bench.controller.next_give_up() == until);
  CHECK(bench.tick(until - 0.1).out.commands.empty());
  bench.tick(until);
  CHECK_FALSE(bench.controller.next_give_up());
  auto resized = bench.records<record::TrialResized>();
  REQUIRE(resized.size() == 1);
  CHECK(resized[0].why == "3 of 5 workers were lost: ranks 1, 3: killed by signal 9; rank 2: killed by signal 11");
  CHECK(resized[0].lost == std::vector<std::string>(3, "a"));
  CHECK(bench.commands<ht::Resize>().at(0).from == std::vector{0, 4});

  // A report, which may change the workers as well, waits for nobody.
  bench.send(ht::Resized{0, 0, 1});
  bench.send(ht::MemberLost{0, 0, bench.controller.state().where(0)->generation, {1}, killed(1)});
  CHECK(bench.out.records.empty());
  bench.report(0);
  resized = bench.records<record::TrialResized>();
  REQUIRE_FALSE(resized.empty());
  CHECK_THAT(resized[0].why, ContainsSubstring("workers was lost: rank 1: killed by signal 9"));

  // Nor does the end of the attempt, after which there is nothing left to change.
  bench.send(ht::MemberLost{0, 0, bench.controller.state().where(0)->generation, {0}, killed(0)});
  bench.send(ht::Failed{0, 0, killed(1)});
  CHECK(bench.records<record::TrialResized>().empty());
  CHECK(bench.tick(bench.now + patience).records<record::TrialResized>().empty());
  CHECK(bench.used() == 5);  // of the next attempt
}

TEST_CASE("workers that are lost again and again before anything is done count as a failure") {
  Bench bench({.min = 2, .max = 2}, 1, {host("a", 3)});
  bench.begin();
  const auto lose = [&](bool progress) {
    const auto generation = bench.controller.state().where(0)->generation;
    ht::MemberLost loss{0, 0, generation, {1}, lost()};
    loss.progress = progress;
    bench.send(loss);
    const auto resized = bench.commands<ht::Resize>();
    if (!resized.empty()) {
      CHECK(bench.out.notices ==
            std::vector<std::string>{"trial 0 goes on with 2 workers: 1 of 2 workers was lost: cut off"});
      bench.send(ht::Resized{0, 0, resized[0].allocation.generation});
    }
    return !resized.empty();
  };
  CHECK(lose(true));
  CHECK(lose(false));
  CHECK(lose(false));
  SECTION("a commit is progress") {
    CHECK(lose(true));
    CHECK(lose(false));
    CHECK(lose(false));
  }
  SECTION("and so is a report") {
    bench.report(0);
    CHECK(lose(false));
    CHECK(lose(false));
    CHECK(lose(false));
  }
  CHECK_FALSE(lose(false));
  CHECK(bench.commands<ht::Stop>().size() == 1);
  bench.send(ht::Stopped{0, 0});
  const auto failed = bench.records<record::AttemptFailed>();
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].cause.source == ht::FailureSource::infrastructure);
  CHECK(failed[0].cause.text ==
        "1 of 2 workers was lost: cut off (workers were lost 4 times in a row before anything was done)");
}

TEST_CASE("the loss of one of two workers waits for no other") {
  Bench bench({.min = 1, .max = 2}, 1, {host("a", 2)}, {}, 10);
  bench.begin();
  bench.send(ht::MemberLost{0, 0, 0, {0}, lost()});
  CHECK(bench.commands<ht::Resize>().at(0).from == std::vector{1});
  CHECK_FALSE(bench.out.tick_earlier);
}

TEST_CASE("a trial on hosts that do not reach each other goes elsewhere, once they have said where they are") {
  const auto at = [](const std::string& name, const std::string& address) {
    return ht::Host{.name = name, .total = {.cpus = 1}, .addresses = {address}};
  };
  Bench bench({2}, 1, {at("a", "10.1.0.1"), at("b", "10.2.0.1"), at("c", "10.1.0.2")});
  bench.controller.open_session({}, bench.now, bench.out);
  bench.controller.finish_replay(bench.now, false, bench.out);
  bench.controller.fill(bench.now, bench.out);
  CHECK(names(bench.commands<ht::Launch>().at(0).allocation) == "ac");
  REQUIRE(bench.out.notices.size() == 1);
  CHECK(bench.out.notices[0] ==
        "host 'b' has no address in group.network '10.1.0.0/16' (host 'b': 10.2.0.1): no trial has workers there and "
        "on other hosts");
  // Another machine of the same name.
  bench.send(ht::HostLost{2, "cut off"}).send(ht::Failed{0, 0, lost()});
  CHECK(bench.commands<ht::Launch>().empty());
  CHECK_THAT(bench.controller.why_pending(0), ContainsSubstring("waits for 2 workers"));
  bench.send(ht::HostGained{2, at("c", "10.2.0.2")});
  CHECK(bench.commands<ht::Launch>().empty());
  const auto ended = bench.records<record::TrialEnded>().at(0);
  CHECK(ended.state == ht::TrialState::failed);
  CHECK_THAT(ended.cause->text, ContainsSubstring("hosts that reach each other have room for 1: host 'b', host 'c'"));
}

TEST_CASE("a trial that is told to pause or stop is not resized, and gives all its slots back once") {
  Bench bench({3}, 1, {host("a", 2), host("b", 4)});
  bench.begin();
  REQUIRE(bench.used() == 3);
  bench.controller.stop_trial(0, ++bench.now, bench.out);
  bench.send(ht::MemberLost{0, 0, 0, {1}, lost()});
  CHECK(bench.out.commands.empty());
  bench.send(ht::Stopped{0, 0});
  CHECK(bench.used() == 0);
  CHECK(bench.controller.finished());
}

TEST_CASE("a trial grows where nobody else waits for the room, and to the size that is asked for") {
  Bench bench({.min = 2, .max = 6}, 2, {host("a", 4), host("b", 4)});
  bench.begin();
  const auto launched = bench.commands<ht::Launch>();
  REQUIRE(launched.size() == 2);
  CHECK(launched[0].allocation.workers() == 6);
  CHECK(launched[1].allocation.workers() == 2);
  CHECK(bench.report(1).commands<ht::Resize>().empty());  // there is no room
  bench.controller.resize_trial(0, 3, bench.now, bench.out);
  bench.report(0);
  REQUIRE(bench.out.commands.size() == 2);  // the workers first, then the answer
  const auto smaller = std::get<ht::Resize>(bench.out.commands[0]);
  CHECK(smaller.from == std::vector{0, 1, 2});
  CHECK(std::holds_alternative<ht::Continue>(bench.out.commands[1]));
  CHECK(bench.used() == 8);  // the others still leave
  CHECK(bench.report(1).commands<ht::Resize>().empty());
  bench.send(ht::Resized{0, 0, 1});
  const auto larger = bench.commands<ht::Resize>().at(0);  // of the other one, which has the room from now on
  CHECK(larger.trial == 1);
  CHECK(bench.used() == 8);
  CHECK(larger.allocation.workers() == 5);
  CHECK(larger.from == std::vector{0, 1, -1, -1, -1});
  CHECK_THROWS_WITH(bench.controller.resize_trial(0, 7, bench.now, bench.out),
                    ContainsSubstring("2 to 6 workers, not 7"));
  bench.send(ht::Finished{1, 0});  // all its slots, also those of a generation that never ran
  CHECK(bench.used() == 3);
  CHECK(bench.report(0).commands<ht::Resize>().empty());  // what a person wants lasts
  CHECK(bench.controller.resize_trial(0, 0, bench.now, bench.out).find("as many workers as there is room for") !=
        std::string::npos);
  const auto widest = bench.report(0).commands<ht::Resize>().at(0);
  CHECK(widest.allocation.workers() == 6);
}

TEST_CASE("the numbers of workers that a person and a trial ask for hold in a later driver") {
  const ht::Workers workers{.min = 1, .max = 4};
  Bench bench(workers, 2, {host("a", 4), host("b", 4)});
  bench.begin();
  const auto report = [](Bench& with, ht::TrialId trial, ht::Attempt attempt, int wanted) -> Bench& {
    ht::Reported said{trial, attempt, ht::Report({{"loss", 1.0}}), {}};
    said.workers = wanted;
    return with.send(std::move(said));
  };
  REQUIRE(bench.commands<ht::Launch>().at(0).allocation.workers() == 4);
  bench.controller.resize_trial(0, 3, bench.now, bench.out);
  bench.keep();
  CHECK(report(bench, 0, 0, 1).commands<ht::Resize>().at(0).allocation.workers() == 3);  // a person comes first
  bench.send(ht::Resized{0, 0, 1});
  CHECK(report(bench, 1, 0, 2).commands<ht::Resize>().at(0).allocation.workers() == 2);
  bench.send(ht::Resized{1, 0, 1});
  CHECK(report(bench, 1, 0, 2).records<record::WorkersRequested>().empty());  // only what is new

  Bench later(workers, 2, {host("a", 4), host("b", 4)});
  for (const auto& record : bench.history) later.controller.replay(record);
  later.now = bench.now + 1;
  later.begin();  // what ran has ended with its driver
  const auto launched = later.commands<ht::Launch>();
  REQUIRE(launched.size() == 2);
  CHECK(launched[0].allocation.workers() == 3);
  CHECK(launched[1].allocation.workers() == 2);
  // A new attempt that has not said anything yet takes nothing back; one that has, does.
  CHECK(report(later, 1, launched[1].attempt, -1).commands<ht::Resize>().empty());
  CHECK(report(later, 1, launched[1].attempt, 0).commands<ht::Resize>().at(0).allocation.workers() == 4);
  CHECK(later.controller.state().asked_workers(0).by_trial == 1);
  later.send(ht::Resized{1, launched[1].attempt, 1});
  later.controller.resize_trial(0, 0, later.now, later.out);
  CHECK(report(later, 0, launched[0].attempt, -1).commands<ht::Resize>().at(0).allocation.workers() == 1);
}

TEST_CASE("a trial that wants more workers than there may be is told so, once") {
  Bench bench({.min = 1, .max = 2}, 1, {host("a", 4)});
  bench.begin();
  ht::Reported report{0, 0, ht::Report({{"loss", 1.0}}), {}};
  report.workers = 5;
  bench.send(report);
  REQUIRE(bench.out.notices.size() == 1);
  CHECK(bench.out.notices[0] == "trial 0 wants 5 workers, but the trials of this experiment have 1 to 2");
  CHECK(bench.send(report).out.notices.empty());
}

TEST_CASE("new room is used within a step, but not for workers that are lost as they begin") {
  Bench bench({.min = 1, .max = 3}, 1, {host("a", 2), host("b", 2)});
  bench.begin();
  bench.send(ht::HostLost{1, "cut off"});
  CHECK(bench.send(ht::MemberLost{0, 0, 0, {2}, lost()}).commands<ht::Resize>().at(0).allocation.workers() == 2);
  CHECK(bench.send(ht::HostGained{1}).commands<ht::Resize>().empty());  // its new generation does not train yet
  const auto again = bench.send(ht::Resized{0, 0, 1}).commands<ht::Resize>();
  REQUIRE(again.size() == 1);
  CHECK(again[0].allocation.workers() == 3);
  CHECK(again[0].from == std::vector{0, 1, -1});
  std::uint32_t generation = 2;
  int started = 1;
  for (int i = 0; i < 9; ++i) {
    bench.send(ht::MemberLost{0, 0, generation, {2}, {.source = ht::FailureSource::preemption, .text = "taken"}});
    bench.send(ht::Resized{0, 0, ++generation});
    if (bench.commands<ht::Resize>().empty()) continue;
    ++started;
    ++generation;
  }
  CHECK(started == 3);
  CHECK(bench.report(0).commands<ht::Resize>().size() == 1);
  // Who cannot change, or may not be able to, is left alone.
  Bench silent({.min = 1, .max = 4}, 1, {host("a", 2), host("b", 2)});
  silent.begin().send(ht::HostLost{1, "cut off"}).send(ht::Failed{0, 0, lost()});
  REQUIRE(silent.commands<ht::Launch>().at(0).allocation.workers() == 2);
  CHECK(silent.send(ht::HostGained{1}).out.commands.empty());
}

TEST_CASE("the loss of a worker while others begin is no reason to wait for these") {
  const int least = GENERATE(1, 3);
  Bench bench({.min = least, .max = 4}, 1, {host("a", 4)});
  bench.begin().send(ht::MemberLost{0, 0, 0, {3}, lost()});
  bench.send(ht::Resized{0, 0, 1});
  REQUIRE(bench.commands<ht::Resize>().at(0).from == std::vector{0, 1, 2, -1});
  bench.send(ht::MemberLost{0, 0, 2, {2}, lost(), false, true, {3}});
  const auto resize = bench.commands<ht::Resize>().at(0);
  const auto why = bench.records<record::TrialResized>().at(0).why;
  if (least == 3) {  // without the one that begins they would be too few
    CHECK(resize.from == std::vector{0, 1, 3});
    CHECK(why == "1 of 4 workers was lost: cut off");
    CHECK(bench.used() == 3);
    CHECK(bench.send(ht::MemberLost{0, 0, 3, {}, lost(), false, true, {2}}).out.commands.empty());
    return;
  }
  CHECK(resize.from == std::vector{0, 1});
  CHECK(why == "1 of 4 workers was lost: cut off; 1 new worker was not ready and is not waited for");
  CHECK(bench.used() == 3);  // until it is gone
  bench.send(ht::Resized{0, 0, 3});
  const auto again = bench.commands<ht::Resize>().at(0);
  CHECK(again.from == std::vector{0, 1, -1, -1});
  CHECK(bench.used() == 4);
  // Those that train may come to stand still for other reasons than the loss of one of them.
  bench.send(ht::MemberLost{0, 0, 4, {}, lost(), false, true, {2, 3}});
  CHECK(bench.commands<ht::Resize>().at(0).from == std::vector{0, 1});
  CHECK(bench.records<record::TrialResized>().at(0).why ==
        "cut off; 2 new workers were not ready and are not waited for");
}

TEST_CASE(
    "new workers that fail before their first step are tried again, later each time, and cost the trial nothing") {
  Bench bench({.min = 1, .max = 3}, 1, {host("a", 3)});
  bench.begin().send(ht::MemberLost{0, 0, 0, {2}, lost()});
  bench.send(ht::Resized{0, 0, 1});
  REQUIRE(bench.commands<ht::Resize>().size() == 1);
  const ht::Cause hung{.source = ht::FailureSource::user, .text = "rank 2: hung", .rank = 2};
  std::uint32_t generation = 2;
  const auto give_up = [&] {
    bench.send(ht::MemberLost{0, 0, generation, {2}, hung, false, false, {2}});
    REQUIRE(bench.commands<ht::Resize>().at(0).from == std::vector{0, 1});
    CHECK(bench.out.tick_earlier);
    const auto until = bench.controller.next_give_up();
    REQUIRE(until);
    const ht::Seconds delay = *until - bench.now;
    CHECK(bench.send(ht::Resized{0, 0, ++generation}).commands<ht::Resize>().empty());
    if (*until > bench.now + 1) CHECK(bench.report(0).commands<ht::Resize>().empty());
    if (*until > bench.now) CHECK(bench.tick(*until - 0.1).commands<ht::Resize>().empty());
    return delay;
  };
  const auto grow = [&] {
    bench.tick(*bench.controller.next_give_up());
    REQUIRE(bench.commands<ht::Resize>().at(0).from == std::vector{0, 1, -1});
    CHECK_FALSE(bench.controller.next_give_up());
    ++generation;
  };
  CHECK(give_up() == 2);
  CHECK(bench.history.size() > 0);
  std::vector<ht::Seconds> delays;
  for (int i = 0; i < 9; ++i) {
    grow();
    delays.push_back(give_up());
  }
  CHECK(delays == std::vector<ht::Seconds>{4, 8, 16, 32, 64, 128, 256, 300, 300});
  CHECK(bench.controller.state().trials()[0].failures == 0);
  CHECK(bench.controller.state().trials()[0].attempts == 1);
  // One that has done a step: the next one that fails is the first again. The line says what happened.
  grow();
  bench.send(ht::Resized{0, 0, generation}).report(0);
  bench.send(ht::MemberLost{0, 0, generation, {2}, lost()});  // as any other worker
  bench.send(ht::Resized{0, 0, ++generation});
  REQUIRE(bench.commands<ht::Resize>().size() == 1);
  ++generation;
  bench.send(ht::MemberLost{0, 0, generation, {2}, hung, false, false, {2}});
  CHECK(bench.out.notices ==
        std::vector<std::string>{"trial 0 goes on with 2 workers: 1 new worker was given up before its first step: "
                                 "rank 2: hung; another is tried in 2 s if there is room"});
  // A person who asks for workers does not wait.
  bench.send(ht::Resized{0, 0, ++generation});
  CHECK(bench.commands<ht::Resize>().empty());
  bench.controller.resize_trial(0, 3, bench.now, bench.out);
  CHECK(bench.report(0).commands<ht::Resize>().size() == 1);
}

TEST_CASE("a report of a trial that others are about to join changes its workers once more, or leaves them") {
  Bench bench({.min = 2, .max = 8}, 1, {host("a", 4), host("b", 4)});
  bench.begin().send(ht::HostLost{1, "cut off"}).send(ht::MemberLost{0, 0, 0, {4, 5, 6, 7}, lost()});
  bench.send(ht::Resized{0, 0, 1}).report(0).send(ht::HostGained{1});
  const auto grown = bench.commands<ht::Resize>().at(0);
  CHECK(grown.allocation.workers() == 8);
  CHECK(bench.report(0).commands<ht::Resize>().empty());  // they are on their way, and there is no more room
  CHECK(bench.commands<ht::Continue>().size() == 1);
  bench.controller.resize_trial(0, 5, ++bench.now, bench.out);
  const auto fewer = bench.report(0).commands<ht::Resize>().at(0);
  CHECK(fewer.allocation.generation == 3);
  CHECK(fewer.from == std::vector{0, 1, 2, 3, 4});  // one of those that were to join still is
  CHECK(bench.used() == 8);
  bench.send(ht::Resized{0, 0, 2});  // of a generation that is over
  CHECK(bench.used() == 8);
  bench.send(ht::Resized{0, 0, 3});
  CHECK(bench.used() == 5);
}

TEST_CASE("a plan says how many workers a trial has from its start on") {
  std::vector<ht::RunningGroup> asked;
  Bench bench({.min = 1, .max = 8}, 1, {host("a", 4), host("b", 4)}, [&](const ht::RunningGroup& group) {
    asked.push_back(group);
    return group.steps == 4 ? 0 : 2 << group.steps / 2;
  });
  bench.begin();
  CHECK(bench.commands<ht::Launch>().at(0).allocation.workers() == 2);
  CHECK(bench.used() == 2);
  CHECK(asked.back().workers == 0);
  CHECK(bench.report(0).commands<ht::Resize>().empty());
  CHECK(asked.back().metrics == ht::Metrics{{"loss", 1.0}});
  CHECK((asked.back().workers == 2 && asked.back().steps == 1 && asked.back().running == 1));
  const auto doubled = bench.report(0).commands<ht::Resize>().at(0);
  CHECK(doubled.allocation.workers() == 4);
  CHECK(bench.records<record::TrialResized>().at(0).why == "its plan says so");
  bench.send(ht::Resized{0, 0, 1}).report(0);
  CHECK(bench.report(0).commands<ht::Resize>().at(0).allocation.workers() == 8);  // 0: all that there is room for
  bench.send(ht::Resized{0, 0, 2});
  bench.controller.resize_trial(0, 3, bench.now, bench.out);
  CHECK(bench.report(0).commands<ht::Resize>().at(0).allocation.workers() == 3);  // a person comes first
  CHECK(bench.send(ht::Resized{0, 0, 3}).out.commands.empty());
}

TEST_CASE("workers that cannot change while they run begin again where that loses nothing") {
  Bench bench({.min = 2, .max = 4}, 1, {host("a", 2), host("b", 2)});
  bench.begin();
  REQUIRE(bench.commands<ht::Launch>().at(0).allocation.workers() == 4);
  const auto checkpoint = [](ht::TrialId trial, int steps) {
    return ht::CheckpointInfo{trial, steps, "c" + std::to_string(steps), 1, "digest"};
  };
  const auto report = [&](ht::Attempt attempt) -> Bench& {
    return bench.send(ht::Reported{
        .trial = 0, .attempt = attempt, .report = ht::Report({{"loss", 1.0}}), .checkpoint = {}, .fixed = true});
  };
  // A host is lost, and with it the attempt: it goes on with those that are there.
  bench.send(ht::HostLost{1, "cut off"}).send(ht::Failed{0, 0, lost()});
  REQUIRE(bench.commands<ht::Launch>().at(0).allocation.workers() == 2);
  CHECK(report(1).commands<ht::Continue>().size() == 1);
  bench.send(ht::HostGained{1});
  CHECK(report(1).commands<ht::Continue>().size() == 1);  // nothing is saved yet
  bench.send(ht::Checkpointed{0, 1, checkpoint(0, 2)});
  const auto stops = report(1).commands<ht::Stop>();  // this step is to be saved, and there is room
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].save);
  bench.send(ht::Checkpointed{0, 1, checkpoint(0, 3)}).send(ht::Stopped{0, 1});
  const auto larger = bench.commands<ht::Launch>().at(0);
  CHECK(larger.allocation.workers() == 4);
  CHECK(larger.next_step == 3);
  CHECK(bench.controller.state().trials()[0].failures == 0);
  CHECK(report(2).commands<ht::Continue>().size() == 1);
  // A person wants fewer.
  bench.controller.resize_trial(0, 2, bench.now, bench.out);
  bench.send(ht::Checkpointed{0, 2, checkpoint(0, 4)});
  CHECK(report(2).commands<ht::Stop>().size() == 1);
  bench.send(ht::Checkpointed{0, 2, checkpoint(0, 5)}).send(ht::Stopped{0, 2});
  CHECK(bench.commands<ht::Launch>().at(0).allocation.workers() == 2);
  CHECK(report(3).commands<ht::Continue>().size() == 1);
}

TEST_CASE("workers that cannot change begin again when the checkpoint of a report arrives from another host") {
  Bench bench({.min = 1, .max = 2}, 1, {host("a", 1), host("b", 1)}, {}, 0, 0);
  bench.begin().send(ht::HostLost{1, "cut off"}).send(ht::Failed{0, 0, lost()});
  REQUIRE(bench.commands<ht::Launch>().at(0).allocation.workers() == 1);
  const auto report = [&](int step, ht::Attempt attempt = 1) -> Bench& {
    ht::Report report({{"loss", 1.0}});
    report.step = step;
    return bench.send(
        ht::Reported{.trial = 0, .attempt = attempt, .report = std::move(report), .checkpoint = {}, .fixed = true});
  };
  const auto arrives = [&](int steps, ht::Attempt attempt = 1) -> Bench& {
    return bench.send(ht::Checkpointed{0, attempt, {0, steps, "c" + std::to_string(steps), 1, "digest"}});
  };
  CHECK(report(0).commands<ht::Continue>().size() == 1);
  CHECK(arrives(1).commands<ht::Stop>().empty());  // there is no room
  bench.send(ht::HostGained{1});
  CHECK(report(1).commands<ht::Stop>().empty());  // its checkpoint is on the way
  CHECK(report(2).commands<ht::Stop>().empty());
  CHECK(report(3).commands<ht::Stop>().empty());
  SECTION("not too late") {
    CHECK(arrives(3).commands<ht::Stop>().size() == 1);
    const auto larger = bench.send(ht::Stopped{0, 1}).commands<ht::Launch>().at(0);
    CHECK(larger.allocation.workers() == 2);
    CHECK(larger.next_step == 3);
    CHECK(bench.controller.state().trials()[0].failures == 0);
    CHECK(report(3, 2).commands<ht::Continue>().size() == 1);
    CHECK(arrives(4, 2).commands<ht::Stop>().empty());  // it has all that it may have
  }
  SECTION("when more would be lost") { CHECK(arrives(2).commands<ht::Stop>().empty()); }
  SECTION("not if it is to pause at its next report") {
    bench.controller.carry_out({.kind = ht::ControlRequest::Kind::pause, .trials = {0}}, bench.now, bench.out);
    CHECK(arrives(3).commands<ht::Stop>().empty());
    CHECK(report(4).commands<ht::Pause>().size() == 1);
  }
  SECTION("but a person may ask for it") {
    bench.controller.resize_trial(0, 2, bench.now, bench.out);
    CHECK(arrives(2).commands<ht::Stop>().size() == 1);
  }
}

TEST_CASE("the trials of an experiment without a range of workers are not resized") {
  Bench bench({2}, 1, {host("a", 4)});
  bench.begin();
  CHECK_THROWS_WITH(bench.controller.resize_trial(0, 3, bench.now, bench.out),
                    ContainsSubstring("always have 2 workers"));
}

TEST_CASE("a replay of trials of several workers ends in the state of the live run") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    Bench live({.min = 2, .max = 5}, 12, {host("a", 4), host("b", 4), host("c", 3)});
    live.begin();
    std::set<int> away;
    for (int i = 0; i < 300 && !live.controller.finished(); ++i) {
      const auto trial = static_cast<ht::TrialId>(random() % 12);
      const auto& trials = live.controller.state().trials();
      const bool runs = trials.contains(trial) && live.controller.holds_slot(trial);
      const ht::Attempt attempt = runs ? live.controller.attempt(trial) : 0;
      const auto* where = runs ? live.controller.state().where(trial) : nullptr;
      const auto generation = where != nullptr ? where->generation : 0;
      switch (random() % 8) {
        case 0:
          if (random() % 3 == 0) live.send(ht::Finished{trial, attempt});
          break;
        case 1: live.send(ht::MemberLost{trial, attempt, generation, {static_cast<int>(random() % 5)}, lost()}); break;
        case 2: live.send(ht::Resized{trial, attempt, generation}); break;
        case 3: live.send(ht::Stopped{trial, attempt}); break;
        case 4: {
          const int host = static_cast<int>(random() % 3);
          if (away.erase(host) > 0)
            live.send(ht::HostGained{host});
          else if (away.empty() && away.insert(host).second)
            live.send(ht::HostLost{host, "cut off"});
          break;
        }
        default: live.report(trial, attempt);
      }
      const auto usage = live.controller.placement().usage();
      REQUIRE((usage.cpus_used >= 0 && usage.cpus_used <= usage.cpus));
    }
    Bench again({.min = 2, .max = 5}, 12, {host("a", 4), host("b", 4), host("c", 3)});
    for (const auto& record : live.history) again.controller.replay(record);
    const auto &was = live.controller.state(), &is = again.controller.state();
    REQUIRE(is.trials().size() == was.trials().size());
    int gangs = 0;
    for (ht::TrialId trial = 0; trial < was.trials().size(); ++trial) {
      INFO("seed " << seed << " trial " << trial);
      CHECK(is.trials()[trial].state == was.trials()[trial].state);
      CHECK(is.trials()[trial].attempts == was.trials()[trial].attempts);
      CHECK(is.trials()[trial].steps == was.trials()[trial].steps);
      CHECK(is.trials()[trial].failures == was.trials()[trial].failures);
      CHECK(is.on_lost_host(trial) == was.on_lost_host(trial));
      const auto *a = was.where(trial), *b = is.where(trial);
      REQUIRE((a == nullptr) == (b == nullptr));
      if (a == nullptr) continue;
      CHECK(b->host == a->host);
      CHECK(b->others == a->others);
      CHECK(b->generation == a->generation);
      gangs += a->workers() > 1;
    }
    if (seed == 0) CHECK(gangs > 0);
    // What ran has slots for each worker that the record says it has, and no more.
    double held = 0;
    for (ht::TrialId trial = 0; trial < was.trials().size(); ++trial)
      if (live.controller.holds_slot(trial)) held += was.where(trial)->workers();
    if (away.empty()) CHECK(live.used() >= held);
  }
}

TEST_CASE("thousands of simulated workers: gangs, losses and changes in a moment", "[simulated]") {
  const TemporaryDirectory directory(TemporaryDirectory::memory());
  std::vector<ht::Outage> outages;
  for (int i = 0; i < 200; ++i) outages.push_back({.worker = i * 47 % 10'000, .at = 2.5 + 0.1 * i, .until = 30.0 + i});
  ht::Options options;
  options.samples = 300;
  options.workers = {.min = 20, .max = 64};
  options.executor = ht::simulated(
      {.pool = 10'000, .startup_seconds = 0.5, .speed_spread = 0.2, .failure_probability = 0.0002, .outages = outages});
  options.max_retries = 100;
  options.output = directory.path() / "run";
  options.display = ht::Display::quiet;
  const auto results = ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [](const ht::Params& params, ht::Context&) -> ht::Training {
        const double x = params.get<double>("x");
        for (int step = 0; step < 20; ++step) co_yield ht::report("value", x / (step + 1));
      },
      options);
  for (const auto& trial : results.trials()) {
    CHECK(trial.state == ht::TrialState::completed);
    CHECK(trial.steps == 20);
  }
  int resized = 0, reported = 0;
  std::map<std::pair<ht::TrialId, int>, int> reports;
  for (const auto& r : support::records_of(directory.path() / "run")) {
    resized += std::holds_alternative<record::TrialResized>(r.what);
    if (const auto* report = std::get_if<record::TrialReported>(&r.what)) {
      ++reported;
      CHECK(++reports[{report->trial, report->step}] == 1);
    }
  }
  CHECK(resized > 20);
  CHECK(reported == 300 * 20);
}
