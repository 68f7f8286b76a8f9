// GroupRun: what the Tuner and the members of a group are told, event by event.
#include "support/test.hpp"

#include <hypertune/execute/detail/group/group_run.hpp>
#include <hypertune/execute/detail/group/groups.hpp>

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace hypertune;

namespace {

Slot slot(int host) {
  return {.host = host,
          .host_name = std::string(1, static_cast<char>('a' + host)),
          .cpus = {},
          .gpus = {},
          .resources = {}};
}
Allocation allocation(std::uint32_t generation, const std::vector<int>& hosts) {
  Allocation made{.generation = generation, .lead = slot(hosts.at(0))};
  for (std::size_t i = 1; i < hosts.size(); ++i) made.others.push_back(slot(hosts[i]));
  return made;
}

/// A group of trial 3, and in short words what it says. To members: "L2" (launch member 2), "C0", "C0+" (with a save),
/// "P1", "S1", "form 0@1:2" (member 0 gets rank 2 of generation 1), "run 1@0", "halt 1@0". To the Tuner: "^started",
/// "^report 4", …
class Bench {
 public:
  explicit Bench(const std::vector<int>& hosts) : run_(launch(hosts), "") { take(run_.begin()); }

  std::string said() { return std::exchange(said_, {}); }
  const Cause& cause() const { return cause_; }
  const std::string& notice() const { return notice_; }
  bool progress() const { return progress_; }
  bool over() const { return run_.over(); }

  void start(int members) {
    for (int member = 0; member < members; ++member) hear(Started{3, 0, 0, member});
  }
  void join(int member, std::uint32_t generation, const char* how = "", const char* key = "") {
    GroupMessage message{.trial = 3, .attempt = 0, .member = member, .kind = GroupMessage::Kind::joined};
    message.generation = generation;
    message.value = how;
    message.key = key;
    hear(std::move(message));
  }
  void say(int member, GroupMessage::Kind kind, std::uint32_t generation, std::vector<int> ranks = {}) {
    GroupMessage message{.trial = 3, .attempt = 0, .member = member, .kind = kind};
    message.generation = generation;
    message.ranks = std::move(ranks);
    hear(std::move(message));
  }
  void report(int member, int step) {
    Reported reported{.trial = 3, .attempt = 0, .report = hypertune::report("loss", 1.0), .checkpoint = {}};
    reported.report.step = step;
    reported.member = member;
    hear(std::move(reported));
  }
  void fail(int member, FailureSource source, bool caused_by_peers = false) {
    hear(Failed{3, 0, {.source = source, .text = "boom", .caused_by_peers = caused_by_peers}, member});
  }
  void hear(Event event) { take(run_.on_event(std::move(event))); }
  void perform(const Command& command) { take(run_.perform(command)); }
  void lose(const std::vector<int>& members) {
    take(run_.lost(members, {.source = FailureSource::infrastructure, .text = "its host is gone"}));
  }
  void warn(const std::vector<int>& members) {
    take(run_.warn(members, {.source = FailureSource::preemption, .text = "its host goes away"}));
  }
  void resize(std::uint32_t generation, const std::vector<int>& hosts, std::vector<int> from) {
    perform(Resize{3, 0, allocation(generation, hosts), std::move(from)});
  }
  /// All train in generation 0, and the first step is reported and answered.
  void train(int members) {
    start(members);
    for (int member = 0; member < members; ++member) join(member, 0);
    for (int member = 0; member < members; ++member) report(member, 0);
    perform(Continue{3, 0});
    said();
  }

 private:
  static Launch launch(const std::vector<int>& hosts) {
    Launch go{};
    go.trial = 3;
    go.allocation = allocation(0, hosts);
    go.group = true;
    return go;
  }
  void word(const std::string& text) { said_ += (said_.empty() ? "" : " ") + text; }
  void take(const GroupRun::Actions& actions) {
    for (const auto& command : actions.down) std::visit([this](const auto& c) { down(c); }, command);
    for (const int member : actions.kill) word(fmt::format("kill {}", member));
    for (const auto& event : actions.up) std::visit([this](const auto& e) { up(e); }, event);
  }
  void down(const Launch& c) { word(fmt::format("{}{}", c.parked ? 'l' : 'L', c.seat->member)); }
  void down(const Continue& c) { word(fmt::format("C{}{}", c.member, c.save ? "+" : "")); }
  void down(const Pause& c) { word(fmt::format("P{}{}", c.member, c.save ? "+" : "")); }
  void down(const Stop& c) { word(fmt::format("S{}{}", c.member, c.save ? "+" : "")); }
  void down(const Resize&) { word("resize"); }
  void down(const GroupMessage& m) {
    if (m.kind == GroupMessage::Kind::form)
      word(fmt::format("form {}@{}:{}", m.member, m.place.generation, m.place.rank));
    else
      word(fmt::format("{} {}@{}",
                       m.kind == GroupMessage::Kind::run    ? "run"
                       : m.kind == GroupMessage::Kind::rest ? "rest"
                       : m.kind == GroupMessage::Kind::halt ? "halt"
                                                            : "value",
                       m.member, m.generation));
  }
  void up(const Started&) { word("^started"); }
  void up(const Reported& e) { word(fmt::format("^report {}{}", *e.report.step, e.fixed ? " fixed" : "")); }
  void up(const Resized& e) { word(fmt::format("^resized {}", e.generation)); }
  void up(const Finished&) { word("^finished"); }
  void up(const Stopped&) { word("^stopped"); }
  void up(const Paused& e) { word(e.parked ? "^parked" : "^paused"); }
  void up(const MemberLost& e) {
    progress_ = e.progress;
    std::string ranks;
    for (const int rank : e.ranks) ranks += fmt::format(" {}", rank);
    for (const int rank : e.newcomers) ranks += fmt::format(" new {}", rank);
    word(fmt::format("^{}{}", e.leaving ? "leaving" : "lost", ranks));
  }
  void up(const Notice& e) {
    notice_ = e.text;
    word("^notice");
  }
  void up(const Failed& e) {
    cause_ = e.cause;
    word("^failed");
  }
  template <class E>
  void up(const E&) {
    word("^other");
  }

