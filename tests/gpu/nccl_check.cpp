// On a real device: ranks over NCCL, `nccl_check RANKS threads|processes [brief]`. Results, ranks that do not come or
// are killed, groups that shrink, and how quick an all-reduce is. Several ranks share a device where there are more
// ranks than devices (NCCL_MULTI_RANK_GPU_ENABLE=1); as processes they take turns there, unless MPS runs. Exit code 1
// where something is wrong, 77 where there is no device.
#include "gpu/file_rendezvous.hpp"

#include <hypertune/train/nccl_communicator.hpp>

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <future>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace ht = hypertune;
using Kind = ht::GroupError::Kind;

struct Rank {
  int rank, ranks, device;
  bool process, brief;
  std::filesystem::path folder;
  int failed = 0;

  void check(bool holds, const std::string& what) {
    failed += holds ? 0 : 1;
    if (rank == 0 || !holds) {
      std::printf("  %-7s %s%s\n", holds ? "ok" : "FAILED", what.c_str(),
                  holds ? "" : fmt::format(" (rank {})", rank).c_str());
      std::fflush(stdout);
    }
  }
  ht::GroupPlace place(int size) const {
    ht::GroupPlace place;
    place.rank = rank;
    place.hosts.assign(static_cast<std::size_t>(size), "here");
    return place;
  }
};

