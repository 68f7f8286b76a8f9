// Why an attempt failed: what its exception says, or a cause that the runner of a trial knows better.
#pragma once

#include <hypertune/detail/linkage.hpp>
#include <hypertune/error.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <utility>

namespace hypertune::inline v0 {

/// Thrown by a TrialRun: the attempt ends as Failed with this cause.
class TrialFailure : public std::runtime_error {
 public:
  explicit TrialFailure(Cause cause) : std::runtime_error(cause.text), cause_(std::move(cause)) {}
  const Cause& cause() const noexcept { return cause_; }

 private:
  Cause cause_;
};

/// What an exception that came out of a trial says, as a cause. Call it from a catch block.
Cause cause_of_current_exception();

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/trial/impl/failure.hpp>
#endif
