#include "url.hpp"

#include <hypertune/detail/network_text.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/percent.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace hypertune::inline v0::net {

namespace {

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto port = hypertune::detail::parse_number<std::uint16_t>(text);
  return port == 0 ? std::nullopt : port;
}

bool in_network(const std::string& host, const std::string& text) {
  const auto network = hypertune::detail::parse_network(text);
  return network && network->holds(host);
}

}  // namespace

std::string Url::authority() const {
  const bool bracketed = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", bracketed ? "[" : "", host, bracketed ? "]" : "", port);
}

std::optional<Url> parse_url(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7f) return std::nullopt;
  const auto scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos || scheme_end == 0) return std::nullopt;
  Url url;
  url.scheme = in_lower_case(text.substr(0, scheme_end));
  text.remove_prefix(scheme_end + 3);
  const auto authority_end = std::min(text.find_first_of("/?#"), text.size());
  std::string_view authority = text.substr(0, authority_end);
  std::string_view path = text.substr(authority_end);
  if (path.find_first_of("?#") != std::string_view::npos) return std::nullopt;
  while (path.ends_with('/')) path.remove_suffix(1);
  url.path = path;
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    auto user = hypertune::detail::percent_decoded(authority.substr(0, at));
    if (!user) return std::nullopt;
    url.user = *std::move(user);
    authority.remove_prefix(at + 1);
  }
  std::string_view port;
  if (authority.starts_with('[')) {
    const auto end = authority.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    const auto address = hypertune::detail::parse_address(url.host);
    if (!address || !address->six) return std::nullopt;
  } else {
    const auto colon = std::min(authority.find(':'), authority.size());
    url.host = in_lower_case(authority.substr(0, colon));
    port = authority.substr(colon);
  }
  if (url.host.empty()) return std::nullopt;
  url.port = url.scheme == "https" ? 443 : 80;
  if (!port.empty()) {
    const auto number = port.front() == ':' ? parse_port(port.substr(1)) : std::nullopt;
    if (!number) return std::nullopt;
    url.port = *number;
  }
  return url;
}

std::string target_of(const std::string& path, const std::vector<std::pair<std::string, std::string>>& query) {
  std::string target = path;
  char separator = path.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : query) {
    target += std::exchange(separator, '&');
    target += hypertune::detail::percent_encoded(name);
    target += '=';
    target += hypertune::detail::percent_encoded(value);
  }
  return target;
}

bool is_address(const std::string& host) { return hypertune::detail::parse_address(host).has_value(); }

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || in_network(host, "127.0.0.0/8");
}

bool bypasses_proxy(const std::string& host, std::uint16_t port, std::string_view no_proxy) {
  if (is_loopback(host)) return true;
  while (!no_proxy.empty()) {
    const auto end = std::min(no_proxy.find_first_of(", "), no_proxy.size());
    std::string entry = in_lower_case(no_proxy.substr(0, end));
    no_proxy.remove_prefix(std::min(end + 1, no_proxy.size()));
    if (entry.empty()) continue;
    if (entry == "*") return true;
    if (entry == host || in_network(host, entry)) return true;
    if (is_address(entry)) continue;
    if (const auto colon = entry.rfind(':'); colon != std::string::npos) {  // with a port
      if (parse_port(std::string_view(entry).substr(colon + 1)) != port) continue;
      entry.resize(colon);
      if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
      if (entry == host) return true;
    }
    if (is_address(host) || is_address(entry)) continue;
    if (entry.starts_with("*.")) entry.erase(0, 1);
    if (!entry.starts_with('.')) entry.insert(0, ".");
    if (host.ends_with(entry)) return true;
  }
  return false;
}

}  // namespace hypertune::inline v0::net
