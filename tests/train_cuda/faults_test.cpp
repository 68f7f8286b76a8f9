#include "support/eventually.hpp"
#include "train_cuda/ranks.hpp"

#include <hypertune/train/cuda_check.cuh>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

using namespace ranks;
using Kind = ht::GroupError::Kind;

TEST_CASE("NCCL: a rank that never connects is named") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  const auto thrown = in_threads(3, [&](int rank) {
    if (rank != 1) ht::connect_nccl(place(rank, 3), rendezvous, {.timeout = 1});
  });
  for (const int rank : {0, 2}) {
    const auto error = group_error(thrown[static_cast<std::size_t>(rank)]);
    CHECK(error.kind() == Kind::late);
    CHECK(error.ranks() == std::vector<int>{1});
  }
}

TEST_CASE("NCCL: one rank that is missing makes no other one look so, though answers take their time") {
  const Watch watch;
  MemoryRendezvous driver;
  const bool connects = GENERATE(false, true);
  CAPTURE(connects);
  std::atomic<int> named{0};
  const auto thrown = in_threads(4, [&](int rank) {
    ht::test::AskedRendezvous rendezvous(driver);
    if (rank == 1 && !connects) return;
    auto communicator = ht::connect_nccl(place(rank, 4), rendezvous, {.timeout = 2});
    if (rank == 1) {  // is there, and does something else
      expect(ht::test::eventually([&] { return named == 3; }));
      return;
    }
    try {
      communicator.barrier();
    } catch (...) {
      ++named;
      throw;
    }
  });
  for (const std::size_t rank : {0, 2, 3}) {
    const auto error = group_error(thrown[rank]);
    CHECK(error.kind() == Kind::late);
    CHECK(error.ranks() == std::vector<int>{1});
  }
}

TEST_CASE("NCCL: where rank 0 never comes, the others say so") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  const auto thrown = in_threads(2, [&](int rank) {
    if (rank == 1) ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 0.2});
  });
  CHECK(group_error(thrown[1]).ranks() == std::vector<int>{0});
  CHECK_THROWS_WITH(std::rethrow_exception(thrown[1]),
                    ContainsSubstring("rank 0 has not said how to connect within 0.2 s"));
}

TEST_CASE("NCCL: connecting that stays in progress ends in time") {
  const Watch watch;
  stand_in::set_faults(0, {.init_in_progress = true});
  stand_in::set_faults(1, {.init_in_progress = true});
  MemoryRendezvous rendezvous;
  const auto thrown = in_threads(2, [&](int rank) { ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 0.2}); });
  CHECK_THROWS_WITH(std::rethrow_exception(thrown[0]),
                    ContainsSubstring("all ranks are there, and are not connected after 0.2 s"));
  CHECK(group_error(thrown[1]).kind() == Kind::late);
}

TEST_CASE("NCCL: connecting ends when the generation does") {
  const Watch watch;
  stand_in::set_faults(0, {.init_in_progress = true});
  stand_in::set_faults(1, {.init_in_progress = true});
  MemoryRendezvous rendezvous;
  const auto thrown = in_threads(3, [&](int rank) {
    if (rank == 2)
      rendezvous.end(generation_over());
    else
      ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 3600});  // longer than the test may take
  });
  CHECK(group_error(thrown[0]).kind() == Kind::changed);
  CHECK(group_error(thrown[1]).kind() == Kind::changed);
}

TEST_CASE("NCCL: a rank that does not come to a collective is named by the others") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  std::atomic<int> waiting{0};
  std::mutex mutex;
  std::condition_variable changed;
  const auto thrown = in_threads(4, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 4), rendezvous, {.timeout = rank == 1 ? 3.2 : 3});
    float value = 1;
    communicator.all_reduce(std::span(&value, 1));
    if (rank == 3) {  // is there, and does something else
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return waiting == 3; });
      return;
    }
    try {
      communicator.broadcast(std::span(&value, 1), 0);
      communicator.barrier();
    } catch (...) {
      const std::lock_guard guard(mutex);
      ++waiting;
      changed.notify_all();
      throw;
    }
  });
  for (const std::size_t rank : {0, 1, 2}) {
    const auto error = group_error(thrown[rank]);
    CHECK(error.kind() == Kind::late);
    CHECK(error.ranks() == std::vector<int>{3});
  }
  CHECK_THROWS_WITH(std::rethrow_exception(thrown[0]), ContainsSubstring("NCCL: rank 3 did not come to collective 2"));
}

