// What a peer of a transfer sends: URLs, ranges, lists, chunk lists, compressed content.
#include "transfer/chunk_index.hpp"
#include "transfer/compression.hpp"
#include "transfer/target.hpp"

#include <hypertune/checkpoint/transfer/endpoint.hpp>
#include <hypertune/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace hypertune;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Nothing else is thrown than an Error of this kind.
template <class Call>
void expect(Errc code, const Call& call) {
  try {
    call();
  } catch (const Error& e) { require(e.code() == code); }
}

void names(std::string_view text) {
  if (const auto target = detail::parse_target(text)) {
    require(target->info.name.find('/') == std::string::npos && !target->info.name.starts_with('.'));
    if (target->what != detail::Target::What::list) {
      const auto again = detail::parse_target(to_string(*target));
      require(again && again->info == target->info && again->what == target->what);
    }
  }
  if (const auto range = detail::parse_range(text, 1000)) require(range->begin < range->end && range->end <= 1000);
  if (const auto info = detail::parse_info_line(text, 3))
    require(detail::parse_info_line(text.substr(0, text.size()), 3) == info);
  expect(Errc::input, [&] {
    require(Endpoint::parse(Endpoint::parse(text).to_string()).to_string() == Endpoint::parse(text).to_string());
  });
}

void chunks(std::string_view text) {
  Manifest manifest;
  manifest.files = {{.name = "a", .size = 300, .checksum = {}},
                    {.name = "b", .size = 0, .checksum = {}},
                    {.name = "c", .size = 7, .checksum = {}}};
  expect(Errc::corrupt, [&] {
    const auto list = detail::decode_chunks(text, manifest);
    require(detail::encode_chunks(list) == text);
  });
}

void unpack(std::string_view text) {
  expect(Errc::protocol, [&] {
    static detail::Decompressor decompressor;
    decompressor.begin();
    char out[4096];
    for (std::size_t at = 0, produced = 0; produced < 100'000;) {
      const auto step = decompressor.run(text.data() + at, text.size() - at, out, sizeof out);
      require(step.consumed <= text.size() - at && step.produced <= sizeof out);
      at += step.consumed;
      produced += step.produced;
      if (step.ended || (at == text.size() && step.produced < sizeof out)) break;
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: names(text); break;
    case 1: names("/v1/trials/3/checkpoints/00112233445566778899aabbccddeeff" + std::string(text)); break;
    case 2: chunks(data[0] < 128 ? std::string(text) : "hypertune-chunks 1\n" + std::string(text)); break;
    default: unpack(text);
  }
  return 0;
}
