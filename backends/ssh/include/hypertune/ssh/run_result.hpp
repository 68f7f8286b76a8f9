// RunResult: how a remote command ended.
#pragma once

#include <string>

namespace hypertune::inline v0::ssh {

/// How a remote command ended.
struct RunResult {
  int exit = 0;  ///< exit code; 255 also if a signal ended it
  std::string out, err;
  bool ok() const { return exit == 0; }
};

}  // namespace hypertune::inline v0::ssh
