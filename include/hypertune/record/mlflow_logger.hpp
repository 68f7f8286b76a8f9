// MLflow: a run for each trial, by the tracking server's REST interface. Compiled, as it needs Beast: link
// hypertune::mlflow.
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
/// A thread of its own reads the Journal and sends what is new, a piece at a time: the experiment never waits for the
/// server, memory does not grow while it is away, and nothing is lost, as the Journal has it all. While the server does
/// not answer it is tried again, after a second at first and at most a minute later; that is said once. What could not
/// be sent when the experiment ends (`patience` later) is said as well, and sent by the next --resume. Runs are found
/// again by their tags, and MLflow keeps equal metrics once, so that what is sent twice is there once.
///
/// With https where hypertune was built with OpenSSL. MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and
/// MLFLOW_TRACKING_PASSWORD, are sent where they are set.
class MlflowLogger {
 public:
  using Say = std::function<void(const std::string&)>;

  /// `say`: hears of what could not be sent, from another thread; by default the standard error. Error of kind `usage`
  /// for an address that is none.
  explicit MlflowLogger(MlflowOptions options, Say say = {});

  void on_open(const std::filesystem::path& directory);
  void on_batch_end();
  std::string name() const { return "mlflow"; }

  /// Waits until all that is recorded is sent, for as long as `patience`. Whether it is.
  bool flush();

 private:
  class Sender;
  std::shared_ptr<Sender> sender_;
};

}  // namespace hypertune::inline v0
