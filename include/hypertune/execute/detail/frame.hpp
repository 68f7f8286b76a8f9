// Frames: the framing of messages between a driver and its workers in a byte stream.
#pragma once

#include <hypertune/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hypertune::inline v0 {

/// A view of the bytes of one message. On the wire: the payload's length (4 bytes, little-endian), the type (1 byte),
/// the payload.
struct Frame {
  std::uint8_t type = 0;
  std::string_view payload;
};

inline constexpr std::size_t frame_header_size = 5;
/// The maximum payload size. A larger length is treated as garbage, and nothing is allocated for it.
inline constexpr std::size_t max_frame_payload = std::size_t{16} << 20U;

/// Appends a frame to `out`, to which `write()` appends the payload. If the payload is longer than max_frame_payload,
/// removes it and throws an Error of kind `usage`.
template <class Write>
void append_frame(std::string& out, std::uint8_t type, Write&& write) {
  const std::size_t begin = out.size();
  out.append(4, '\0');
  out += static_cast<char>(type);
  write();
  const std::size_t size = out.size() - begin - frame_header_size;
  if (size > max_frame_payload) {
    out.resize(begin);
    fail(Errc::usage, "a message of {} bytes is longer than the {} that a frame can carry", size, max_frame_payload);
  }
  for (unsigned i = 0; i < 4; ++i) out[begin + i] = static_cast<char>(size >> (8 * i));
}

/// Extracts frames from bytes that come in pieces of any size. The bytes are not trusted: anything that is no frame
/// causes an Error of kind `protocol`, and the decoder accepts nothing afterwards. Memory is bounded by the bytes that
/// were fed and not yet taken, and at most one frame more.
class FrameDecoder {
 public:
  /// Valid types are 1 to `types`.
  explicit FrameDecoder(std::uint8_t types = 255, std::size_t max_payload = max_frame_payload)
      : types_(types), max_payload_(max_payload) {}

  void feed(std::string_view bytes) {
    if (broken_) fail(Errc::protocol, "bytes after a malformed frame");
    if (read_ == buffer_.size()) {
      buffer_.clear();
      read_ = 0;
    } else if (read_ > 4096 && read_ > buffer_.size() / 2) {
      buffer_.erase(0, read_);
      read_ = 0;
    }
    buffer_ += bytes;
  }

  /// The next whole frame, valid until the next feed(); nullopt: more bytes are needed.
  std::optional<Frame> next() {
    if (broken_) fail(Errc::protocol, "bytes after a malformed frame");
    const std::size_t there = buffer_.size() - read_;
    if (there < frame_header_size) return std::nullopt;
    std::size_t length = 0;
    for (unsigned i = 0; i < 4; ++i) length |= std::size_t{static_cast<unsigned char>(buffer_[read_ + i])} << (8 * i);
    const auto type = static_cast<std::uint8_t>(buffer_[read_ + 4]);
    if (type == 0 || type > types_) {
      broken_ = true;
      fail(Errc::protocol, "a frame of the unknown type {}: the peer speaks another protocol", type);
    }
    if (length > max_payload_) {
      broken_ = true;
      fail(Errc::protocol, "a frame announces {} bytes, but at most {} are allowed", length, max_payload_);
    }
    if (there - frame_header_size < length) return std::nullopt;
    const Frame frame{type, std::string_view(buffer_).substr(read_ + frame_header_size, length)};
    read_ += frame_header_size + length;
    return frame;
  }

  /// Whether bytes of an incomplete or untaken frame are buffered: the stream must not end here.
  bool partial() const { return read_ != buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t read_ = 0;
  std::uint8_t types_;
  std::size_t max_payload_;
  bool broken_ = false;
};

}  // namespace hypertune::inline v0
