// Small random distortions of the digits: a network that never sees the same image twice learns the shape, not the
// pixels.
#pragma once

#include <Eigen/Dense>

#include <cstdint>

namespace digits {

/// Every 8 x 8 image (a column) turned, scaled, slanted and shifted at random, bilinearly interpolated. `strength` 0
/// changes nothing, 1 goes as far as 20 degrees, 20 % and 1.2 pixels. The same seed gives the same images.
Eigen::MatrixXf augmented(const Eigen::MatrixXf& images, double strength, std::uint64_t seed);

}  // namespace digits