  GroupRun run_;
  std::string said_, notice_;
  Cause cause_;
  bool progress_ = false;
};

}  // namespace

TEST_CASE("the members of a group are one attempt to the Tuner") {
  Bench bench({0, 0, 1});
  CHECK(bench.said() == "L0 L1 L2");
  bench.start(2);
  CHECK(bench.said().empty());
  bench.hear(Started{3, 0, 0, 2});
  CHECK(bench.said() == "^started");
  bench.join(1, 0);
  bench.join(0, 0);
  CHECK(bench.said().empty());
  bench.join(2, 0);
  CHECK(bench.said() == "run 0@0 run 1@0 run 2@0");
  bench.report(1, 0);
  CHECK(bench.said().empty());
  bench.report(0, 0);
  CHECK(bench.said() == "^report 0");
  bench.perform(Continue{3, 0, true});
  CHECK(bench.said() == "C0+ C1");
  bench.report(2, 0);  // a slow one
  CHECK(bench.said() == "C2");
  bench.hear(Finished{3, 0, 0});
  CHECK(bench.said() == "S1 S2");
  bench.hear(Finished{3, 0, 1});
  bench.hear(Stopped{3, 0, 2});
  CHECK(bench.said() == "^finished");
  CHECK(bench.over());
}

TEST_CASE("those that train leave their generation when all newcomers stand ready, not before") {
  Bench bench({0, 0});
  bench.train(2);
  bench.resize(1, {0, 0, 1}, {0, 1, -1});
  CHECK(bench.said() == "L2");
  bench.report(0, 1);  // they go on meanwhile
  CHECK(bench.said() == "^report 1");
  bench.perform(Continue{3, 0});
  CHECK(bench.said() == "C0");
  bench.hear(Started{3, 0, 2, 2});
  bench.join(2, 1);
  CHECK(bench.said() == "form 0@1:0 form 1@1:1");
  bench.join(0, 1);
  bench.join(1, 1);
  CHECK(bench.said() == "run 0@1 run 1@1 run 2@1 ^resized 1");
}

TEST_CASE("a newcomer that is lost disturbs nobody; one that was to leave breaks the generation before, not the next") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.resize(1, {0, 0, 1}, {0, 1, -1});  // the third leaves, another one comes
  CHECK(bench.said() == "L3");
  SECTION("the newcomer") {
    bench.lose({3});
    CHECK(bench.said() == "^lost 2 new 2");
    bench.resize(2, {0, 0}, {0, 1});
    CHECK(bench.said() == "form 0@2:0 form 1@2:1 form 2@2:-1");
  }
  SECTION("the one that was to leave, before it was told") {
    bench.lose({2});
    CHECK(bench.said() == "halt 0@0 halt 1@0 halt 3@0 form 0@1:0 form 1@1:1 ^lost new 2");
    const bool waits = GENERATE(true, false);  // as the Tuner decides
    if (!waits) {
      bench.resize(2, {0, 0}, {0, 1});
      CHECK(bench.said() == "S3 form 0@2:0 form 1@2:1");
      bench.join(0, 2);
      bench.join(1, 2);
      CHECK(bench.said() == "run 0@2 run 1@2");
      return;
    }
    bench.join(3, 1);
    bench.join(0, 1);
    bench.join(1, 1);
    CHECK(bench.said() == "run 0@1 run 1@1 run 3@1 ^resized 1");
  }
  SECTION("the one that leaves, in order") {
    bench.join(3, 1);
    CHECK(bench.said() == "form 0@1:0 form 1@1:1 form 2@1:-1");
    bench.join(0, 1);
    bench.join(1, 1);
    CHECK(bench.said() == "run 0@1 run 1@1 run 3@1");
    bench.fail(2, FailureSource::infrastructure, true);
    CHECK(bench.said() == "^resized 1");
  }
}

