// Kernels of the user's that do not end, calls of NCCL's that do not return, and whose time it is.
#include "support/eventually.hpp"
#include "train_cuda/ranks.hpp"

#include <atomic>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace ranks;
using Kind = ht::GroupError::Kind;

TEST_CASE("NCCL: a kernel that never ends holds up nobody, and its rank is named") {
  const Watch watch;
  const bool revoke = GENERATE(false, true);
  MemoryRendezvous rendezvous;
  {
    Gated stuck;
    std::vector<std::unique_ptr<DeviceVector<float>>> values;
    for (int rank = 0; rank < 3; ++rank) values.push_back(std::make_unique<DeviceVector<float>>(std::vector{1.0F}));
    stuck.close();
    const auto thrown = in_threads(3, [&](int rank) {
      auto communicator = ht::connect_nccl(place(rank, 3), rendezvous, {.timeout = 1}, {.revoke = revoke});
      communicator.barrier();
      communicator.perform(sum_of(*values[static_cast<std::size_t>(rank)], rank == 1 ? stuck.stream() : nullptr));
    });  // here the communicators are gone, though the kernel goes on
    for (const auto& one : thrown) {
      const auto error = group_error(one);
      CHECK(error.kind() == Kind::late);
      CHECK(error.ranks() == std::vector<int>{1});
    }
    CHECK_THROWS_WITH(std::rethrow_exception(thrown[0]), ContainsSubstring("rank 1 did not come to collective 2"));
    CHECK_THROWS_WITH(std::rethrow_exception(thrown[1]),
                      ContainsSubstring("rank 1 (this one) did not come to collective 2") &&
                          ContainsSubstring("device 0 is still busy with what was put into its streams before"));
    CHECK(stand_in::held().communicators == 1);  // of rank 1: kept for the device
    stuck.open();
    CHECK(ht::test::eventually([] { return stand_in::held().communicators == 0; }));  // and then the values go
  }
  CHECK(nothing_is_held());
}

TEST_CASE("NCCL: several started behind a kernel that never ends are given up together") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  {
    Gated stuck;
    DeviceVector<float> values({1});
    stuck.close();
    {
      std::vector<std::promise<std::exception_ptr>> told(40);
      auto communicator = ht::connect_nccl(place(0, 1), rendezvous, {.timeout = 0.2});
      for (auto& one : told)
        communicator.start(sum_of(values, stuck.stream()),
                           [&one](std::exception_ptr error) { one.set_value(std::move(error)); });
      for (auto& one : told) CHECK(group_error(one.get_future().get()).ranks() == std::vector<int>{0});
    }
    stuck.open();
    CHECK(ht::test::eventually([] { return stand_in::held().communicators == 0; }));
  }
  CHECK(nothing_is_held());
}

TEST_CASE("NCCL: abort() waits for no kernel, and what is under way ends") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  {
    Gated stuck;
    DeviceVector<float> values({1});
    stuck.close();
    std::promise<std::exception_ptr> told;
    auto communicator = ht::connect_nccl(place(0, 1), rendezvous, {.timeout = 60});
    communicator.start(sum_of(values, stuck.stream()),
                       [&](std::exception_ptr error) { told.set_value(std::move(error)); });
    CHECK(ht::test::eventually([] { return stand_in::operations_under_way(0) == 1; }));
    communicator.abort({Kind::changed, "the generation is over"});  // the kernel still runs when this returns
    stuck.open();
    const auto error = group_error(told.get_future().get());
    CHECK(error.kind() == Kind::changed);
    CHECK(std::string(error.what()) == "the generation is over");  // the device has left all in time
  }
  CHECK(nothing_is_held());
}

// Each rank's own work, and each operation before it, may take as long as the limit.
TEST_CASE("NCCL: an operation's time begins when it is its turn") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  const bool host = GENERATE(false, true);
  CAPTURE(host);
  all_well(in_threads(2, [&](int rank) {
    std::promise<std::exception_ptr> told[2];
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 3});
    DeviceVector<float> first({1}), second({2});
    std::vector<float> in_host{2};
    const auto last =
        host ? ht::collective::AllReduce{in_host.data(), 1, ht::ElementType::float32} : sum_of(second, nullptr);
    const auto passes = [&] { static_cast<void>(rendezvous.wait("nothing", 2)); };
    if (rank == 0) {
      communicator.start(sum_of(first, nullptr), [&](std::exception_ptr e) { told[0].set_value(std::move(e)); });
      communicator.start(last, [&](std::exception_ptr e) { told[1].set_value(std::move(e)); });
      for (auto& one : told)
        if (const auto error = one.get_future().get()) std::rethrow_exception(error);
    } else {
      passes();
      communicator.perform(sum_of(first, nullptr));
      passes();
      communicator.perform(last);
    }
    expect((host ? in_host : second.get()) == std::vector<float>{4});
  }));
}

