#include "trackers.hpp"

#include <hypertune/record/callback.hpp>
#include <hypertune/record/mlflow_logger.hpp>

namespace hypertune::inline v0::command {

void add_trackers(Sweep& sweep) {
  for (const auto& options : sweep.mlflow) sweep.options.callbacks.emplace_back(MlflowLogger(options));
}

}  // namespace hypertune::inline v0::command