TEST_CASE("the others of a member that is lost are halted, and go on as the Tuner says") {
  Bench bench({0, 0, 1, 1});
  bench.train(4);
  bench.lose({2, 3});
  CHECK(bench.said() == "halt 0@0 halt 1@0 ^lost 2 3");
  bench.resize(1, {0, 0, 2}, {0, 1, -1});
  CHECK(bench.said() == "L4 form 0@1:0 form 1@1:1");  // they wait already
  bench.join(0, 1);
  bench.join(1, 1);
  bench.join(4, 1);
  CHECK(bench.said() == "run 0@1 run 1@1 run 4@1 ^resized 1");
}

TEST_CASE("members know the cores of all members on their host, and those of each new generation") {
  Allocation two = allocation(0, {0, 0, 1});
  two.lead.cpus = {2};
  two.others[0].cpus = {1};
  two.others[1].cpus = {0};
  Launch go{};
  go.trial = 3;
  go.allocation = two;
  go.group = true;
  GroupRun run(go, "");
  std::vector<std::vector<int>> cpus;
  for (const auto& command : run.begin().down) cpus.push_back(std::get<Launch>(command).seat->place.cpus);
  CHECK(cpus == std::vector<std::vector<int>>{{1, 2}, {1, 2}, {0}});
  for (int member = 0; member < 3; ++member) {
    run.on_event(Started{3, 0, 0, member});
    run.on_event(GroupMessage{.trial = 3, .attempt = 0, .member = member, .kind = GroupMessage::Kind::joined});
  }
  two.generation = 1;
  two.others.erase(two.others.begin());
  cpus.clear();
  for (const auto& command : run.perform(Resize{3, 0, two, {0, 2}}).down)
    if (const auto* form = std::get_if<GroupMessage>(&command)) cpus.push_back(form->place.cpus);
  CHECK(cpus == std::vector<std::vector<int>>{{2}, {2}, {0}});  // the second is of the one that leaves
}

TEST_CASE("those that are left of a group go on without a newcomer that is not ready, and it ends by force") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.resize(1, {0, 0, 0, 1}, {0, 1, 2, -1});
  CHECK(bench.said() == "L3");
  SECTION("a loss names it") {
    bench.lose({2});
    CHECK(bench.said() == "halt 0@1 halt 1@1 halt 3@1 ^lost 2 new 3");
    bench.resize(2, {0, 0}, {0, 1});
    CHECK(bench.said() == "S3 form 0@2:0 form 1@2:1");
    bench.join(0, 2);
    bench.join(1, 2);
    CHECK(bench.said() == "run 0@2 run 1@2");
    bench.report(0, 1);
    CHECK(bench.said() == "^report 1");
    bench.hear(Stopped{3, 0, 3});  // its slot is free when it is gone
    CHECK(bench.said() == "^resized 2");
  }
  SECTION("if it is ready it need not be left behind") {
    bench.join(3, 1);
    CHECK(bench.said() == "form 0@1:0 form 1@1:1 form 2@1:2");
    bench.lose({2});
    CHECK(bench.said() == "halt 0@1 halt 1@1 halt 3@1 ^lost 2");
  }
  SECTION("who hangs among those that train is ended meanwhile") {
    bench.say(0, GroupMessage::Kind::late, 0, {1});
    CHECK(bench.said() == "kill 1");
    bench.fail(1, FailureSource::infrastructure);
    CHECK(bench.said() == "halt 0@1 halt 2@1 halt 3@1 ^lost 1 new 3");
  }
  SECTION("those that train may not reach each other any more") {
    bench.say(0, GroupMessage::Kind::broken, 0);
    bench.say(1, GroupMessage::Kind::broken, 0);
    CHECK(bench.said().empty());
    bench.say(2, GroupMessage::Kind::broken, 0);
    CHECK(bench.said() == "form 0@1:0 form 1@1:1 form 2@1:2 ^lost new 3");
  }
  SECTION("it is lost first, and one that was to leave after it") {
    bench.resize(2, {0, 0, 1}, {0, 1, 3});
    CHECK(bench.said() == "form 3@2:2");
    bench.resize(3, {0, 0, 1, 1}, {0, 1, 2, -1});
    CHECK(bench.said() == "form 3@3:2 L4");
    bench.lose({4});
    CHECK(bench.said() == "halt 3@3 ^lost 3 new 3");
    bench.lose({2});  // the other newcomer still begins
    CHECK(bench.said() == "halt 0@0 halt 1@0 halt 3@0 form 0@3:0 form 1@3:1");
    bench.resize(4, {0, 0, 1}, {0, 1, 2});
    CHECK(bench.said() == "form 3@4:2 form 0@4:0 form 1@4:1 ^lost new 2");
  }
}

TEST_CASE("a change of workers that crosses the end of the generation before is told to wait for a newcomer") {
  Bench bench({0, 1});
  bench.train(2);
  bench.say(0, GroupMessage::Kind::broken, 0);
  bench.say(1, GroupMessage::Kind::broken, 0);
  CHECK(bench.said() == "^lost");
  bench.resize(1, {0, 1, 1}, {0, 1, -1});
  CHECK(bench.said() == "L2 form 0@1:0 form 1@1:1 ^lost new 2");
  bench.resize(2, {0, 1}, {0, 1});
  CHECK(bench.said() == "S2 form 0@2:0 form 1@2:1");
}

