// The addresses of this host, and its address in a given network.
#pragma once

#include <hypertune/detail/network_text.hpp>
#include <hypertune/error.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The text of an IPv4 or IPv6 address. Empty for any other kind, and for IPv6 addresses that are valid on one link
/// only, because the text would not tell the link.
inline std::string address_text(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const auto size = static_cast<socklen_t>(text.size());
  if (address.sa_family == AF_INET) {
    sockaddr_in four;
    std::memcpy(&four, &address, sizeof four);
    ::inet_ntop(AF_INET, &four.sin_addr, text.data(), size);
  } else if (address.sa_family == AF_INET6) {
    sockaddr_in6 six;
    std::memcpy(&six, &address, sizeof six);
    if (six.sin6_scope_id == 0) ::inet_ntop(AF_INET6, &six.sin6_addr, text.data(), size);
  }
  return text.data();
}

/// The addresses of this host, including loopback. Error of kind `io` if they cannot be listed.
inline std::vector<std::string> own_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) fail(Errc::io, "cannot list the addresses of this machine: {}", std::strerror(errno));
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next)
    if (entry->ifa_addr != nullptr)
      if (auto text = address_text(*entry->ifa_addr); !text.empty()) addresses.push_back(std::move(text));
  return addresses;
}

/// An address of this host in the network, as text; nullopt if it has none.
inline std::optional<std::string> own_address_in(const Network& network) {
  for (auto& address : own_addresses())
    if (network.holds(address)) return std::move(address);
  return std::nullopt;
}

}  // namespace hypertune::inline v0::detail
