// Dashboard: serves the page of experiments from this program. Needs hypertune::dashboard.
#pragma once

#include <hypertune/show/detail/dashboard_start.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// What a Dashboard serves, and to whom.
struct DashboardServing {
  std::vector<std::filesystem::path> folders = {};  ///< of experiments, or folders that contain some at any depth
  bool expected = false;                            ///< the folders are of experiments that may start only later
  /// The address to listen on. Other addresses than loopback (127.0.0.1, ::1) use TLS, with a new certificate or that
  /// of `identity`, and require the token.
  std::string listen = "127.0.0.1";
  std::uint16_t port = 0;               ///< 0: any free one
  std::filesystem::path identity = {};  ///< a file with a certificate and its key (PEM); empty: a new one
  std::filesystem::path token = {};     ///< a file with the token in its first line; empty: a new one
  /// The cost of an experiment, as JSON ({"spent", "rate", "currency", "budget"}), or "null". May be called from any
  /// thread.
  std::function<std::string(const std::filesystem::path& folder)> cost = {};
};

/// Serves from its construction to its destruction, read-only, on its own threads, which yield to those of the program.
/// It follows the experiments through their folders, wherever they run. Thread-safe, except for its destruction.
class Dashboard {
 public:
  /// Errors: `usage` (no such folder, an invalid address), `io` (the port is taken).
  explicit Dashboard(DashboardServing serving);
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;
  /// Closes all connections, within a second.
  ~Dashboard();

  std::uint16_t port() const;
  /// The link for the user to open: `http://127.0.0.1:8080/`. On other addresses than loopback it contains a key that
  /// works once; do not show it to anybody else, and do not write it into a log.
  std::string link() const;
  /// The address alone, without a secret.
  std::string address() const;
  /// The SHA-256 of the certificate, which a browser shows; empty on loopback.
  std::string fingerprint() const;
  /// Waits for SIGINT, SIGTERM, or SIGHUP (unless that is ignored). All other threads of the program must block these.
  void wait_for_signal();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// For Options::dashboard: serves the page of an experiment while it runs, and prints its address on the standard
/// error. `folders` and `expected` of `serving` are ignored. The returned function returns a pointer to a Dashboard.
DashboardStart serve_dashboard(DashboardServing serving = {});

}  // namespace hypertune::inline v0