TEST_CASE("those that wait for a newcomer without which they are too few say so, once") {
  Bench bench({0, 0});
  bench.train(2);
  bench.lose({1});
  bench.resize(1, {0, 1}, {0, -1});
  bench.join(0, 1);
  bench.said();
  bench.say(0, GroupMessage::Kind::late, 1);
  CHECK(bench.said() == "^notice");
  CHECK(bench.notice() ==
        "trial 3 stands still: too few of its workers are left to go on without the new ones, which have not begun "
        "yet: rank 1 on host 'b' (hang_timeout ends a worker that hangs)");
  bench.say(0, GroupMessage::Kind::late, 1);
  CHECK(bench.said().empty());
}

TEST_CASE("a newcomer that fails before its first step is given up alone, whatever the reason") {
  Bench bench({0, 0});
  bench.train(2);
  bench.resize(1, {0, 0, 1}, {0, 1, -1});
  bench.said();
  SECTION("as it starts") {
    bench.fail(2, FailureSource::user);
    CHECK(bench.said() == "^lost 2 new 2");
    CHECK_FALSE(bench.over());
    bench.resize(2, {0, 0}, {0, 1});
    CHECK(bench.said() == "form 0@2:0 form 1@2:1");
    bench.report(0, 1);
    CHECK(bench.said() == "^report 1");
  }
  SECTION("after it was told to leave, its failure is nobody's") {
    bench.resize(2, {0, 0}, {0, 1});
    bench.join(0, 2);
    bench.join(1, 2);
    CHECK(bench.said() == "S2 form 0@2:0 form 1@2:1 run 0@2 run 1@2");
    bench.fail(2, FailureSource::user);
    CHECK(bench.said() == "^resized 2");
  }
  SECTION("in its first step, but not later") {
    bench.hear(Started{3, 0, 1, 2});
    for (const int member : {2, 0, 1}) bench.join(member, 1);
    bench.said();
    const bool proven = GENERATE(false, true);
    for (int member = 0; proven && member < 3; ++member) bench.report(member, 1);
    if (proven) bench.perform(Continue{3, 0});
    bench.said();
    bench.fail(2, FailureSource::user);
    CHECK(bench.said() == (proven ? "S0 S1" : "halt 0@1 halt 1@1 ^lost 2 new 2"));
  }
}

TEST_CASE("a loss says whether anything was committed since the one before") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.lose({2});
  CHECK(bench.progress());  // it is the first one
  const bool committed = GENERATE(false, true);
  bench.resize(1, {0, 0}, {0, 1});
  bench.join(0, 1);
  bench.join(1, 1);
  bench.lose({1});
  CHECK_FALSE(bench.progress());
  bench.resize(2, {0, 0}, {0, -1});
  bench.join(0, 2, "", committed ? "committed" : "");
  bench.hear(Started{3, 0, 0, 3});
  bench.join(3, 2);
  bench.lose({3});
  CHECK(bench.progress() == committed);
}

TEST_CASE("a member that was being started when its place changed is told again") {
  Bench bench({0, 0, 1});
  bench.train(3);
  bench.resize(1, {0, 0, 1, 1}, {0, 1, 2, -1});
  bench.lose({2});
  bench.said();
  bench.resize(2, {0, 0, 1}, {0, 1, 3});
  CHECK(bench.said() == "form 3@2:2 form 0@2:0 form 1@2:1");
  bench.join(3, 1);
  CHECK(bench.said() == "form 3@2:2");
}

TEST_CASE("who was through with a step when the generation broke goes on, so that rank 0 gets there") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.report(1, 1);  // its last collective was done, rank 0's was not
  bench.lose({2});
  CHECK(bench.said() == "halt 0@0 halt 1@0 ^lost 2");
  bench.resize(1, {0, 0}, {0, 1});
  CHECK(bench.said() == "form 0@1:0 form 1@1:1 C1");
  bench.join(0, 1);
  bench.join(1, 1);
  CHECK(bench.said() == "run 0@1 run 1@1 ^resized 1");
  bench.report(0, 1);
  CHECK(bench.said() == "^report 1");
  SECTION("and on") {
    bench.perform(Continue{3, 0});
    CHECK(bench.said() == "C0");
    bench.report(1, 2);
    bench.report(0, 2);
    CHECK(bench.said() == "^report 2");
  }
  SECTION("but is ahead of a pause: what rank 0 saves counts") {
    bench.perform(Pause{3, 0});
    CHECK(bench.said() == "S1 P0+");
    bench.hear(Stopped{3, 0, 1});
    bench.hear(Paused{3, 0, false, 0});
    CHECK(bench.said() == "^paused");
  }
}

