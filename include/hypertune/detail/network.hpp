// Networks as "10.1.0.0/16", and this host's address in one.
#pragma once

#include <hypertune/detail/network_text.hpp>
#include <hypertune/error.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::detail {

/// The addresses that begin with the same bits.
struct Network {
  int family = AF_INET;
  std::array<unsigned char, 16> bytes = {};
  unsigned bits = 0;

  bool holds(const std::array<unsigned char, 16>& address) const {
    for (unsigned bit = 0; bit < bits; bit += 8) {
      const unsigned rest = std::min(8U, bits - bit);
      const unsigned mask = (0xff00U >> rest) & 0xffU;
      if (((address[bit / 8] ^ bytes[bit / 8]) & mask) != 0) return false;
    }
    return true;
  }
};

/// "10.1.0.0/16", or of IPv6; nullopt: it is none.
inline std::optional<Network> parse_network(const std::string& text) {
  if (!looks_like_network(text)) return std::nullopt;
  const auto slash = text.find('/');
  Network network;
  const std::string address = text.substr(0, slash);
  network.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  if (::inet_pton(network.family, address.c_str(), network.bytes.data()) != 1) return std::nullopt;
  const std::string_view bits = std::string_view(text).substr(slash + 1);
  const auto [end, error] = std::from_chars(bits.data(), bits.data() + bits.size(), network.bits);
  if (error != std::errc() || end != bits.data() + bits.size()) return std::nullopt;
  if (network.bits > (network.family == AF_INET ? 32U : 128U)) return std::nullopt;
  return network;
}

/// An address of this host in the network, as text; nullopt: it has none. One of IPv6 that is valid on one link only
/// does not count, as its text would not say which. Error of kind `io` if they cannot be listed.
inline std::optional<std::string> own_address_in(const Network& network) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail(Errc::io, "cannot list the addresses of this machine: {}", std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != network.family) continue;
    std::array<unsigned char, 16> bytes = {};
    if (network.family == AF_INET) {
      sockaddr_in address;
      std::memcpy(&address, entry->ifa_addr, sizeof address);
      std::memcpy(bytes.data(), &address.sin_addr, 4);
    } else {
      sockaddr_in6 address;
      std::memcpy(&address, entry->ifa_addr, sizeof address);
      if (address.sin6_scope_id != 0) continue;
      std::memcpy(bytes.data(), &address.sin6_addr, 16);
    }
    if (!network.holds(bytes)) continue;
    std::array<char, INET6_ADDRSTRLEN> text = {};
    if (::inet_ntop(network.family, bytes.data(), text.data(), text.size()) != nullptr) return text.data();
  }
  return std::nullopt;
}

}  // namespace hypertune::inline v0::detail
