// Any bytes are the state of an Accumulator, or an Error of kind `corrupt` that changes nothing.
#include <hypertune/error.hpp>
#include <hypertune/train/accumulator.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

using namespace hypertune;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Accumulator metrics;
  const std::string before = metrics.state();
  try {
    metrics.restore(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const Error& e) {
    if (e.code() != Errc::corrupt || metrics.state() != before) std::abort();
    return 0;
  }
  const std::string state = metrics.state();
  Accumulator again;
  again.restore(state);
  if (again.state() != state) std::abort();
  static_cast<void>(again.values());
  return 0;
}
