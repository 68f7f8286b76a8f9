// Any bytes are frames and messages, or an Error of kind `protocol`; what reads, writes back as it was.
#include <hypertune/execute/detail/worker_link.hpp>
#include <hypertune/execute/detail/worker_machine.hpp>
#include <hypertune/execute/detail/worker_protocol.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace hypertune;

namespace {
template <class F>
void guarded(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    if (e.code() != Errc::protocol) std::abort();
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  FrameDecoder decoder(wire::message_types);
  WorkerMachine machine;
  WorkerLink link({.hang_timeout = 1});
  Launch launch;
  launch.trial = 0;
  launch.seat = Seat{2, {}};  // so that messages of a group are for it
  link.start(launch, 0);
  guarded([&] {
    for (std::size_t at = 0; at < size; at += 7) {
      decoder.feed(bytes.substr(at, 7));
      while (auto frame = decoder.next()) {
        const auto message = wire::decode(*frame);
        const auto again = wire::encode(message);
        FrameDecoder second(wire::message_types);
        second.feed(again);
        if (wire::encode(wire::decode(*second.next())) != again) std::abort();
        guarded([&] {
          machine.receive(message);
          static_cast<void>(machine.next());
        });
        guarded([&] { static_cast<void>(link.receive(message, 0)); });
      }
    }
  });
  return 0;
}