TEST_CASE("a report that rank 0 took with it is made by the next one") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.report(1, 1);
  bench.lose({0});
  CHECK(bench.said() == "halt 1@0 halt 2@0 ^lost 0");
  bench.resize(1, {0, 0}, {1, 2});
  CHECK(bench.said() == "form 1@1:0 form 2@1:1 ^report 1");  // at once: it has to be answered before it can join
  bench.perform(Continue{3, 0, true});
  CHECK(bench.said() == "C1+");
  bench.join(2, 1);
  bench.join(1, 1);
  CHECK(bench.said() == "run 1@1 run 2@1 ^resized 1");
}

TEST_CASE("a report that rank 0 never comes to is that of one which has gone on") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.report(1, 1);
  bench.lose({2});
  bench.resize(1, {0, 0}, {0, 1});
  bench.join(0, 1);
  bench.join(1, 1);
  bench.said();
  const auto lose_lead = [&] {
    bench.lose({0});
    bench.resize(2, {0}, {1});
    bench.join(1, 2);
    CHECK(bench.said() == "halt 1@1 ^lost 0 form 1@2:0 run 1@2 ^resized 2");
  };
  SECTION("as it is lost, and the other is to end within the step") {
    lose_lead();
    bench.perform(Stop{3, 0, true});
    CHECK(bench.said() == "S1+ ^report 1");
    return;
  }
  SECTION("as it is lost, and the other has finished") {
    lose_lead();
    bench.hear(Finished{3, 0, 1});
    CHECK(bench.said() == "^report 1 ^finished");
    return;
  }
  // As it is led past it by what the other has, or as it is lost.
  const int lead = GENERATE(0, 1);
  if (lead == 1) lose_lead();
  bench.report(lead, 2);
  CHECK(bench.said() == "^report 1");
  SECTION("the next one is told when it is answered") {
    bench.perform(Continue{3, 0});
    CHECK(bench.said() == "^report 2");
    if (lead == 0) bench.report(1, 2);
    bench.perform(Continue{3, 0});
    CHECK(bench.said() == (lead == 0 ? "C0 C1" : "C1"));
  }
  SECTION("a pause comes after the next one, which is what rank 0 saves") {
    bench.perform(Pause{3, 0, true});
    CHECK(bench.said() == (lead == 0 ? "P0+ ^report 2" : "P1+ ^report 2"));
  }
  SECTION("a stop comes after the next one, too") {
    bench.perform(Stop{3, 0, true});
    CHECK(bench.said() == (lead == 0 ? "S0+ S1 ^report 2" : "S1+ ^report 2"));
  }
}

TEST_CASE("a pause that is decided as rank 0 is lost ends the attempt with what is left") {
  Bench bench({0, 0});
  bench.train(2);
  bench.report(0, 1);
  CHECK(bench.said() == "^report 1");
  bench.lose({0});
  CHECK(bench.said() == "halt 1@0 ^lost 0");
  bench.perform(Pause{3, 0, true});
  CHECK(bench.said() == "S1+");
  bench.fail(1, FailureSource::preemption, true);
  CHECK(bench.said() == "^failed");
  CHECK(bench.cause().source == FailureSource::preemption);
}

TEST_CASE("whose fault an end is: the trial's own comes before what follows from it") {
  Bench bench({0, 0, 0});
  bench.start(3);
  for (int member = 0; member < 3; ++member) bench.join(member, 0, "fixed");
  bench.said();
  SECTION("a collective fails in one, because another threw") {
    bench.fail(1, FailureSource::infrastructure, true);
    CHECK(bench.said().empty());
    bench.fail(2, FailureSource::user);
    CHECK(bench.said() == "S0");
    bench.hear(Stopped{3, 0, 0});
    CHECK(bench.said() == "^failed");
    CHECK(bench.cause().source == FailureSource::user);
    CHECK(bench.cause().text == "rank 2: boom");
    CHECK_FALSE(bench.cause().caused_by_peers);
  }
  SECTION("nobody knows why: the last one is not waited for") {
    bench.fail(1, FailureSource::infrastructure, true);
    bench.fail(2, FailureSource::infrastructure, true);
    CHECK(bench.said() == "S0");
    bench.hear(Stopped{3, 0, 0});
    CHECK(bench.cause().source == FailureSource::infrastructure);
  }
  SECTION("a worker is killed: a group that cannot change ends") {
    bench.fail(1, FailureSource::infrastructure);
    CHECK(bench.said() == "S0 S2");
  }
}

TEST_CASE("members that are late are ended, once") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.say(0, GroupMessage::Kind::late, 0, {2});
  CHECK(bench.said() == "kill 2");
  bench.say(1, GroupMessage::Kind::late, 0, {2, 99});
  CHECK(bench.said().empty());
  bench.hear(Stopped{3, 0, 2});
  CHECK(bench.said() == "halt 0@0 halt 1@0 ^lost 2");
}

TEST_CASE("who waits for the answer to a report is not late") {
  Bench bench({0, 0});
  bench.train(2);
  bench.report(0, 1);
  CHECK(bench.said() == "^report 1");
  bench.say(1, GroupMessage::Kind::late, 0, {0});
  CHECK(bench.said().empty());
}

