// What the Runtime of a program says to its Tuners: to serve the trials of another process, and to handle signals.
#pragma once

#include <hypertune/trial/program.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace hypertune::inline v0::detail {

/// Set by the Runtime of a program that is an agent: takes the experiment's name and its program, and never returns.
/// Empty in all others. Set before any Tuner runs; not thread-safe.
inline std::function<void(const std::string&, const std::shared_ptr<const Program>&)>& agent_hook() {
  static std::function<void(const std::string&, const std::shared_ptr<const Program>&)> instead;
  return instead;
}

/// Whether experiments of this process handle its signals where their Options do not say it: set by a Runtime, which
/// the author of main() makes.
inline std::atomic<bool>& signals_by_default() {
  static std::atomic<bool> handled{false};
  return handled;
}

}  // namespace hypertune::inline v0::detail
