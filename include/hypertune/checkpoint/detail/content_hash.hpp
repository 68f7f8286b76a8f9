// XXH3-128: the checksum of files and manifests. It detects damage; it does not protect against an attacker.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/hex.hpp>

// Inlined, so that programs need no library for it. xxHash supports this, also together with other includes of it.
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
// With g++ -Og, its always_inline functions do not compile; without the attribute it is as fast.
#ifndef XXH_NO_INLINE_HINTS
#define XXH_NO_INLINE_HINTS 1
#endif
#include <xxhash.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace hypertune::inline v0::detail {

/// The hash of bytes that come in pieces.
class ContentHash {
 public:
  ContentHash() { XXH3_128bits_reset(&state_); }

  void add(const void* data, std::size_t size) { XXH3_128bits_update(&state_, data, size); }

  /// 32 hexadecimal digits.
  std::string hex() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return detail::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

  static std::string of(std::string_view bytes) {
    ContentHash hash;
    hash.add(bytes.data(), bytes.size());
    return hash.hex();
  }

  static bool well_formed(std::string_view hex) { return is_hex(hex, 32); }

 private:
  XXH3_state_t state_;
};

}  // namespace hypertune::inline v0::detail
