// The token that a request bears.
#pragma once

#include <hypertune/net/secret.hpp>

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/field.hpp>

#include <string_view>

namespace hypertune::inline v0::detail {

/// Whether a request has this token, once, as "Authorization: Bearer TOKEN". The time does not tell where it differs.
template <class Request>
bool bears_token(const Request& request, const Secret& token) {
  constexpr std::string_view scheme = "Bearer ";
  if (token.empty() || request.count(boost::beast::http::field::authorization) != 1) return false;
  const auto raw = request[boost::beast::http::field::authorization];
  const std::string_view value(raw.data(), raw.size());
  return boost::beast::iequals(raw.substr(0, scheme.size()), boost::beast::string_view(scheme.data(), scheme.size())) &&
         token.matches(value.substr(scheme.size()));
}

}  // namespace hypertune::inline v0::detail
