// Compressor and Decompressor: zstd for pieces of content.
#include "compression.hpp"

#include <hypertune/error.hpp>

#include <zstd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace hypertune::inline v0::detail {

namespace {

constexpr int level = 1;
constexpr int window_log = 18;  // a receiver needs 256 KiB for it, and there may be many receivers
constexpr std::size_t sample = std::size_t{32} << 10U;

}  // namespace

Compressor::Compressor()
    : input_(std::make_unique_for_overwrite<char[]>(largest_compressed_piece)),
      output_(std::make_unique_for_overwrite<char[]>(largest_compressed_piece)),
      context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context_, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context_, ZSTD_c_windowLog, window_log);
}

Compressor::~Compressor() { ZSTD_freeCCtx(context_); }

std::string_view Compressor::compress(std::size_t size) {
  const std::size_t n = ZSTD_compress2(context_, output_.get(), size - size / 10, input_.get(), size);
  if (ZSTD_isError(n) != 0) return {};  // it did not fit: not worthwhile
  return {output_.get(), n};
}

bool Compressor::promising(std::size_t size) {
  const std::size_t part = std::min(size, sample);
  const char* middle = input_.get() + (size - part) / 2;
  const std::size_t n = ZSTD_compress2(context_, output_.get(), largest_compressed_piece, middle, part);
  return ZSTD_isError(n) == 0 && n <= part - part / 8;
}

CompressorPool::Lease CompressorPool::try_borrow() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    auto compressor = std::move(idle_.back());
    idle_.pop_back();
    return {*this, std::move(compressor)};
  }
  if (made_ == most_) return {*this, nullptr};
  auto compressor = std::make_unique<Compressor>();
  ++made_;
  return {*this, std::move(compressor)};
}

void CompressorPool::give_back(std::unique_ptr<Compressor> compressor) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(compressor));
}

Decompressor::~Decompressor() { ZSTD_freeDCtx(context_); }

void Decompressor::begin() {
  if (context_ == nullptr) {
    context_ = ZSTD_createDCtx();
    if (context_ == nullptr) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, window_log);
  }
  ZSTD_DCtx_reset(context_, ZSTD_reset_session_only);
}

Decompressor::Step Decompressor::run(const char* in, std::size_t in_size, char* out, std::size_t out_size) {
  ZSTD_inBuffer from{in, in_size, 0};
  ZSTD_outBuffer to{out, out_size, 0};
  const std::size_t left = ZSTD_decompressStream(context_, &to, &from);
  if (ZSTD_isError(left) != 0) fail(Errc::protocol, "what the peer calls zstd is not: {}", ZSTD_getErrorName(left));
  return {.consumed = from.pos, .produced = to.pos, .ended = left == 0};
}

}  // namespace hypertune::inline v0::detail
