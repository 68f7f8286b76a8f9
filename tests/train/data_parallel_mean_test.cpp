// The law of DataParallel: the mean over all samples, however they are shared and whatever the buckets are.
#include "support/test.hpp"
#include "support/thread_ranks.hpp"

#include <hypertune/train/data_parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

using namespace hypertune;
using hypertune::test::run_ranks;

namespace {

int drawn(std::mt19937& random, int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); }

/// What one step of a group looks like: of each rank the samples of its passes, of which the last is reduced.
struct Step {
  std::vector<std::vector<int>> passes;
  int total() const {
    int sum = 0;
    for (const auto& rank : passes) sum += std::accumulate(rank.begin(), rank.end(), 0);
    return sum;
  }
};

/// Element `element` of a gradient, of the samples that one pass of one rank has: whole numbers whose mean over all
/// samples is whole, too, and whose products and sums all fit into a float, so that equality is exact.
double value(int total, int rank, std::size_t pass, std::size_t gradient, std::size_t element) {
  const auto mixed =
      detail::mixed_in(detail::mixed_in(static_cast<std::uint64_t>(rank) * 16 + pass, gradient), element);
  return static_cast<double>(total) * (static_cast<double>(mixed % 2001) - 1000);
}
double mean(const Step& step, std::size_t gradient, std::size_t element) {
  double sum = 0;
  for (std::size_t rank = 0; rank < step.passes.size(); ++rank)
    for (std::size_t pass = 0; pass < step.passes[rank].size(); ++pass)
      sum += step.passes[rank][pass] * value(step.total(), static_cast<int>(rank), pass, gradient, element);
  return step.total() == 0 ? 0 : sum / step.total();
}

template <class T>
double number(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value;
  else
    return static_cast<double>(static_cast<float>(value));
}
template <class T>
T element(double value) {
  return T(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(value));
}

/// Gradients of two types, by turns.
template <class A, class B>
struct Model {
  std::vector<std::vector<A>> even;
  std::vector<std::vector<B>> odd;

  explicit Model(const std::vector<std::size_t>& counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
      even.emplace_back(i % 2 == 0 ? counts[i] : 0);
      odd.emplace_back(i % 2 == 1 ? counts[i] : 0);
    }
  }
  void add_to(DataParallel& gradients) {
    for (std::size_t i = 0; i < even.size(); ++i)
      if (i % 2 == 0)
        gradients.add(even[i]);
      else
        gradients.add(odd[i]);
  }
  void each(const auto& body) {
    for (std::size_t i = 0; i < even.size(); ++i) {
      for (std::size_t j = 0; j < even[i].size(); ++j) body(i, j, even[i][j]);
      for (std::size_t j = 0; j < odd[i].size(); ++j) body(i, j, odd[i][j]);
    }
  }
  friend bool operator==(const Model&, const Model&) = default;
};

DataParallelOptions random_options(std::mt19937& random) {
  DataParallelOptions options;
  options.bucket_bytes = static_cast<std::size_t>(drawn(random, 1, 400));
  options.first_bucket_bytes = static_cast<std::size_t>(drawn(random, 1, 100));
  options.in_place_bytes = static_cast<std::size_t>(drawn(random, 1, 300));
  options.measure_noise = drawn(random, 0, 1) == 1;
  return options;
}

using Runner = void (*)(int size, const std::function<void(Communicator)>& body);

