// Placement of several workers at once: laws over random requests, the strategies, and the sentences that a user reads.
#include "support/test.hpp"

#include <hypertune/execute/detail/placement.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ht = hypertune;
using ht::Strategy;

namespace {

std::vector<ht::Host> hosts(std::initializer_list<double> cpus) {
  std::vector<ht::Host> all;
  for (const double each : cpus)
    all.push_back({.name = std::string(1, static_cast<char>('a' + all.size())), .total = {.cpus = each}});
  return all;
}
std::vector<ht::Host> uneven_hosts() {
  return {{.name = "a", .total = {.cpus = 4, .gpus = 2, .memory = 8ULL << 30U}},
          {.name = "b", .total = {.cpus = 2.5, .gpus = 1, .memory = 0, .custom = {{"licence", 2}}}},
          {.name = "c", .total = {.cpus = 8, .gpus = 0, .memory = 4ULL << 30U}},
          {.name = "d", .total = {.cpus = 8, .gpus = 4, .memory = 64ULL << 30U, .custom = {{"licence", 5}}}}};
}
std::string names(const std::vector<ht::Slot>& slots) {
  std::string text;
  for (const auto& slot : slots) text += slot.host_name;
  return text;
}
std::set<std::string> used_hosts(const std::vector<ht::Slot>& slots) {
  std::set<std::string> used;
  for (const auto& slot : slots) used.insert(slot.host_name);
  return used;
}

/// The number of workers for which there is room one after the other, found by trying; nothing is held afterwards.
int by_trying(ht::Placement& placement, const ht::Resources& each, const std::string& host = "") {
  std::vector<ht::Slot> held;
  for (;;) {
    auto slot = host.empty() ? placement.place(each) : placement.place_on(host, each);
    if (!slot) break;
    held.push_back(std::move(*slot));
  }
  for (const auto& slot : held) placement.release(slot);
  return static_cast<int>(held.size());
}

}  // namespace

TEST_CASE("workers are placed all or none, never more than there is room for, and all are given back") {
  static constexpr double cpus[] = {0.25, 0.5, 1, 1.5, 2};
  static constexpr double gpus[] = {0, 0, 0, 0.3, 0.6, 1, 2};
  static constexpr Strategy strategies[] = {Strategy::pack, Strategy::spread, Strategy::strict_pack,
                                            Strategy::strict_spread};
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    std::mt19937_64 random(seed);
    ht::Placement placement(uneven_hosts());
    std::vector<std::vector<ht::Slot>> held;
    int placed = 0, refused = 0;
    ht::Resources each;
    for (int i = 0; i < 300; ++i) {
      const auto kind = random() % 8;
      if (kind < 4) {
        if (random() % 4 == 0 || i == 0) {
          each = {.cpus = cpus[random() % std::size(cpus)], .gpus = gpus[random() % std::size(gpus)]};
          if (random() % 4 == 0) each.memory = (random() % 3) << 30U;
          if (random() % 5 == 0) each.custom["licence"] = 1;
        }
        ht::Workers workers{.min = 1 + static_cast<int>(random() % 6)};
        workers.max = workers.min + static_cast<int>(random() % 3) * 2;
        workers.strategy = strategies[random() % 4];
        ht::Placement::Excluded excluded;
        if (random() % 4 == 0) excluded.insert(std::string(1, static_cast<char>('a' + random() % 4)));
        // What there is room for, found in another way.
        std::vector<int> rooms;
        for (const char* host : {"a", "b", "c", "d"})
          if (const auto at = placement.find_host(host); !excluded.contains(host) && !placement.gone(*at))
            rooms.push_back(by_trying(placement, each, host));
        int room = 0;
        for (const int own : rooms)
          room = workers.strategy == Strategy::strict_pack     ? std::max(room, own)
                 : workers.strategy == Strategy::strict_spread ? room + std::min(own, 1)
                                                               : room + own;
        const auto before = placement.usage();
        const std::string why = placement.why_not(each, workers, excluded);
        const auto slots = placement.place_all(each, workers, excluded);
        INFO("seed " << seed << " step " << i << ": " << workers.min << " to " << workers.max << " by "
                     << to_string(workers.strategy) << ", room for " << room << ": " << why);
        REQUIRE(static_cast<int>(slots.size()) == (room < workers.min ? 0 : std::min(room, workers.max)));
        REQUIRE(slots.empty() != why.empty());
        if (slots.empty()) {
          REQUIRE(placement.usage() == before);
          ++refused;
          continue;
        }
        ++placed;
        REQUIRE(placement.possible(each, workers, excluded));
        const auto used = used_hosts(slots);
        for (const auto& host : excluded) REQUIRE_FALSE(used.contains(host));
        if (workers.strategy == Strategy::strict_pack) REQUIRE(used.size() == 1);
        if (workers.strategy == Strategy::strict_spread) REQUIRE(used.size() == slots.size());
        if (workers.strategy == Strategy::pack) {  // no fewer hosts would do
          std::sort(rooms.rbegin(), rooms.rend());
          int sum = 0;
          std::size_t fewest = 0;
          while (sum < static_cast<int>(slots.size())) sum += rooms.at(fewest++);
          REQUIRE(used.size() == fewest);
        }
        if (workers.strategy == Strategy::spread) {  // no more hosts could have one
          const auto wide = std::count_if(rooms.begin(), rooms.end(), [](int own) { return own > 0; });
          REQUIRE(used.size() == std::min(slots.size(), static_cast<std::size_t>(wide)));
        }
        held.push_back(slots);
      } else if (kind < 7 && !held.empty()) {
        const auto at = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
        for (const auto& slot : *at) placement.release(slot);
        held.erase(at);
      } else if (kind == 7) {
        const int host = static_cast<int>(random() % 4);
        placement.gone(host) ? placement.restore_host(host) : placement.remove_host(host);
      }
      // Together they hold no core twice, and no more of a device than there is.
      std::set<std::pair<int, int>> cores;
      std::map<std::pair<int, int>, double> devices;
      for (const auto& slots : held)
        for (const auto& slot : slots) {
          for (const int core : slot.cpus) REQUIRE(cores.insert({slot.host, core}).second);
          for (const int device : slot.gpus)
            REQUIRE((devices[{slot.host, device}] += std::min(1.0, slot.resources.gpus)) <= 1 + 1e-9);
        }
    }
    REQUIRE(placed > 10);
    REQUIRE(refused > 10);
    for (const auto& slots : held)
      for (const auto& slot : slots) placement.release(slot);
    for (int host = 0; host < 4; ++host) placement.restore_host(host);
    for (const auto& host : uneven_hosts()) REQUIRE(placement.place_on(host.name, host.total));
  }
}

