// Endpoint: where checkpoints can be fetched from, and how the server is authenticated.
#pragma once

#include <hypertune/net/secret.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <variant>

namespace hypertune::inline v0 {

/// A unix domain socket: on this host, or forwarded from another one by `ssh -L` or `ssh -O forward`.
struct UnixSocket {
  std::filesystem::path path;
  friend bool operator==(const UnixSocket&, const UnixSocket&) = default;
};

struct Tcp {
  std::string address = "127.0.0.1";  ///< a number or a host name; "::1" without brackets
  std::uint16_t port = 0;             ///< 0, for a server: any free one
  friend bool operator==(const Tcp&, const Tcp&) = default;
};

/// The experiment's folder on a disk that both nodes can access.
struct SharedDirectory {
  std::filesystem::path path;
  friend bool operator==(const SharedDirectory&, const SharedDirectory&) = default;
};

/// Connections that the caller makes, for instance through a tunnel of its own. Only for fetching.
struct Connector {
  /// Returns a connected stream socket, which then belongs to hypertune, or throws an Error (kind `io`: it is tried
  /// again). Called from any thread, also several times at once.
  std::function<int()> connect;
  std::string name;  ///< of the other end, for messages
};

struct Endpoint {
  std::variant<UnixSocket, Tcp, SharedDirectory, Connector> address;
  std::string certificate = {};  ///< the fingerprint of the server's TlsIdentity; empty: no TLS
  Secret token = {};             ///< the experiment's; empty: none

  /// "unix:/run/x.sock", "http://127.0.0.1:4711", "https://10.0.0.7:4711#<fingerprint>", "https+unix:/run/x.sock#…",
  /// "file:/shared/digits", or the name of a Connector. Never shows the token.
  std::string to_string() const;
  /// The inverse; the token is given separately. Error of kind `input` if the text is invalid.
  static Endpoint parse(std::string_view text);
};

}  // namespace hypertune::inline v0
