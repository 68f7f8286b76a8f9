// What a process does in place of running an experiment, when it was started to serve another one's trials.
#pragma once

#include <hypertune/trial/program.hpp>

#include <functional>
#include <memory>
#include <string>

namespace hypertune::detail {

/// Set by the Runtime of a program that is an agent: takes the experiment's name and its program, and never returns.
/// Empty in all others. Set before any Tuner runs; not thread-safe.
inline std::function<void(const std::string&, const std::shared_ptr<const Program>&)>& stand_in() {
  static std::function<void(const std::string&, const std::shared_ptr<const Program>&)> instead;
  return instead;
}

}  // namespace hypertune::detail
