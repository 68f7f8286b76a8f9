// MLflow: a run for each trial, through the REST interface of the tracking server. Not header-only, because it needs
// Beast: link hypertune::mlflow.
#pragma once

#include <hypertune/record/mlflow_options.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hypertune::inline v0 {

/// A Callback that sends an experiment to an MLflow tracking server: a parent run for the experiment, with a nested run
/// for each trial: its parameters, its metrics by step and time, attributes as tags, its state.
///
/// A separate thread reads the Journal and sends what is new in pieces. So the experiment never waits for the server,
/// memory does not grow while the server is unreachable, and nothing is lost, because the Journal has everything. If
/// the server does not answer, the thread tries again, first after a second and at most a minute later; this is
/// reported once. What could not be sent within `flush_grace` after the experiment's end is reported as well, and the next
/// --resume sends it. Runs are found again by their tags, and MLflow stores equal metrics once, so that sending
/// something twice has no effect.
///
/// https works if hypertune was built with OpenSSL. MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and
/// MLFLOW_TRACKING_PASSWORD, are sent if they are set.
class MlflowLogger {
 public:
  using Say = std::function<void(const std::string&)>;

  /// `say` is called, from another thread, with messages about what could not be sent; by default they go to the
  /// standard error. Error of kind `usage` for an invalid address.
  explicit MlflowLogger(MlflowOptions options, Say say = {});

  void on_open(const std::filesystem::path& directory);
  void on_batch_end();
  std::string name() const { return "mlflow"; }

  /// Waits until everything recorded is sent, for at most `flush_grace`. Returns whether it is.
  bool flush();

 private:
  class Sender;
  std::shared_ptr<Sender> sender_;
};

}  // namespace hypertune::inline v0
