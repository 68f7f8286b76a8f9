// Which requests a server on this machine answers: a browser may send requests for any page that it shows.
#pragma once

#include <hypertune/net/http_answer.hpp>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// The names by which a server may be addressed.
struct ServerNames {
  std::string scheme = "http";
  std::vector<std::string> hosts{"127.0.0.1", "localhost"};  ///< without a port; [::1] in brackets
};

namespace detail {

inline bool same_name(boost::beast::string_view text, std::string_view name) {
  return boost::beast::iequals(text, boost::beast::string_view(name.data(), name.size()));
}

/// Why a request is refused: it may come from a page of another site in a browser. It must name the server by one of
/// its names (so that a foreign name that resolves to the server is refused), and must not come from another origin.
/// Programs send neither Origin nor Sec-Fetch-Site; browsers send at least one with the requests of another page, and
/// no page can remove them.
template <class Request>
std::optional<HttpAnswer> refused_origin(const Request& request, const ServerNames& names) {
  namespace http = boost::beast::http;
  const auto only_one = [&](auto field) { return request.count(field) <= 1; };
  if (!only_one(http::field::host) || !only_one(http::field::origin) || !only_one(http::field::content_type) ||
      !only_one("Sec-Fetch-Site"))
    return HttpAnswer{400, R"({"error":"Host, Origin, Sec-Fetch-Site and Content-Type are given once at most"})"};

  const auto whole = request[http::field::host];
  const auto colon = whole.rfind(':');
  const bool in_brackets = !whole.empty() && whole.back() == ']';  // [::1], without a port
  const auto host = colon == boost::beast::string_view::npos || in_brackets ? whole : whole.substr(0, colon);
  if (std::none_of(names.hosts.begin(), names.hosts.end(), [&](const auto& name) { return same_name(host, name); })) {
    std::string all;
    for (std::size_t i = 0; i < names.hosts.size(); ++i)
      all += (i == 0 ? "" : i + 1 == names.hosts.size() ? " and " : ", ") + names.hosts[i];
    return HttpAnswer{403, fmt::format(R"({{"error":"this server answers to {} only"}})", all)};
  }
  const auto origin = request.find(http::field::origin);
  const auto site = request.find("Sec-Fetch-Site");
  const std::string_view own(whole.data(), whole.size());
  if ((origin != request.end() && !same_name(origin->value(), fmt::format("{}://{}", names.scheme, own))) ||
      (site != request.end() && !same_name(site->value(), "same-origin") && !same_name(site->value(), "none")))
    return HttpAnswer{403, R"({"error":"this server does not answer the pages of other sites: ask it from a program, )"
                           R"(without the headers Origin and Sec-Fetch-Site"})"};
  return std::nullopt;
}

}  // namespace detail
}  // namespace hypertune::inline v0
