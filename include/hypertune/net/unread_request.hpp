// Why a server has not read a request.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/system/error_code.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace hypertune::inline v0::detail {

/// An HTTP status, and a sentence for the client.
struct UnreadRequest {
  int status = 400;
  std::string why;
};

/// `error`: of HttpLoop; `body`: HttpLimits::body.
inline UnreadRequest unread_request(const boost::system::error_code& error, std::uint64_t body) {
  namespace http = boost::beast::http;
  if (error == boost::asio::error::no_buffer_space) return {503, "the server has no room for more requests now"};
  if (body == 0 && (error == http::error::body_limit || error == http::error::unexpected_body))
    return {413, "a request to this server has no body"};
  if (error == http::error::body_limit) return {413, fmt::format("the body is too large: at most {} bytes", body)};
  if (error == http::error::header_limit) return {431, "the address or the headers are too large"};
  return {400, fmt::format("this is no HTTP request: {}", error.message())};
}

}  // namespace hypertune::inline v0::detail
