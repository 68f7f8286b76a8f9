// DeviceLost: the device that a process computes with is of no more use to it. A plain header, which nvcc compiles.
#pragma once

#include <stdexcept>

namespace hypertune::inline v0 {

/// Every call to the device fails from now on, and only another process can use it again. A trial that throws this ends
/// as if its machine had failed, not its code; of a group, this worker is lost, and the others go on.
/// (Communicators throw a GroupError of kind `device` for the same reason.)
class DeviceLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hypertune::inline v0