template <class T>
class DeviceVector {
 public:
  explicit DeviceVector(std::size_t size) : size_(size) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, size * sizeof(T)) != cudaSuccess) ht::fail(ht::Errc::resources, "no memory of the device");
    data_ = static_cast<T*>(memory);
  }
  DeviceVector(const DeviceVector&) = delete;
  DeviceVector& operator=(const DeviceVector&) = delete;
  ~DeviceVector() { cudaFree(data_); }
  void set(const std::vector<T>& values) {
    cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  std::vector<T> get() const {
    std::vector<T> values(size_);
    cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }
  std::span<T> span() { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <class T>
void reduces(Rank& self, ht::Communicator& communicator, const char* type) {
  constexpr std::size_t count = 100'003;
  const auto element = [](int value) {
    if constexpr (requires { T(1.0F).bits; })
      return T(static_cast<float>(value));
    else
      return static_cast<T>(value);
  };
  std::vector<T> host(count);
  for (std::size_t i = 0; i < count; ++i) host[i] = element(self.rank + static_cast<int>(i % 7));
  DeviceVector<T> device(count);
  device.set(host);
  communicator.all_reduce(device.span());
  communicator.all_reduce(std::span(host));
  bool good = true;
  const auto result = device.get();
  for (std::size_t i = 0; i < count; ++i) {
    const T expected = element(self.ranks * (self.ranks - 1) / 2 + self.ranks * static_cast<int>(i % 7));
    good = good && result[i] == expected && host[i] == expected;
  }
  self.check(good, fmt::format("all-reduce of {}, in device and in host memory", type));
}

void results(Rank& self, ht::Communicator& communicator) {
  reduces<float>(self, communicator, "float");
  reduces<double>(self, communicator, "double");
  reduces<ht::Half>(self, communicator, "half");
  reduces<ht::BFloat16>(self, communicator, "bfloat16");
  reduces<std::int32_t>(self, communicator, "int32");
  reduces<std::int64_t>(self, communicator, "int64");
  reduces<std::uint8_t>(self, communicator, "uint8");
  const float mean = communicator.all_reduce(static_cast<float>(self.rank), ht::Reduction::mean);
  self.check(std::abs(mean - static_cast<float>(self.ranks - 1) / 2) < 1e-6F, "the mean");
  self.check(communicator.all_reduce(self.rank, ht::Reduction::min) == 0, "the minimum");
  std::vector<std::int32_t> all(static_cast<std::size_t>(self.ranks)), mine{10 * self.rank}, sum(1);
  communicator.all_gather(std::span<const std::int32_t>(mine), std::span(all));
  self.check(all.back() == 10 * (self.ranks - 1), "all-gather");
  communicator.reduce_scatter(std::span<const std::int32_t>(all), std::span(sum));
  self.check(sum[0] == self.ranks * 10 * self.rank, "reduce-scatter");
  communicator.broadcast(std::span(mine), self.ranks - 1);
  self.check(mine[0] == 10 * (self.ranks - 1), "broadcast");
}

void bandwidth(Rank& self, ht::Communicator& communicator) {
  if (self.rank == 0)
    std::printf("all-reduce of float, %d ranks\n  %12s %12s %14s %12s\n", self.ranks, "bytes", "us", "algorithm GB/s",
                "bus GB/s");
  for (std::size_t bytes = 4096; bytes <= std::size_t{256} << 20U; bytes *= 8) {
    DeviceVector<float> data(bytes / sizeof(float));
    data.set(std::vector<float>(bytes / sizeof(float), 0.0F));
    const int rounds = bytes > std::size_t{1} << 24U ? 10 : 100;
    for (int i = 0; i < 3; ++i) communicator.all_reduce(data.span());
    communicator.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) communicator.all_reduce(data.span());
    const double seconds = seconds_since(begin) / rounds, rate = static_cast<double>(bytes) / seconds / 1e9;
    if (self.rank == 0)
      std::printf("  %12zu %12.1f %14.2f %12.2f\n", bytes, 1e6 * seconds, rate,
                  rate * 2 * (self.ranks - 1) / self.ranks);
    std::fflush(stdout);
  }
}

// The last rank does not come to a collective; the others name it, and go on without it.
void missing(Rank& self, bool revoke) {
  const double timeout = self.brief ? 0.5 : 4;
  const std::string name = revoke ? "missing-revoke" : "missing";
  hypertune_test::FileRendezvous first(self.folder / name), second(self.folder / (name + "-next"));
  const int last = self.ranks - 1;
  auto nccl = ht::NcclCommunicator::connect(self.place(self.ranks), first, {.timeout = 60}, {.device = self.device});
  nccl.communicator().barrier();
  first.set(fmt::format("met/{}", self.rank), "");
  for (int other = 0; other < self.ranks; ++other) first.wait(fmt::format("met/{}", other), 60);
  hypertune_test::FileRendezvous third(self.folder / (name + "-third"));
  auto quick = ht::NcclCommunicator::connect(self.place(self.ranks), third, {.timeout = timeout},
                                             {.device = self.device, .revoke = revoke, .name = "quick"});
  quick.communicator().barrier();
  if (self.rank == last) {
    for (int other = 0; other < last; ++other) first.wait(fmt::format("gave up/{}", other), 60);
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  std::string how = "no error";
  bool named = false;
  try {
    DeviceVector<float> data(1 << 20U);
    quick.communicator().all_reduce(data.span());
  } catch (const ht::GroupError& error) {
    how = error.what();
    named = error.kind() == Kind::late && error.ranks() == std::vector<int>{last};
  }
  first.set(fmt::format("gave up/{}", self.rank), "");
  self.check(named, fmt::format("a rank that does not come, after {:.1f} s: {}", seconds_since(begin), how));
  try {
    auto next = quick.regroup(self.place(last), second);
    const int sum = next.communicator().all_reduce(1);
    self.check(sum == last && next.origin() == (revoke ? "shrunk" : "fresh"),
               fmt::format("the others go on without it: {}{}", next.origin(), revoke ? ", after it was revoked" : ""));
  } catch (const ht::GroupError& error) {
    self.check(false, fmt::format("the others go on without it: {}", error.what()));
  }
}

// The last rank's stream never comes to a collective, as something in it does not end; all name that rank, in time.
void stuck(Rank& self) {
  hypertune_test::FileRendezvous rendezvous(self.folder / "stuck");
  const int last = self.ranks - 1;
  DeviceVector<float> data(1 << 20U);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (self.rank == last)
    cudaLaunchHostFunc(stream, [](void* future) { static_cast<std::shared_future<void>*>(future)->wait(); }, &opened);
  std::string how = "no error";
  bool named = false;
  auto begin = std::chrono::steady_clock::now();
  {
    auto communicator = ht::connect_nccl(self.place(self.ranks), rendezvous, {.timeout = self.brief ? 0.5 : 4},
                                         {.device = self.device});
    communicator.barrier();
    begin = std::chrono::steady_clock::now();
    try {
      communicator.perform(ht::collective::AllReduce{data.span().data(), data.span().size(), ht::ElementType::float32,
                                                     ht::Reduction::sum, stream});
    } catch (const ht::GroupError& error) {
      how = error.what();
      named = error.kind() == Kind::late && error.ranks() == std::vector<int>{last};
    }
  }
  const double seconds = seconds_since(begin);
  gate.set_value();
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  self.check(named, fmt::format("a rank whose stream is stuck, after {:.1f} s: {}", seconds, how));
}

// The last rank is killed; the others end in time and name it.
void killed(Rank& self) {
  hypertune_test::FileRendezvous rendezvous(self.folder / "killed");
  auto communicator = ht::connect_nccl(self.place(self.ranks), rendezvous, {.timeout = 5}, {.device = self.device});
  communicator.barrier();
  if (self.rank == self.ranks - 1) ::_exit(self.failed > 0 ? 1 : 0);
  const auto begin = std::chrono::steady_clock::now();
  try {
    for (;;) communicator.barrier();
  } catch (const ht::GroupError& error) {
    const bool named = error.ranks() == std::vector<int>{self.ranks - 1};
    self.check(named, fmt::format("a rank that is killed, after {:.1f} s: {}", seconds_since(begin), error.what()));
  }
}

int run(Rank self) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 77;
  self.device = self.rank % devices;
  cudaSetDevice(self.device);
  if (self.rank == 0)
    std::printf("NCCL: %d %s on %d devices\n", self.ranks, self.process ? "processes" : "threads",
                std::min(devices, self.ranks));
  {
    hypertune_test::FileRendezvous rendezvous(self.folder / "results");
    const auto begin = std::chrono::steady_clock::now();
    auto communicator = ht::connect_nccl(self.place(self.ranks), rendezvous, {.timeout = 60}, {.device = self.device});
    self.check(communicator.size() == self.ranks, fmt::format("connected after {:.2f} s", seconds_since(begin)));
    results(self, communicator);
    if (!self.brief) bandwidth(self, communicator);
  }
  if (self.ranks > 1) {
    missing(self, false);
    missing(self, true);
    stuck(self);
    if (self.process) killed(self);
  }
  return self.failed > 0 ? 1 : 0;
}

}  // namespace

