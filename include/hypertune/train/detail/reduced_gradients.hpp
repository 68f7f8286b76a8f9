// ReducedGradients: the result of a reduction by DataParallel.
#pragma once

#include <cmath>
#include <cstdint>

namespace hypertune::inline v0 {

/// The result of a reduction, equal on all ranks.
struct ReducedGradients {
  std::int64_t samples = 0;  ///< number of samples of all ranks in the mean; 0: the gradients are zeros
  int parts = 0;             ///< number of gradients that were added up: one per rank and backward pass
  bool signalled = false;    ///< some rank's options.signal was true
  double square = 0;         ///< squared norm of the mean gradient; infinite or NaN if an element is
  double part_squares = 0;   ///< mean, weighted by samples, of the parts' squared norms; 0 unless options.measure_noise
  bool finite() const { return std::isfinite(square); }
};

}  // namespace hypertune::inline v0
