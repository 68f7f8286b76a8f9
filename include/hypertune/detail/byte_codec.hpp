// ByteWriter, ByteReader: numbers and texts as bytes: little-endian, varints, length-prefixed texts.
#pragma once

#include <hypertune/error.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// Appends to `out`.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void put(std::uint64_t value) {
    while (value >= 0x80) {
      out_ += static_cast<char>(value | 0x80U);
      value >>= 7U;
    }
    out_ += static_cast<char>(value);
  }
  void put_signed(std::int64_t value) {  // zigzag: small negatives stay short
    const auto bits = static_cast<std::uint64_t>(value);
    put((bits << 1U) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void put(bool value) { out_ += value ? '\1' : '\0'; }
  void put(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) out_ += static_cast<char>(bits >> shift);
  }
  void put(std::string_view text) {
    put(std::uint64_t{text.size()});
    out_ += text;
  }
  void put(const std::vector<int>& values) {
    put(std::uint64_t{values.size()});
    for (const int value : values) put_signed(value);
  }

 private:
  std::string& out_;
};

/// Reads what ByteWriter wrote. The bytes are not trusted: anything malformed is an Error of kind `corrupt`.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    bad();
  }
  std::int64_t signed_number() {
    const std::uint64_t bits = number();
    return static_cast<std::int64_t>((bits >> 1U) ^ ((bits & 1U) != 0 ? ~std::uint64_t{0} : 0));
  }
  int small_number() {
    const std::int64_t value = signed_number();
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) bad();
    return static_cast<int>(value);
  }
  bool flag() { return take(1).front() != '\0'; }
  double real() {
    std::uint64_t bits = 0;
    const std::string_view bytes = take(8);
    for (unsigned i = 0; i < 8; ++i) bits |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    return std::bit_cast<double>(bits);
  }
  std::string text() { return std::string(take(number())); }
  std::vector<int> small_numbers() {
    std::vector<int> values(count(1));
    for (int& value : values) value = small_number();
    return values;
  }
  /// The number of elements that follow, each of at least `size` bytes; never more than the remaining bytes can hold.
  std::size_t count(std::size_t size) {
    const std::uint64_t n = number();
    if (n > bytes_.size() / size) bad();
    return static_cast<std::size_t>(n);
  }
  bool at_end() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }  ///< bytes left
  void end() const {
    if (!bytes_.empty()) bad();
  }

 protected:
  [[noreturn]] static void bad() { fail(Errc::corrupt, "its content is malformed"); }

 private:
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) bad();
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(size));
    bytes_.remove_prefix(static_cast<std::size_t>(size));
    return taken;
  }

  std::string_view bytes_;
};

}  // namespace hypertune::inline v0::detail
