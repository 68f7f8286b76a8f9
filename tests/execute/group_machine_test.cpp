// GroupMachine: what a group does as its members come, are lost and change, and laws over random histories.
#include "support/test.hpp"

#include <hypertune/execute/detail/group/group_machine.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <variant>
#include <vector>

using namespace hypertune;
using namespace hypertune::group;

namespace {

std::string text(const std::vector<Action>& actions) {
  std::string all;
  const auto number = [](int n) { return std::to_string(n); };
  for (const auto& action : actions) {
    all += all.empty() ? "" : " ";
    if (const auto* start = std::get_if<Start>(&action))
      all += "start " + number(start->member) + "@" + number(start->rank);
    if (const auto* join = std::get_if<Join>(&action)) all += "join " + number(join->member) + "@" + number(join->rank);
    if (const auto* halt = std::get_if<Halt>(&action)) all += "halt " + number(halt->member);
    if (const auto* dismiss = std::get_if<Dismiss>(&action)) all += "dismiss " + number(dismiss->member);
    if (const auto* broken = std::get_if<Broken>(&action)) {
      all += "broken";
      for (const int rank : broken->ranks) all += " " + number(rank);
    }
    if (std::holds_alternative<Run>(action)) all += "run";
    if (std::holds_alternative<Complete>(action)) all += "complete";
    if (std::holds_alternative<Over>(action)) all += "over";
  }
  return all;
}

std::string after(GroupMachine& machine, const group::Event& event) { return text(machine.resume(event)); }

/// A group of `size` that runs, generation 0.
GroupMachine running(int size) {
  GroupMachine machine;
  machine.resume(Form{0, std::vector<int>(static_cast<std::size_t>(size), -1)});
  for (int member = 0; member < size; ++member) machine.resume(Joined{member, 0});
  REQUIRE(machine.running());
  return machine;
}

}  // namespace

TEST_CASE("a group runs when its last member stands ready") {
  GroupMachine machine;
  CHECK(after(machine, Form{0, {-1, -1, -1}}) == "start 0@0 start 1@1 start 2@2");
  CHECK(after(machine, Joined{2, 0}).empty());
  CHECK(after(machine, Joined{2, 0}).empty());  // said twice, counted once
  CHECK(after(machine, Joined{0, 0}).empty());
  CHECK(after(machine, Joined{1, 1}).empty());  // of no generation that there is
  CHECK_FALSE(machine.running());
  CHECK(after(machine, Joined{1, 0}) == "run complete");
  CHECK(machine.running());
}

TEST_CASE("a lost member ends its generation, and the others form the next one") {
  auto machine = running(4);
  CHECK(after(machine, Gone{{1}}) == "halt 0 halt 2 halt 3 broken 1");
  CHECK(after(machine, Gone{{1}}).empty());  // it is not lost twice
  CHECK(machine.state() == GroupMachine::State::broken);
  CHECK(machine.present() == 3);
  CHECK(after(machine, Form{1, {0, 2, 3, -1}}) == "join 0@0 join 2@1 join 3@2 start 4@3");
  CHECK(after(machine, Joined{0, 0}).empty());  // late, of the generation that is over
  for (const int member : {0, 3, 4}) CHECK(after(machine, Joined{member, 1}).empty());
  CHECK(after(machine, Joined{2, 1}) == "run complete");
  CHECK(machine.member(1) == 2);
  CHECK(after(machine, Form{1, {0}}).empty());  // not newer than what there is
  CHECK(machine.size() == 4);
}

TEST_CASE("those that one thing has taken are lost together, rank 0 as any other") {
  auto machine = running(4);
  CHECK(after(machine, Gone{{0, 2}}) == "halt 1 halt 3 broken 0 2");
  CHECK(after(machine, Gone{{3}}) == "broken 3");  // the others have been told to wait
  CHECK(after(machine, Form{1, {1}}) == "join 1@0");
  CHECK(after(machine, Joined{1, 1}) == "run complete");
  CHECK(after(machine, Gone{{1}}) == "broken 0");
  CHECK(machine.present() == 0);
}

TEST_CASE("a group grows and shrinks while it runs; who has no place in it is dismissed, and it settles after that") {
  auto machine = running(2);
  CHECK(after(machine, Form{1, {0, 1, -1}}) == "join 0@0 join 1@1 start 2@2");
  for (const int member : {0, 1}) CHECK(after(machine, Joined{member, 1}).empty());
  CHECK(after(machine, Joined{2, 1}) == "run complete");
  CHECK(after(machine, Form{2, {2}}) == "join 2@0 dismiss 0 dismiss 1");
  CHECK(after(machine, Gone{{0}}).empty());
  CHECK(after(machine, Joined{2, 2}) == "run");
  CHECK(after(machine, Gone{{1}}) == "complete");
}

TEST_CASE("a member that is lost while the next generation is decided breaks that one") {
  auto machine = running(3);
  machine.resume(Gone{{2}});
  machine.resume(Gone{{1}});
  CHECK(after(machine, Form{1, {0, 1, -1}}) == "join 0@0 start 3@2 halt 0 halt 3 broken 1");
  CHECK(after(machine, Joined{0, 1}).empty());
  CHECK(after(machine, Form{2, {0, 2}}) == "join 0@0 join 3@1");
}

