// The handwritten digits of ../data/digits, with a split into training and validation that never changes.
#pragma once

#include <Eigen/Dense>

#include <filesystem>
#include <vector>

namespace digits {

/// Images as columns, with the digit that each shows.
struct ImageSet {
  Eigen::MatrixXf images;  ///< 64 x count, values in [0, 1]
  std::vector<int> labels;
  Eigen::Index size() const { return images.cols(); }
};

struct Digits {
  ImageSet train, validation;
};

/// Reads the file and sets a fifth of each digit's images aside for validation: the same ones on every machine (the
/// order is drawn by hand, as std::shuffle differs between standard libraries). Throws std::runtime_error naming the
/// file and line of a mistake.
Digits load(const std::filesystem::path& file);

/// Takes every sixth image out of the set and returns them: as many of each digit, as load() has them in order.
ImageSet hold_out(ImageSet& set);

}  // namespace digits