/// Some steps of a random group, each rank in its own way. `near`: how far from the exact mean, relative to the values.
template <class A, class B>
void check_means(unsigned seed, double near, Runner run = run_ranks) {
  const double unit = sizeof(A) + sizeof(B) < 8 ? 1.0 / 64 : 1;  // 16-bit numbers end at 65504
  std::mt19937 random(seed);
  const int size = drawn(random, 1, 5);
  std::vector<std::size_t> counts(static_cast<std::size_t>(drawn(random, 0, 9)));
  for (auto& count : counts) count = static_cast<std::size_t>(drawn(random, 0, 60));
  std::vector<Step> steps(static_cast<std::size_t>(drawn(random, 1, 4)));
  for (auto& step : steps)
    for (int rank = 0; rank < size; ++rank) {
      auto& passes = step.passes.emplace_back(static_cast<std::size_t>(drawn(random, 1, 3)));
      for (auto& samples : passes) samples = drawn(random, 0, 4);
    }
  const auto options = random_options(random);
  std::vector<std::vector<Model<A, B>>> results(static_cast<std::size_t>(size));
  std::vector<std::vector<ReducedGradients>> reduced(results.size());
  run(size, [&](Communicator communicator) {
    const int rank = communicator.rank();
    const auto r = static_cast<std::size_t>(rank);
    std::mt19937 mine(seed * 16 + static_cast<unsigned>(rank));
    Model<A, B> model(counts);
    DataParallel gradients(communicator, options);
    model.add_to(gradients);
    for (const auto& step : steps) {
      const auto& passes = step.passes[r];
      for (std::size_t pass = 0; pass < passes.size(); ++pass) {
        const int samples = passes[pass];
        const bool last = pass + 1 == passes.size(), begins = drawn(mine, 0, 2) > 0;
        if (last && begins) gradients.begin(samples);
        std::vector<bool> filled(counts.size(), false);
        const auto fill = [&](std::size_t which) {  // what is of no sample is ignored, and so is what is not ready
          filled[which] = true;
          model.each([&]<class T>(std::size_t i, std::size_t j, T& g) {
            if (i == which) g = element<T>(samples == 0 ? std::nan("") : unit * value(step.total(), rank, pass, i, j));
          });
        };
        model.each([]<class T>(std::size_t, std::size_t, T& g) { g = element<T>(std::nan("")); });
        std::vector<std::size_t> order(counts.size());
        std::iota(order.rbegin(), order.rend(), 0U);
        if (drawn(mine, 0, 1) == 0) std::shuffle(order.begin(), order.end(), mine);
        if (drawn(mine, 0, 3) == 0) order.resize(order.size() / 2);
        for (const auto i : order) {
          fill(i);
          gradients.ready(i);
        }
        for (std::size_t i = 0; i < counts.size(); ++i)
          if (!filled[i]) fill(i);
        if (last)
          gradients.reduce(samples);
        else
          gradients.accumulate(samples);
      }
      results[r].push_back(model);
      reduced[r].push_back(gradients.reduced());
    }
  });
  CAPTURE(seed, size);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    double furthest = 0, squares = 0;
    results[0][s].each([&]<class T>(std::size_t i, std::size_t j, T& g) {
      const double off = std::abs(number(g) / unit - mean(steps[s], i, j)) / (1000.0 * std::max(steps[s].total(), 1));
      furthest = std::isnan(off) ? 1 : std::max(furthest, off);
      squares += number(g) * number(g);
    });
    CHECK(furthest <= near);
    CHECK(reduced[0][s].samples == steps[s].total());
    CHECK(reduced[0][s].square == Approx(squares));
    CHECK(reduced[0][s].finite());
    for (std::size_t rank = 1; rank < results.size(); ++rank) {
      CHECK(results[rank][s] == results[0][s]);
      CHECK(reduced[rank][s].square == reduced[0][s].square);
      CHECK(reduced[rank][s].parts == reduced[0][s].parts);
      CHECK(reduced[rank][s].part_squares == reduced[0][s].part_squares);
    }
  }
}

TEST_CASE("the mean over all samples, for any buckets, order, accumulation and number of ranks") {
  for (unsigned seed = 0; seed < 80; ++seed) check_means<float, double>(seed, 0);
  for (unsigned seed = 80; seed < 100; ++seed) check_means<float, float>(seed, 0);
  for (unsigned seed = 100; seed < 120; ++seed) check_means<Half, float>(seed, 0.002);
  for (unsigned seed = 120; seed < 140; ++seed) check_means<BFloat16, Half>(seed, 0.016);
}

TEST_CASE("the mean over all samples of ranks connected by Gloo") {
  if (!has_gloo()) return;
  for (unsigned seed = 200; seed < 210; ++seed) check_means<float, double>(seed, 0, test::run_gloo_ranks);
  for (unsigned seed = 210; seed < 220; ++seed) check_means<BFloat16, Half>(seed, 0.016, test::run_gloo_ranks);
}

}  // namespace
