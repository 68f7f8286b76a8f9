// The toy of the paper on population based training, with checkpoints.
#pragma once

#include <hypertune/hypertune.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace pbt_toy {

struct Config {
  double h0 = 0, h1 = 0;
};
inline auto space() {
  return hypertune::space<Config>(hypertune::dim("h0", &Config::h0, hypertune::uniform(0.0, 1.0)),
                                  hypertune::dim("h1", &Config::h1, hypertune::uniform(0.0, 1.0)));
}

/// Figure 2 of Jaderberg et al. 2017: q = 1.2 - a^2 - b^2 is to be maximised, but the training follows
/// 1.2 - h0 a^2 - h1 b^2.
struct Toy {
  explicit Toy(const Config& c) : config(c) {}
  hypertune::Report step() {
    a -= 0.02 * config.h0 * a;
    b -= 0.02 * config.h1 * b;
    return hypertune::report("q", 1.2 - a * a - b * b);
  }
  void save(hypertune::CheckpointWriter& out) const {
    std::ofstream(out.file("theta")) << fmt::format("{:a} {:a}", a, b);
  }
  void restore(const hypertune::Checkpoint& in) {
    std::string first, second;
    std::ifstream(in.file("theta")) >> first >> second;
    a = std::strtod(first.c_str(), nullptr);
    b = std::strtod(second.c_str(), nullptr);
  }
  Config config;
  double a = 0.9, b = 0.9;
};

}  // namespace pbt_toy
