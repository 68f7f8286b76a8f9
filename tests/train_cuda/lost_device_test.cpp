// Trainings whose workers lose their devices: the others go on, and another worker takes the place.
#include "elastic/training_results.hpp"
#include "support/temporary_directory.hpp"
#include "train_cuda/ranks.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/train/connect.hpp>
#include <hypertune/train/cuda_check.cuh>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/elastic_state.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace ranks;
using namespace hypertune::test;

namespace {

constexpr std::uint64_t samples = 120;
constexpr int epochs = 2, batch = 12;

/// What becomes of a worker, before a batch is reduced; by the number of its device.
using Fate = std::function<void(int device, int epoch, int batch)>;

/// Weights on a device of its own, gradients that are whole numbers.
class Worker {
 public:
  explicit Worker(int device) : chosen_(cudaSetDevice(device)) {}
  void load(const std::vector<float>& values) {
    ht::cuda_check(cudaMemcpy(weights_.data(), values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
                   "loading the weights");
  }
  std::vector<float> read() {
    std::vector<float> values(weights_.span().size());
    ht::cuda_check(cudaMemcpy(values.data(), weights_.data(), values.size() * sizeof(float), cudaMemcpyDeviceToHost),
                   "reading the weights");
    return values;
  }

 private:
  cudaError_t chosen_;  // before anything is allocated
  DeviceVector<float> weights_{{1, 2, 3}};
};

struct Heard {
  std::mutex mutex;
  std::vector<std::string> changes;
  std::vector<int> restored;  ///< devices whose workers went back to a commit
};
struct Listener {
  std::shared_ptr<Heard> heard;
  void on_trial_resize(const ht::record::TrialResized& e) const {
    const std::lock_guard guard(heard->mutex);
    heard->changes.push_back(e.why);
  }
};

ht::Training train(ht::Context& context, int device, Fate fate, std::shared_ptr<Heard> heard) {  // NOLINT: coroutine
  Worker worker(device);
  ht::ElasticState group(context, {.communicator = {.timeout = 30},
                                   .connect = [device](const auto& place, auto& rendezvous, const auto& how) {
                                     return place.size() == 1
                                                ? ht::connect(place, rendezvous, how)
                                                : ht::connect_nccl(place, rendezvous, how, {.device = device});
                                   }});
  ht::ElasticSampler sampler(samples, {.seed = 3});
  std::vector<std::int32_t> visits(samples);
  const auto save = [&] {
    const auto values = worker.read();
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  const auto load = [&](std::string_view bytes) {
    {
      const std::lock_guard guard(heard->mutex);
      heard->restored.push_back(device);
    }
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    worker.load(values);
  };
  group.keep(save, load).keep(sampler).keep(visits);
  int epoch = 0;
  group.keep(epoch);
  for (; epoch < epochs; ++epoch) {
    group.run([&] {
      for (int number = static_cast<int>(sampler.processed()) / batch; !sampler.done(); ++number) {
        const auto before = sampler.processed();
        const auto mine = sampler.next(batch, group.rank(), group.size());
        for (auto place = before; place < sampler.processed(); ++place) ++visits[sampler.sample(place)];
        std::vector<float> sums(3);
        for (const auto sample : mine)
          for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>((sample * (i + 3)) % 17);
        fate(device, epoch, number);
        group.communicator().all_reduce(std::span(sums));
        auto values = worker.read();
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = values[i] * 0.5F + sums[i];
        worker.load(values);
        group.commit();
      }
      sampler.next_epoch();
    });
    double once = 1, sum = 0;
    for (const auto count : visits) once = count == epoch + 1 ? once : 0;
    const auto values = worker.read();
    for (std::size_t i = 0; i < values.size(); ++i) sum += static_cast<double>(values[i]) * static_cast<double>(i + 1);
    co_yield ht::report("sum", sum, "once", once, "workers", static_cast<double>(group.size()));
  }
}

/// Each worker that begins has the next device.
Ended run(ht::Workers workers, const Fate& fate, const std::shared_ptr<Heard>& heard = std::make_shared<Heard>()) {
  const TemporaryDirectory directory;
  ht::Options options{.metric = "sum", .samples = 1, .executor = ht::threads(3), .output = directory.path() / "run"};
  options.workers = workers;
  options.display = ht::Display::quiet;
  options.callbacks = {Listener{heard}};
  const auto devices = std::make_shared<std::atomic<int>>(0);
  return ended_of(ht::tune(
      ht::space(ht::dim("x", ht::uniform(0.0, 1.0))),
      [=](const ht::Params&, ht::Context& context) { return train(context, (*devices)++, fate, heard); }, options));
}

const Fate nothing = [](int, int, int) {};

}  // namespace

TEST_CASE("a worker whose device is lost leaves its group, and another one takes its place") {
  const Watch watch(8);
  stand_in::set_remote_errors(true);
  const Ended undisturbed = run({1}, nothing);
  REQUIRE(undisturbed.reports.size() == epochs);
  const auto heard = std::make_shared<Heard>();
  // Found by a collective, or by the training's own call; replaced at once, or later.
  const bool own_call = GENERATE(false, true), elastic = GENERATE(false, true);
  const Fate fate = [own_call, heard](int device, int epoch, int number) {
    if (device != 1 || epoch != 1 || number != 4) return;
    {
      const std::lock_guard guard(heard->mutex);
      heard->restored.clear();
    }
    stand_in::lose_device(1);
    if (own_call) ht::cuda_check(cudaErrorIllegalAddress, "a kernel of the training's own");
  };
  const Ended lost = run(elastic ? ht::Workers{.min = 2, .max = 3} : ht::Workers{3}, fate, heard);
  check_like(lost, undisturbed);
  CHECK(lost.failures == 0);
  REQUIRE(!heard->changes.empty());
  CHECK_THAT(heard->changes[0],
             ContainsSubstring("1 of 3 workers was lost") && ContainsSubstring("an illegal memory access"));
  // It did not go back to a commit, which would have needed the device.
  CHECK(std::count(heard->restored.begin(), heard->restored.end(), 1) == 0);
  CHECK(nothing_is_held());
}