TEST_CASE("NCCL: a collective that hangs though all have come ends in time") {
  const Watch watch;
  stand_in::set_faults(1, {.hang = 2});
  MemoryRendezvous rendezvous;
  const bool device = GENERATE(true, false);
  const auto thrown = in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 2});
    communicator.barrier();
    DeviceVector<float> memory({1, 2});
    std::vector<float> host{1, 2};
    communicator.all_reduce(device ? memory.span() : std::span(host));
  });
  for (const auto& one : thrown) {
    const auto error = group_error(one);
    CHECK(error.kind() == Kind::failed);
    CHECK(error.ranks().empty());
    CHECK_THAT(error.what(), ContainsSubstring("all ranks have come to collective 2"));
  }
}

TEST_CASE("NCCL: a launch that stays in progress ends in time") {
  const Watch watch;
  stand_in::set_faults(0, {.launch_in_progress = 1});
  MemoryRendezvous rendezvous;
  const auto thrown = in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 2});
    communicator.barrier();
  });
  CHECK(group_error(thrown[0]).kind() == Kind::failed);
  CHECK(group_error(thrown[1]).kind() == Kind::failed);
}

TEST_CASE("NCCL: a launch that takes several questions is waited for") {
  const Watch watch;
  stand_in::set_progress_questions(300);
  MemoryRendezvous rendezvous;
  all_well(in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 20});
    for (int i = 0; i < 5; ++i) expect(communicator.all_reduce(rank + i) == 2 * i + 1);
  }));
}

TEST_CASE("NCCL: an asynchronous error is not taken for an end") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  stand_in::set_faults(0, {.async_error = 2, .error = ncclInternalError});
  const auto thrown = in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = rank == 0 ? 60 : 0.3});
    communicator.barrier();
    communicator.all_reduce(1.0F);
  });
  CHECK(group_error(thrown[0]).kind() == Kind::failed);
  CHECK_THROWS_WITH(std::rethrow_exception(thrown[0]), ContainsSubstring("a collective failed: internal error"));
}

TEST_CASE("NCCL: a rank that is gone is named where the network tells of it") {
  const Watch watch;
  stand_in::set_remote_errors(true);
  MemoryRendezvous rendezvous;
  const auto thrown = in_threads(3, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 3), rendezvous, {.timeout = 4});
    communicator.barrier();
    if (rank == 2) return communicator.abort({Kind::changed, "the process ends"});
    communicator.barrier();
  });
  for (const std::size_t rank : {0, 1}) {
    CHECK(group_error(thrown[rank]).kind() == Kind::lost);
    CHECK(group_error(thrown[rank]).ranks() == std::vector<int>{2});
  }
}

TEST_CASE("NCCL: an error of the call itself is the group's") {
  const Watch watch;
  stand_in::set_faults(0, {.call_fails = 1, .error = ncclInvalidArgument});
  MemoryRendezvous rendezvous;
  auto communicator = ht::connect_nccl(place(0, 1), rendezvous);
  CHECK_THROWS_WITH(communicator.barrier(), ContainsSubstring("a collective failed"));
  CHECK_THROWS_WITH(communicator.barrier(), ContainsSubstring("a collective failed"));  // and stays so
}

TEST_CASE("NCCL: a device that is lost is an error of the group, and its peers do not wait for ever") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  std::optional<ht::Communicator> communicator = ht::connect_nccl(place(0, 1), rendezvous);
  stand_in::lose_device(0);
  try {
    communicator->all_reduce(1.0F);
    FAIL("no error");
  } catch (const ht::GroupError& error) {
    CHECK(error.kind() == Kind::device);
    CHECK_THAT(error.what(), ContainsSubstring("illegal memory access"));
  }
  communicator.reset();  // which waits for no device that is lost
  CHECK(nothing_is_held());
}

