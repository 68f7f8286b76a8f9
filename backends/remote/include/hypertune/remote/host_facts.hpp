// HostFacts: properties that a host reports about itself.
#pragma once

#include <hypertune/remote/run_result.hpp>
#include <hypertune/trial/trial.hpp>

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::remote {

/// The answer of a host to facts_script.
struct HostFacts {
  std::string system;        ///< "Linux"
  std::string architecture;  ///< "x86_64", of `uname -m`
  std::string name;          ///< of `uname -n`
  std::string user;          ///< the account's name
  std::string home;          ///< its home folder, absolute
  std::string boot;          ///< identifies this boot of the machine; empty if not known
  int cpus = 1;
  Seconds clock_ahead = 0;  ///< how far the host's clock is ahead of ours, with an error of up to `round_trip`
  Seconds round_trip = 0;   ///< duration of the command that asked for the facts
  /// Whether the clocks differ by more than the measuring error. Then file times from the host are misleading.
  bool clock_skewed() const { return clock_ahead > 2 + round_trip || clock_ahead < -2 - round_trip; }
};

namespace detail {

/// A POSIX shell script that prints the facts.
extern const std::string_view facts_script;

/// Parses the script's output, which may be malformed; false: the output is incomplete. `now`: the local time.
bool read_facts(std::string_view text, double now, HostFacts& facts);

/// Calls `run`, which runs facts_script on the host, and reads the facts from its output. Returns the result if the
/// facts are incomplete.
std::optional<RunResult> measure_facts(HostFacts& facts, const std::function<RunResult()>& run);

}  // namespace detail
}  // namespace hypertune::inline v0::remote
