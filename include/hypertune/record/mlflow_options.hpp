// Options for sending an experiment to MLflow.
#pragma once

#include <hypertune/detail/old_name.hpp>
#include <hypertune/trial/trial.hpp>

#include <string>

namespace hypertune::inline v0 {

struct MlflowOptions {
  std::string uri;           ///< of the tracking server: http://host:port/path, or https://…
  std::string experiment;    ///< MLflow's experiment, created if necessary; empty: the name of this one
  Seconds flush_grace = 10;  ///< how long the end of the experiment waits for what is not sent yet, in seconds
  detail::OldName<Seconds> patience = {};  ///< now flush_grace
};

}  // namespace hypertune::inline v0
