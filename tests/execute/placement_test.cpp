// Placement: laws over random requests, and the sentences that a user reads.
#include "support/test.hpp"

#include <hypertune/execute/detail/placement.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace ht = hypertune;

namespace {

ht::Resources random_request(std::mt19937_64& random) {
  static constexpr double cpus[] = {0, 0.25, 0.5, 1, 1.5, 2, 3};
  static constexpr double gpus[] = {0, 0, 0, 0.1, 0.3, 0.5, 1, 2};
  ht::Resources r;
  r.cpus = cpus[random() % std::size(cpus)];
  r.gpus = gpus[random() % std::size(gpus)];
  if (random() % 3 == 0) r.memory = (random() % 4) << 30U;
  if (random() % 4 == 0) r.custom["licence"] = 1;
  return r;
}

std::vector<ht::Host> hosts() {
  return {{.name = "a", .total = {.cpus = 4, .gpus = 2, .memory = 8ULL << 30U}},
          {.name = "b", .total = {.cpus = 2.5, .gpus = 1, .memory = 0, .custom = {{"licence", 2}}}},
          {.name = "c", .total = {.cpus = 8, .gpus = 0, .memory = 4ULL << 30U}}};
}

/// What all slots together take must be there.
void check_capacity(const std::vector<ht::Slot>& slots) {
  const auto all = hosts();
  for (int h = 0; h < 3; ++h) {
    const auto& total = all[static_cast<std::size_t>(h)].total;
    double cpus = 0, gpus = 0, licences = 0;
    std::uint64_t memory = 0;
    std::set<int> cores;
    std::map<int, double> devices;
    for (const auto& slot : slots) {
      if (slot.host != h) continue;
      REQUIRE(slot.host_name == all[static_cast<std::size_t>(h)].name);
      cpus += slot.resources.cpus;
      gpus += slot.resources.gpus;
      memory += slot.resources.memory;
      if (const auto found = slot.resources.custom.find("licence"); found != slot.resources.custom.end())
        licences += found->second;
      for (const int core : slot.cpus) {
        REQUIRE(cores.insert(core).second);  // no core twice
        REQUIRE((core >= 0 && core < total.cpus));
      }
      REQUIRE(slot.gpus.size() == static_cast<std::size_t>(std::ceil(slot.resources.gpus)));
      for (const int device : slot.gpus) {
        REQUIRE((device >= 0 && device < total.gpus));
        devices[device] += std::min(1.0, slot.resources.gpus);
      }
    }
    REQUIRE(cpus <= total.cpus + 1e-9);
    REQUIRE(gpus <= total.gpus + 1e-9);
    if (total.memory > 0) REQUIRE(memory <= total.memory);
    REQUIRE(licences <= (total.custom.contains("licence") ? total.custom.at("licence") : 0) + 1e-9);
    for (const auto& [device, share] : devices) REQUIRE(share <= 1 + 1e-9);
  }
}

}  // namespace

TEST_CASE("placement never gives more than there is, and what is released is there again") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    std::mt19937_64 random(seed);
    ht::Placement placement(hosts());
    std::vector<ht::Slot> held;
    for (int i = 0; i < 400; ++i) {
      if (held.empty() || random() % 5 < 3) {
        const auto request = random_request(random);
        const std::string why = placement.why_not(request);
        auto slot = placement.place(request);
        INFO(why);
        REQUIRE(slot.has_value() == why.empty());
        if (slot) {
          REQUIRE(placement.possible(request));
          held.push_back(std::move(*slot));
        }
      } else {
        const auto at = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
        placement.release(*at);
        held.erase(at);
      }
      if (i % 20 == 0) check_capacity(held);
    }
    check_capacity(held);
    for (const auto& slot : held) placement.release(slot);
    // Empty again, to the last fraction: each host takes all it has.
    for (const auto& host : hosts()) REQUIRE(placement.place_on(host.name, host.total));
  }
}

TEST_CASE("fractions of one device add up to it exactly, however often they come and go") {
  ht::Placement placement({{.name = "gpu", .total = {.cpus = 64, .gpus = 1}}});
  const ht::Resources tenth{.cpus = 0, .gpus = 0.1};
  for (int round = 0; round < 1000; ++round) {
    std::vector<ht::Slot> slots;
    while (auto slot = placement.place(tenth)) slots.push_back(*slot);
    REQUIRE(slots.size() == 10);
    for (const auto& slot : slots) placement.release(slot);
  }
  CHECK(placement.place({.cpus = 0, .gpus = 1}));
}

TEST_CASE("what can never be is told at once, and in words") {
  ht::Placement placement(hosts());
  CHECK_FALSE(placement.possible({.cpus = 9}));
  CHECK_THAT(placement.why_not({.cpus = 9}), ContainsSubstring("needs 9 cpus, which no host has"));
  CHECK_FALSE(placement.possible({.cpus = 1, .gpus = 1.5}));
  CHECK_THAT(placement.why_not({.cpus = 1, .gpus = 1.5}), ContainsSubstring("whole number"));
  CHECK_FALSE(placement.possible({.cpus = 1, .custom = {{"tape", 1}}}));
  CHECK_THAT(placement.why_not({.cpus = 1, .custom = {{"tape", 1}}}), ContainsSubstring("1 tape"));
  CHECK_FALSE(placement.possible({.cpus = 4, .gpus = 2}, {"a"}));
  CHECK_THROWS_AS(placement.place({.cpus = -1}), ht::Error);
  CHECK(ht::Placement({}).why_not({}) == "there is no host");

  const auto all = placement.place({.cpus = 8});
  REQUIRE(all);
  CHECK(all->host_name == "c");
  CHECK(placement.possible({.cpus = 8}));
  CHECK_THAT(placement.why_not({.cpus = 8}), ContainsSubstring("waits for 8 cpus: on host 'c' 8 of 8 cpus are in use"));
}

