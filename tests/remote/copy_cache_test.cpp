// What an agent keeps of checkpoints, and what it may not drop.
#include "copy_cache.hpp"

#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <fstream>
#include <random>
#include <vector>

using namespace hypertune;
using hypertune::remote::detail::CopyCache;

namespace {

struct Host {
  TemporaryDirectory folder;
  LocalCheckpointStore store{folder.path()};

  CheckpointInfo make(TrialId trial, int steps) {
    auto writer = store.begin(trial, steps);
    std::ofstream(writer.file("weights")) << std::string(1000, 'w') << trial << steps;
    return store.seal(std::move(writer));
  }
  bool has(const CheckpointInfo& info) const { return std::filesystem::exists(store.folder(info)); }
};

}  // namespace

TEST_CASE("the newest checkpoints of a trial stay, whatever else must stay") {
  Host host;
  CopyCache cache(host.store, 1 << 20);
  std::vector<CheckpointInfo> made;
  for (int steps = 0; steps < 6; ++steps) made.push_back(host.make(1, steps));
  cache.add(made[0], true);
  cache.pin(made[0]);
  cache.add(made[1], true);
  cache.pin(made[1]);
  cache.add(made[2], false);
  cache.add(made[3], true);  // older ones cannot go, and that is no reason for this one to
  CHECK(host.has(made[3]));
  cache.add(made[4], true);
  cache.add(made[5], true);
  CHECK(host.has(made[0]));
  CHECK(host.has(made[1]));
  CHECK(host.has(made[2]));
  CHECK_FALSE(host.has(made[3]));
  CHECK(host.has(made[4]));
  CHECK(host.has(made[5]));
  cache.unpin(made[0]);
  cache.replicated(made[2]);
  CHECK_FALSE(host.has(made[0]));
  CHECK(host.has(made[1]));
  CHECK_FALSE(host.has(made[2]));
}

TEST_CASE("what is pinned, or not safe elsewhere, is never dropped") {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    Host host;
    CopyCache cache(host.store, 2500);  // of two checkpoints
    struct Known {
      CheckpointInfo info;
      bool replicated;
      int pins;
    };
    std::vector<Known> known;
    for (int i = 0; i < 40; ++i) {
      const auto pick = [&]() -> Known& { return known[random() % known.size()]; };
      switch (known.empty() ? 0 : random() % 6) {
        case 0:
        case 1: {
          const bool replicated = random() % 2 == 0;
          known.push_back({host.make(static_cast<TrialId>(random() % 2), i), replicated, 0});
          if (replicated && random() % 2 == 0)
            cache.pin(known.back().info), ++known.back().pins;
          else
            cache.add(known.back().info, replicated);
          break;
        }
        case 2:
          if (Known& at = pick(); host.has(at.info)) cache.pin(at.info), ++at.pins;
          break;
        case 3:
          if (Known& at = pick(); at.pins > 0) cache.unpin(at.info), --at.pins;
          break;
        case 4: {
          Known& at = pick();
          at.replicated = true;
          cache.replicated(at.info);
          break;
        }
        default: cache.forget(static_cast<TrialId>(random() % 2));
      }
      for (const auto& at : known)
        if (at.pins > 0 || !at.replicated) {
          INFO("round " << round << ", change " << i << ", " << at.info.name);
          REQUIRE(host.has(at.info));
        }
    }
  }
}

TEST_CASE("one that is told of twice is held once") {
  Host host;
  CopyCache cache(host.store, 1 << 20);
  const auto made = host.make(1, 1);
  cache.pin(made);
  cache.add(made, true);
  cache.forget(1);
  CHECK(host.has(made));
  SECTION("and goes with its trial, once it has been read") {
    cache.unpin(made);
    CHECK_FALSE(host.has(made));
  }
  SECTION("said twice as well") {
    cache.unpin(made);
    cache.forget(1);
    CHECK_FALSE(host.has(made));
  }
}
