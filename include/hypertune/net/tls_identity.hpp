// TlsIdentity: a certificate for one experiment, which its peers recognize by the fingerprint.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace hypertune::inline v0 {

/// A certificate and its key (ECDSA P-256). There is no authority: peers pin the fingerprint, which the driver
/// distributes over a channel that is already trusted. Needs hypertune::net, with OpenSSL.
struct TlsIdentity {
  std::string certificate;  ///< PEM
  std::string private_key;  ///< PEM; a secret

  /// A new one, valid from one day ago (because clocks differ) for `days`.
  static TlsIdentity generate(std::string_view experiment, int days = 365);
  /// Reads both from one file. Error of kind `usage` if others than its owner may read it, `io` or `input` if it is not
  /// such a file.
  static TlsIdentity from_file(const std::filesystem::path& path);
  /// Writes a new file that only its owner can read.
  void write_file(const std::filesystem::path& path) const;
  /// SHA-256 of the certificate: 64 hexadecimal digits.
  std::string fingerprint() const;
};

}  // namespace hypertune::inline v0
