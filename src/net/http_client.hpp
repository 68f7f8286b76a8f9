// One connection to an HTTP server, kept open between requests. Blocking, with a time limit for each request.
#pragma once

#include "request_text.hpp"
#include "url.hpp"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

namespace hypertune::inline v0::net {

/// The server cannot be reached, or does not answer in time; a later attempt may succeed.
struct Unreachable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Answer {
  int status = 0;
  std::string body;
};

/// To be used by one thread.
class HttpClient {
 public:
  /// `headers`: sent with each request. For https the system's authorities are trusted.
  HttpClient(Url server, Headers headers);
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;
  ~HttpClient();

  /// Sends a request with a JSON body (empty: GET) to a path below the server's. Throws Unreachable, at the latest after
  /// `limit`.
  Answer request(const std::string& target, const std::string& body, std::chrono::milliseconds limit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hypertune::inline v0::net
