// RequestText: an HTTP request as bytes.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct RequestText {
  std::string method;  ///< "GET"
  std::string target, host, user_agent;
  std::string accept = "application/json";
  std::string content_type = {};  ///< empty: there is no body
  std::string body = {};
};

/// Error of kind `input` if a header has an invalid character; the message does not contain its value.
std::string to_bytes(RequestText what, const Headers& more);

/// Throws the same Error.
void check_header(const std::string& name, const std::string& value);

}  // namespace hypertune::inline v0::net
