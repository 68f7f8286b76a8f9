// hypertune check: checks a file before anything runs.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

struct CheckArguments {
  std::string file;
  std::vector<std::string> set;  ///< key=value
  bool run = false;              ///< run one trial, too
  std::string timeout = "60s";   ///< time limit of that trial
};
int check(const CheckArguments& arguments);

}  // namespace hypertune::inline v0::command
