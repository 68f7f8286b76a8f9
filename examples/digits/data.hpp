// The handwritten digits of ../data/digits, with a fixed split into training and validation images.
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

/// Reads the file and sets a fifth of each digit's images aside for validation. The split is the same on every machine:
/// the shuffle is written out here, because std::shuffle differs between standard libraries. Throws std::runtime_error
/// that names the file and line of an error.
Digits load(const std::filesystem::path& file);

/// Takes every sixth image out of the set and returns them. load() orders the images by digit, so that each digit gives
/// the same share.
ImageSet hold_out(ImageSet& set);

}  // namespace digits
