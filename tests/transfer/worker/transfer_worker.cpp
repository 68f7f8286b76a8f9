// A process that fetches one checkpoint, for tests that kill it. Says "moving" on its standard output once content
// comes. Usage: transfer_worker ENDPOINT EXPERIMENT TRIAL STEPS NAME DIGEST
#include <hypertune/checkpoint/transfer/transfer.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  using namespace hypertune;
  if (argc != 7) return 2;
  try {
    LocalCheckpointStore store(argv[2], {.sync = false});
    const CheckpointInfo info{
        .trial = std::atoi(argv[3]), .steps = std::atoi(argv[4]), .name = argv[5], .bytes = 0, .digest = argv[6]};
    FetchOptions options;
    options.streams = 2;
    bool said = false;
    options.on_progress = [&](const FetchProgress& progress) {
      if (said || progress.done == 0) return;
      said = true;
      static_cast<void>(!write(STDOUT_FILENO, "moving\n", 7));
    };
    static_cast<void>(fetch_checkpoint(Endpoint::parse(argv[1]), info, store, options));
    return 0;
  } catch (const Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
