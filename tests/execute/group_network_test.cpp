// Which hosts the workers of one trial are placed on together, where a network is named by which they reach each other.
#include "support/test.hpp"

#include <hypertune/detail/network.hpp>
#include <hypertune/detail/network_text.hpp>
#include <hypertune/execute/detail/placement.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace ht = hypertune;
using ht::Placement;
using ht::Strategy;
using ht::detail::parse_address;
using ht::detail::parse_network;

namespace {

const ht::GroupOptions network{.network = "10.1.0.0/16"};

ht::Host host(const std::string& name, double cpus, std::vector<std::string> addresses) {
  return {.name = name, .total = {.cpus = cpus}, .addresses = std::move(addresses)};
}
ht::Host inside(const std::string& name, double cpus) { return host(name, cpus, {"127.0.0.1", "10.1.4.7"}); }
ht::Host outside(const std::string& name, double cpus) {
  return host(name, cpus, {"127.0.0.1", "10.2.4.7", "fd00::7"});
}

std::string names(const std::vector<ht::Slot>& slots) {
  std::string text;
  for (const auto& slot : slots) text += slot.host_name;
  std::sort(text.begin(), text.end());
  return text;
}
std::string placed(const std::vector<ht::Host>& hosts, const ht::Workers& workers) {
  return names(Placement(hosts, network).place_all({.cpus = 1}, workers));
}

}  // namespace

TEST_CASE("addresses of IPv4 and IPv6 are read, and nothing else") {
  for (const char* text :
       {"0.0.0.0", "255.255.255.255", "::", "::1", "1:2:3:4:5:6:7:8", "::ffff:10.1.0.5", "FD00::aB"}) {
    INFO(text);
    const auto address = parse_address(text);
    REQUIRE(address);
    CHECK(address->six == (std::string_view(text).find(':') != std::string_view::npos));
  }
  for (const char* text : {"", ":", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", "+1.2.3.4", "host",
                           "fe80::1%eth0", "1::2::3", "12345::", "10.1.0.0/16"}) {
    INFO(text);
    CHECK_FALSE(parse_address(text));
  }
  CHECK_FALSE(parse_address(std::string_view("10.1.0.5\0.example", 17)));
}

TEST_CASE("a network holds the addresses that begin with its bits") {
  const auto holds = [](const char* text, const char* address) { return parse_network(text)->holds(address); };
  CHECK(holds("10.1.0.0/16", "10.1.255.1"));
  CHECK_FALSE(holds("10.1.0.0/16", "10.2.0.1"));
  CHECK_FALSE(holds("10.1.0.0/16", "::ffff:10.1.0.1"));
  CHECK(holds("10.1.3.7/12", "10.15.0.1"));
  CHECK_FALSE(holds("10.1.3.7/12", "10.16.0.1"));
  CHECK(holds("0.0.0.0/0", "192.168.0.1"));
  CHECK(holds("fd00:1::/33", "fd00:1:7fff::1"));
  CHECK_FALSE(holds("fd00:1::/33", "fd00:1:8000::1"));
  CHECK_FALSE(holds("0.0.0.0/0", "no address"));
  for (const char* text : {"", "/", "10.1.0.0", "10.1.0.0/", "/8", "10.1.0.0/33", "::/129", "10.1.0.0/8/8", "10.1/16"})
    CHECK_FALSE(parse_network(text));
  for (const auto& own : ht::detail::own_addresses()) {
    INFO(own);
    CHECK(parse_address(own));
    CHECK(ht::detail::own_address_in(*parse_network(own + (own.find(':') == std::string::npos ? "/32" : "/128"))) ==
          own);
  }
}

TEST_CASE("workers on several hosts are placed where all have an address in the network") {
  const std::vector<ht::Host> mixed{outside("a", 3), inside("b", 2), outside("c", 3), inside("d", 2)};
  for (const auto strategy : {Strategy::pack, Strategy::spread})
    CHECK(placed(mixed, {.min = 4, .strategy = strategy}) == "bbdd");
  CHECK(placed(mixed, {.min = 2, .strategy = Strategy::strict_spread}) == "bd");
  CHECK(placed(mixed, {.min = 3, .strategy = Strategy::strict_spread}).empty());
  CHECK(placed(mixed, {.min = 5}).empty());
  CHECK(placed(mixed, {.min = 2, .max = 9, .strategy = Strategy::spread}) == "bbdd");
  CHECK(placed(mixed, {.min = 1, .max = 9, .strategy = Strategy::strict_spread}) == "bd");
  // On one host alone they need no network.
  CHECK(placed(mixed, {.min = 3}) == "aaa");
  CHECK(placed(mixed, {.min = 3, .strategy = Strategy::strict_pack}) == "aaa");
  CHECK(placed({outside("a", 1), outside("b", 1)}, {.min = 1, .max = 2}) == "a");
  CHECK(placed({outside("a", 2), outside("b", 1)}, {.min = 2, .strategy = Strategy::spread}) == "aa");
  CHECK(placed({outside("a", 2), outside("b", 1)}, {.min = 1, .strategy = Strategy::strict_spread}) == "b");
  CHECK(placed({outside("a", 2), outside("b", 1)}, {.min = 2, .strategy = Strategy::strict_spread}).empty());
  CHECK(placed({outside("a", 5), inside("b", 2), inside("c", 2)}, {.min = 2, .max = 8}) == "aaaaa");
  // Nobody has said where these are.
  CHECK(placed({host("a", 2, {}), inside("b", 2)}, {.min = 4}) == "aabb");
  // No network is named.
  CHECK(names(Placement(mixed).place_all({.cpus = 1}, {.min = 10})) == "aaabbcccdd");
}

