// FrameCodec: encodes the messages of a protocol as frames, and decodes them.
#pragma once

#include <hypertune/detail/byte_codec.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/frame.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/space/point.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

/// Encodes the types that occur in the messages of all protocols. The Journal has its own encoding, which must not
/// change because it is in files.
class PayloadWriter : public ByteWriter {
 public:
  using ByteWriter::ByteWriter;
  using ByteWriter::put;

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
    put(static_cast<std::uint64_t>(cause.source));
    put(std::string_view(cause.text));
    put(cause.retry);
    put(cause.exclude_host);
    put(cause.follows);
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
};

/// Reads what PayloadWriter wrote.
class PayloadReader : public ByteReader {
 public:
  using ByteReader::ByteReader;

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
    const std::uint64_t source = number();
    if (source > static_cast<std::uint64_t>(FailureSource::preemption)) bad();
    cause.source = static_cast<FailureSource>(source);
    cause.text = text();
    cause.retry = flag();
    cause.exclude_host = flag();
    cause.follows = flag();
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
};

/// `Message`: a std::variant; the index of an alternative, from 1, is its frame's type. `Writer` is constructed with
/// the string to append the payload to, and has put() for each alternative. `Reader` is constructed with a payload. It
/// has get() for each alternative, which throws an Error at invalid bytes, and end(), which throws one if bytes are
/// left.
template <class Message, class Writer, class Reader>
struct FrameCodec {
  static constexpr auto types = static_cast<std::uint8_t>(std::variant_size_v<Message>);

  /// Appends the message as a frame.
  static void append(std::string& out, const Message& message) {
    std::string payload;
    Writer writer(payload);
    detail::visit([&](const auto& m) { writer.put(m); }, message);
    append_frame(out, static_cast<std::uint8_t>(message.index() + 1), payload);
  }

  /// Decodes the message of a frame. Throws an Error of kind `protocol` if the bytes are no message.
  static Message decode(const Frame& frame) { return decode(FrameView{frame.type, frame.payload}); }
  static Message decode(const FrameView& frame) {
    if (frame.type == 0 || frame.type > types)
      fail(Errc::protocol, "a frame of the unknown type {}: the peer speaks another protocol", frame.type);
    try {
      Reader reader(frame.payload);
      Message message = read(frame.type, reader, std::make_index_sequence<types>());
      reader.end();
      return message;
    } catch (const Error& e) { fail(Errc::protocol, "a message of type {} is malformed: {}", frame.type, e.what()); }
  }

 private:
  template <std::size_t... I>
  static Message read(std::uint8_t type, Reader& in, std::index_sequence<I...>) {
    Message message;
    const auto get = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
      if (type == N + 1) in.get(message.template emplace<N>());
    };
    (get(std::integral_constant<std::size_t, I>{}), ...);
    return message;
  }
};

/// Throws an Error of kind `protocol` if the peer speaks another version of `protocol` ("worker", "host") than this
/// program.
inline void require_same_version(std::uint32_t theirs, std::uint32_t ours, std::string_view peer,
                                 std::string_view protocol) {
  if (theirs != ours)
    fail(Errc::protocol,
         "the {} speaks version {} of the {} protocol, this program version {}: build both from one hypertune", peer,
         theirs, protocol, ours);
}

}  // namespace hypertune::inline v0::detail
