// Fingerprint: a hash of 128 bits to detect changes. Not cryptographic: it can be forged.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace hypertune::inline v0::cluster::detail {

struct Fingerprint {
  std::uint64_t a = 1469598103934665603ULL, b = 0x9E3779B97F4A7C15ULL;
  void add(std::string_view text) {
    for (const unsigned char c : text) {
      a = (a ^ c) * 1099511628211ULL;
      b = (b + c) * 0xD6E8FEB86659FD93ULL;
      b ^= b >> 29U;
    }
    a = (a ^ 0x100U) * 1099511628211ULL;
    b += 0x51ED270B;
  }
  std::string text() const { return fmt::format("{:016x}{:016x}", a, b); }
};

}  // namespace hypertune::inline v0::cluster::detail
