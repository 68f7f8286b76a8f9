// Any bytes are messages of the host protocol, or an Error of kind `protocol`; what reads, writes back as it was.
#include "host_protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace hypertune;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    remote::wire::BannerFilter banner;
    FrameDecoder decoder(remote::wire::message_types);
    const bool agent = size > 0 && data[0] % 2 == 0;  // whose bytes begin with a banner
    for (std::size_t at = 0; at < size; at += 7) {
      const auto piece = bytes.substr(at, 7);
      decoder.feed(agent ? banner.pass(piece) : piece);
      while (auto frame = decoder.next()) {
        const auto message = remote::wire::decode(*frame);
        std::string again;
        remote::wire::append(again, message);
        FrameDecoder second(remote::wire::message_types);
        second.feed(again);
        std::string third;
        remote::wire::append(third, remote::wire::decode(*second.next()));
        if (third != again) std::abort();
      }
    }
  } catch (const Error& e) {
    if (e.code() != Errc::protocol) std::abort();
  }
  return 0;
}
