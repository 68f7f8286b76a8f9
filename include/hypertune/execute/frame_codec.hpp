// FrameCodec: the messages of a protocol as frames, and back.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/execute/frame.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace hypertune::detail {

/// `Message`: a std::variant; the place of an alternative in it, from 1, is its frame's type. `Writer` is made from the
/// payload to append to and has put() for each alternative; `Reader` is made from a payload, has get() for each, which
/// throws an Error at what cannot be one, and end(), which does where something is left.
template <class Message, class Writer, class Reader>
struct FrameCodec {
  static constexpr auto types = static_cast<std::uint8_t>(std::variant_size_v<Message>);

  /// Appends the message as a frame.
  static void append(std::string& out, const Message& message) {
    std::string payload;
    Writer writer(payload);
    std::visit([&](const auto& m) { writer.put(m); }, message);
    append_frame(out, static_cast<std::uint8_t>(message.index() + 1), payload);
  }

  /// The message of a frame. Error of kind `protocol` if the bytes are not one.
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

/// Error of kind `protocol` if the peer speaks another version of `protocol` ("worker", "host") than this program.
inline void require_same_version(std::uint32_t theirs, std::uint32_t ours, std::string_view peer,
                                 std::string_view protocol) {
  if (theirs != ours)
    fail(Errc::protocol,
         "the {} speaks version {} of the {} protocol, this program version {}: build both from one hypertune", peer,
         theirs, protocol, ours);
}

}  // namespace hypertune::detail
