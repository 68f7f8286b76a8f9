#include "train_cuda/ranks.hpp"

#include <optional>
#include <string>
#include <vector>

using namespace ranks;
using Kind = ht::GroupError::Kind;

namespace {

using Members = std::vector<std::optional<ht::NcclCommunicator>>;

Members connect(int size, const ht::NcclOptions& options, MemoryRendezvous& rendezvous, double timeout = 20) {
  Members members(static_cast<std::size_t>(size));
  all_well(in_threads(size, [&](int rank) {
    members[static_cast<std::size_t>(rank)] =
        ht::NcclCommunicator::connect(place(rank, size), rendezvous, {.timeout = timeout}, options);
  }));
  return members;
}

// A new generation of those (nullopt: new ones), each of which gives its former rank plus one: how it came to be.
std::string regroup(Members& members, MemoryRendezvous& rendezvous) {
  const int size = static_cast<int>(members.size());
  std::vector<std::string> origins(members.size());
  all_well(in_threads(size, [&](int rank) {
    auto& member = members[static_cast<std::size_t>(rank)];
    auto next = member ? member->regroup(place(rank, size, 2), rendezvous)
                       : ht::NcclCommunicator::connect(place(rank, size, 2), rendezvous, {.timeout = 20});
    member = next;
    origins[static_cast<std::size_t>(rank)] = next.origin();
    expect(next.communicator().all_reduce(rank + 1) == size * (size + 1) / 2);
  }));
  for (const std::string& origin : origins) CHECK(origin == origins.front());
  return origins.front();
}

}  // namespace

TEST_CASE("NCCL: a group shrinks without connecting afresh, twice") {
  const Watch watch;
  MemoryRendezvous first, second, third;
  Members members = connect(5, {}, first);
  members.erase(members.begin() + 3);
  members.erase(members.begin());
  CHECK(regroup(members, second) == "shrunk");
  members.pop_back();
  CHECK(regroup(members, third) == "shrunk");
}

TEST_CASE("NCCL: a group grows without connecting afresh") {
  const Watch watch;
  MemoryRendezvous first, second, third;
  Members members = connect(2, {}, first);
  members.resize(4);
  CHECK(regroup(members, second) == "grown");
  members.pop_back();
  CHECK(regroup(members, third) == "shrunk");
}

TEST_CASE("NCCL: where the old communicator does not lead to the new one, all connect afresh") {
  const Watch watch;
  MemoryRendezvous first, second, third;
  Members members = connect(3, {}, first);
  SECTION("one of them aborted it") { members[1]->abort({Kind::changed, "enough"}); }
  SECTION("one has left, and another has come") { members[2].reset(); }
  SECTION("their order is another") { std::swap(members[0], members[1]); }
  SECTION("rank 0 is new") { members.insert(members.begin(), std::nullopt); }
  SECTION("the members are the same") {}
  CHECK(regroup(members, second) == "fresh");
  members.pop_back();
  CHECK(regroup(members, third) == "shrunk");
}

TEST_CASE("NCCL: what failed and was revoked goes on without the ranks that are gone") {
  const Watch watch;
  MemoryRendezvous first, second;
  stand_in::set_faults(1, {.async_error = 1, .error = ncclRemoteError});
  Members members = connect(3, {.revoke = true}, first, 3);
  const auto thrown = in_threads(3, [&](int rank) {
    if (rank != 2) members[static_cast<std::size_t>(rank)]->communicator().barrier();
  });
  CHECK(group_error(thrown[0]).kind() == Kind::late);
  CHECK(group_error(thrown[0]).ranks() == std::vector<int>{2});
  CHECK(group_error(thrown[1]).kind() == Kind::lost);
  CHECK(group_error(thrown[1]).ranks() == std::vector<int>{2});
  stand_in::set_faults(1, {});
  members.pop_back();
  CHECK(regroup(members, second) == "shrunk");
}

// Says what it has, and is gone then.
class Dying final : public ht::Rendezvous {
 public:
  explicit Dying(ht::Rendezvous& rendezvous) : rendezvous_(rendezvous) {}
  void set(const std::string& key, const std::string& value) override { rendezvous_.set(key, value); }
  std::optional<std::string> wait(const std::string&, ht::Seconds) override {
    throw ht::GroupError(Kind::lost, "it dies");
  }

 private:
  ht::Rendezvous& rendezvous_;
};

TEST_CASE("NCCL: a shrinking that never ends is given up, and nothing is left behind") {
  const Watch watch;
  MemoryRendezvous first, second;
  Members members = connect(3, {}, first, 3);
  SECTION("as a rank dies before it shrinks") {
    const auto thrown = in_threads(2, [&](int rank) {
      Dying dying(second);
      members[static_cast<std::size_t>(rank)]->regroup(place(rank, 2, 2),
                                                       rank == 0 ? static_cast<ht::Rendezvous&>(second) : dying);
    });
    CHECK(group_error(thrown[0]).kind() == Kind::late);
    CHECK(group_error(thrown[1]).kind() == Kind::lost);
  }
  SECTION("as the new communicator does not come up") {
    stand_in::set_faults(0, {.init_in_progress = true});
    const auto thrown =
        in_threads(2, [&](int rank) { members[static_cast<std::size_t>(rank)]->regroup(place(rank, 2, 2), second); });
    CHECK(group_error(thrown[0]).kind() == Kind::late);
  }
}