TEST_CASE("the strategies: as few hosts as possible, as many, one, or one for each") {
  const auto placed = [](const std::vector<ht::Host>& on, const ht::Workers& workers) {
    return names(ht::Placement(on).place_all({.cpus = 1}, workers));
  };
  CHECK(placed(hosts({4, 2, 8}), {.min = 2}) == "bb");  // where least is left beside them
  CHECK(placed(hosts({4, 2, 8}), {.min = 4}) == "aaaa");
  CHECK(placed(hosts({4, 2, 8}), {.min = 10}) ==
        "ccccccccbb");  // the largest first, then the one that just holds the rest
  CHECK(placed(hosts({4, 2, 8}), {.min = 15}).empty());
  CHECK(placed(hosts({4, 2, 8}), {.min = 3, .max = 20}).size() == 14);
  CHECK(placed(hosts({4, 2, 8}), {.min = 5, .max = 5, .strategy = Strategy::spread}) == "abcca");
  CHECK(placed(hosts({4, 2, 8}), {.min = 8, .max = 8, .strategy = Strategy::strict_pack}) == "cccccccc");
  CHECK(placed(hosts({4, 2, 8}), {.min = 9, .max = 9, .strategy = Strategy::strict_pack}).empty());
  CHECK(placed(hosts({4, 2, 8}), {.min = 3, .max = 3, .strategy = Strategy::strict_spread}) == "abc");
  CHECK(placed(hosts({4, 2, 8}), {.min = 2, .max = 9, .strategy = Strategy::strict_spread}) == "abc");
  CHECK(placed(hosts({4, 2, 8}), {.min = 4, .max = 4, .strategy = Strategy::strict_spread}).empty());

  // Who joins others goes beside them, or away from them.
  const auto joins = [](Strategy strategy, int count) {
    ht::Placement placement(hosts({4, 4, 4}));
    REQUIRE(placement.place_on("b", {.cpus = 1}));
    return names(placement.place_all({.cpus = 1}, {.min = count, .max = count, .strategy = strategy}, {}, {1}));
  };
  CHECK(joins(Strategy::pack, 3) == "bbb");
  CHECK(joins(Strategy::pack, 5) == "bbbaa");
  CHECK(joins(Strategy::spread, 3) == "aca");
  CHECK(joins(Strategy::strict_pack, 3) == "bbb");
  CHECK(joins(Strategy::strict_pack, 4).empty());
  CHECK(joins(Strategy::strict_spread, 2) == "ac");
  CHECK(joins(Strategy::strict_spread, 3).empty());
}

