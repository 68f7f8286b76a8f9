// HttpAnswer: the answer of hypertune's own servers, independent of any HTTP library.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace hypertune::inline v0 {

/// An HTTP status and a JSON text.
struct HttpAnswer {
  int status = 200;
  std::string body;
};

/// Answers one request. An exception ends the server.
using HttpAnswerer = std::function<HttpAnswer(std::string_view method, std::string_view target, std::string_view body)>;

/// Whether a request may take long. Such requests are answered by a separate thread, one after the other, and the
/// others do not wait for them.
using SlowRequest = std::function<bool(std::string_view method, std::string_view target)>;

}  // namespace hypertune::inline v0