namespace {

int run_safely(const Rank& self) {
  try {
    return run(self);
  } catch (const std::exception& error) { std::fprintf(stderr, "nccl_check: rank %d: %s\n", self.rank, error.what()); }
  return 1;
}

int in_processes(int ranks, bool brief, const char* folder) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t child = ::fork();  // CUDA is not set up yet
    if (child == 0) {
      const int code = run_safely({rank, ranks, 0, true, brief, folder});
      std::fflush(stdout);
      ::_exit(code);
    }
    children.push_back(child);
  }
  int worst = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
  }
  return worst;
}

int in_threads(int ranks, bool brief, const char* folder) {
  std::vector<int> codes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back(
        [&, rank] { codes[static_cast<std::size_t>(rank)] = run_safely({rank, ranks, 0, false, brief, folder}); });
  for (std::thread& thread : threads) thread.join();
  return *std::max_element(codes.begin(), codes.end());
}

}  // namespace

int main(int argc, char** argv) {
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  const std::string way = argc > 2 ? argv[2] : "";
  const bool brief = argc > 3 && std::string(argv[3]) == "brief";  // without figures: for the tests' stand-in of NCCL
  char folder[] = "/tmp/hypertune-nccl-XXXXXX";
  if (ranks < 1 || (way != "threads" && way != "processes") || ::mkdtemp(folder) == nullptr) {
    std::fprintf(stderr, "usage: nccl_check RANKS threads|processes [brief]\n");
    return 2;
  }
  ::setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
  const int worst = way == "threads" ? in_threads(ranks, brief, folder) : in_processes(ranks, brief, folder);
  std::filesystem::remove_all(folder);
  if (worst == 77) std::printf("nccl_check: there is no GPU\n");
  return worst;
}
