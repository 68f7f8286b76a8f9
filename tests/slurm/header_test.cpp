// One header brings what a program on Slurm needs.
#include "support/test.hpp"

#include <hypertune/slurm/executor.hpp>

namespace ht = hypertune;

TEST_CASE("a program on Slurm needs one header, and nothing of ssh") {
  char name[] = "train", fast[] = "--fast";
  char* argv[] = {name, fast, nullptr};
  int argc = 2;
  const ht::Runtime runtime(argc, argv);
  CHECK_FALSE(runtime.is_agent());
  CHECK(ht::on_slurm(runtime, {.partition = "gpu", .time = 4 * 3600, .cpus = 4}).name() == "slurm");
  CHECK(runtime.setup(ht::SlurmSetup{}).arguments == std::vector<std::string>{"--fast"});
}
