// The calls of MLflow's REST interface (version 2.0) that are needed to send runs.
#pragma once

#include "http_client.hpp"
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

/// The server has refused a request: the same one would be refused again.
struct Refused : std::runtime_error {
  Refused(unsigned code, const std::string& text) : std::runtime_error(text), status(code) {}
  unsigned status;
};

/// What is sent is idempotent: runs are found by their tags, and equal metrics, parameters and tags are kept once.
class Server {
 public:
  Server(const MlflowOptions& options, std::string authorization);

  /// Each request may take as long as `limit()` says at its beginning.
  void bound_by(std::function<std::chrono::milliseconds()> limit) { limit_ = std::move(limit); }

  /// Finds or makes the experiment, and finds the runs that were sent of `identity` (which names this experiment among
  /// all). Whether there were any.
  bool open(const std::string& experiment, const std::string& identity);
  bool is_open() const { return !experiment_.empty(); }
  /// What the server has may have changed without us: the next open() looks again.
  void close() { experiment_.clear(); }
  const std::string& experiment() const { return experiment_; }

  void send(TrialId trial, const RunUpdate& update);

 private:
  boost::json::value call(std::string_view method, const std::string& body);
  const std::string& run_of(TrialId trial, const RunUpdate& update);
  void find_runs();

  HttpClient http_;
  std::function<std::chrono::milliseconds()> limit_;
  std::string experiment_, identity_;
  std::unordered_map<TrialId, std::string> runs_;
};

}  // namespace hypertune::inline v0::detail::mlflow