TEST_CASE("a group that is to end is over when its last member is gone, and nothing follows") {
  auto machine = running(3);
  machine.resume(Form{1, {0, 1}});
  CHECK(after(machine, End{}) == "dismiss 0 dismiss 1");  // the third one is dismissed already
  CHECK(after(machine, End{}).empty());
  CHECK(after(machine, Joined{0, 1}).empty());
  CHECK(after(machine, Form{2, {0, -1}}).empty());
  CHECK(after(machine, Gone{{0, 1}}).empty());
  CHECK(after(machine, Gone{{2}}) == "over");
  CHECK(after(machine, Gone{{2}}).empty());
  CHECK(machine.state() == GroupMachine::State::over);

  GroupMachine never;
  CHECK(after(never, End{}) == "over");

  GroupMachine known(5, 2);  // of which only now anybody wants to know
  CHECK(known.running());
  CHECK(after(known, Form{5, {0}}).empty());
  CHECK(after(known, Form{6, {0, 1, -1}}) == "join 0@0 join 1@1 start 2@2");
}

TEST_CASE("whatever happens, a group trains only when it is whole, and ends once") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<int>(random() % n); };
    GroupMachine machine;
    std::map<int, int> told;  // of members that are there: the rank they were last told; -1: to go
    std::set<int> ready;      // … that stand ready for what they were told
    std::set<int> gone;
    std::uint32_t generation = 0;
    bool trains = false, broken = false, ended = false;
    int over = 0;
    const auto perform = [&](const std::vector<Action>& actions) {
      for (const auto& action : actions) {
        REQUIRE(over == 0);  // nothing follows the end
        if (const auto* start = std::get_if<Start>(&action)) REQUIRE(told.emplace(start->member, start->rank).second);
        if (const auto* join = std::get_if<Join>(&action)) {
          REQUIRE((told.contains(join->member) && told.at(join->member) >= 0));
          told[join->member] = join->rank;
          ready.erase(join->member);
        }
        if (const auto* dismiss = std::get_if<Dismiss>(&action)) {
          REQUIRE((told.contains(dismiss->member) && told.at(dismiss->member) >= 0));
          told[dismiss->member] = -1;
        }
        if (const auto* halt = std::get_if<Halt>(&action)) REQUIRE(told.contains(halt->member));
        if (std::holds_alternative<Run>(action)) {
          std::set<int> ranks;
          for (const auto& [member, rank] : told)
            if (rank >= 0) {
              REQUIRE(ready.contains(member));
              REQUIRE(ranks.insert(rank).second);
            }
          REQUIRE(static_cast<int>(ranks.size()) == machine.size());
          REQUIRE((*ranks.begin() == 0 && *ranks.rbegin() == machine.size() - 1));
          trains = true;
        }
        if (std::holds_alternative<Complete>(action)) {
          REQUIRE(trains);
          for (const auto& [member, rank] : told) REQUIRE(rank >= 0);
        }
        if (std::holds_alternative<Broken>(action)) {
          REQUIRE_FALSE(ended);
          trains = false;
          broken = true;
        }
        over += std::holds_alternative<Over>(action);
      }
    };
    for (int step = 0; step < 300; ++step) {
      const int kind = below(20);
      if (kind < 2 || machine.state() == GroupMachine::State::empty) {  // another size, whoever is left and new ones
        std::vector<int> from;
        for (int rank = 0; rank < machine.size(); ++rank)
          if (below(4) > 0) from.push_back(rank);  // also of a lost one: it may not be known yet
        for (int fresh = below(3); fresh > 0; --fresh) from.push_back(-1);
        if (from.empty()) from.push_back(-1);
        if (!ended) {
          trains = broken = false;
          ready.clear();
        }
        perform(machine.resume(Form{++generation, from}));
      } else if (kind < 4 && !told.empty()) {
        Gone event;
        for (const auto& [member, rank] : told)
          if (event.members.empty() || below(3) == 0) event.members.push_back(member);
        for (const int member : event.members) {
          told.erase(member);
          ready.erase(member);
          gone.insert(member);
        }
        perform(machine.resume(event));
      } else if (kind == 4 && below(10) == 0) {
        ended = true;
        trains = false;
        perform(machine.resume(End{}));
      } else if (kind < 6 && !gone.empty()) {  // word that comes late
        perform(machine.resume(Gone{{*gone.begin()}}));
        perform(machine.resume(Joined{*gone.rbegin(), generation}));
        if (generation > 0 && !told.empty()) perform(machine.resume(Joined{told.begin()->first, generation - 1}));
      } else if (!told.empty()) {
        auto at = told.begin();
        std::advance(at, below(told.size()));
        if (at->second >= 0) ready.insert(at->first);
        perform(machine.resume(Joined{at->first, generation}));
      }
      REQUIRE(machine.running() == trains);
      REQUIRE(machine.present() == static_cast<int>(told.size()));
      if (broken && !ended) REQUIRE(machine.state() == GroupMachine::State::broken);
    }
    if (!ended) perform(machine.resume(End{}));
    Gone rest;
    for (const auto& [member, rank] : told) rest.members.push_back(member);
    perform(machine.resume(rest));
    REQUIRE(over == 1);
  }
}
