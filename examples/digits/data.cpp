// Reads the digits. Compiled into a library, so that the programs that train on them need not compile it.
#include "digits/data.hpp"

#include <Eigen/Dense>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace digits {

namespace {

struct Row {
  std::array<float, 64> pixels;
  int label;
};

int pixel_level(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'g') return c - 'a' + 10;
  return -1;
}

std::vector<Row> read_rows(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read the digits from " + file.string());
  std::vector<Row> rows;
  for (std::string line; std::getline(in, line);) {
    const auto wrong = [&](const char* what) {
      return std::runtime_error(file.string() + ":" + std::to_string(rows.size() + 1) + ": " + what);
    };
    if (line.size() != 66 || line[64] != ' ') throw wrong("a line is 64 pixels, a space and the digit");
    Row row{};
    for (std::size_t i = 0; i < 64; ++i) {
      const int level = pixel_level(line[i]);
      if (level < 0) throw wrong("a pixel is one of 0-9 and a-g");
      row.pixels[i] = static_cast<float>(level) / 16.0f;
    }
    row.label = line[65] - '0';
    if (row.label < 0 || row.label > 9) throw wrong("the label is a digit from 0 to 9");
    rows.push_back(row);
  }
  return rows;
}

ImageSet gather(const std::vector<Row>& rows, const std::vector<std::size_t>& chosen) {
  ImageSet set{Eigen::MatrixXf(64, static_cast<Eigen::Index>(chosen.size())), {}};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Row& row = rows[chosen[i]];
    set.images.col(static_cast<Eigen::Index>(i)) = Eigen::Map<const Eigen::VectorXf>(row.pixels.data(), 64);
    set.labels.push_back(row.label);
  }
  return set;
}

}  // namespace

Digits load(const std::filesystem::path& file) {
  const auto rows = read_rows(file);
  std::vector<std::size_t> train, validation;
  std::mt19937_64 random(2024);
  for (int digit = 0; digit < 10; ++digit) {
    std::vector<std::size_t> of_digit;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].label == digit) of_digit.push_back(i);
    for (std::size_t i = of_digit.size(); i > 1; --i) std::swap(of_digit[i - 1], of_digit[random() % i]);
    const std::size_t held_out = of_digit.size() / 5;
    validation.insert(validation.end(), of_digit.begin(), of_digit.begin() + static_cast<std::ptrdiff_t>(held_out));
    train.insert(train.end(), of_digit.begin() + static_cast<std::ptrdiff_t>(held_out), of_digit.end());
  }
  if (train.empty() || validation.empty()) throw std::runtime_error(file.string() + " has too few images");
  return {gather(rows, train), gather(rows, validation)};
}

ImageSet hold_out(ImageSet& set) {
  constexpr std::size_t share = 6;
  ImageSet kept{Eigen::MatrixXf(set.images.rows(), set.size()), {}}, held{kept.images, {}};
  for (std::size_t i = 0; i < set.labels.size(); ++i) {
    ImageSet& to = i % share == 0 ? held : kept;
    to.images.col(static_cast<Eigen::Index>(to.labels.size())) = set.images.col(static_cast<Eigen::Index>(i));
    to.labels.push_back(set.labels[i]);
  }
  for (ImageSet* part : {&kept, &held})
    part->images.conservativeResize(Eigen::NoChange, static_cast<Eigen::Index>(part->labels.size()));
  set = std::move(kept);
  return held;
}

}  // namespace digits
