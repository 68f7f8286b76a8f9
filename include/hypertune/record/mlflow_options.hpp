// Where an experiment is sent to.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <string>

namespace hypertune::inline v0 {

struct MlflowOptions {
  std::string uri;         ///< of the tracking server: http://host:port/path, or https://…
  std::string experiment;  ///< MLflow's experiment, made if need be; empty: named as this one
  Seconds patience = 10;   ///< how long the end waits for what is not sent yet
};

}  // namespace hypertune::inline v0
