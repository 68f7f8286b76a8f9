#include "train_cuda/ranks.hpp"

#include <hypertune/train/element.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

using namespace ranks;

namespace {

template <class T>
T element(double value) {
  if constexpr (std::is_same_v<T, ht::Half> || std::is_same_v<T, ht::BFloat16>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// Three ranks hold 1 + i, 2 + i and 6 + i: small whole numbers, that each type has.
template <class T>
void reduces(bool device, std::size_t staging) {
  constexpr int size = 3;
  constexpr std::size_t count = 37;
  const double bases[] = {1, 2, 6};
  MemoryRendezvous rendezvous;
  all_well(in_threads(size, [&](int rank) {
    auto communicator =
        ht::connect_nccl(place(rank, size), rendezvous, {.timeout = 20}, {.device = rank % 2, .staging = staging});
    const auto check = [&](ht::Reduction reduction, auto expected) {
      std::vector<T> values;
      for (std::size_t i = 0; i < count; ++i) values.push_back(element<T>(bases[rank] + static_cast<double>(i % 5)));
      if (device) {
        cudaSetDevice(rank % 2);
        DeviceVector<T> memory(values);
        communicator.all_reduce(memory.span(), reduction);
        values = memory.get();
      } else {
        communicator.all_reduce(std::span(values), reduction);
      }
      for (std::size_t i = 0; i < count; ++i) expect(values[i] == element<T>(expected(static_cast<double>(i % 5))));
    };
    check(ht::Reduction::sum, [](double i) { return 9 + 3 * i; });
    check(ht::Reduction::mean, [](double i) { return 3 + i; });
    check(ht::Reduction::min, [](double i) { return 1 + i; });
    check(ht::Reduction::max, [](double i) { return 6 + i; });
  }));
}

}  // namespace

TEMPLATE_TEST_CASE("NCCL: all elements are reduced", "", float, double, ht::Half, ht::BFloat16, std::int32_t,
                   std::int64_t, std::uint8_t) {
  const Watch watch;
  reduces<TestType>(true, 1 << 16);
  reduces<TestType>(false, 1 << 16);
  reduces<TestType>(false, 64);  // in pieces
}

TEST_CASE("NCCL: the other collectives, in host and in device memory") {
  const Watch watch;
  constexpr int size = 3;
  constexpr std::size_t count = 11;
  MemoryRendezvous rendezvous;
  all_well(in_threads(size, [&](int rank) {
    auto communicator = ht::connect_nccl(place(rank, size), rendezvous, {.timeout = 20}, {.staging = 96});
    expect(communicator.rank() == rank);
    expect(communicator.size() == size);
    expect(communicator.name() == "nccl");
    std::vector<std::int32_t> mine(count), all(count * size), expected(count * size);
    std::iota(mine.begin(), mine.end(), 100 * rank);
    for (int other = 0; other < size; ++other)
      std::iota(expected.begin() + other * 11, expected.begin() + (other + 1) * 11, 100 * other);

    communicator.all_gather(std::span<const std::int32_t>(mine), std::span(all));
    expect(all == expected);
    DeviceVector<std::int32_t> device_mine(mine), device_all(std::vector<std::int32_t>(count * size));
    communicator.perform(
        ht::collective::AllGather{device_mine.data(), device_all.data(), count, ht::ElementType::int32});
    expect(device_all.get() == expected);

    std::vector<std::int32_t> sum(count);
    communicator.reduce_scatter(std::span<const std::int32_t>(all), std::span(sum));
    DeviceVector<std::int32_t> device_sum{std::vector<std::int32_t>(count)};
    communicator.perform(ht::collective::ReduceScatter{device_all.data(), device_sum.data(), count,
                                                       ht::ElementType::int32, ht::Reduction::sum});
    for (std::size_t i = 0; i < count; ++i) expect(sum[i] == 3 * (100 * rank + static_cast<int>(i)));
    expect(device_sum.get() == sum);

    std::vector<double> text(40, rank == 2 ? 7.0 : 0.0);
    communicator.broadcast(std::span(text), 2);
    expect(text == std::vector<double>(40, 7.0));
    DeviceVector<double> device_text(std::vector<double>(40, rank == 1 ? 8.0 : 0.0));
    communicator.broadcast(device_text.span(), 1);
    expect(device_text.get() == std::vector<double>(40, 8.0));

    communicator.barrier();
    expect(communicator.all_reduce(rank, ht::Reduction::max) == 2);
  }));
}

TEST_CASE("NCCL: an operation comes after the user's stream, and a stream can be made to wait for it") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  std::mutex mutex;
  std::condition_variable changed;
  bool open = false;
  all_well(in_threads(2, [&](int rank) {
    auto nccl = ht::NcclCommunicator::connect(place(rank, 2), rendezvous, {.timeout = 20});
    cudaStream_t mine = nullptr, after = nullptr;
    cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&after, cudaStreamNonBlocking);
    DeviceVector<std::uint8_t> data(std::vector<std::uint8_t>(8, 0));
    std::vector<std::uint8_t> seen(8);
    stand_in::run_in_stream(mine, [&] {  // a kernel that takes until the operation below is in the queue
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return open; });
    });
    cudaMemsetAsync(data.data(), 5, 8, mine);
    nccl.start(ht::collective::AllReduce{data.data(), 8, ht::ElementType::uint8, ht::Reduction::sum, mine});
    nccl.order(after);
    stand_in::run_in_stream(after, [&] { std::memcpy(seen.data(), data.data(), 8); });
    {
      const std::lock_guard guard(mutex);
      open = true;
      changed.notify_all();
    }
    cudaStreamSynchronize(after);
    expect(seen == std::vector<std::uint8_t>(8, 10));
    nccl.finish();
    cudaStreamDestroy(mine);
    cudaStreamDestroy(after);
  }));
}

