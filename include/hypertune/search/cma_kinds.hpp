// The variants of CMA-ES.
#pragma once

#include <cstdint>

namespace hypertune::inline v0 {

/// How CmaEs continues once it has converged: with a population twice as large each time (IPOP: Auger and Hansen 2005),
/// alternating between that and small, local searches (BIPOP: Hansen 2009), or not at all.
enum class CmaRestarts : std::uint8_t { none, ipop, bipop };

/// Whether CmaEs learns all correlations (n (n + 1) / 2 numbers) or only the scale of each dimension (n numbers: needs
/// far fewer trials, but is slower if dimensions interact). `automatic` decides by dimensions and number of samples.
enum class CmaShape : std::uint8_t { automatic, full, separable };

}  // namespace hypertune::inline v0
