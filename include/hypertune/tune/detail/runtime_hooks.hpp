// What the Runtime of a program sets for its Tuners: whether to serve the trials of another process, and whether to
// handle signals.
#pragma once

#include <hypertune/trial/program.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace hypertune::inline v0::detail {

/// Set by the Runtime of a program that runs as an agent: a function that is called instead of running the experiment,
/// with its name and program, and never returns. Empty in all other programs. Set before any Tuner runs; not
/// thread-safe.
inline std::function<void(const std::string&, const std::shared_ptr<const Program>&)>& agent_hook() {
  static std::function<void(const std::string&, const std::shared_ptr<const Program>&)> instead;
  return instead;
}

/// The default of Options::handle_signals in this process. Set by a Runtime, which only the author of main() creates.
inline std::atomic<bool>& signals_by_default() {
  static std::atomic<bool> handled{false};
  return handled;
}

}  // namespace hypertune::inline v0::detail
