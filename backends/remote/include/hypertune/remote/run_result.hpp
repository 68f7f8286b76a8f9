// RunResult: exit code and output of a command on a host.
#pragma once

#include <string>

namespace hypertune::inline v0::remote {

/// The result of a command on a host.
struct RunResult {
  int exit = 0;  ///< exit code; more than 128, or 255, if a signal ended it
  std::string out, err;
  bool ok() const { return exit == 0; }
};

}  // namespace hypertune::inline v0::remote
