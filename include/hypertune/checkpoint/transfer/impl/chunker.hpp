// Content-defined chunking: where a file is cut depends on the bytes there, so that an edit moves only the cuts near
// it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hypertune::inline v0::detail {

struct ChunkSizes {
  std::uint32_t smallest = 0;  ///< only the last chunk of a file is smaller
  std::uint32_t average = 0;   ///< a power of two; of random bytes, about
  std::uint32_t largest = 0;
};

/// Larger files are cut coarser, so that an index stays at some 0.01 % of its checkpoint.
ChunkSizes chunk_sizes(std::uint64_t file_size);

/// The largest that chunk_sizes() ever allows.
inline constexpr std::uint32_t largest_chunk = std::uint32_t{16} << 20U;

/// FastCDC (Xia et al., "FastCDC: a Fast and Efficient Content-Defined Chunking Approach for Data Deduplication",
/// USENIX ATC 2016): a gear hash, no cut before the smallest size, and a stricter mask before the average size than
/// after it, which draws the sizes together. The gear table is part of the format: it never changes.
class Chunker {
 public:
  explicit Chunker(ChunkSizes sizes);

  struct Cut {
    std::size_t size;  ///< how many of the bytes belong to the current chunk
    bool ends;         ///< whether it ends after them; the next call then begins a new one
  };
  /// Takes bytes that follow those of the last call. How they come in pieces makes no difference.
  Cut scan(const char* data, std::size_t size);

 private:
  ChunkSizes sizes_;
  std::uint64_t strict_, loose_;
  std::uint64_t hash_ = 0;
  std::uint32_t length_ = 0;  // of the current chunk so far
};

}  // namespace hypertune::inline v0::detail
