// Why an attempt failed: definitions.
#pragma once

#include <hypertune/trial/device_lost.hpp>
#include <hypertune/trial/failure.hpp>
#include <hypertune/trial/group.hpp>

#include <cstddef>
#include <exception>
#include <string>

namespace hypertune::inline v0 {

namespace detail {

/// The cause of an exception that may have another one in it: the outer one says what was tried, the inner one why that
/// failed, and so whose doing it was.
Cause cause_with_nested(const std::exception& e) {
  try {
    std::rethrow_if_nested(e);
  } catch (...) {
    Cause cause = cause_of_current_exception();
    cause.text = std::string(e.what()) + ": " + cause.text;
    return cause;
  }
  return {.text = e.what()};
}

}  // namespace detail

Cause cause_of_current_exception() {
  constexpr std::size_t max_size = 4096;
  Cause cause;
  try {
    throw;
  } catch (const TrialFailure& e) { cause = e.cause(); } catch (const GroupError& e) {
    cause = {.source = FailureSource::infrastructure,
             .text = e.what(),
             .caused_by_peers = e.kind() != GroupError::Kind::device};
  } catch (const DeviceLost& e) {
    cause = {.source = FailureSource::infrastructure, .text = e.what()};
  } catch (const Error& e) {
    // A full disk is not the trial's fault.
    if (e.code() == Errc::io || e.code() == Errc::corrupt) cause.source = FailureSource::infrastructure;
    cause.text = e.what();
  } catch (const std::exception& e) { cause = detail::cause_with_nested(e); } catch (...) {
    cause.text = "an exception that is not a std::exception";
  }
  if (cause.text.empty()) cause.text = "an exception without a message";
  if (cause.text.size() > max_size) cause.text.resize(max_size);
  return cause;
}

}  // namespace hypertune::inline v0
