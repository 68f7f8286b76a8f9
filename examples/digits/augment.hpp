// Small random distortions of the digits. A network that never sees the same image twice learns the shape, not the
// pixels.
#pragma once

#include <Eigen/Dense>

#include <cstdint>

namespace digits {

/// Rotates, scales, slants and shifts every 8 x 8 image (a column) at random, with bilinear interpolation. `strength` 0
/// changes nothing, 1 goes as far as 20 degrees, 20 % and 1.2 pixels. The same seed gives the same images.
Eigen::MatrixXf augmented(const Eigen::MatrixXf& images, double strength, std::uint64_t seed);

}  // namespace digits
