// Options for sending an experiment to MLflow.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <string>

namespace hypertune::inline v0 {

struct MlflowOptions {
  std::string uri;         ///< of the tracking server: http://host:port/path, or https://…
  std::string experiment;  ///< MLflow's experiment, created if necessary; empty: the name of this one
  Seconds patience = 10;   ///< how long the end of the experiment waits for what is not sent yet, in seconds
};

}  // namespace hypertune::inline v0
