// Why an attempt failed: the text of its exception, or a more precise cause from the runner of the trial.
#pragma once

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

/// Converts the exception that is being handled into a cause, with the texts of those that std::throw_with_nested() put
/// into it. To be called from a catch block.
Cause cause_of_current_exception();

}  // namespace hypertune::inline v0
