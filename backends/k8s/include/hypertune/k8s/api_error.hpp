// ApiError: a failed call of the API server.
#pragma once

#include <hypertune/error.hpp>

#include <string>
#include <utility>

namespace hypertune::inline v0::k8s {

/// An answer other than 2xx, or no answer. `what()` is one line, the server's own message if it sent one: "pods is
/// forbidden: User …". It contains no token. The kind is `usage` if another attempt would not help (400, 401, 403, 404,
/// 405, 409, 410, 413, 415, 422), `io` if it might (no answer, 408, 429, 5xx).
class ApiError : public Error {
 public:
  ApiError(int status, std::string reason, const std::string& message, std::string details = {})
      : Error(kind_of(status), message), status_(status), reason_(std::move(reason)), details_(std::move(details)) {}

  int status() const noexcept { return status_; }                 ///< HTTP status; 0: no answer
  const std::string& reason() const noexcept { return reason_; }  ///< "AlreadyExists", "Forbidden"; may be empty
  /// The whole Status object as JSON, or whatever else the server sent; at most 64 KiB.
  const std::string& details() const noexcept { return details_; }

  bool not_found() const noexcept { return status_ == 404; }
  bool forbidden() const noexcept { return status_ == 403; }
  bool already_exists() const noexcept { return status_ == 409 && reason_ == "AlreadyExists"; }
  bool conflict() const noexcept { return status_ == 409 && reason_ != "AlreadyExists"; }

 private:
  static Errc kind_of(int status) {
    return status >= 400 && status < 500 && status != 408 && status != 429 ? Errc::usage : Errc::io;
  }

  int status_;
  std::string reason_, details_;
};

}  // namespace hypertune::inline v0::k8s
