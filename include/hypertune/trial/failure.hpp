// TrialFailure: an end whose cause the runner of a trial knows better than an exception's text tells.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <stdexcept>
#include <utility>

namespace hypertune {

/// Thrown by a TrialRun: the attempt ends as Failed with this cause.
class TrialFailure : public std::runtime_error {
 public:
  explicit TrialFailure(Cause cause) : std::runtime_error(cause.text), cause_(std::move(cause)) {}
  const Cause& cause() const noexcept { return cause_; }

 private:
  Cause cause_;
};

}  // namespace hypertune
