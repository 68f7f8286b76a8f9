// ConnectRequest: the request with which a worker connects, and whether it is accepted. No I/O.
#pragma once

#include <hypertune/net/secret.hpp>

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/status.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

using ConnectRequest = boost::beast::http::request<boost::beast::http::empty_body>;

struct ConnectDecision {
  boost::beast::http::status status;  ///< switching_protocols: accepted
  std::string why;                    ///< for the worker, one line; tells nothing to a client without the token
  std::string worker;                 ///< a valid name, if the token is right
};

/// Checks the token first, in a time that does not depend on where it differs.
ConnectDecision check_connect_request(const ConnectRequest& request, const Secret& token);

/// Letters, digits, '.', '_' and '-', at most 253: characters that need no escaping in a path.
bool is_worker_name(std::string_view name);

}  // namespace hypertune::inline v0::k8s
