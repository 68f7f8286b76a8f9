// ReducedGradients: what a reduction by DataParallel has come to.
#pragma once

#include <cmath>
#include <cstdint>

namespace hypertune::inline v0 {

/// What a reduction has come to, the same on all ranks.
struct ReducedGradients {
  std::int64_t samples = 0;  ///< that the gradients are the mean of, of all ranks together; 0: the gradients are zeros
  int parts = 0;             ///< how many gradients of samples were added up: one for each rank and backward pass
  bool signalled = false;    ///< some rank's options.signal was true
  double square = 0;         ///< squared norm of the mean of all; infinite or NaN if an element is
  double part_squares = 0;   ///< mean, by samples, of the parts' squared norms; 0 unless options.measure_noise
  bool finite() const { return std::isfinite(square); }
};

}  // namespace hypertune::inline v0
