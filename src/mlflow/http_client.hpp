// One connection to an HTTP server, kept open between requests. Blocking, with a time limit for each request.
#pragma once

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail::mlflow {

/// The server cannot be reached, or does not answer in time; a later attempt may succeed.
struct Unreachable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Parses http://host:port/path. Error of kind `usage` for anything else.
struct Address {
  bool tls = false;
  std::string host, port, path;
  explicit Address(const std::string& uri);
};

struct Answer {
  unsigned status = 0;
  std::string body;
};

class HttpClient {
 public:
  /// `authorization`: value of the Authorization header; empty: no such header.
  HttpClient(Address address, std::string authorization);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Sends a request with a JSON body (empty: GET) to a path below the address. Throws Unreachable, at the latest after
  /// `limit`.
  Answer request(std::string_view target, const std::string& body, std::chrono::milliseconds limit);

 private:
  struct Connection;
  Address address_;
  std::string authorization_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hypertune::inline v0::detail::mlflow
