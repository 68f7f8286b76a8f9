// By which address this host is reached by the other ranks of a group.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/group.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::detail {

/// The addresses that begin with the same bits.
struct AddressRange {
  int family = AF_INET;
  std::array<unsigned char, 16> bytes = {};
  unsigned bits = 0;
};

/// "10.1.0.0/16"; nullopt: it is none.
inline std::optional<AddressRange> parse_network(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  AddressRange network;
  const std::string address = text.substr(0, slash);
  if (::inet_pton(AF_INET, address.c_str(), network.bytes.data()) != 1) {
    network.family = AF_INET6;
    if (::inet_pton(AF_INET6, address.c_str(), network.bytes.data()) != 1) return std::nullopt;
  }
  const std::string_view bits = std::string_view(text).substr(slash + 1);
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), network.bits);
  if (error != std::errc() || end != bits.data() + bits.size()) return std::nullopt;
  if (network.bits > (network.family == AF_INET ? 32U : 128U)) return std::nullopt;
  return network;
}

inline bool holds(const AddressRange& network, const unsigned char* address) {
  for (unsigned bit = 0; bit < network.bits; bit += 8) {
    const unsigned rest = std::min(8U, network.bits - bit);
    const unsigned mask = (0xff00U >> rest) & 0xffU;
    if (((address[bit / 8] ^ network.bytes[bit / 8]) & mask) != 0) return false;
  }
  return true;
}

/// Of this host, by which the other ranks reach it, as text. Error of kind `usage` where `place` names no network, or
/// one that this host is not in.
inline std::string address_of(const GroupPlace& place) {
  if (place.on_one_host()) return "127.0.0.1";
  if (place.network.empty())
    fail(Errc::usage,
         "the ranks of this group are on several hosts, and no network is named by which they reach each other: name "
         "it, as in `group: {{network: 10.1.0.0/16}}`");
  const auto network = parse_network(place.network);
  if (!network) fail(Errc::usage, "group.network '{}' is no network: write one as 10.1.0.0/16", place.network);
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0)
    fail(Errc::io, "the addresses of host '{}' cannot be listed: {}", place.host(), std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != network->family) continue;
    std::array<unsigned char, 16> bytes = {};
    if (network->family == AF_INET) {
      sockaddr_in address;
      std::memcpy(&address, entry->ifa_addr, sizeof address);
      std::memcpy(bytes.data(), &address.sin_addr, 4);
    } else {
      sockaddr_in6 address;
      std::memcpy(&address, entry->ifa_addr, sizeof address);
      if (address.sin6_scope_id != 0) continue;  // of one link only: the text would not say which
      std::memcpy(bytes.data(), &address.sin6_addr, 16);
    }
    if (!holds(*network, bytes.data())) continue;
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (::inet_ntop(network->family, bytes.data(), text.data(), text.size()) != nullptr) return text.data();
  }
  fail(Errc::usage, "host '{}' has no address in group.network '{}': name one that all hosts of the group are in",
       place.host(), place.network);
}

}  // namespace hypertune::inline v0::detail
