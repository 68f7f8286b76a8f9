// Client: calls the API server of Kubernetes, from any thread.
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
  double rate = 50;              ///< calls a second, on average; 0: no limit. Open streams do not count
  double burst = 100;            ///< calls that may be made at once before that limit applies
  std::size_t connections = 16;  ///< most connections for calls at a time; watches and streams have their own
  Seconds connect = 10;          ///< to reach the server, TLS included
  Seconds attempt = 30;          ///< for one attempt of a call
  Seconds max_backoff = 10;      ///< between two attempts; also the longest Retry-After that is obeyed
  std::size_t max_answer = std::size_t{64} << 20U;  ///< bytes of an answer's body; more is an Error
  std::string user_agent = "hypertune";
};

/// Each function blocks until it is done; `stop` makes it return soon, with an ApiError ("stopped"). All input and
/// output is done by one thread of the client. Copies are the same client; its watches and streams keep it alive.
///
/// Thread-safe. Throws ApiError if there was no answer or a refusal; Error of kind `usage` (bad options), `input`
/// (credentials that cannot be read) or `protocol` (the server's answer makes no sense). None of the functions may be
/// called from within a handler.
/// within a handler.
class Client {
 public:
  explicit Client(Access access, ClientOptions options = {});

  const std::string& name_space() const;  ///< of the access
  const std::string& server() const;
  const std::string& origin() const;  ///< where the access comes from, for messages

  /// Makes one call. It is tried again, with growing pauses, until the request's deadline: if no connection was made,
  /// after 429 (Retry-After counts), and, if it is safe to repeat (all methods but PATCH and a POST that is not
  /// `named`), also if the answer was lost or is 500, 502, 503 or 504. After 401 the credentials are fetched again,
  /// once.
  Answer call(const Request& request, std::stop_token stop = {});

  /// Begins at once and returns; the handler is told of failures.
  Watch watch(WatchOptions options, WatchHandler handler);

  /// Runs a command in a container to its end. Throws ApiError if it could not be started.
  ExecResult run(const PodCommand& what, const ExecOptions& options = {}, std::stop_token stop = {});

  /// Runs a command to its end, with descriptors of this process as its streams. Returns its exit code. Throws ApiError
  /// if it could not be started or the connection was lost. Meanwhile it handles SIGWINCH on the calling thread.
  int run_foreground(const PodCommand& what, const Foreground& streams = {}, std::stop_token stop = {});

  /// Starts a command whose streams are the returned descriptors (socket pairs). Returns when the API server has
  /// accepted. The last line on `err` says why the stream ended (an exit code, a lost connection). In both directions
  /// no more is read than the other side takes. Closing `to` ends the command's standard input. carrier.end(grace)
  /// waits up to `grace` seconds for the end, then drops the connection: that does not kill the command in the pod, but
  /// ends its input.
  remote::AgentStream open_stream(const PodCommand& what, std::stop_token stop = {}, Seconds deadline = 30);

  /// Listens on 127.0.0.1; port 0: any free one. If the pod does not exist, the connections fail, not this call.
  PortForward forward(const PodPort& where, std::uint16_t port = 0);

  /// Begins at once and returns.
  LogFollower follow_log(PodLog what, LogHandler handler);

  struct State;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace hypertune::inline v0::k8s