TEST_CASE("NCCL: what a caller asks for wrongly leaves the communicator as it was") {
  const Watch watch;
  MemoryRendezvous rendezvous;
  cudaSetDevice(0);  // this thread has a device, and gets it back
  auto nccl = ht::NcclCommunicator::connect(place(0, 1), rendezvous, {.timeout = 20}, {.device = 1, .staging = 4});
  auto communicator = nccl.communicator();
  DeviceVector<float> elsewhere({1, 2});  // on device 0
  CHECK_THROWS_WITH(communicator.all_reduce(elsewhere.span()),
                    ContainsSubstring("device 0; this communicator's device is 1"));
  double wide = 1;
  CHECK_THROWS_WITH(communicator.all_reduce(std::span(&wide, 1)), ContainsSubstring("NcclOptions::staging is 4 bytes"));
  cudaSetDevice(1);
  DeviceVector<float> here({1});
  float one = 1;
  CHECK_THROWS_WITH(
      communicator.all_gather(std::span<const float>(here.span()), std::span(&one, 1)),
      ContainsSubstring("one buffer of a collective is in the memory of device 1, and the other in host"));
  CHECK_THROWS_WITH(communicator.broadcast(std::span(&one, 1), 3), ContainsSubstring("rank 3 is the root"));
  CHECK_THROWS_WITH(nccl.start(ht::collective::AllReduce{&one, 1}), ContainsSubstring("memory of the device"));
  CHECK(communicator.all_reduce(2.5F) == 2.5F);
}

TEST_CASE("NCCL: without a device there is one clear line") {
  const Watch watch(0);
  MemoryRendezvous rendezvous;
  CHECK_THROWS_WITH(ht::connect_nccl(place(0, 1), rendezvous),
                    ContainsSubstring("NCCL needs a GPU, and there is none"));
  stand_in::reset(2);
  CHECK_THROWS_WITH(ht::connect_nccl(place(0, 1), rendezvous, {}, {.device = 2}),
                    ContainsSubstring("there is no device 2"));
}