TEST_CASE("NCCL: a rank whose device is lost is told from others that hear of it, whoever finds it first") {
  const Watch watch;
  stand_in::set_remote_errors(true);
  const bool nccl_finds_it = GENERATE(false, true);
  if (nccl_finds_it) stand_in::set_faults(1, {.call_fails = 2, .error = ncclUnhandledCudaError});
  MemoryRendezvous rendezvous;
  const auto thrown = in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 4}, {.device = rank});
    communicator.barrier();
    if (rank == 1) stand_in::lose_device(1);
    communicator.barrier();
  });
  CHECK(group_error(thrown[1]).kind() == Kind::device);
  CHECK_THAT(group_error(thrown[1]).what(), ContainsSubstring("illegal memory access"));
  CHECK(group_error(thrown[0]).kind() != Kind::device);
  CHECK(nothing_is_held());
}

TEST_CASE("what CUDA returns for ever after is told from what it returns once") {
  const Watch watch(1);
  CHECK_NOTHROW(ht::cuda_check(cudaSuccess, "copying"));
  CHECK_THROWS_AS(ht::cuda_check(cudaErrorECCUncorrectable, "copying"), ht::DeviceLost);
  CHECK_THROWS_AS(ht::cuda_check(cudaErrorIllegalAddress, "copying"), ht::DeviceLost);
  CHECK_THROWS_WITH(ht::cuda_check(cudaErrorIllegalAddress, "copying"),
                    "CUDA: copying: an illegal memory access was encountered");
  try {
    ht::cuda_check(cudaErrorMemoryAllocation, "allocating");
    FAIL("no error");
  } catch (const ht::DeviceLost&) { FAIL("the device can still be used"); } catch (const std::runtime_error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("CUDA: allocating: "));
  }
}

TEST_CASE("NCCL: abort() gives its reason to what is under way and to what follows") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  stand_in::set_faults(0, {.hang = 1});
  std::optional<ht::Communicator> shared;
  std::mutex mutex;
  std::condition_variable changed;
  const auto thrown = in_threads(2, [&](int thread) {
    if (thread == 0) {
      {
        const std::lock_guard guard(mutex);
        shared = ht::connect_nccl(place(0, 1), rendezvous);
        changed.notify_all();
      }
      shared->barrier();
    } else {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return shared.has_value(); });
      shared->abort({Kind::changed, "a new generation", {4}});
      shared->abort({Kind::failed, "too late"});
    }
  });
  all_well({thrown[1]});
  CHECK(group_error(thrown[0]).kind() == Kind::changed);
  CHECK(group_error(thrown[0]).ranks() == std::vector<int>{4});
  CHECK_THROWS_WITH(shared->barrier(), "a new generation");
  shared.reset();
}

// Whatever the moment: while connecting is just done, in a launch, in a kernel, between two operations.
TEST_CASE("NCCL: abort() from other threads meets any moment of a rank that performs") {
  const Watch watch;
  const bool revoke = GENERATE(false, true);
  for (int round = 0; round < 60; ++round) {
    MemoryRendezvous rendezvous;
    std::vector<std::optional<ht::Communicator>> communicators(2);
    all_well(in_threads(2, [&](int rank) {
      communicators[static_cast<std::size_t>(rank)] =
          ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 60}, {.revoke = revoke});
    }));
    std::atomic<int> done{0};
    const auto thrown = in_threads(5, [&](int thread) {
      if (thread < 2) {
        auto& communicator = *communicators[static_cast<std::size_t>(thread)];
        for (;;) {
          expect(communicator.all_reduce(1) == 2);
          ++done;
        }
      }
      while (done < round) std::this_thread::yield();
      for (auto& communicator : communicators) communicator->abort({Kind::changed, "enough"});
    });
    for (const std::size_t rank : {0, 1}) CHECK(group_error(thrown[rank]).kind() == Kind::changed);
  }
}
