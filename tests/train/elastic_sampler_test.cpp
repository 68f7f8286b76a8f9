#include "support/test.hpp"

#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/remaining_epochs.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

using namespace hypertune;

namespace {

static_assert(std::is_trivially_copyable_v<ElasticSampler::State>);

using Samples = std::vector<std::uint64_t>;

TEST_CASE("even shares are consecutive, cover all and differ by one at most") {
  for (std::uint64_t items = 0; items < 40; ++items)
    for (int size = 1; size < 9; ++size) {
      std::uint64_t at = 0;
      for (int rank = 0; rank < size; ++rank) {
        const Share share = even_share(items, rank, size);
        CHECK(share.begin == at);
        CHECK(share.size() - items / static_cast<std::uint64_t>(size) <= 1);
        at = share.end;
      }
      CHECK(at == items);
    }
  CHECK(even_share(2, 2, 3).empty());
  CHECK_THROWS_WITH(even_share(2, 3, 3), "a share of rank 3 of 3");
}

TEST_CASE("the ranks' shares together are the next global batch, whatever their number") {
  ElasticSampler alone(103, {.seed = 4});
  std::vector<ElasticSampler> ranks(3, ElasticSampler(103, {.seed = 4}));
  while (!alone.done()) {
    const Samples batch = alone.next(10, 0, 1);
    Samples together;
    for (int rank = 0; rank < 3; ++rank) {
      const Samples share = ranks[static_cast<std::size_t>(rank)].next(10, rank, 3);
      together.insert(together.end(), share.begin(), share.end());
    }
    CHECK(together == batch);
    for (const auto& sampler : ranks) CHECK(sampler.state() == alone.state());
  }
  CHECK(alone.processed() == 103);
  CHECK(alone.next(10, 0, 1).empty());
  CHECK(alone.processed() == 103);
}

TEST_CASE("a batch for each worker grows with the group, and the rest of an epoch is shared evenly") {
  ElasticSampler sampler(20, {.shuffle = false});
  CHECK(sampler.next_per_worker(3, 1, 2) == Samples{3, 4, 5});
  CHECK(sampler.next_per_worker(3, 3, 4) == Samples{15, 16, 17});
  CHECK(sampler.remaining() == 2);
  CHECK(sampler.next_per_worker(3, 2, 3).empty());
  CHECK(sampler.done());
  CHECK(ElasticSampler(10).next_per_worker(~std::uint64_t{0}, 0, 2).size() == 5);
  CHECK(ElasticSampler(0).next_per_worker(5, 0, 2).empty());
  CHECK_THROWS_WITH(sampler.next_per_worker(0, 0, 2), "a batch of no samples");
  CHECK_THROWS_WITH(sampler.next_per_worker(1, 0, 0), "a batch for 0 workers");
}

TEST_CASE("each epoch has an order of its own, and the same one again") {
  ElasticSampler sampler(50, {.seed = 1});
  const Samples first = sampler.next(50, 0, 1);
  sampler.next_epoch();
  CHECK(sampler.epoch() == 1);
  const Samples second = sampler.next(50, 0, 1);
  CHECK(first != second);
  sampler.restore({0, 0});
  CHECK(sampler.next(50, 0, 1) == first);
  sampler.restore({1, 20});
  CHECK(sampler.next(50, 0, 1) == Samples(second.begin() + 20, second.end()));
  CHECK(ElasticSampler(50, {.seed = 2}).next(50, 0, 1) != first);
  CHECK(ElasticSampler(3, {.shuffle = false}).next(5, 0, 1) == Samples{0, 1, 2});
}

TEST_CASE("a state of another data set is refused and changes nothing") {
  ElasticSampler sampler(50);
  sampler.next(7, 0, 1);
  CHECK_THROWS_WITH(sampler.restore({2, 51}), ContainsSubstring("is it another data set?"));
  CHECK(sampler.state() == ElasticSampler::State{0, 7});
  CHECK_THROWS_WITH(sampler.next(4, 2, 2), "a share of rank 2 of 2");
  CHECK(sampler.processed() == 7);
}

TEST_CASE("as counted by what was committed, each sample is visited once an epoch, through resizes and rollbacks") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const auto samples = static_cast<std::uint64_t>(draw(1, 400));
    const ElasticSamplerOptions options{.seed = seed, .shuffle = draw(0, 4) > 0};
    std::vector<ElasticSampler> ranks(static_cast<std::size_t>(draw(1, 5)), ElasticSampler(samples, options));
    ElasticSampler::State committed;
    std::vector<int> counted(samples, 0), since(samples, 0);
    const auto rollback = [&] {
      std::fill(since.begin(), since.end(), 0);
      for (auto& rank : ranks) rank.restore(committed);
    };
    const auto commit = [&] {
      committed = ranks.front().state();
      for (std::uint64_t i = 0; i < samples; ++i) counted[i] += since[i];
      std::fill(since.begin(), since.end(), 0);
    };
    const auto resize = [&] {  // those that stay have their state; the new ones get it of rank 0
      const auto state = ranks.front().state();
      ranks.resize(static_cast<std::size_t>(draw(1, 6)), ElasticSampler(samples, options));
      for (auto& rank : ranks) rank.restore(state);
    };
    const int epochs = 3;
    while (committed.epoch < epochs) {
      const int event = draw(0, 19);
      if (event == 0) {  // a rank is lost: the others go on from the commit
        if (ranks.size() > 1) ranks.erase(ranks.begin() + draw(0, static_cast<int>(ranks.size()) - 1));
        rollback();
      } else if (event == 1) {
        resize();
      } else if (event == 2) {  // all begin anew in another process
        ranks.assign(static_cast<std::size_t>(draw(1, 6)), ElasticSampler(samples, options));
        rollback();
      } else if (event < 7) {
        commit();
      } else {
        const auto batch = static_cast<std::uint64_t>(draw(1, 40));
        const bool each = draw(0, 1) == 1;
        const int size = static_cast<int>(ranks.size());
        for (int r = 0; r < size; ++r) {
          auto& rank = ranks[static_cast<std::size_t>(r)];
          for (const auto i : each ? rank.next_per_worker(batch, r, size) : rank.next(batch, r, size)) ++since[i];
        }
      }
      for (const auto& rank : ranks) REQUIRE(rank.state() == ranks.front().state());
      if (!ranks.front().done()) continue;
      for (auto& rank : ranks) rank.next_epoch();
      commit();
      REQUIRE(std::all_of(counted.begin(), counted.end(), [](int count) { return count == 1; }));
      std::fill(counted.begin(), counted.end(), 0);
    }
  }
}

