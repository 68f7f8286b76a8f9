#include "support/test.hpp"
#include "support/thread_ranks.hpp"

#include <hypertune/train/data_parallel.hpp>
#include <hypertune/train/gradient_noise.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

using namespace hypertune;
using hypertune::test::run_ranks;

namespace {

static_assert(std::is_trivially_copyable_v<GradientNoise::State>);

TEST_CASE("the noise scale is found from workers of different batches, the same on all") {
  // Samples' gradients: 20 numbers of mean 0.5 and deviation 1, so that G = 5, S = 20, and the scale is 4.
  const int size = 3;
  std::vector<double> scales(size), gains(size);
  run_ranks(size, [&](const Communicator& communicator) {
    const auto rank = static_cast<std::size_t>(communicator.rank());
    std::mt19937 random(static_cast<unsigned>(rank) + 1);
    std::normal_distribution<double> sample(0.5, 1);
    std::vector<double> g(20);
    DataParallel gradients(communicator, {.measure_noise = true});
    gradients.add(g);
    GradientNoise noise({.smoothing = 0.999});
    const int batch = 1 + 2 * communicator.rank();
    for (int step = 0; step < 3000; ++step) {
      for (auto& x : g) {
        x = 0;
        for (int i = 0; i < batch; ++i) x += sample(random) / batch;
      }
      const double loss_scale = step % 2 == 0 ? 1 : 1024;
      for (auto& x : g) x *= loss_scale;
      noise.add(gradients.reduce(batch), loss_scale);
    }
    scales[rank] = noise.scale();
    gains[rank] = noise.gain(4, 16);
  });
  for (const double scale : scales) CHECK(scale == scales[0]);
  CHECK(scales[0] == Approx(4).epsilon(0.1));
  CHECK(gains[0] == Approx((20.0 / 4 + 5) / (20.0 / 16 + 5)).epsilon(0.1));
}

TEST_CASE("a step's estimate") {
  GradientNoise noise({.smoothing = 0});
  CHECK_FALSE(noise.known());
  CHECK(std::isnan(noise.scale()));
  CHECK(noise.gain(1, 8) == 1);
  CHECK(noise.add({.samples = 8, .parts = 2, .square = 3, .part_squares = 5}));  // S = 2 * 8 / 1, G = 3 - 16 / 8
  CHECK(noise.variance() == 16);
  CHECK(noise.square() == 1);
  CHECK(noise.scale() == 16);
  CHECK(noise.gain(2, 2) == 1);
  CHECK(noise.gain(2, 16) == 4.5);
  CHECK_THROWS_AS(noise.gain(0, 1), Error);
}

TEST_CASE("a step that says nothing changes nothing, and the first one counts in full") {
  GradientNoise noise({.smoothing = 0.9});
  CHECK(noise.add({.samples = 8, .parts = 2, .square = 3, .part_squares = 5}));
  CHECK(noise.scale() == Approx(16));
  const auto state = noise.state();
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK_FALSE(noise.add({.samples = 8, .parts = 1, .square = 3, .part_squares = 3}));
  CHECK_FALSE(noise.add({.samples = 8, .parts = 2, .square = infinite, .part_squares = 3}));
  CHECK_FALSE(noise.add({.samples = 8, .parts = 2, .square = 3, .part_squares = std::nan("")}));
  CHECK_FALSE(noise.add({.samples = 8, .parts = 2, .square = 3}));
  CHECK(noise.state() == state);
  GradientNoise restored({.smoothing = 0.9});
  restored.restore(state);
  CHECK(restored.scale() == noise.scale());
  CHECK_THROWS_AS(GradientNoise({.smoothing = 1}), Error);
}

}  // namespace
