// Addresses and networks as text, for who includes no header of sockets.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>

namespace hypertune::inline v0::detail {

/// An address of a host.
struct Address {
  bool six = false;  ///< of IPv6: 16 bytes; else 4
  std::array<unsigned char, 16> bytes = {};
  std::size_t size() const { return six ? 16 : 4; }
};

/// The whole of `text` as a number of at most `digits` digits, without a sign.
inline std::optional<unsigned> parse_digits(std::string_view text, std::size_t digits, int base) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.size() > digits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Four decimal numbers, to `bytes`. No leading zeros, which some read as octal numbers.
inline bool parse_four(std::string_view text, unsigned char* bytes) {
  for (int i = 0; i < 4; ++i) {
    const auto dot = std::min(text.find('.'), text.size());
    const auto part = text.substr(0, dot);
    const auto value = parse_digits(part, 3, 10);
    if (!value || *value > 255 || (part.size() > 1 && part.front() == '0') || (dot == text.size()) != (i == 3))
      return false;
    bytes[i] = static_cast<unsigned char>(*value);
    text.remove_prefix(std::min(dot + 1, text.size()));
  }
  return true;
}

/// Groups with a colon between each two, to the first of 16 `bytes`; the last group may be an address of IPv4. Returns
/// how many bytes there are; nullopt: they are none, or too many.
inline std::optional<std::size_t> parse_groups(std::string_view text, unsigned char* bytes) {
  std::size_t size = 0;
  for (bool more = !text.empty(); more;) {
    const auto colon = text.find(':');
    more = colon != std::string_view::npos;
    const auto group = text.substr(0, colon);
    if (!more && group.find('.') != std::string_view::npos) {
      if (size > 12 || !parse_four(group, bytes + size)) return std::nullopt;
      return size + 4;
    }
    const auto value = parse_digits(group, 4, 16);
    if (!value || size > 14) return std::nullopt;
    bytes[size++] = static_cast<unsigned char>(*value >> 8U);
    bytes[size++] = static_cast<unsigned char>(*value & 0xffU);
    if (more) text.remove_prefix(colon + 1);
  }
  return size;
}

/// "10.1.0.5", or of IPv6, as inet_pton() reads it; nullopt: it is none.
inline std::optional<Address> parse_address(std::string_view text) {
  Address address{.six = text.find(':') != std::string_view::npos};
  if (!address.six) return parse_four(text, address.bytes.data()) ? std::optional(address) : std::nullopt;
  const auto gap = text.find("::");  // zeros, as many as are missing
  const auto before = parse_groups(text.substr(0, gap), address.bytes.data());
  if (!before) return std::nullopt;
  if (gap == std::string_view::npos) return *before == 16 ? std::optional(address) : std::nullopt;
  std::array<unsigned char, 16> rest = {};
  const auto after = parse_groups(text.substr(gap + 2), rest.data());
  if (!after || *before + *after > 14) return std::nullopt;
  // An address of IPv4 ends the whole.
  if (text.substr(0, gap).find('.') != std::string_view::npos) return std::nullopt;
  std::copy_n(rest.begin(), *after, address.bytes.end() - static_cast<std::ptrdiff_t>(*after));
  return address;
}

/// The addresses that begin with the same bits.
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
  /// What is no address is in no network.
  bool holds(std::string_view address) const {
    const auto parsed = parse_address(address);
    return parsed && holds(*parsed);
  }
};

/// "10.1.0.0/16", or of IPv6; nullopt: it is none.
inline std::optional<Network> parse_network(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto first = parse_address(text.substr(0, slash));
  const auto bits = parse_digits(text.substr(slash + 1), 3, 10);
  if (!first || !bits || *bits > 8 * first->size()) return std::nullopt;
  return Network{*first, *bits};
}

}  // namespace hypertune::inline v0::detail
