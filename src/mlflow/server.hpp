// The part of MLflow's REST API (version 2.0) that is needed to send runs.
#pragma once

#include "net/http_client.hpp"
#include "run_updates.hpp"

#include <hypertune/record/mlflow_options.hpp>

#include <boost/json/value.hpp>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

namespace hypertune::inline v0::detail::mlflow {

using net::Unreachable;

/// The server has refused a request, and would refuse it again.
struct Refused : std::runtime_error {
  Refused(unsigned code, const std::string& text) : std::runtime_error(text), status(code) {}
  unsigned status;
};

/// Sending is idempotent: runs are found by their tags, and equal metrics, parameters and tags are stored once.
class Server {
 public:
  /// Error of kind `usage` if the options' address is none.
  Server(const MlflowOptions& options, const std::string& authorization);

  /// Sets the time limit of requests: `limit()` is called at the beginning of each.
  void bound_by(std::function<std::chrono::milliseconds()> limit) { limit_ = std::move(limit); }

  /// Finds or creates the experiment, and finds the runs already sent for `identity` (which identifies this
  /// experiment). Returns whether there were any.
  bool open(const std::string& experiment, const std::string& identity);
  bool is_open() const { return !experiment_.empty(); }
  /// Makes the next open() look again, because the data on the server may have been changed by others.
  void close() { experiment_.clear(); }
  const std::string& experiment() const { return experiment_; }

  void send(TrialId trial, const RunUpdate& update);

 private:
  boost::json::value call(std::string_view method, const std::string& body);
  const std::string& run_of(TrialId trial, const RunUpdate& update);
  void find_runs();

  net::HttpClient http_;
  std::function<std::chrono::milliseconds()> limit_;
  std::string experiment_, identity_;
  std::unordered_map<TrialId, std::string> runs_;
};

}  // namespace hypertune::inline v0::detail::mlflow
