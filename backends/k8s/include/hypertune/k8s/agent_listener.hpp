// AgentListener: the driver's door for agents in pods, which connect to it by WebSocket over TLS.
#pragma once

#include <hypertune/checkpoint/transfer/secret.hpp>
#include <hypertune/k8s/driver_address.hpp>
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
  std::string address = "0.0.0.0";  ///< to bind: an IP address of this machine, or that of all
  std::uint16_t port = 0;           ///< 0: any free one
  Secret token = {};                ///< what workers must show; required
  std::string experiment = {};      ///< for people who look at the certificate
  double handshake = 10;            ///< seconds from the beginning of a connection until it has shown the token
  std::size_t handshakes = 256;     ///< connections at once that have not; more wait, or push out the oldest
  double ping = 5;                  ///< seconds between signs of life
  double silence = 20;              ///< seconds without one of the worker's until its connection is given up
  /// Takes lines for the user, from the listener's thread: connections with a wrong token, at most one a minute.
  std::function<void(const std::string&)> say = {};
};

/// Listens with a certificate that it makes anew (TLS 1.3, no authority: workers know its fingerprint). A connection
/// shows the token and the name of a worker that a CallHomeDialer stands for before it costs more than a few kilobytes.
/// A newer connection of a worker replaces the older one, whose stream ends. A handle: copies are one listener, which
/// closes with the last of them and of their dialers. Thread-safe; one thread of its own, which takes no signals.
class AgentListener {
 public:
  /// Error of kind `usage` without a token or for an address that is none, `busy` or `io` where it cannot listen.
  explicit AgentListener(ListenerOptions options);

  std::uint16_t port() const;
  const std::string& fingerprint() const;
  /// What workers are to be told, where they reach this machine as `ip`.
  DriverAddress address(std::string ip) const;

  /// Whether this worker is connected now, or speaks to its driver.
  bool connected(const std::string& worker) const;
  std::size_t connections() const;

  /// Ends all connections, and takes no more. dial() fails from now on.
  void close();

 private:
  friend class CallHomeDialer;
  struct State;
  std::shared_ptr<State> state_;
};

/// Opens streams to the agent of one worker, which connects by itself. Copies are one dialer; as long as one lives, the
/// worker may connect, and a connection that nobody has asked for is kept.
class CallHomeDialer {
 public:
  /// `patience`: how many seconds dial() waits for the worker. 0: not at all: the stream is there at once, and speaks
  /// when the worker does, so that waiting for a pod takes no thread; for whoever says by HostPool::explain() and
  /// refuse() what it waits for. Two dialers of one name are an Error of kind `usage`.
  /// `connected` is called each time the worker connects, on the listener's thread: it must not wait.
  CallHomeDialer(AgentListener listener, std::string worker, double patience = 60,
                 std::function<void()> connected = {});

  /// Why a worker that is waited for will not connect any more.
  using Look = std::function<std::optional<remote::DialError>()>;

  /// Waits until the worker is connected, then starts an agent there. Throws DialError: transient, with what waits()
  /// has said, when it is not there in time; what refuse() has said; transient when it is stopped. While it waits,
  /// `look` is called once a second, on the caller's thread: what it returns is thrown.
  remote::AgentStream dial(std::stop_token stop, const Look& look = {}) const;
  remote::FailureClass classify(const std::string& said) const;

  /// Why the worker is not there yet, told by whoever keeps its pod ("its pod waits for a node with …"): part of the
  /// error of a dial() whose patience ends. Empty: nothing is known. Any thread.
  void waits(std::string why) const;
  /// The worker will not come: a dial() that waits fails with this, and so do later ones until waits() is called. A
  /// stream that waits without a worker ends, and says it on its `err`. Any thread.
  void refuse(remote::FailureClass failure, std::string why) const;

  const std::string& worker() const;

 private:
  friend class AgentListener;
  struct Place;
  std::shared_ptr<Place> place_;
};

}  // namespace hypertune::inline v0::k8s