TEST_CASE("a rank that makes more reports than those that wait for it in collectives ends the attempt") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.report(1, 1);
  CHECK(bench.said().empty());
  bench.say(0, GroupMessage::Kind::late, 0, {1});
  CHECK(bench.said() == "kill 1 ^notice");  // it might have been stopped just then
  const std::string why =
      "rank 1 has reported step 1, while rank 0 waits for it in a collective before that report: all ranks are to "
      "make the same reports";
  CHECK(bench.notice() == "trial 3: " + why);
  bench.say(2, GroupMessage::Kind::late, 0, {1});
  CHECK(bench.said().empty());
  bench.say(0, GroupMessage::Kind::broken, 0);
  bench.say(2, GroupMessage::Kind::broken, 0);
  CHECK(bench.said().empty());
  bench.fail(1, FailureSource::infrastructure);
  bench.resize(1, {0, 0, 0}, {0, -1, 2});
  for (const int member : {0, 2, 3}) bench.join(member, 1);
  for (const int member : {0, 2, 3}) bench.report(member, 1);
  bench.perform(Continue{3, 0});
  bench.report(3, 2);
  bench.said();
  bench.say(2, GroupMessage::Kind::late, 1, {1});
  CHECK(bench.said() == "S0 S2 S3");
  for (const int member : {0, 2, 3}) bench.hear(Stopped{3, 0, member});
  CHECK(bench.said() == "^failed");
  CHECK(bench.cause().source == FailureSource::user);
  CHECK(bench.cause().rank == 1);
  CHECK(bench.cause().text ==
        "rank 1 has reported step 2, while rank 2 waits for it in a collective before that report: all ranks are to "
        "make the same reports");
}

TEST_CASE("a rank that waits in its report while the others have given up their generation forms the next one, too") {
  Bench bench({0, 0});
  bench.train(2);
  bench.report(1, 1);
  bench.say(0, GroupMessage::Kind::broken, 0);
  CHECK(bench.said() == "^lost");
  bench.resize(1, {0, 0}, {0, 1});
  CHECK(bench.said() == "form 0@1:0 form 1@1:1 C1");
}

TEST_CASE("a pause does not wait for a rank that waits in a collective for those that have paused") {
  Bench bench({0, 0});
  bench.train(2);
  bench.report(0, 1);
  bench.perform(Pause{3, 0, true});
  CHECK(bench.said() == "^report 1 P0+");
  const bool parked = GENERATE(false, true);
  const bool first = GENERATE(false, true);
  if (first) bench.say(1, GroupMessage::Kind::broken, 0);
  bench.hear(Paused{3, 0, parked, 0});
  if (!first) bench.say(1, GroupMessage::Kind::broken, 0);
  CHECK(bench.said() == (parked ? "S0 S1 ^failed" : "S1 ^paused"));
  if (parked)
    CHECK(bench.cause().text ==
          "rank 1 waited in a collective for ranks that had paused: all ranks are to make the same reports");
}

TEST_CASE("of those that train, who does not come to the next generation is late; newcomers are not") {
  Bench bench({0, 0, 0});
  bench.train(3);
  bench.lose({1});
  bench.resize(1, {0, 0, 0}, {0, -1, 2});
  bench.join(0, 1);
  bench.said();
  bench.say(0, GroupMessage::Kind::late, 0);  // of a generation that is over
  CHECK(bench.said().empty());
  bench.say(0, GroupMessage::Kind::late, 1);
  CHECK(bench.said() == "kill 2");  // not 3, which is new
  bench.say(0, GroupMessage::Kind::late, 1);
  CHECK(bench.said().empty());
}

TEST_CASE("while a generation goes on nobody in it is late for the next one, until one has left it") {
  Bench bench({0, 0});
  bench.train(2);
  bench.resize(1, {0, 0, 0}, {0, 1, -1});
  bench.join(2, 1);
  bench.said();
  bench.say(2, GroupMessage::Kind::late, 1);
  CHECK(bench.said().empty());
  bench.join(0, 1);
  bench.say(0, GroupMessage::Kind::late, 1);
  CHECK(bench.said() == "kill 1");
}

TEST_CASE("workers that do not reach each other form another generation, but not for ever") {
  Bench bench({0, 1});
  bench.train(2);
  for (std::uint32_t generation = 0; generation < 3; ++generation) {
    bench.say(1, GroupMessage::Kind::broken, generation);
    CHECK(bench.said().empty());
    bench.say(0, GroupMessage::Kind::broken, generation);
    CHECK(bench.said() == "^lost");
    bench.resize(generation + 1, {0, 1}, {0, 1});
    bench.join(0, generation + 1);
    bench.join(1, generation + 1);
    bench.said();
  }
  bench.say(0, GroupMessage::Kind::broken, 3);
  bench.say(1, GroupMessage::Kind::broken, 3);
  CHECK(bench.said() == "S0 S1");
  bench.hear(Stopped{3, 0, 0});
  bench.hear(Stopped{3, 0, 1});
  CHECK(bench.said() == "^failed");
  CHECK(bench.cause().text == "its workers do not reach each other, or do not all make the same collectives");
}

