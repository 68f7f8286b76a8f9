// DriverAddress: where workers find their driver.
#include <hypertune/detail/hex.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/error.hpp>
#include <hypertune/k8s/driver_address.hpp>

#include <boost/asio/ip/address.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace hypertune::inline v0::k8s {
namespace {

constexpr std::size_t longest = 256;

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

[[noreturn]] void refuse(std::string_view text) {
  std::string shown(text.substr(0, 120));
  std::replace_if(shown.begin(), shown.end(), [](unsigned char c) { return c < 0x20 || c >= 0x7F; }, '?');
  fail(Errc::input, "'{}' says not where the driver is: that is 'wss://IP:PORT sha256:FINGERPRINT'", shown);
}

}  // namespace

std::string DriverAddress::to_string() const {
  const bool v6 = ip.find(':') != std::string::npos;
  return fmt::format("wss://{}{}{}:{} sha256:{}", v6 ? "[" : "", ip, v6 ? "]" : "", port, fingerprint);
}

DriverAddress DriverAddress::parse(std::string_view text) {
  const std::string_view whole = text;
  constexpr std::string_view space = " \t\r\n";
  const auto first = text.find_first_not_of(space);
  if (first == std::string_view::npos || text.size() > longest) refuse(whole);
  text = text.substr(first, text.find_last_not_of(space) - first + 1);
  if (!take(text, "wss://")) refuse(whole);
  const auto middle = text.find(' ');
  if (middle == std::string_view::npos) refuse(whole);
  std::string_view place = text.substr(0, middle), pin = text.substr(middle + 1);
  DriverAddress address;
  if (!take(pin, "sha256:") || !hypertune::detail::is_hex(pin, 64)) refuse(whole);
  address.fingerprint = pin;
  const auto colon = place.rfind(':');
  if (colon == std::string_view::npos) refuse(whole);
  std::string_view ip = place.substr(0, colon);
  const std::string_view port = place.substr(colon + 1);
  const bool v6 = ip.size() > 2 && ip.front() == '[' && ip.back() == ']';
  if (v6) ip = ip.substr(1, ip.size() - 2);
  address.ip = ip;
  boost::system::error_code error;
  const auto parsed = boost::asio::ip::make_address(address.ip, error);
  if (error || parsed.is_v6() != v6) refuse(whole);
  address.port = hypertune::detail::parse_number<std::uint16_t>(port).value_or(0);
  if (address.port == 0) refuse(whole);
  return address;
}

}  // namespace hypertune::inline v0::k8s