TEST_CASE("workers that need a network are on one host while none is named") {
  const ht::GroupOptions required{.required = true};
  Placement placement({inside("a", 3), inside("b", 2)}, required);
  for (const auto strategy : {Strategy::pack, Strategy::spread, Strategy::strict_pack})
    CHECK(names(Placement(placement).place_all({.cpus = 1}, {.min = 3, .strategy = strategy})) == "aaa");
  CHECK_FALSE(placement.possible({.cpus = 1}, ht::Workers{.min = 4}));
  CHECK(
      placement.why_not({.cpus = 1}, ht::Workers{.min = 4}) ==
      "needs 4 workers with 1 cpu each, but hosts that reach each other have room for 3: no network is named by which "
      "hosts reach each other; name one that all of them are in, as in `group: {network: 10.1.0.0/16}`");
  CHECK(placement.possible({.cpus = 1}, {.min = 3}));
  CHECK(names(Placement({inside("a", 3), inside("b", 2)}, {.network = "10.1.0.0/16", .required = true})
                  .place_all({.cpus = 1}, {.min = 5})) == "aaabb");
}

TEST_CASE("workers that join others reach them") {
  Placement placement({outside("a", 3), inside("b", 2), inside("c", 1), outside("d", 3)}, network);
  const auto joining = [&](std::vector<int> beside, Strategy strategy) {
    const auto slots = placement.place_all({.cpus = 1}, {.min = 1, .max = 9, .strategy = strategy}, {}, beside);
    for (const auto& slot : slots) placement.release(slot);
    return names(slots);
  };
  for (const auto strategy : {Strategy::pack, Strategy::spread}) {
    CHECK(joining({1}, strategy) == "bbc");
    CHECK(joining({0}, strategy) == "aaa");
    CHECK(joining({1, 2}, strategy) == "bbc");
  }
  CHECK(joining({1}, Strategy::strict_spread) == "c");
  CHECK(joining({0}, Strategy::strict_spread).empty());
  CHECK(joining({0}, Strategy::strict_pack) == "aaa");
}

TEST_CASE("where no hosts that reach each other hold a trial it is said which are outside, and what to do") {
  const ht::Workers workers{.min = 4};
  Placement placement({outside("a", 3), inside("b", 2), host("c", 3, {"192.168.0.9"})}, network);
  CHECK_FALSE(placement.possible({.cpus = 1}, workers));
  CHECK_FALSE(placement.worth_waiting({.cpus = 1}, workers, {}));
  CHECK(placement.why_not({.cpus = 1}, workers) ==
        "needs 4 workers with 1 cpu each, but hosts that reach each other have room for 3: host 'a', host 'c' have no "
        "address in group.network '10.1.0.0/16' (host 'a': 10.2.4.7, fd00::7); name a network that all of them are in, "
        "as in `group: {network: 10.1.0.0/16}`");
  CHECK(placement.why_not({.cpus = 1}, {.min = 9}) == "needs 9 workers with 1 cpu each, but the hosts have room for 3");
  CHECK(placement.possible({.cpus = 1}, {.min = 3}));
  CHECK(placement.possible({.cpus = 1}));  // of one worker
  CHECK(placement.about({.cpus = 1}) == 8);
  placement.locate_host(0, {"10.1.0.9"});
  CHECK(placement.possible({.cpus = 1}, workers));
  const auto held = placement.place_all({.cpus = 1}, workers);
  CHECK(names(held).size() == 4);
  CHECK(placement.why_not({.cpus = 1}, workers) ==
        "waits for 4 workers with 1 cpu each: 3 are free on hosts that reach each other, as host 'c' has no address in "
        "group.network '10.1.0.0/16' (host 'c': 192.168.0.9)");
}