TEST_CASE("a rank that ends by itself while the others wait for it in a collective is done without, but not for ever") {
  Bench bench({0, 0, 0});
  bench.train(3);
  const bool first = GENERATE(false, true);
  if (first) bench.hear(Finished{3, 0, 2});
  bench.say(0, GroupMessage::Kind::broken, 0);
  bench.say(1, GroupMessage::Kind::broken, 0);
  if (!first) bench.hear(Finished{3, 0, 2});
  CHECK(bench.said() == "halt 0@0 halt 1@0 ^lost 2");
  int last = 2;
  for (std::uint32_t generation = 1; generation <= 3; ++generation) {
    bench.resize(generation, {0, 0, 0}, {0, 1, -1});
    ++last;
    bench.hear(Started{3, 0, 1, last});
    for (const int member : {0, 1, last}) bench.join(member, generation);
    bench.said();
    bench.say(0, GroupMessage::Kind::broken, generation);
    bench.hear(Finished{3, 0, last});
    CHECK(bench.said().empty());
    bench.say(1, GroupMessage::Kind::broken, generation);
  }
  CHECK(bench.said() == "S0 S1");
  bench.hear(Stopped{3, 0, 0});
  bench.hear(Stopped{3, 0, 1});
  CHECK(bench.said() == "^failed");
  CHECK(bench.cause().text == "rank 2: it had ended, while the others waited for it in a collective");
}

TEST_CASE("a rank that waits in a collective for those that wait in a report ends the attempt") {
  Bench bench({0, 0, 0});
  bench.start(3);
  for (int member = 0; member < 3; ++member) bench.join(member, 0, "fixed");
  bench.said();
  SECTION("rank 0 has left out a report") {
    const bool first = GENERATE(false, true);
    bench.report(1, 0);
    if (first) bench.report(2, 0);
    bench.fail(0, FailureSource::infrastructure, true);
    if (!first) {
      CHECK(bench.said().empty());  // rank 2 may say more
      bench.report(2, 0);
    }
    CHECK(bench.said() == "S1 S2");
    bench.hear(Stopped{3, 0, 1});
    bench.hear(Stopped{3, 0, 2});
    CHECK(bench.said() == "^failed");
    CHECK(bench.cause().source == FailureSource::infrastructure);  // a network that fails may look the same
    CHECK(
        bench.cause().text ==
        "rank 0: boom; meanwhile ranks 1, 2 had reported step 0, which rank 0 had not: all ranks are to make the same "
        "reports");
  }
  SECTION("one that has ended before is named") {
    bench.hear(Finished{3, 0, 1});
    bench.fail(0, FailureSource::user);
    CHECK(bench.said() == "S2");
    bench.hear(Stopped{3, 0, 2});
    CHECK(bench.cause().text == "rank 0: boom (rank 1 had ended before)");
  }
}

TEST_CASE("a notice: a group that can change goes on without them; another one saves at its next report and ends") {
  Bench bench({0, 0, 1});
  SECTION("it can") {
    bench.train(3);
    bench.warn({2});
    CHECK(bench.said() == "^leaving 2");
    bench.resize(1, {0, 0}, {0, 1});
    CHECK(bench.said() == "form 0@1:0 form 1@1:1 form 2@1:-1");
  }
  SECTION("it cannot") {
    bench.start(3);
    bench.said();
    bench.warn({2});
    CHECK(bench.said().empty());
    for (int member = 0; member < 3; ++member) bench.report(member, 0);
    CHECK(bench.said() == "^report 0 fixed");
    bench.perform(Continue{3, 0});
    CHECK(bench.said() == "S0+ S1 S2");
    for (int member = 0; member < 3; ++member) bench.hear(Stopped{3, 0, member});
    CHECK(bench.said() == "^failed");
    CHECK(bench.cause().source == FailureSource::preemption);
  }
}

TEST_CASE("within a step one that has trained saves its last commit, whoever of them is left") {
  Bench bench({0, 1, 1});
  bench.train(3);
  bench.lose({0, 1});
  bench.said();
  bench.perform(Stop{3, 0, true});  // too few are left
  CHECK(bench.said() == "S2+");
  bench.hear(Checkpointed{3, 0, {}, 2});
  bench.fail(2, FailureSource::user, true);
  CHECK(bench.over());
  // Who comes to a report all the same saves after that.
  Bench report({0, 1});
  report.train(2);
  report.perform(Stop{3, 0, true});
  CHECK(report.said() == "S0+ S1");
  report.report(1, 1);
  report.report(0, 1);
  CHECK(report.said() == "^report 1");
  // A group that cannot change has no commits.
  Bench fixed({0, 1});
  fixed.start(2);
  for (int member = 0; member < 2; ++member) fixed.join(member, 0, "fixed");
  fixed.said();
  fixed.perform(Stop{3, 0, true});
  CHECK(fixed.said() == "S0 S1");
}

