// Why an attempt failed: what its exception says, or a cause that the runner of a trial knows better.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <exception>
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

/// What an exception that came out of a trial says, as a cause. Call it from a catch block.
inline Cause cause_of_current_exception() {
  constexpr std::size_t longest = 4096;
  Cause cause;
  try {
    throw;
  } catch (const TrialFailure& e) { cause = e.cause(); } catch (const Error& e) {
    // A full disk is not the trial's doing.
    if (e.code() == Errc::io || e.code() == Errc::corrupt) cause.blame = Blame::infrastructure;
    cause.text = e.what();
  } catch (const std::exception& e) { cause.text = e.what(); } catch (...) {
    cause.text = "an exception that is not a std::exception";
  }
  if (cause.text.empty()) cause.text = "an exception without a message";
  if (cause.text.size() > longest) cause.text.resize(longest);
  return cause;
}

}  // namespace hypertune
