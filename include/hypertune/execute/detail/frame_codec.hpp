// FrameCodec: encodes the messages of a protocol as frames, and decodes them.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/error.hpp>
#include <hypertune/execute/detail/frame.hpp>
#include <hypertune/trial/detail/value_codec.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

/// Encodes the types that occur in the messages of all protocols: as in the Journal, but for what is not recorded.
class PayloadWriter : public ValueWriter {
 public:
  using ValueWriter::put;
  using ValueWriter::ValueWriter;

  void put(const Cause& cause) {
    ValueWriter::put(cause);
    put(cause.caused_by_peers);
  }
};

/// Reads what PayloadWriter wrote.
class PayloadReader : public ValueReader {
 public:
  using ValueReader::ValueReader;

  Cause cause() {
    Cause cause = ValueReader::cause();
    cause.caused_by_peers = flag();
    return cause;
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
    append_frame(out, static_cast<std::uint8_t>(message.index() + 1), [&] {
      Writer writer(out);
      detail::visit([&](const auto& m) { writer.put(m); }, message);
    });
  }

  /// Decodes the message of a frame. Throws an Error of kind `protocol` if the bytes are no message.
  static Message decode(const Frame& frame) {
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
