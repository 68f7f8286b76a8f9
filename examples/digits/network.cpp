// The expensive code of training, in a file of its own: only this file needs to be compiled with optimisation.
#include "digits/augment.hpp"
#include "digits/mlp.hpp"

#include <Eigen/Dense>

#include <cmath>
#include <cstdint>
#include <random>

namespace digits {

template class BasicMlp<float>;

Eigen::MatrixXf augmented(const Eigen::MatrixXf& images, double strength, std::uint64_t seed) {
  constexpr int side = 8;
  if (!(strength > 0)) return images;
  std::mt19937_64 random(seed);
  const auto amount = [&](float most) {  // uniform in [-most, most] * strength
    return (static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f) * most * static_cast<float>(strength);
  };
  Eigen::MatrixXf result(images.rows(), images.cols());
  for (Eigen::Index image = 0; image < images.cols(); ++image) {
    const float* from = images.data() + image * images.rows();
    const auto pixel = [&](int x, int y) {
      return x < 0 || y < 0 || x >= side || y >= side ? 0.0f : from[y * side + x];
    };
    const float angle = amount(0.35f), slant = amount(0.3f), wide = 1 + amount(0.2f), high = 1 + amount(0.2f);
    const float right = amount(1.2f), down = amount(1.2f), c = std::cos(angle), s = std::sin(angle);
    constexpr float middle = (side - 1) / 2.0f;
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) {
        const float px = static_cast<float>(x) - middle, py = static_cast<float>(y) - middle;
        const float qx = (c * px - s * py) * wide + slant * py + middle + right;
        const float qy = (s * px + c * py) * high + middle + down;
        const float left = std::floor(qx), top = std::floor(qy), fx = qx - left, fy = qy - top;
        const int x0 = static_cast<int>(left), y0 = static_cast<int>(top);
        result(y * side + x, image) = (pixel(x0, y0) * (1 - fx) + pixel(x0 + 1, y0) * fx) * (1 - fy) +
                                      (pixel(x0, y0 + 1) * (1 - fx) + pixel(x0 + 1, y0 + 1) * fx) * fy;
      }
  }
  return result;
}

}  // namespace digits
