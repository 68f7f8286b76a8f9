// Any bytes as a sweep: an Error of kind `input`, `space` or `usage`, or a sound sweep; nothing else.
#include <hypertune/config/sweep.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto sweep = hypertune::sweep_from_yaml(hypertune::load_yaml_text(text), false);
    hypertune::Rng rng = hypertune::derived_rng(1, {2});
    if (sweep.space.size() < 1000) sweep.space.params(sweep.space.sample(rng));
  } catch (const hypertune::Error&) {}
  return 0;
}
