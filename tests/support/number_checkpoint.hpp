// The state of a test's trainer as a checkpoint.
#pragma once

#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/context.hpp>

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace hypertune::inline v0::test {

/// Saves and restores one number, to the bit. It must live as long as the attempt.
inline void checkpoint_number(Context& context, double& number) {
  context.checkpoints([&](CheckpointWriter& out) { std::ofstream(out.file("number")) << fmt::format("{:a}", number); },
                      [&](const Checkpoint& in) {
                        std::string text;
                        std::ifstream(in.file("number")) >> text;
                        number = std::strtod(text.c_str(), nullptr);
                      });
}

}  // namespace hypertune::inline v0::test
