// DriverAddress: where workers find their driver, as a line of text. No I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s {

/// Stored in the pods' annotation `hypertune/driver`, and so in a file in each pod. Holds no secret.
struct DriverAddress {
  std::string ip;  ///< "10.0.0.7", "fd00::7"
  std::uint16_t port = 0;
  std::string fingerprint;  ///< SHA-256 of the certificate: 64 digits of 0-9a-f

  /// "wss://10.0.0.7:4711 sha256:FINGERPRINT", "wss://[fd00::7]:4711 sha256:…".
  std::string to_string() const;
  /// The inverse; white space at both ends is ignored. Error of kind `input` if the text is no such line.
  static DriverAddress parse(std::string_view text);

  friend bool operator==(const DriverAddress&, const DriverAddress&) = default;
};

}  // namespace hypertune::inline v0::k8s
