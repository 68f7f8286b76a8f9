// A Client of a FakeServer.
#pragma once

#include "k8s/support/access_files.hpp"
#include "k8s/support/fake_server.hpp"

#include <hypertune/k8s/client.hpp>

#include <optional>
#include <string>

namespace hypertune::inline v0::test {

inline k8s::Access access_to(const FakeServer& server) {
  return {.server = server.url(), .name_space = "n", .origin = "test"};
}

/// What an ApiError says; nullopt where there is none.
template <class F>
std::optional<k8s::ApiError> api_problem(F&& f) {
  try {
    f();
  } catch (const k8s::ApiError& error) { return error; }
  return std::nullopt;
}

inline std::string status_text(int code, const std::string& reason, const std::string& message) {
  return R"({"kind":"Status","status":"Failure","code":)" + std::to_string(code) + R"(,"reason":")" + reason +
         R"(","message":")" + message + "\"}";
}

}  // namespace hypertune::inline v0::test
