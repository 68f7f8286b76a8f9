// The address at which the other ranks of a group reach this host.
#pragma once

#include <hypertune/detail/network.hpp>
#include <hypertune/error.hpp>
#include <hypertune/trial/group.hpp>

#include <cstdlib>
#include <string>

namespace hypertune::inline v0::detail {

/// The environment variable by which an agent learns the address of its host, if all hosts share a network that need
/// not be named, as pods do.
inline constexpr const char* group_address_variable = "HYPERTUNE_GROUP_ADDRESS";

/// The address of this host for the other ranks, as text. Error of kind `usage` if `place` names no network and the
/// environment variable is not set, or if this host is not in the network.
inline std::string address_of(const GroupPlace& place) {
  if (place.on_one_host()) return "127.0.0.1";
  if (const char* told = std::getenv(group_address_variable); place.network.empty() && told != nullptr) {
    if (parse_address(told)) return told;
    fail(Errc::usage, "{} is '{}', which is no address: name a network, as in `group: {{network: 10.1.0.0/16}}`",
         group_address_variable, told);
  }
  if (place.network.empty())
    fail(Errc::usage,
         "the ranks of this group are on several hosts, and no network is named by which they reach each other: name "
         "it, as in `group: {{network: 10.1.0.0/16}}`");
  const auto network = parse_network(place.network);
  if (!network) fail(Errc::usage, "group.network '{}' is no network: write one as 10.1.0.0/16", place.network);
  if (auto address = own_address_in(*network)) return *address;
  fail(Errc::usage, "host '{}' has no address in group.network '{}': name one that all hosts of the group are in",
       place.host(), place.network);
}

}  // namespace hypertune::inline v0::detail