TEST_CASE("remaining epochs go on where the state says") {
  int epoch = 2;
  std::vector<std::uint64_t> seen;
  bool rolled_back = false;
  for (const auto e : remaining_epochs(epoch, 5)) {
    seen.push_back(e);
    CHECK(static_cast<int>(e) == epoch);  // what is committed in the body is of an epoch not yet over
    if (e == 3 && !rolled_back) {
      rolled_back = true;
      epoch = 1;  // to be counted on to 2
    }
  }
  CHECK(seen == std::vector<std::uint64_t>{2, 3, 2, 3, 4});
  CHECK(epoch == 5);
  for ([[maybe_unused]] const auto e : remaining_epochs(epoch, 5)) FAIL("no epoch remains");
}

TEST_CASE("remaining epochs of a sampler") {
  ElasticSampler sampler(10);
  sampler.restore({1, 4});
  std::vector<std::size_t> counts;
  for ([[maybe_unused]] const auto epoch : remaining_epochs(sampler, 3)) {
    counts.push_back(0);
    while (!sampler.done()) counts.back() += sampler.next(3, 0, 1).size();
  }
  CHECK(counts == std::vector<std::size_t>{6, 10});
  CHECK(sampler.state() == ElasticSampler::State{3, 0});
}

}  // namespace
