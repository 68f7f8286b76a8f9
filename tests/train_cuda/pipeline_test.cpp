// Operations that are started: several are under way at once, and each comes after what was in the stream before it.
#include "support/communicator_conformance.hpp"
#include "support/eventually.hpp"
#include "train_cuda/ranks.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <vector>

using namespace ranks;
using Kind = ht::GroupError::Kind;

namespace {

/// What a handler is told.
class Told {
 public:
  auto handler() {
    return [promise = promise_](const std::exception_ptr& error) { promise->set_value(error); };
  }
  bool comes() { return future_.wait_for(std::chrono::seconds(20)) == std::future_status::ready; }
  bool has_come() { return future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  std::exception_ptr error() { return future_.get(); }

 private:
  std::shared_ptr<std::promise<std::exception_ptr>> promise_ = std::make_shared<std::promise<std::exception_ptr>>();
  std::future<std::exception_ptr> future_ = promise_->get_future();
};

}  // namespace

TEST_CASE("NCCL: what is started comes after the stream as it is then, and before the former is done") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  all_well(in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 60});
    Gated former, backward;
    DeviceVector<float> first({1, 2}), second({3, 4}), third({5, 6});
    Told first_told, second_told, third_told;
    former.close();
    communicator.start(sum_of(first, former.stream()), first_told.handler());
    communicator.start(sum_of(second, backward.stream()), second_told.handler());
    backward.close();  // the backward pass goes on: `second` does not wait for this
    communicator.start(sum_of(third, backward.stream()), third_told.handler());
    expect(ht::test::eventually([&] { return stand_in::operations_under_way(rank) == 3; }));
    expect(!first_told.has_come());
    former.open();
    expect(first_told.comes() && second_told.comes());
    expect(!third_told.has_come());
    backward.open();
    expect(third_told.comes());
    expect(first.get() == std::vector<float>{2, 4} && second.get() == std::vector<float>{6, 8});
    expect(third.get() == std::vector<float>{10, 12});
  }));
}

TEST_CASE("NCCL: what is performed comes after all that was started") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  all_well(in_threads(3, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 3), rendezvous, {.timeout = 60});
    ht::test::check_order(communicator);  // in host memory
    DeviceVector<float> values({1});
    std::vector<Told> told(100);  // more than are under way at once
    for (Told& one : told) communicator.start(sum_of(values, nullptr), one.handler());
    communicator.barrier();
    for (Told& one : told) expect(one.has_come() || one.comes());
    expect(values.get().front() > 1e30F);
  }));
}

TEST_CASE("NCCL: of several under way, those after one that fails end with its error") {
  const Watch watch;
  stand_in::set_faults(1, {.hang = 2});
  MemoryRendezvous rendezvous;
  all_well(in_threads(2, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 1});
    DeviceVector<float> values({1});
    std::vector<Told> told(5);
    for (Told& one : told) communicator.start(sum_of(values, nullptr), one.handler());
    for (Told& one : told) expect(one.comes());
    expect(!told[0].error());
    for (std::size_t i = 1; i < told.size(); ++i) expect(static_cast<bool>(told[i].error()));
  }));
}

TEST_CASE("NCCL: a rank that does not come is named, however many operations are under way") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  std::atomic<int> ended{0};
  const auto thrown = in_threads(3, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, 3), rendezvous, {.timeout = 2});
    DeviceVector<float> values({1});
    std::vector<Told> told(12);
    const std::size_t many = rank == 1 ? 3 : told.size();
    for (std::size_t i = 0; i < many; ++i) communicator.start(sum_of(values, nullptr), told[i].handler());
    for (std::size_t i = 0; i < 3; ++i) expect(told[i].comes() && !told[i].error());
    std::exception_ptr last;
    for (std::size_t i = 3; i < many; ++i) {
      expect(told[i].comes());
      last = told[i].error();
    }
    ++ended;
    if (last) std::rethrow_exception(last);
    expect(ht::test::eventually([&] { return ended == 3; }));  // is there, and does something else
  });
  for (const std::size_t rank : {0, 2}) {
    const auto error = group_error(thrown[rank]);
    CHECK(error.kind() == Kind::late);
    CHECK(error.ranks() == std::vector<int>{1});
    CHECK_THAT(error.what(), ContainsSubstring("rank 1 did not come to collective 4"));
  }
  CHECK(!thrown[1]);
}

TEST_CASE("NCCL: the end of the communicator ends what is under way, also in a handler") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  const bool in_handler = GENERATE(false, true);
  CAPTURE(in_handler);
  all_well(in_threads(2, [&](int rank) {
    auto communicator =
        std::make_unique<ht::Communicator>(ht::connect_nccl(place(rank, 2), rendezvous, {.timeout = 60}));
    Gated gated;
    DeviceVector<float> free({1}), held({1});
    Told first, second, third;
    std::promise<void> begun;
    const std::shared_future<void> all_started = begun.get_future().share();
    communicator->start(sum_of(free, nullptr), [&, handler = first.handler()](const std::exception_ptr& error) {
      all_started.wait();
      if (in_handler) {
        gated.open();  // an abort ends kernels of NCCL's, not the user's
        communicator.reset();
      }
      handler(error);
    });
    gated.close();
    communicator->start(sum_of(held, gated.stream()), second.handler());
    communicator->start(sum_of(held, nullptr), third.handler());
    begun.set_value();
    if (!in_handler) {
      expect(first.comes());
      gated.open();
      communicator.reset();
    }
    expect(first.comes() && second.comes() && third.comes());
  }));
}
