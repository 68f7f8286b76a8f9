// Content-defined chunking: where a file is cut depends on the bytes there, so that an edit moves only nearby cuts.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hypertune::inline v0::detail {

struct ChunkSizes {
  std::uint32_t smallest = 0;  ///< only the last chunk of a file is smaller
  std::uint32_t average = 0;   ///< a power of two; approximate, for random bytes
  std::uint32_t largest = 0;
};

/// Larger files have larger chunks, so that an index stays at about 0.01 % of its checkpoint.
ChunkSizes chunk_sizes(std::uint64_t file_size);

/// The largest size that chunk_sizes() allows.
inline constexpr std::uint32_t largest_chunk = std::uint32_t{16} << 20U;

/// FastCDC (Xia et al., "FastCDC: a Fast and Efficient Content-Defined Chunking Approach for Data Deduplication",
/// USENIX ATC 2016): a gear hash, no cut before the smallest size, and a stricter mask before the average size than
/// after it, which makes the sizes more equal. The gear table is part of the format and never changes.
class Chunker {
 public:
  explicit Chunker(ChunkSizes sizes);

  struct Cut {
    std::size_t size;  ///< how many of the bytes belong to the current chunk
    bool ends;         ///< whether it ends after them; the next call then begins a new chunk
  };
  /// Takes the bytes that follow those of the last call. The cuts do not depend on how the bytes are split into calls.
  Cut scan(const char* data, std::size_t size);

 private:
  ChunkSizes sizes_;
  std::uint64_t strict_, loose_;
  std::uint64_t hash_ = 0;
  std::uint32_t length_ = 0;  // of the current chunk so far
};

}  // namespace hypertune::inline v0::detail
