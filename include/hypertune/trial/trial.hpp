// The words about trials that every part shares: identity, state, cause of an end.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace hypertune::inline v0 {

/// A trial's number: 0, 1, 2, … in the order of creation. Also its directory's name.
using TrialId = std::int64_t;

/// Seconds, wherever hypertune speaks of time. Real time is since the Unix epoch; simulated time starts at 0.
using Seconds = double;

/// Which run of a trial an event belongs to: 0 for the first start, one more for every restart. Events of an earlier
/// attempt are ignored (fencing), so that a worker believed dead cannot be counted twice.
using Attempt = std::uint32_t;

/// A loss that no finite result can be worse than: what NaN and infinite metrics count as.
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

/// Whose doing an end was. Counted apart; a preemption does not count against `max_failures`.
enum class FailureSource : std::uint8_t { user, infrastructure, preemption };

constexpr const char* to_string(FailureSource source) {
  switch (source) {
    case FailureSource::user: return "user";
    case FailureSource::infrastructure: return "infrastructure";
    case FailureSource::preemption: return "preemption";
  }
  return "unknown";
}

/// Why an attempt ended other than by finishing: whose doing, and one line for a person.
struct Cause {
  FailureSource source = FailureSource::user;
  std::string text;
  bool retry = true;          ///< false: trying again cannot help (a rule said no_retry, the configuration is invalid)
  bool exclude_host = false;  ///< a rule said that this host must not be used again
  bool follows = false;       ///< of a worker in a group: it failed because others had
  int rank = -1;              ///< … and which one, as its group has found out; -1: of the one there is, or all of them
  friend bool operator==(const Cause&, const Cause&) = default;
};

/// In the text of a cause: what stood last in the log of a worker that something from outside has ended, which is not
/// why it ended.
inline constexpr const char* log_ends_with = "; its log ends with: ";

}  // namespace hypertune::inline v0
