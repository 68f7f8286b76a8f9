// Types that all parts use for trials: identity, state, cause of an end.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace hypertune::inline v0 {

/// A trial's number: 0, 1, 2, … in the order of creation. Also the name of its folder.
using TrialId = std::int64_t;

/// Seconds, the unit of all times in hypertune. Real time is since the Unix epoch; simulated time starts at 0.
using Seconds = double;

/// The number of a trial's run that an event belongs to: 0 for the first start, one more for every restart. Events of
/// earlier attempts are ignored (fencing), so that a worker that was believed dead is not counted twice.
using Attempt = std::uint32_t;

/// The worst loss there is: NaN and infinite metrics count as this.
inline constexpr double worst_loss = std::numeric_limits<double>::infinity();

enum class TrialState : std::uint8_t { pending, running, paused, completed, stopped, failed };

constexpr bool is_final(TrialState state) { return state >= TrialState::completed; }

constexpr const char* to_string(TrialState state) {
  switch (state) {
    case TrialState::pending: return "pending";
    case TrialState::running: return "running";
    case TrialState::paused: return "paused";
    case TrialState::completed: return "completed";
    case TrialState::stopped: return "stopped";
    case TrialState::failed: return "failed";
  }
  return "unknown";
}

/// What caused an end. Each source is counted separately; a preemption does not count against `max_retries`.
enum class FailureSource : std::uint8_t { user, infrastructure, preemption };

constexpr const char* to_string(FailureSource source) {
  switch (source) {
    case FailureSource::user: return "user";
    case FailureSource::infrastructure: return "infrastructure";
    case FailureSource::preemption: return "preemption";
  }
  return "unknown";
}

/// Why an attempt ended without finishing: the source, and one line of text for users.
struct Cause {
  FailureSource source = FailureSource::user;
  std::string text;
  bool retry = true;          ///< false: trying again cannot help (a rule said no_retry, the configuration is invalid)
  bool exclude_host = false;  ///< a rule said that this host must not be used again
  bool caused_by_peers = false;  ///< for a worker of a group: it failed because others had failed
  int rank = -1;  ///< … the rank that failed, according to its group; -1: the only worker, or all of them
  friend bool operator==(const Cause&, const Cause&) = default;
};

/// Part of a cause's text: what follows is the end of the log of a worker that was ended from outside, which is not the
/// reason why it ended.
inline constexpr const char* log_ends_with = "; its log ends with: ";

}  // namespace hypertune::inline v0
