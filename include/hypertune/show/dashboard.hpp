// Dashboard: the page of experiments, served from this program. Needs hypertune::dashboard.
#pragma once

#include <hypertune/show/dashboard_start.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// What a Dashboard shows, and to whom.
struct DashboardServing {
  std::vector<std::filesystem::path> folders = {};  ///< of experiments, or folders that have some in or below them
  bool expected = false;                            ///< the folders are experiments that may begin only later
  /// The address to listen on. Beyond loopback (127.0.0.1, ::1) there is TLS, by a certificate of its own or that of
  /// `identity`, and a person needs the token.
  std::string listen = "127.0.0.1";
  std::uint16_t port = 0;               ///< 0: any free one
  std::filesystem::path identity = {};  ///< a file with a certificate and its key (PEM); empty: a new one
  std::filesystem::path token = {};     ///< a file with the token in its first line; empty: a new one
  /// What an experiment has cost, as JSON ({"spent", "rate", "currency", "budget"}), or "null". Called from any thread.
  std::function<std::string(const std::filesystem::path& folder)> cost = {};
};

/// Serves from its construction to its end, read-only, on threads of its own that give way to the program's. It
/// follows the experiments by their folders, wherever they run. Thread-safe but for its end.
class Dashboard {
 public:
  /// Errors: `usage` (no such folder, an address that is none), `io` (the port is taken).
  explicit Dashboard(DashboardServing serving);
  Dashboard(const Dashboard&) = delete;
  Dashboard& operator=(const Dashboard&) = delete;
  /// Ends all connections, within a second.
  ~Dashboard();

  std::uint16_t port() const;
  /// What a person opens: `http://127.0.0.1:8080/`. Beyond loopback it holds a key that works once; show it to nobody
  /// else, and write it into no log.
  std::string link() const;
  /// The address alone, without a secret.
  std::string address() const;
  /// Beyond loopback, the SHA-256 of the certificate, which a browser shows; else empty.
  std::string fingerprint() const;
  /// Waits for SIGINT, SIGTERM, or SIGHUP (unless that is ignored). In a program whose other threads block these.
  void wait_for_signal();

 private:
  class State;
  std::unique_ptr<State> self_;
};

/// For Options::dashboard: the page of the experiment that begins, while it runs. Its address is a line on the standard
/// error. Of `serving`, `folders` and `expected` are not looked at. What it returns points to a Dashboard.
DashboardStart serve_dashboard(DashboardServing serving = {});

}  // namespace hypertune::inline v0
