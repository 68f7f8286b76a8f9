// hypertune init: writes a sweep's file for a command.
#pragma once

#include <string>
#include <vector>

namespace hypertune::inline v0::command {

struct InitArguments {
  std::string output = "sweep.yaml";
  std::vector<std::string> command;
  bool force = false;  ///< overwrite an existing file
  bool probe = false;  ///< run the command
  std::string timeout = "30s";
};
int init(const InitArguments& arguments);

}  // namespace hypertune::inline v0::command
