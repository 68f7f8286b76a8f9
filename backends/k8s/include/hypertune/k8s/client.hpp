// Client: calls of an API server of Kubernetes, from any thread.
#pragma once

#include <hypertune/k8s/access.hpp>
#include <hypertune/k8s/api_error.hpp>
#include <hypertune/k8s/exec.hpp>
#include <hypertune/k8s/forward.hpp>
#include <hypertune/k8s/request.hpp>
#include <hypertune/k8s/watch.hpp>
#include <hypertune/remote/dialer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

/// Meant for designated initialisers.
struct ClientOptions {
  double rate = 50;              ///< calls a second, on average; 0: no limit. Streams that are open cost nothing
  double burst = 100;            ///< calls at once, before that limit counts
  std::size_t connections = 16;  ///< for calls, at once; watches and streams have their own beside
  Seconds connect = 10;          ///< to reach the server, TLS included
  Seconds attempt = 30;          ///< for one attempt of a call
  Seconds max_backoff = 10;      ///< between two attempts, and the most that a Retry-After is obeyed
  std::size_t max_answer = std::size_t{64} << 20U;  ///< bytes of an answer's body; more is an Error
  std::string user_agent = "hypertune";
};

/// Everything blocks until it is done, and `stop` ends it soon, with an ApiError ("stopped"). All input and output is
/// on one thread of the client's own. Copies are the same client; what it has made (watches, streams) keeps it alive.
///
/// Thread-safe. Errors are ApiError, where it got no answer or a refusal; others of `usage` (bad options), `input`
/// (credentials that cannot be read) and `protocol` (the server said what makes no sense). Nothing may be called from
/// within a handler.
class Client {
 public:
  explicit Client(Access access, ClientOptions options = {});

  const std::string& name_space() const;  ///< of the access
  const std::string& server() const;
  const std::string& origin() const;  ///< where the access is from, for messages

  /// One call. It is tried again, with pauses that grow, within the request's deadline: where no connection was made,
  /// after 429 (Retry-After counts), and where it can be repeated (all but POST, unless `named`, and PATCH) also when
  /// the answer was lost or is 500, 502, 503, 504. 401: the credentials are fetched anew, once.
  Answer call(const Request& request, std::stop_token stop = {});

  /// Begins at once and returns; trouble is told to the handler.
  Watch watch(WatchOptions options, WatchHandler handler);

  /// Runs a command in a container to its end. That it could not be started is an ApiError.
  ExecResult run(const PodCommand& what, const ExecOptions& options = {}, std::stop_token stop = {});

  /// Runs a command with descriptors of this process as its streams, to its end. Returns its exit code. That it could
  /// not be started, or the connection was lost, is an ApiError. While it runs, SIGWINCH is taken on the thread that
  /// calls.
  int run_foreground(const PodCommand& what, const Foreground& streams = {}, std::stop_token stop = {});

  /// Starts a command; its streams are the descriptors (socket pairs). It returns when the API server has accepted.
  /// Why the stream ended (an exit code, a lost connection) comes as a last line on `err`. Both ways, no more is read
  /// than the other side takes. Closing `to` ends the command's standard input. carrier.end(grace) waits so long for
  /// the end, then leaves it: the command in the pod is not killed by that, but sees its input end.
  remote::AgentStream open_stream(const PodCommand& what, std::stop_token stop = {}, Seconds deadline = 30);

  /// Listens on 127.0.0.1; port 0: any that is free. A pod that is not there is an error of the connections.
  PortForward forward(const PodPort& where, std::uint16_t port = 0);

  /// Begins at once and returns.
  LogFollower follow_log(PodLog what, LogHandler handler);

  struct Impl;

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace hypertune::inline v0::k8s
