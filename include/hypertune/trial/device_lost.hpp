// DeviceLost: the compute device can no longer be used by this process. A plain header, which nvcc can compile.
#pragma once

#include <stdexcept>

namespace hypertune::inline v0 {

/// Every call to the device fails from now on; only another process can use it again. A trial that throws this ends as
/// if its machine had failed, not its code. In a group, only this worker is lost, and the others continue.
/// (Communicators throw a GroupError of kind `device` for the same reason.)
class DeviceLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace hypertune::inline v0