TEST_CASE("a group pauses as one, and goes on as one") {
  Bench bench({0, 0});
  bench.train(2);
  bench.report(0, 1);
  bench.perform(Pause{3, 0, true});
  CHECK(bench.said() == "^report 1 P0+");
  bench.report(1, 1);
  CHECK(bench.said() == "P1");
  SECTION("in memory") {
    bench.hear(Paused{3, 0, true, 0});
    bench.hear(Paused{3, 0, true, 1});
    CHECK(bench.said() == "^parked");
    Launch go{};
    go.trial = 3;
    go.parked = true;
    go.allocation = allocation(0, {0, 0});
    bench.perform(go);
    CHECK(bench.said() == "l0 l1");
    bench.report(0, 2);
    CHECK(bench.said() == "^report 2");
  }
  SECTION("saved") {
    bench.hear(Paused{3, 0, false, 0});
    bench.hear(Paused{3, 0, false, 1});
    CHECK(bench.said() == "^paused");
    CHECK(bench.over());
  }
}

TEST_CASE("rank 0 of commands pauses first: what it does before it ends may need the others") {
  Bench bench({0, 0, 0});
  bench.start(3);
  for (int member = 0; member < 3; ++member) bench.join(member, 0, "fixed");
  bench.report(0, 0);
  bench.said();
  bench.perform(Pause{3, 0, true});
  CHECK(bench.said() == "P0+");
  SECTION("it has saved: the others end, and that comes before the pause is told") {
    bench.hear(Paused{3, 0, false, 0});
    CHECK(bench.said() == "S1 S2");
    bench.hear(Stopped{3, 0, 1});
    CHECK(bench.said().empty());
    bench.fail(2, FailureSource::user);  // of an end that it had before it was asked to
    CHECK(bench.said() == "^paused");
    CHECK(bench.over());
  }
  SECTION("one that ends with it, or of its end, is no failure") {
    bench.hear(Finished{3, 0, 1});
    bench.fail(2, FailureSource::user);
    CHECK(bench.said().empty());
    bench.hear(Paused{3, 0, false, 0});
    CHECK(bench.said() == "^paused");
    CHECK(bench.over());
  }
  SECTION("it stays in memory, and so do they") {
    bench.hear(Paused{3, 0, true, 0});
    CHECK(bench.said() == "rest 1@0 rest 2@0");
    bench.report(1, 0);
    bench.report(2, 0);
    CHECK(bench.said() == "P1 P2");
    bench.hear(Paused{3, 0, true, 1});
    bench.hear(Paused{3, 0, true, 2});
    CHECK(bench.said() == "^parked");
  }
  SECTION("it stays in memory, but one of them has failed meanwhile") {
    bench.fail(1, FailureSource::user);
    bench.hear(Paused{3, 0, true, 0});
    CHECK(bench.said() == "S0 S2");
    bench.hear(Stopped{3, 0, 2});
    bench.hear(Stopped{3, 0, 0});
    CHECK(bench.said() == "^failed");
    CHECK(bench.cause().text == "rank 1: boom");
  }
  SECTION("a stop meanwhile reaches all") {
    bench.perform(Stop{3, 0});
    CHECK(bench.said() == "S0 S1 S2");
    for (int member = 0; member < 3; ++member) bench.hear(Stopped{3, 0, member});
    CHECK(bench.said() == "^stopped");
  }
}

TEST_CASE("words of members that are gone, and of other attempts, change nothing") {
  Bench bench({0, 0});
  bench.train(2);
  bench.hear(Finished{3, 1, 0});
  bench.hear(Finished{3, 0, 7});
  bench.hear(Finished{3, 0, -1});
  bench.perform(Resize{3, 0, allocation(0, {0}), {0}});
  bench.perform(Resize{3, 0, allocation(5, {0}), {0, 1}});
  bench.join(0, 9);
  CHECK(bench.said().empty());
  bench.perform(Stop{3, 0, true});
  CHECK(bench.said() == "S0+ S1");  // within a step whoever has a commit saves that
  bench.perform(Stop{3, 0, true});
  CHECK(bench.said().empty());
  bench.hear(Stopped{3, 0, 0});
  bench.hear(Failed{3, 0, {}, 1});
  CHECK(bench.said() == "^stopped");
  bench.report(0, 1);
  CHECK(bench.said().empty());
}

TEST_CASE("groups go on with what is queued after an executor has thrown") {
  int launched = 0;
  bool failing = true;
  Groups groups({.down =
                     [&](const Command&) {
                       if (std::exchange(failing, false)) throw std::runtime_error("no more threads");
                       ++launched;
                     },
                 .kill = [](TrialId, Attempt, int) {},
                 .up = [](const Event&) {}});
  for (const TrialId trial : {1, 2}) {
    Launch launch{};
    launch.trial = trial;
    launch.allocation = allocation(0, {0, 1});
    launch.group = true;
    Command command = launch;
    REQUIRE(groups.perform(command));
  }
  CHECK_THROWS_AS(groups.work(), std::runtime_error);
  groups.work();
  CHECK(launched == 2);
}
