// CredentialSource: the credentials of the client, read again when they change or expire.
#pragma once

#include "http.hpp"
#include "net/tls.hpp"

#include <hypertune/k8s/access.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s::detail {

/// The credentials that a request is sent with. Immutable.
struct Credential {
  Headers headers;                       // Authorization, Impersonate-…
  std::shared_ptr<net::TlsContext> tls;  // null: the server is without TLS
  std::uint64_t generation = 0;          // grows with each change
};

/// One thread at a time. fetch() may block: it reads files, and may run a program.
class CredentialSource {
 public:
  CredentialSource(Access access, std::string server_name, bool tls);

  double check_at() const { return check_at_; }  ///< monotonic time at which fetch() is due
  /// `refused`: the server rejected the last ones. Error of kind `input` or `usage`; then the last ones are kept.
  std::shared_ptr<const Credential> fetch(bool refused, std::stop_token stop);

 private:
  struct Parts {
    std::string token, authority, certificate, key;
    bool operator==(const Parts&) const = default;
  };
  Parts read(bool refused, std::stop_token stop, double& good_for);

  Access access_;
  std::string server_name_;
  bool tls_;
  Parts parts_, from_plugin_;
  double plugin_until_ = 0;  // since the Unix epoch
  double check_at_ = 0;
  std::shared_ptr<const Credential> current_;
};

}  // namespace hypertune::inline v0::k8s::detail
