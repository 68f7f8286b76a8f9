// URLs: parses those of servers and proxies, builds paths and queries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::net {

struct Url {
  std::string scheme;     // in lower case
  std::string user = {};  // "name:password", decoded
  std::string host;       // without the brackets of an IPv6 address
  std::uint16_t port = 0;
  std::string path = {};  // without a slash at its end
  /// "host:port", as it is in a Host header.
  std::string authority() const;
};

/// nullopt if it is not a URL. The default port is that of the scheme: 443 for https, otherwise 80.
std::optional<Url> parse_url(std::string_view text);

/// The path with its query of names and values, which are percent-encoded.
std::string target_of(const std::string& path, const std::vector<std::pair<std::string, std::string>>& query);

/// Whether a host is an address of loopback, or "localhost".
bool is_loopback(const std::string& host);
bool is_address(const std::string& host);

/// Whether NO_PROXY names this host, by the rules of curl and Go: names with their subdomains, addresses, networks,
/// "*".
bool bypasses_proxy(const std::string& host, std::uint16_t port, std::string_view no_proxy);

}  // namespace hypertune::inline v0::net