TEST_CASE("two trials that wait for each other's places hold none of them") {
  ht::Placement placement(hosts({2, 2}));
  const auto first = placement.place_all({.cpus = 1}, {.min = 3});
  REQUIRE(first.size() == 3);
  CHECK(placement.place_all({.cpus = 1}, {.min = 2}).empty());
  CHECK(placement.place_all({.cpus = 1}, {.min = 3}).empty());
  CHECK(placement.place({.cpus = 1}));  // what is left is free for whoever fits
  for (const auto& slot : first) placement.release(slot);
  CHECK(placement.place_all({.cpus = 1}, {.min = 3}).size() == 3);
}

TEST_CASE("what workers wait for, and what can never be, in words") {
  using ht::Workers;
  ht::Placement placement(hosts({2, 2}));
  const auto one = placement.place({.cpus = 1});
  const auto two = placement.place({.cpus = 1});
  CHECK(placement.why_not({.cpus = 1}, Workers{4}) == "waits for 4 workers with 1 cpu each: 2 are free");
  CHECK(placement.why_not({.cpus = 2}, Workers{2}) == "waits for 2 workers with 2 cpus each: 0 are free");
  CHECK(placement.why_not({.cpus = 1}, Workers{.min = 2, .max = 2, .strategy = Strategy::strict_pack}) ==
        "waits for 2 workers with 1 cpu each on one host: 1 is free");
  CHECK(placement.why_not({.cpus = 1}, Workers{2}).empty());
  CHECK(placement.why_not({.cpus = 1}, Workers{5}) == "needs 5 workers with 1 cpu each, but the hosts have room for 4");
  CHECK_FALSE(placement.possible({.cpus = 1}, Workers{5}));
  CHECK(placement.why_not({.cpus = 1}, Workers{.min = 3, .max = 3, .strategy = Strategy::strict_spread}) ==
        "needs 3 workers with 1 cpu each on a host of its own each, but the hosts have room for 2");
  CHECK_THAT(placement.why_not({.cpus = 3}, Workers{2}), ContainsSubstring("needs 3 cpus, which no host has"));
  CHECK_THAT(placement.why_not({.cpus = 0.5, .memory = 1U << 20U, .custom = {{"tape", 1}}}, Workers{2}),
             ContainsSubstring("1 tape"));

  placement.remove_host(1, false, "it was cut off");
  CHECK(placement.possible({.cpus = 1}, Workers{4}));
  CHECK(placement.why_not({.cpus = 1}, Workers{4}) ==
        "waits for 4 workers with 1 cpu each: 1 is free; a host that is lost now must come back: host 'b': it was cut "
        "off");
  placement.remove_host(1, true, "its disk is full");
  CHECK_FALSE(placement.possible({.cpus = 1}, Workers{4}));
  CHECK(placement.why_not({.cpus = 1}, Workers{4}) ==
        "needs 4 workers with 1 cpu each, but the hosts have room for 2; host 'b': its disk is full");

  // Who was never there is waited for, and not lost.
  ht::Placement queued({{.name = "worker-1", .total = {.cpus = 1}, .presence = ht::Presence::coming},
                        {.name = "worker-2", .total = {.cpus = 1}, .presence = ht::Presence::coming}});
  for (const int worker : {0, 1}) queued.remove_host(worker, false, "waits in the queue");
  CHECK(queued.why_not({.cpus = 1}, Workers{2}) ==
        "waits for 2 workers with 1 cpu each: 0 are free; worker-1, worker-2: waits in the queue");

  // As long as a host may come of which nothing is known, nothing is impossible.
  ht::Placement open({{.name = "x", .presence = ht::Presence::unknown}});
  CHECK(open.possible({.cpus = 64}, Workers{8}));
  CHECK(open.place_all({.cpus = 1}, Workers{2}).empty());

  for (const Workers wrong : {Workers{0}, Workers{.min = 3, .max = 2}})
    CHECK_THROWS_AS(wrong.require_sound(), ht::Error);
}

TEST_CASE("ten thousand hosts: workers are placed without a look at each of them") {
  std::vector<ht::Host> many;
  for (int i = 0; i < 10'000; ++i) many.push_back({.name = "host-" + std::to_string(i), .total = {.cpus = 8}});
  ht::Placement placement(many);
  for (const auto strategy : {Strategy::pack, Strategy::spread, Strategy::strict_pack, Strategy::strict_spread}) {
    std::vector<std::vector<ht::Slot>> held;
    for (int i = 0; i < 2000; ++i)
      held.push_back(placement.place_all({.cpus = 1}, {.min = 4, .max = 4, .strategy = strategy}));
    for (const auto& slots : held) {
      REQUIRE(slots.size() == 4);
      for (const auto& slot : slots) placement.release(slot);
    }
  }
  CHECK(placement.place_all({.cpus = 1}, {80'000}).size() == 80'000);
}
