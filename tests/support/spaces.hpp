// Spaces that a searcher has to cope with, from a single point to a thousand dimensions.
#pragma once

#include <hypertune/space/space.hpp>

#include <string>
#include <vector>

namespace hypertune_test {

struct NamedSpace {
  std::string name;
  hypertune::SearchSpace space;
};

/// The shared table of spaces. `conditional_everywhere`, `constrained` and `mixed` are the ones that break naive code.
inline std::vector<NamedSpace> spaces() {
  using namespace hypertune;
  std::vector<NamedSpace> table;
  const auto add = [&](std::string name, const Space<>& s) { table.push_back({std::move(name), s}); };
  add("one point", space(dim("a", constant(1)), dim("b", uniform(2, 2)), dim("c", choice<std::string>({"only"}))));
  add("plain", space(dim("lr", log_uniform(1e-5, 1.0)), dim("n", log_int(1, 300)), dim("q", quantized(0, 1, 0.25)),
                     dim("o", choice<std::string>({"sgd", "adam", "lamb"})), dim("b", boolean())));
  add("unbounded", space(dim("x", normal(3, 2)), dim("y", log_normal(0, 1)), dim("z", normal(0, 1).truncated(-1, 4))));
  std::vector<std::string> options;
  for (int i = 0; i < 10'000; ++i) options.push_back("option " + std::to_string(i));
  add("10,000 choices", space(dim("c", choice<std::string>(options)), dim("x", uniform(0, 1))));
  add("conditional",
      space(dim("kind", choice<std::string>({"none", "one", "two"})), dim("a", uniform(0, 1)).when("kind", "one"),
            dim("b", integer(1, 4)).when("kind", "two"), dim("deep", choice<std::string>({"x", "y"})).when("b", 3)));
  add("constrained",
      space(dim("low", uniform(0, 1)), dim("high", uniform(0, 1))).constraint("low below high", [](const Params& p) {
        return p.get<double>("low") + 0.5 < p.get<double>("high");
      }));
  add("derived",
      space(dim("width", integer(1, 64)),
            dim("depth", derived([](const Params& p, Rng& rng) { return p.get<double>("width") * uniform01(rng); }))));
  add("mixed", space(dim("seed", grid({1, 2, 3})), dim("lr", log_uniform(1e-4, 1e-1)),
                     dim("net", grid<std::string>({"small", "large"}))));
  add("all grid", space(dim("a", grid({1, 2, 3})), dim("b", grid<std::string>({"x", "y"}))));
  std::vector<Dim<Params>> many;
  for (int i = 0; i < 1000; ++i) many.push_back(dim("x" + std::to_string(i), uniform(-1, 1)));
  add("1,000 dimensions", Space<>(many));
  return table;
}

}  // namespace hypertune_test