TEST_CASE("NCCL: the time for the other ranks begins when this one's stream has come") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  all_well(in_threads(2, [&](int rank) {
    std::promise<std::exception_ptr> told;
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 3});
    Gated backward;
    DeviceVector<float> values({1});
    if (rank == 0) {
      backward.close();
      communicator.start(sum_of(values, backward.stream()),
                         [&](std::exception_ptr e) { told.set_value(std::move(e)); });
      static_cast<void>(rendezvous.wait("nothing", 2));
      backward.open();
      rendezvous.set("its stream has come", "");
      if (const auto error = told.get_future().get()) std::rethrow_exception(error);
    } else {
      static_cast<void>(rendezvous.wait("its stream has come", 20));
      static_cast<void>(rendezvous.wait("nothing", 2));
      communicator.perform(sum_of(values, nullptr));
    }
    expect(values.get() == std::vector<float>{2});
  }));
}

TEST_CASE("NCCL: the root of a broadcast that needed nobody is not the one that is missing") {
  const Watch watch;
  stand_in::set_buffered_broadcasts(true);
  MemoryRendezvous rendezvous;
  std::atomic<bool> named{false};
  const bool device = GENERATE(true, false);
  const auto thrown = in_threads(3, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 3), rendezvous, {.timeout = 1});
    communicator.barrier();
    DeviceVector<float> value({1});
    std::vector<float> in_host{1};
    try {
      if (rank != 1) communicator.broadcast(device ? value.span() : std::span(in_host), 0);
    } catch (...) {
      named = true;
      throw;
    }
    expect(ht::test::eventually([&] { return named.load(); }));  // computes
  });
  CHECK(group_error(thrown[2]).ranks() == std::vector<int>{1});
  CHECK(!thrown[0]);
}

TEST_CASE("NCCL: a call to grow that does not return is given up in time") {
  const Watch watch;
  MemoryRendezvous first, second;
  stand_in::set_faults(1, {.grow_blocks = true});
  std::vector<std::optional<ht::NcclCommunicator>> members(3);
  all_well(in_threads(2, [&](int rank) {
    members[static_cast<std::size_t>(rank)] = ht::NcclCommunicator::connect(place(rank, 2), first, {.timeout = 1});
  }));
  const auto thrown = in_threads(3, [&](int rank) {
    auto& member = members[static_cast<std::size_t>(rank)];
    if (member)
      member->regroup(place(rank, 3, 2), second);
    else
      ht::NcclCommunicator::connect(place(rank, 3, 2), second, {.timeout = 1});
  });
  for (const auto& one : thrown) CHECK(group_error(one).kind() == Kind::late);
  members.clear();
  CHECK(stand_in::held().communicators > 0);  // kept for the call
  stand_in::open_grow();
  CHECK(nothing_is_held());
}

TEST_CASE("NCCL: a thread gets its device back, and none that it never had") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  const bool had_one = GENERATE(false, true);
  std::thread([&] {
    if (had_one) cudaSetDevice(0);
    auto communicator = ht::connect_nccl(place(0, 1), rendezvous, {}, {.device = 1});
    communicator.all_reduce(1.0F);
    int device = -1;
    cudaGetDevice(&device);
    CHECK(device == (had_one ? 0 : 1));
    CHECK(stand_in::contexts() == (had_one ? std::vector<int>{0, 1} : std::vector<int>{1}));
  }).join();
}

TEST_CASE("NCCL: what is not yet done is not left to the thread as an error") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  all_well(in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous);
    DeviceVector<float> values({1});
    if (rank == 1) static_cast<void>(rendezvous.wait("waits", 20));
    if (rank == 0)
      communicator.start(sum_of(values, nullptr), [](const std::exception_ptr&) {}), rendezvous.set("waits", "");
    communicator.all_reduce(values.span());
    if (rank == 1) communicator.all_reduce(values.span());
    expect(cudaGetLastError() == cudaSuccess);
  }));
}

TEST_CASE("NCCL: graphs are captured beside collectives, and collectives are no part of them") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  Gated before, captured;
  DeviceVector<float> values({1}), others({1});
  std::promise<std::exception_ptr> told;
  auto communicator = ht::connect_nccl(place(0, 1), rendezvous, {.timeout = 60});
  std::optional<ht::Communicator> other = ht::connect_nccl(place(0, 1), rendezvous, {.timeout = 60}, {.name = "other"});
  before.close();
  communicator.start(sum_of(values, before.stream()), [&](std::exception_ptr e) { told.set_value(std::move(e)); });
  stand_in::set_capturing(captured.stream(), true);
  before.open();
  const auto error = told.get_future().get();  // the communicator's thread asks for events all the time
  CHECK_THROWS_WITH(communicator.perform(sum_of(others, captured.stream())),
                    ContainsSubstring("after a stream that is being captured into a graph"));
  communicator.perform(sum_of(others, nullptr));
  other.reset();  // what is freed does not spoil it, either
  stand_in::set_capturing(captured.stream(), false);
  CHECK(!error);
  communicator.perform(sum_of(others, captured.stream()));
}
