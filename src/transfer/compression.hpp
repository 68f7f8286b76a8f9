// zstd compression, one piece at a time, with bounded memory.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

struct ZSTD_CCtx_s;
struct ZSTD_DCtx_s;

namespace hypertune::inline v0::detail {

/// Larger pieces are not compressed.
inline constexpr std::size_t largest_compressed_piece = std::size_t{4} << 20U;

/// The buffers and state for compressing a piece.
class Compressor {
 public:
  Compressor();
  ~Compressor();
  Compressor(const Compressor&) = delete;
  Compressor& operator=(const Compressor&) = delete;

  char* input() { return input_.get(); }
  /// Compresses the first `size` bytes of input(); empty if that does not save at least a tenth.
  std::string_view compress(std::size_t size);
  /// Whether compression pays, judged by a sample of the first `size` bytes of input().
  bool promising(std::size_t size);

 private:
  std::unique_ptr<char[]> input_, output_;
  ZSTD_CCtx_s* context_;
};

/// A few Compressors for any number of connections. A connection that gets none sends uncompressed.
class CompressorPool {
 public:
  explicit CompressorPool(std::size_t most) : most_(most) {}

  class Lease {
   public:
    Lease(CompressorPool& pool, std::unique_ptr<Compressor> held) : pool_(&pool), held_(std::move(held)) {}
    Lease(Lease&&) noexcept = default;
    ~Lease() {
      if (held_) pool_->give_back(std::move(held_));
    }
    explicit operator bool() const { return held_ != nullptr; }
    Compressor* operator->() { return held_.get(); }

   private:
    CompressorPool* pool_;
    std::unique_ptr<Compressor> held_;
  };
  Lease try_borrow();

 private:
  void give_back(std::unique_ptr<Compressor> compressor);

  std::mutex mutex_;
  std::size_t most_, made_ = 0;
  std::vector<std::unique_ptr<Compressor>> idle_;
};

/// Decompresses a stream of untrusted bytes.
class Decompressor {
 public:
  Decompressor() = default;
  ~Decompressor();
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// Begins a new piece.
  void begin();
  struct Step {
    std::size_t consumed, produced;
    bool ended;  ///< the frame is complete
  };
  /// Decompresses as much as fits. Error of kind `protocol` if this is not zstd, or needs more memory than a piece can.
  Step run(const char* in, std::size_t in_size, char* out, std::size_t out_size);

 private:
  ZSTD_DCtx_s* context_ = nullptr;
};

}  // namespace hypertune::inline v0::detail
