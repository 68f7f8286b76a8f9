// What a server of ours answers with, apart from any HTTP library.
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

/// Answers one request. What it throws ends the server.
using HttpAnswerer = std::function<HttpAnswer(std::string_view method, std::string_view target, std::string_view body)>;

/// Whether a request may take long: it is then answered on a thread of its own kind, one after the other, and the
/// others do not wait for it.
using SlowRequest = std::function<bool(std::string_view method, std::string_view target)>;

}  // namespace hypertune::inline v0
