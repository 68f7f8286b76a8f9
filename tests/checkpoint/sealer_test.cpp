#include "support/checkpoint_store_conformance.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/checkpoint/detail/sealer.hpp>
#include <hypertune/checkpoint/local_store.hpp>

#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;

namespace {

CheckpointWriter written(LocalCheckpointStore& store, TrialId trial, int steps) {
  auto writer = store.begin(trial, steps);
  write_file(writer.file("a"), std::to_string(steps));
  return writer;
}

}  // namespace

TEST_CASE("what is submitted is sealed in order, and drain waits for it") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, {.sync = false});
  CheckpointSealer sealer(store);
  std::vector<std::string> names;  // the sealer has one thread, and drain() orders it before this one
  for (int steps = 1; steps <= 20; ++steps)
    sealer.submit(written(store, steps % 3, steps), [&](SealResult r) { names.push_back(r.checkpoint.value().name); });
  sealer.drain();
  REQUIRE(names.size() == 20);
  for (int steps = 1; steps <= 20; ++steps)
    CHECK(names[static_cast<std::size_t>(steps - 1)] == fmt::format("step-{}", steps));
  CHECK(store.list(1).size() == 7);
}

TEST_CASE("one checkpoint of a trial is on its way at a time, of others as many as there are") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, {.sync = false});
  std::promise<void> gate;
  std::atomic<bool> second_submitted{false};
  CheckpointSealer sealer(store);
  sealer.submit(written(store, 0, 1), [opened = gate.get_future().share()](const SealResult&) { opened.wait(); });
  sealer.submit(written(store, 1, 1), [](const SealResult&) {});
  std::thread trial([&] {
    sealer.submit(written(store, 0, 2), [](const SealResult&) {});
    second_submitted = true;
  });
  CHECK_FALSE(second_submitted);  // cannot be, whatever the timing: the first one's callback waits for the gate
  gate.set_value();
  trial.join();
  sealer.wait(0);
  CHECK(store.list(0).size() == 2);
  sealer.drain();
  CHECK(store.list(1).size() == 1);
}

TEST_CASE("a failed seal says why, and the next goes on") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, {.sync = false});
  CheckpointSealer sealer(store);
  auto bad = written(store, 0, 1);
  std::filesystem::create_symlink("a", bad.directory() / "link");
  SealResult failed, sound;
  sealer.submit(bad, [&](SealResult r) { failed = std::move(r); });
  sealer.submit(written(store, 0, 2), [&](SealResult r) { sound = std::move(r); });
  sealer.wait(0);
  CHECK_FALSE(failed.checkpoint);
  CHECK(failed.code == Errc::usage);
  CHECK_THAT(failed.error, ContainsSubstring("trial 0 after 1 steps: 'link' is a symbolic link"));
  CHECK(sound.checkpoint->steps == 2);
}

TEST_CASE("a sealer that dies finishes what it was given, and its callbacks may submit") {
  const TemporaryDirectory directory;
  LocalCheckpointStore store(directory, {.sync = false});
  {
    CheckpointSealer sealer(store);
    sealer.submit(written(store, 0, 1),
                  [&](const SealResult&) { sealer.submit(written(store, 0, 2), [](const SealResult&) {}); });
  }
  CHECK(store.list(0).size() == 2);
}
