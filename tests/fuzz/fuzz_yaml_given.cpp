// Any bytes as a file of configurations or results: an Error of kind `input`, or rows that fit the space; nothing else.
#include <hypertune/config/given_file.hpp>
#include <hypertune/config/space.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace ht = hypertune;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ht::SearchSpace space = ht::space_from_yaml(ht::load_yaml_text(
      "k: {uniform: [0, 1]}\nn: {integer: [1, 9]}\no: {choice: [a, 1, 2.5, true]}\nm: {uniform: [0, 1], when: {o: a}}\n"
      "w: {derived: 2 * n}\nconstraints: [k <= 0.5]\n"));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool results : {false, true}) {
    ht::GivenFor wanted{.space = space, .objectives = {}, .further = {"size"}, .results = results};
    if (results) wanted.objectives = {ht::minimize("loss")};
    try {
      for (const auto& row : ht::read_given_text(text, "file", wanted)) {
        if (!space.feasible(space.point(row.params))) std::abort();
        if (results && (ht::find_metric(row.metrics, "loss") == nullptr || row.steps < 1)) std::abort();
      }
    } catch (const ht::Error& error) {
      if (error.code() != ht::Errc::input) std::abort();
    }
  }
  return 0;
}
