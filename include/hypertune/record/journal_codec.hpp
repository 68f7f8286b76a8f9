// The bytes of a record's payload in the Journal: little-endian, varints, strings by length. Schema versions 1 to 3.
#pragma once

#include <hypertune/record/record.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::detail {

/// What stands in the `kind` column. Numbers are for ever: they are in files.
enum class Kind : std::uint8_t {
  experiment_started = 1,
  trial_created = 2,
  trial_started = 3,
  trial_reported = 4,
  checkpointed = 5,
  checkpoint_dropped = 6,
  trial_paused = 7,
  attempt_failed = 8,
  trial_completed = 9,
  trial_stopped = 10,
  trial_failed = 11,
  host_gained = 12,
  host_lost = 13,
  experiment_ended = 14,
  trial_mutated = 15,   // since version 2
  attributes_set = 16,  // since version 3
};

class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) { out_.clear(); }

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
  void put(const Value& value) {
    put(std::uint64_t{value.index()});
    if (const auto* flag = std::get_if<bool>(&value))
      put(*flag);
    else if (const auto* number = std::get_if<std::int64_t>(&value))
      put_signed(*number);
    else if (const auto* real = std::get_if<double>(&value))
      put(*real);
    else
      put(std::string_view(std::get<std::string>(value)));
  }
  void put(const Cause& cause) {
    put(static_cast<std::uint64_t>(cause.blame));
    put(std::string_view(cause.text));
    put(cause.retry);
    put(cause.exclude_host);
  }
  void put(const CheckpointInfo& info) {
    put_signed(info.trial);
    put_signed(info.steps);
    put(std::string_view(info.name));
    put(info.bytes);
    put(std::string_view(info.digest));
  }
  void put(const Point& point, const Params& params) {
    put(std::uint64_t{point.size()});
    for (const double coordinate : point) put(coordinate);
    put(params);
  }
  void put(const Params& params) {
    put(std::uint64_t{params.size()});
    for (const auto& [name, value] : params) {
      put(std::string_view(name));
      put(value);
    }
  }

 private:
  std::string& out_;
};

/// Reads what Encoder wrote. The bytes may be anything: whatever does not fit is an Error of kind `corrupt`.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}

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
  Value value() {
    switch (number()) {
      case 0: return flag();
      case 1: return signed_number();
      case 2: return real();
      case 3: return text();
      default: bad();
    }
  }
  Cause cause() {
    Cause cause;
    const std::uint64_t blame = number();
    if (blame > static_cast<std::uint64_t>(Blame::preemption)) bad();
    cause.blame = static_cast<Blame>(blame);
    cause.text = text();
    cause.retry = flag();
    cause.exclude_host = flag();
    return cause;
  }
  CheckpointInfo checkpoint() {
    CheckpointInfo info;
    info.trial = signed_number();
    info.steps = small_number();
    info.name = text();
    info.bytes = number();
    info.digest = text();
    return info;
  }
  std::pair<Point, Params> configuration() {
    Point point(count(8));
    for (double& coordinate : point) coordinate = real();
    return {std::move(point), params()};
  }
  Params params() {
    Params params;
    for (std::size_t left = count(2); left > 0; --left) {
      std::string name = text();
      params.set(std::move(name), value());
    }
    return params;
  }
  /// How many elements follow, each of at least `size` bytes: never more than there are bytes.
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

 private:
  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size()) bad();
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(size));
    bytes_.remove_prefix(static_cast<std::size_t>(size));
    return taken;
  }
  [[noreturn]] static void bad() { fail(Errc::corrupt, "its content is malformed"); }

  std::string_view bytes_;
};

}  // namespace hypertune::detail
