// all_reduce over hypertune's Gloo path, beside Gloo's own algorithm and MPI_Allreduce, with the same ranks in the same
// run. Usage: benchmark_train [--ranks N] [--megabytes N] [--times N]; mpirun -n N benchmark_train …, where it has MPI
#include "support/ranks.hpp"

#include <hypertune/train/gloo_communicator.hpp>

#include <fmt/format.h>
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#ifdef HYPERTUNE_BENCHMARK_MPI
#include <mpi.h>
#endif

namespace {

namespace ht = hypertune;
using Clock = std::chrono::steady_clock;

/// Gloo's addresses, as text.
class Store final : public gloo::rendezvous::Store {
 public:
  explicit Store(ht::Rendezvous& rendezvous) : rendezvous_(rendezvous) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    std::string text;
    for (const char c : data) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    rendezvous_.set("plain/" + key, text);
  }
  std::vector<char> get(const std::string& key) override {
    const auto text = rendezvous_.wait("plain/" + key, 60).value();
    std::vector<char> data;
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
      data.push_back(static_cast<char>(std::strtol(text.substr(i, 2).c_str(), nullptr, 16)));
    return data;
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) rendezvous_.wait("plain/" + key, 60).value();
  }

 private:
  ht::Rendezvous& rendezvous_;
};

struct Arguments {
  int ranks = 4;
  std::size_t megabytes = 64;
  int times = 21;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Benchmark {
 public:
  Benchmark(int rank, int size, ht::Rendezvous& rendezvous, const Arguments& arguments)
      : arguments_(arguments),
        rank_(rank),
        size_(size),
        communicator_(ht::connect_gloo(ht::test::place_of(rank, size), rendezvous)),
        plain_(std::make_shared<gloo::rendezvous::Context>(rank, size)) {
    Store store(rendezvous);
    auto device = gloo::transport::tcp::CreateDevice(gloo::transport::tcp::attr("127.0.0.1"));
    plain_->connectFullMesh(store, device);
  }

  void run() {
    if (rank_ == 0)
      fmt::print(
          "\n| {} ranks | bytes | hypertune ms | Gloo ms | ratio | MPI ms | ratio |\n|---|--:|--:|--:|--:|--:|--:|\n",
          size_);
    const std::size_t large = arguments_.megabytes * 1'000'000 / 4;
    compare("all_reduce", large, 1, arguments_.times);
    compare("all_reduce", large / 64, 1, arguments_.times * 2);
    compare("all_reduce", 1, 1, arguments_.times * 4);
    compare("200 tensors, each alone", 1000, 200, arguments_.times);
    compare("200 tensors, fused", 200'000, 1, arguments_.times * 2);
  }

 private:
  using Reduce = std::function<void(float* data, std::size_t count)>;

  double once(const Reduce& reduce, std::size_t count, int tensors) {
    std::vector<float>& data = data_;
    data.assign(count, 1.0F);
    communicator_.barrier();
    const auto begin = Clock::now();
    for (int i = 0; i < tensors; ++i) reduce(data.data(), count);
    const double time = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    if (tensors == 1 && data[count / 2] != static_cast<float>(size_)) throw std::runtime_error("a wrong sum");
    // The slowest rank's time is that of the collective.
    return communicator_.all_reduce(time, ht::Reduction::max);
  }

  /// One after another, over and over, so that what else the machine does meets all alike.
  void compare(const std::string& what, std::size_t count, int tensors, int times) {
    std::vector<double> ours, theirs, mpi;
    for (int i = 0; i < times; ++i) {
      ours.push_back(
          once([&](float* data, std::size_t n) { communicator_.all_reduce(std::span(data, n)); }, count, tensors));
      theirs.push_back(once(
          [&](float* data, std::size_t n) {
            gloo::AllreduceOptions options(plain_);
            options.setOutput(data, n);
            options.setTag(++tag_);
            options.setReduceFunction(
                static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
            gloo::allreduce(options);
          },
          count, tensors));
#ifdef HYPERTUNE_BENCHMARK_MPI
      mpi.push_back(once(
          [](float* data, std::size_t n) {
            MPI_Allreduce(MPI_IN_PLACE, data, static_cast<int>(n), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
          },
          count, tensors));
#endif
    }
    if (rank_ != 0) return;
    const double mine = median(ours), gloo = median(theirs);
    fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.2f} |", what, count * 4, mine, gloo, mine / gloo);
    if (mpi.empty())
      fmt::print(" | |\n");
    else
      fmt::print(" {:.3f} | {:.2f} |\n", median(mpi), mine / median(mpi));
    std::fflush(stdout);
  }

  Arguments arguments_;
  int rank_, size_;
  ht::Communicator communicator_;
  std::shared_ptr<gloo::rendezvous::Context> plain_;
  std::uint32_t tag_ = 0;
  std::vector<float> data_;
};

#ifdef HYPERTUNE_BENCHMARK_MPI
int run_under_mpi(Arguments arguments, int* argc, char*** argv) {
  MPI_Init(argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &arguments.ranks);
  std::unique_ptr<ht::test::ServedRendezvous> rendezvous;
  char name[256] = {};
  int length = 0;
  if (rank == 0) {
    rendezvous = std::make_unique<ht::test::ServedRendezvous>();
    rendezvous->serve();
    length = static_cast<int>(rendezvous->name().size());
    std::memcpy(name, rendezvous->name().data(), rendezvous->name().size());
  }
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (rank != 0)
    rendezvous = std::make_unique<ht::test::ServedRendezvous>(std::string(name, static_cast<std::size_t>(length)));
  Benchmark(rank, arguments.ranks, *rendezvous, arguments).run();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--ranks") arguments.ranks = std::atoi(argv[i + 1]);
    if (name == "--megabytes") arguments.megabytes = static_cast<std::size_t>(std::atoll(argv[i + 1]));
    if (name == "--times") arguments.times = std::atoi(argv[i + 1]);
  }
#ifdef HYPERTUNE_BENCHMARK_MPI
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr)
    return run_under_mpi(arguments, &argc, &argv);
#endif
  ht::test::Processes processes(arguments.ranks, [&](int rank, ht::Rendezvous& rendezvous, const auto&) {
    Benchmark(rank, arguments.ranks, rendezvous, arguments).run();
  });
  bool sound = true;
  for (int rank = 0; rank < arguments.ranks; ++rank) {
    const auto outcome = processes.outcome(rank);
    if (!outcome.empty()) std::fprintf(stderr, "rank %d: %s\n", rank, outcome.c_str());
    sound = sound && outcome.empty();
  }
  return sound ? 0 : 1;
}
