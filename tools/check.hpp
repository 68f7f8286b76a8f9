// hypertune check: all that can be said of a file before anything runs.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

struct CheckArguments {
  std::string file;
  std::vector<std::string> set;  ///< key=value
  bool run = false;              ///< one trial, too
  std::string timeout = "60s";   ///< of that
};
int check(const CheckArguments& arguments);

}  // namespace hypertune::inline v0::command
