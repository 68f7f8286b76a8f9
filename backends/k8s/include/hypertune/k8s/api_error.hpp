// ApiError: what an API server answers when it does not do what it is asked.
#pragma once

#include <hypertune/error.hpp>

#include <string>
#include <utility>

namespace hypertune::inline v0::k8s {

/// An answer other than 2xx, or none at all. `what()` is one line, the server's own message where it gave one: "pods is
/// forbidden: User …". It holds no token. The kind: `usage` of what another attempt will not change (400, 401, 403,
/// 404, 405, 409, 410, 413, 415, 422), `io` of what it may (no answer, 408, 429, 5xx).
class ApiError : public Error {
 public:
  ApiError(int status, std::string reason, const std::string& message, std::string details = {})
      : Error(kind_of(status), message), status_(status), reason_(std::move(reason)), details_(std::move(details)) {}

  int status() const noexcept { return status_; }                 ///< of HTTP; 0: there was no answer
  const std::string& reason() const noexcept { return reason_; }  ///< "AlreadyExists", "Forbidden"; may be empty
  /// The whole Status object as JSON, or what else the server sent; at most 64 KiB.
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
