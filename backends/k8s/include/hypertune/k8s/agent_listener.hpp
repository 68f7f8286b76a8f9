// AgentListener: where the driver accepts agents in pods, which connect to it by WebSocket over TLS.
#pragma once

#include <hypertune/k8s/driver_address.hpp>
#include <hypertune/net/secret.hpp>
#include <hypertune/remote/dialer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

struct ListenerOptions {
  std::string address = "0.0.0.0";  ///< to bind: an IP address of this machine, or the wildcard address
  std::uint16_t port = 0;           ///< 0: any free one
  Secret token = {};                ///< the token that workers must present; required
  std::string experiment = {};      ///< the name in the certificate, for people who look at it
  double handshake = 10;            ///< seconds from the start of a connection until it must have presented the token
  std::size_t handshakes = 256;     ///< most connections before that point; further ones wait, or replace the oldest
  double ping = 5;                  ///< seconds between keep-alive messages
  double silence = 20;              ///< seconds without a message from the worker until its connection is dropped
  /// Receives lines for the user (connections with a wrong token, at most one a minute). Called on the listener's
  /// thread.
  std::function<void(const std::string&)> say = {};
};

/// Listens with a certificate that it generates itself (TLS 1.3, no authority: workers know its fingerprint). A
/// connection has to present the token and the name of a worker that has a ReverseDialer; until then it costs only a
/// few kilobytes. A newer connection of a worker replaces the older one, whose stream ends. A handle: copies refer to
/// one listener, which closes with the last copy and the last of its dialers. Thread-safe. It has one thread of its
/// own, with signals blocked.
class AgentListener {
 public:
  /// Throws Error: `usage` without a token or for an invalid address, `busy` or `io` if it cannot listen.
  explicit AgentListener(ListenerOptions options);

  std::uint16_t port() const;
  const std::string& fingerprint() const;
  /// The address to give to workers, if they reach this machine as `ip`.
  DriverAddress address(std::string ip) const;

  /// Whether this worker is connected, with or without a stream that uses its connection.
  bool connected(const std::string& worker) const;
  std::size_t connections() const;

  /// Ends all connections and accepts no more. Afterwards dial() fails.
  void close();

 private:
  friend class ReverseDialer;
  struct State;
  std::shared_ptr<State> state_;
};

/// Opens streams to the agent of one worker, which makes the connection itself. Copies are one dialer. While a copy
/// exists the worker may connect, and a connection that no stream uses yet is kept.
class ReverseDialer {
 public:
  /// `patience`: how many seconds dial() waits for the worker. 0: it does not wait; the stream is returned at once, and
  /// carries data when the worker connects. So waiting for a pod takes no thread; for callers that report what they
  /// wait for by HostPool::explain() and refuse(). A second dialer for the same name is an Error of kind `usage`.
  /// `connected` is called each time the worker connects, on the listener's thread. It must not block.
  ReverseDialer(AgentListener listener, std::string worker, double patience = 60, std::function<void()> connected = {});

  /// Returns why the awaited worker will not connect any more, if so.
  using FailureCheck = std::function<std::optional<remote::DialError>()>;

  /// Waits until the worker is connected, then starts an agent there. Throws DialError: transient, with the text given
  /// to set_waiting_reason(), if the worker does not connect in time; the reason given to refuse(); transient if `stop`
  /// is requested. While it waits, it calls `check` once a second on the caller's thread, and throws the error that
  /// `check` returns.
  remote::AgentStream dial(std::stop_token stop, const FailureCheck& check = {}) const;
  remote::FailureClass classify(const std::string& said) const;

  /// Sets why the worker is not connected yet ("its pod waits for a node with …"): part of the error of a dial() whose
  /// patience ends. Empty: unknown. May be called from any thread.
  void set_waiting_reason(std::string why) const;
  /// The worker will not connect: a dial() that waits fails with this reason, and so do later ones until
  /// set_waiting_reason() is called. A stream that waits for the worker ends, with the reason on its `err`. May be
  /// called from any thread.
  void refuse(remote::FailureClass failure, std::string why) const;

  const std::string& worker() const;

 private:
  friend class AgentListener;
  struct Place;
  std::shared_ptr<Place> place_;
};

}  // namespace hypertune::inline v0::k8s
