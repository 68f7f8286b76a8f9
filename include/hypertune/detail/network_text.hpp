// Addresses and networks as text.
#pragma once

#include <hypertune/detail/parse_number.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::detail {

/// An address of a host.
struct Address {
  bool six = false;  ///< IPv6, of 16 bytes; else IPv4, of 4
  std::array<unsigned char, 16> bytes = {};
  std::size_t size() const { return six ? 16 : 4; }
};

/// "10.1.0.5", or an IPv6 address; nullopt if the text is not an address.
inline std::optional<Address> parse_address(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;  // inet_pton() would stop there
  Address address{.six = text.find(':') != std::string_view::npos};
  if (::inet_pton(address.six ? AF_INET6 : AF_INET, std::string(text).c_str(), address.bytes.data()) != 1)
    return std::nullopt;
  return address;
}

/// The addresses whose first `bits` bits are those of `first`.
struct Network {
  Address first = {};
  unsigned bits = 0;

  bool holds(const Address& address) const {
    if (address.six != first.six) return false;
    for (unsigned bit = 0; bit < bits; bit += 8) {
      const unsigned rest = std::min(8U, bits - bit);
      const unsigned mask = (0xff00U >> rest) & 0xffU;
      if (((address.bytes[bit / 8] ^ first.bytes[bit / 8]) & mask) != 0) return false;
    }
    return true;
  }
  /// False if the text is not an address.
  bool holds(std::string_view address) const {
    const auto parsed = parse_address(address);
    return parsed && holds(*parsed);
  }
};

/// "10.1.0.0/16", or an IPv6 network; nullopt if the text is not a network.
inline std::optional<Network> parse_network(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto first = parse_address(text.substr(0, slash));
  const auto digits = text.substr(slash + 1);
  const auto bits = parse_number<unsigned>(digits);
  if (!first || !bits || *bits > 8 * first->size()) return std::nullopt;
  return Network{*first, *bits};
}

}  // namespace hypertune::inline v0::detail
