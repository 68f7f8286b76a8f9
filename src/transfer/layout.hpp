// A checkpoint's content as one sequence of bytes: file after file in the manifest's order.
#pragma once

#include <hypertune/checkpoint/detail/manifest.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hypertune::inline v0::detail {

class Layout {
 public:
  explicit Layout(const Manifest& manifest) {
    begins_.reserve(manifest.files.size() + 1);
    for (const ManifestFile& file : manifest.files) {
      begins_.push_back(total_);
      total_ += file.size;
    }
    begins_.push_back(total_);
  }

  std::uint64_t total() const { return total_; }
  std::uint64_t begin(std::size_t file) const { return begins_[file]; }
  std::uint64_t end(std::size_t file) const { return begins_[file + 1]; }
  /// The file that contains the byte at `offset`, which is below total(). Empty files contain none.
  std::size_t file_at(std::uint64_t offset) const {
    return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), offset) - begins_.begin()) - 1;
  }

 private:
  std::vector<std::uint64_t> begins_;
  std::uint64_t total_ = 0;
};

}  // namespace hypertune::inline v0::detail
