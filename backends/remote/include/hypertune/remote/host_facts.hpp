// HostFacts: what a host says of itself.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::remote {

/// What a host said of itself when it was asked.
struct HostFacts {
  std::string system;        ///< "Linux"
  std::string architecture;  ///< "x86_64", of `uname -m`
  std::string name;          ///< of `uname -n`
  std::string user;          ///< the account's name
  std::string home;          ///< its home folder, absolute
  std::string boot;          ///< identifies this boot of the machine; empty where it cannot be known
  int cpus = 1;
  Seconds clock_ahead = 0;  ///< of its clock to ours, give or take `round_trip`
  Seconds round_trip = 0;   ///< of the command that asked
  /// Whether the clocks differ by more than can be explained by the way: then times of files from there mislead.
  bool clock_skewed() const { return clock_ahead > 2 + round_trip || clock_ahead < -2 - round_trip; }
};

namespace detail {

/// A script of a POSIX shell that prints them.
extern const std::string_view facts_script;

/// Reads what it printed, which may be anything; false: the end is missing. `now`: the time here.
bool read_facts(std::string_view text, double now, HostFacts& facts);

}  // namespace detail
}  // namespace hypertune::inline v0::remote