TEST_CASE("a host that is lost is waited for, one that is lost for good is not") {
  ht::Placement placement({{.name = "a", .total = {.cpus = 1}}});
  placement.remove_host(0);
  CHECK_FALSE(placement.place({.cpus = 1}));
  CHECK(placement.possible({.cpus = 1}));
  CHECK_THAT(placement.why_not({.cpus = 1}), ContainsSubstring("come back"));
  placement.restore_host(0);
  const auto slot = placement.place({.cpus = 1});
  REQUIRE(slot);
  placement.remove_host(0, true);
  placement.release(*slot);
  CHECK_FALSE(placement.place({.cpus = 1}));
  CHECK_FALSE(placement.possible({.cpus = 1}));
  CHECK_THAT(placement.why_not({.cpus = 1}), ContainsSubstring("lost or excluded"));
}

TEST_CASE("a host with so many slots holds no more trials, whatever room it has, and says so") {
  for (const ht::Resources& need : {ht::Resources{.cpus = 1}, ht::Resources{.cpus = 0}, ht::Resources{.gpus = 0.5}}) {
    ht::Placement placement({{.name = "a", .total = {.cpus = 8, .gpus = 2}, .slots = 2}});
    CHECK(placement.about(need) == 2);
    const auto first = placement.place(need);
    const auto second = placement.place(need);
    REQUIRE(first);
    REQUIRE(second);
    CHECK_FALSE(placement.place(need));
    CHECK(placement.why_not(need) == "waits for a place: host 'a' has 2 trials of 2 at once");
    CHECK(placement.possible(need));
    placement.release(*first);
    CHECK(placement.why_not(need).empty());
    CHECK(placement.place_all(need, {.min = 2}).empty());
    CHECK_FALSE(placement.possible(need, {.min = 3}));
    CHECK(placement.place_all(need, {.min = 1, .max = 3}).size() == 1);
  }
  ht::Placement placement({{.name = "a", .total = {.cpus = 2}, .presence = ht::Presence::coming, .slots = 1}});
  placement.describe_host(0, {.cpus = 8});
  placement.restore_host(0);
  REQUIRE(placement.place({}));
  CHECK_FALSE(placement.place({}));
}

TEST_CASE("trials are spread over the hosts by what share of each is taken, the first one of equal ones") {
  const auto names = [](ht::Placement placement, const ht::Resources& each, int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      if (const auto slot = placement.place(each)) text += slot->host_name;
    return text;
  };
  const std::vector<ht::Host> equal{{.name = "a", .total = {.cpus = 4}}, {.name = "b", .total = {.cpus = 4}}};
  CHECK(names(ht::Placement(equal), {.cpus = 1}, 9) == "abababab");
  CHECK(names(ht::Placement(equal), {.cpus = 0}, 6) == "ababab");  // nothing is asked for: by their number
  const std::vector<ht::Host> uneven{{.name = "a", .total = {.cpus = 2}}, {.name = "b", .total = {.cpus = 6}}};
  CHECK(names(ht::Placement(uneven), {.cpus = 0}, 8) == "abbbabbb");
  CHECK(names(ht::Placement(uneven), {.cpus = 1}, 8) == "abbbabbb");
  const std::vector<ht::Host> gpus{{.name = "a", .total = {.cpus = 8, .gpus = 2}},
                                   {.name = "b", .total = {.cpus = 8, .gpus = 2}}};
  CHECK(names(ht::Placement(gpus), {.cpus = 0, .gpus = 0.5}, 9) == "abababab");

  ht::Placement placement(equal);
  const auto first = placement.place({.cpus = 0});
  REQUIRE(placement.place({.cpus = 0})->host_name == "b");
  placement.release(*first);
  CHECK(placement.place({.cpus = 0})->host_name == "a");  // it is the emptier one again
}

TEST_CASE("what the hosts that are there have, and what of it is in use") {
  ht::Placement placement({{.name = "a", .total = {.cpus = 2}}});
  CHECK(placement.usage() == ht::Placement::Usage{.cpus = 2});
  const auto slot = placement.place({.cpus = 0.5});
  placement.add_host({.name = "b", .total = {.cpus = 4, .gpus = 1}});
  CHECK(placement.usage() == ht::Placement::Usage{.cpus = 6, .gpus = 1, .cpus_used = 0.5});
  placement.remove_host(0);
  placement.remove_host(0, true);
  CHECK(placement.usage() == ht::Placement::Usage{.cpus = 4, .gpus = 1});
  placement.release(*slot);
  placement.restore_host(0);
  placement.restore_host(0);
  CHECK(placement.usage() == ht::Placement::Usage{.cpus = 6, .gpus = 1});
  placement.describe_host(0, {.cpus = 8});
  CHECK(placement.usage() == ht::Placement::Usage{.cpus = 12, .gpus = 1});
}
