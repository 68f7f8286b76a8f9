// On a real device: the network does there what it does on the CPU, and how quick it is. Exit code 1 where it does not.
#include "cuda_convnet/trainer.hpp"

#include <hypertune/train/gradient_memory.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace {

int failed = 0;

void check(bool holds, const std::string& what) {
  std::printf("  %-7s %s\n", holds ? "ok" : "FAILED", what.c_str());
  failed += holds ? 0 : 1;
}

struct Batch {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
};
// Each class has a pattern, and noise over it: something to be learnt.
Batch make_batch(const convnet::Options& options, std::uint64_t seed) {
  std::mt19937_64 patterns(1), random(seed);
  std::normal_distribution<float> normal;
  const std::size_t pixels = options.side * options.side;
  std::vector<float> pattern(options.classes * pixels);
  for (float& value : pattern) value = normal(patterns);
  Batch batch{std::vector<float>(options.batch * pixels), std::vector<std::int32_t>(options.batch)};
  for (std::size_t n = 0; n < options.batch; ++n) {
    const std::size_t label = random() % options.classes;
    batch.labels[n] = static_cast<std::int32_t>(label);
    for (std::size_t i = 0; i < pixels; ++i)
      batch.images[n * pixels + i] = pattern[label * pixels + i] + 0.5F * normal(random);
  }
  return batch;
}

double greatest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(double(a[i]) - double(b[i])));
  return most;
}

void compare(bool half, double margin) {
  convnet::Options options;
  options.batch = 64;
  options.half = half;
  options.clip = 5;
  const auto cpu = convnet::make_cpu_trainer(options), gpu = convnet::make_gpu_trainer(options, 0);
  double most = 0, loss = 0;
  for (std::uint64_t step = 0; step < 10; ++step) {
    const Batch batch = make_batch(options, step);
    const double on_cpu = cpu->train(batch.images.data(), batch.labels.data());
    loss = gpu->train(batch.images.data(), batch.labels.data());
    most = std::max(most, std::abs(on_cpu - loss));
  }
  const double parameters = greatest_difference(cpu->state().parameters, gpu->state().parameters);
  char text[200];
  std::snprintf(text, sizeof text, "%s: 10 steps as on the CPU: losses differ by at most %.1e, parameters by %.1e",
                half ? "16 bits" : "32 bits", most, parameters);
  check(most < margin && parameters < margin, text);

  for (std::uint64_t step = 10; step < 200; ++step) {
    const Batch batch = make_batch(options, step);
    loss = gpu->train(batch.images.data(), batch.labels.data());
  }
  const Batch test = make_batch(options, 1000);
  const auto score = gpu->evaluate(test.images.data(), test.labels.data(), options.batch);
  std::snprintf(text, sizeof text, "%s: after 200 steps loss %.4f, accuracy %.3f", half ? "16 bits" : "32 bits", loss,
                score.accuracy);
  check(score.accuracy > 0.95, text);
  const auto other = convnet::make_gpu_trainer(options, 0);
  other->restore(gpu->state());
  const Batch next = make_batch(options, 2000);
  check(other->train(next.images.data(), next.labels.data()) == gpu->train(next.images.data(), next.labels.data()),
        "goes on from a state with the same loss, to the bit");
}

// What DataParallel computes with: the same bits as on the CPU, and the same sums but for their order.
template <class T>
void compare_memory(const char* name) {
  const auto trainer = convnet::make_gpu_trainer({}, 0);  // has the stream
  const auto gpu = trainer->gradient_memory();
  hypertune::HostGradientMemory host;
  const hypertune::ElementType type = hypertune::element_type<T>;
  constexpr std::size_t count = 1'000'003;
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<T> a(count), b(count), wanted(count), got(count);
  for (auto* values : {&a, &b})
    for (T& value : *values)
      value = T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(normal(random)));
  const auto on_gpu = [&](const std::vector<T>& values) {
    auto memory = gpu->allocate(count * sizeof(T));
    gpu->upload(memory.get(), values.data(), count * sizeof(T));
    return memory;
  };
  const auto first = on_gpu(a), second = on_gpu(b), to = on_gpu(a);
  const auto same = [&] {
    gpu->download(got.data(), to.get(), count * sizeof(T));
    return std::memcmp(got.data(), wanted.data(), count * sizeof(T)) == 0;
  };
  bool all = true;
  // In pieces of all lengths, more than go into one launch.
  using Pieces = std::vector<hypertune::GradientPiece>;
  const auto pieces = [&](void* out, const void* in, const void* plus) {
    Pieces made;
    for (std::size_t at = 0, length = 1; at < count; at += length, length = length * 5 / 4 + 1) {
      length = std::min(length, count - at);
      const auto of = [&](const void* p) { return p ? static_cast<const T*>(p) + at : nullptr; };
      made.push_back({out ? static_cast<T*>(out) + at : nullptr, of(in), of(plus), length});
    }
    return made;
  };
  const auto combine = [&](bool from, bool plus) {
    host.combine(pieces(wanted.data(), from ? a.data() : nullptr, plus ? b.data() : nullptr), 0.375, type);
    gpu->combine(pieces(to.get(), from ? first.get() : nullptr, plus ? second.get() : nullptr), 0.375, type);
    all = same() && all;
  };
  combine(true, false);
  combine(false, true);
  combine(false, false);
  check(all, std::string(name) + ": gradients are multiplied and copied to the same bits as on the CPU");
  host.divide(pieces(wanted.data(), a.data(), nullptr), 3, type);
  gpu->divide(pieces(to.get(), first.get(), nullptr), 3, type);
  host.add_squares(pieces(nullptr, b.data(), nullptr), type);
  gpu->add_squares(pieces(nullptr, second.get(), nullptr), type);
  const double sum = host.take_squares(), sum_there = gpu->take_squares();
  check(same() && std::abs(sum - sum_there) < 1e-9 * sum && gpu->take_squares() == 0,
        std::string(name) + ": and divided, with the sum of their squares");
}

void measure(const char* name, convnet::Trainer& trainer, const convnet::Options& options, int steps) {
  const Batch batch = make_batch(options, 1);
  for (int i = 0; i < std::min(steps, 3); ++i) trainer.train(batch.images.data(), batch.labels.data());
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) trainer.train(batch.images.data(), batch.labels.data());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf("  %-14s %8.3f ms a step, %10.0f images/s\n", name, 1000 * seconds / steps,
              static_cast<double>(options.batch) * steps / seconds);
}

}  // namespace

int main() try {
  if (const std::string reason = convnet::no_gpu_because(); !reason.empty()) {
    std::printf("convnet_check: there is no GPU: %s\n", reason.c_str());
    return 77;
  }
  std::printf("convnet on the GPU\n");
  compare(false, 1e-3);
  compare(true, 5e-2);
  compare_memory<float>("float");
  compare_memory<double>("double");
  compare_memory<hypertune::Half>("half");
  compare_memory<hypertune::BFloat16>("bfloat16");

  convnet::Options options;
  options.side = 32;
  options.batch = 256;
  options.filters = {32, 64};
  options.hidden = 256;
  std::printf("images of 32 x 32, 32 and 64 filters, batches of 256\n");
  measure("CPU, 1 core", *convnet::make_cpu_trainer(options), options, 1);
  measure("GPU, 32 bits", *convnet::make_gpu_trainer(options, 0), options, 50);
  options.half = true;
  measure("GPU, 16 bits", *convnet::make_gpu_trainer(options, 0), options, 50);
  return failed > 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "convnet_check: %s\n", error.what());
  return 1;
}
