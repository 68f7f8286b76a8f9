// Part of hypertune::k8s: the request with which a worker connects.
#include "connect_request.hpp"

#include "worker_channel.hpp"

#include <hypertune/net/bearer.hpp>

#include <boost/beast/http/field.hpp>
#include <boost/beast/websocket/rfc6455.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace hypertune::inline v0::k8s {
namespace {

namespace http = boost::beast::http;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

bool is_worker_name(std::string_view name) {
  constexpr std::size_t longest = 253;
  return !name.empty() && name.size() <= longest && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  });
}

ConnectDecision check_connect_request(const ConnectRequest& request, const Secret& token) {
  if (!hypertune::detail::bears_token(request, token))
    return {http::status::unauthorized, "a wrong token, or none", {}};
  const auto target = view(request.target());
  const auto name = target.substr(std::min(worker_channel_path.size(), target.size()));
  if (!target.starts_with(worker_channel_path) || !is_worker_name(name))
    return {http::status::not_found, fmt::format("there is only {}NAME here", worker_channel_path), {}};
  const auto protocol = view(request[http::field::sec_websocket_protocol]);
  if (protocol != worker_channel_protocol)
    return {http::status::upgrade_required,
            fmt::format("the driver speaks '{}': the pod's program is of another version", worker_channel_protocol),
            {}};
  if (!boost::beast::websocket::is_upgrade(request))
    return {http::status::bad_request, "workers come by WebSocket", {}};
  return {http::status::switching_protocols, {}, std::string(name)};
}

}  // namespace hypertune::inline v0::k8s
