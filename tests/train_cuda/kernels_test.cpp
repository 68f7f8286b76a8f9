#include "cuda_convnet/kernels.hpp"

#include "cuda_convnet/convnet.hpp"
#include "cuda_convnet/cpu_backend.hpp"
#include "cuda_convnet/gemm.hpp"
#include "support/cuda/stand_in.hpp"
#include "support/test.hpp"

#include <hypertune/train/element.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace ht = hypertune;
namespace kernels = convnet::kernels;

namespace {

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}
template <class Kernel>
void each(std::size_t count, const Kernel& kernel) {
  for (std::size_t i = 0; i < count; ++i) kernel(i);
}
double product(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double(a[i]) * double(b[i]);
  return sum;
}

// d f / d x[i] by differences, against what is claimed. Kinks (ReLU, a maximum) may lie in between: a few may differ.
void check_gradient(std::vector<float>& x, const std::vector<float>& gradient, const std::function<double()>& f,
                    std::size_t step, std::size_t may_differ = 0) {
  constexpr float h = 4e-3F;
  std::size_t different = 0;
  for (std::size_t i = 0; i < x.size(); i += step) {
    const float before = x[i];
    x[i] = before + h;
    const double above = f();
    x[i] = before - h;
    const double below = f();
    x[i] = before;
    const double slope = (above - below) / (2.0 * double(h));
    if (std::abs(slope - double(gradient[i])) > 3e-3 * (1 + std::abs(slope))) ++different;
  }
  CHECK(different <= may_differ);
}

}  // namespace

TEST_CASE("kernels: the columns of an image are its windows, and their gradient goes back") {
  const auto window = GENERATE(kernels::Window{2, 3, 5, 4, 3, 1}, kernels::Window{3, 2, 4, 4, 4, 0},
                               kernels::Window{1, 2, 6, 5, 2, 0}, kernels::Window{2, 1, 3, 3, 5, 2});
  const auto image = random_values(window.pixels(), 1);
  std::vector<float> columns(window.rows() * window.columns()), back(window.pixels());
  each(window.channels * window.columns(), kernels::Im2Col<float>{window, image.data(), columns.data()});
  const auto at = [&](std::size_t c, std::size_t n, std::ptrdiff_t y, std::ptrdiff_t x) {
    if (y < 0 || x < 0 || y >= std::ptrdiff_t(window.height) || x >= std::ptrdiff_t(window.width)) return 0.0F;
    return image[((c * window.images + n) * window.height + std::size_t(y)) * window.width + std::size_t(x)];
  };
  std::size_t i = 0;
  bool same = true;
  for (std::size_t c = 0; c < window.channels; ++c)
    for (std::size_t dy = 0; dy < window.side; ++dy)
      for (std::size_t dx = 0; dx < window.side; ++dx)
        for (std::size_t n = 0; n < window.images; ++n)
          for (std::size_t y = 0; y < window.out_height(); ++y)
            for (std::size_t x = 0; x < window.out_width(); ++x, ++i)
              same = same && columns[i] == at(c, n, std::ptrdiff_t(y + dy) - std::ptrdiff_t(window.padding),
                                              std::ptrdiff_t(x + dx) - std::ptrdiff_t(window.padding));
  CHECK(i == columns.size());
  CHECK(same);
  // Both are linear, and each is the other's transpose.
  const auto other = random_values(columns.size(), 2);
  each(back.size(), kernels::Col2Im<float>{window, other.data(), back.data()});
  CHECK(product(columns, other) == Approx(product(image, back)).epsilon(1e-5));
}

TEST_CASE("kernels: bias, ReLU and max-pooling") {
  constexpr std::size_t rows = 3, columns = 2 * 4 * 6;
  auto x = random_values(rows * columns, 3), bias = random_values(rows, 4);
  const auto weight = random_values(rows * columns / 4, 5);
  std::vector<float> pooled(weight.size()), out;
  std::vector<std::uint8_t> chosen(weight.size());
  const auto forward = [&] {
    out = x;
    each(out.size(), kernels::BiasRelu<float>{out.data(), bias.data(), columns, true});
    each(pooled.size(), kernels::MaxPool<float>{4, 6, 2, out.data(), pooled.data(), chosen.data()});
    return product(pooled, weight);
  };
  forward();
  std::vector<float> gradient(x.size(), 99), bias_gradient(rows);
  each(pooled.size(), kernels::MaxPoolBack<float>{4, 6, 2, weight.data(), chosen.data(), gradient.data()});
  each(gradient.size(), kernels::ReluBack<float>{out.data(), gradient.data()});
  for (const kernels::Index parts : {1U, 3U, 64U}) {  // more than there are columns, too
    std::vector<float> sums(rows * parts, -1);
    each(sums.size(), kernels::RowPartSums<float>{gradient.data(), columns, parts, sums.data()});
    each(rows, kernels::RowSums{sums.data(), parts, bias_gradient.data()});
    for (std::size_t row = 0; row < rows; ++row)  // by differences all its pixels' kinks would count
      CHECK(bias_gradient[row] == Approx(std::accumulate(gradient.begin() + std::ptrdiff_t(row * columns),
                                                         gradient.begin() + std::ptrdiff_t((row + 1) * columns), 0.0F))
                                      .margin(1e-5));
  }
  check_gradient(x, gradient, forward, 1, 2);
}

TEST_CASE("kernels: softmax and cross-entropy, with a scaled loss") {
  constexpr std::size_t classes = 5, images = 4;
  auto logits = random_values(classes * images, 6);
  for (float& logit : logits) logit *= 4;
  logits[3] = 200;  // no overflow
  const std::vector<std::int32_t> labels{1, 4, 0, 0};
  std::vector<float> loss(images), work;
  std::vector<std::int32_t> predicted(images);
  const auto run = [&](float scale) {
    work = logits;
    each(images, kernels::SoftmaxCrossEntropy<float>{classes, images, labels.data(), scale, work.data(), loss.data(),
                                                     predicted.data()});
    double sum = 0;
    for (const float one : loss) sum += double(one) / double(images);
    return sum;
  };
  run(8);
  CHECK(predicted[3] == 0);
  CHECK(loss[3] == Approx(0).margin(1e-6));
  auto gradient = work;
  for (float& one : gradient) one /= 8;
  check_gradient(logits, gradient, [&] { return run(1); }, 1);
}

TEST_CASE("kernels: momentum, unscaling, norms") {
  auto parameters = random_values(1000, 7), velocity = random_values(1000, 8), gradient = random_values(1000, 9);
  const auto p = parameters, v = velocity;
  each(1000, kernels::MomentumSgd{parameters.data(), velocity.data(), gradient.data(), 0.1F, 0.9F, 0.01F});
  const float now = 0.9F * v[17] + gradient[17];
  CHECK(velocity[17] == Approx(now));
  CHECK(parameters[17] == Approx(p[17] - 0.1F * (now + 0.01F * p[17])));

  std::vector<float> sums(64);
  each(64, kernels::SquareSums{gradient.data(), 1000, 64, sums.data()});
  CHECK(double(std::accumulate(sums.begin(), sums.end(), 0.0F)) == Approx(product(gradient, gradient)));

  std::int32_t infinite = 0;
  const float before = gradient[5];
  each(1000, kernels::Unscale{gradient.data(), 0.25F, &infinite});
  CHECK(gradient[5] == before / 4);
  CHECK(infinite == 0);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    gradient[999] = bad;
    infinite = 0;
    each(1000, kernels::Unscale{gradient.data(), 1, &infinite});
    CHECK(infinite == 1);
  }
}

namespace {

// c = op(a) op(b), element by element.
std::vector<float> expected_product(bool ta, bool tb, std::size_t m, std::size_t n, std::size_t k,
                                    const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t p = 0; p < k; ++p)
        sum += double(ta ? a[p * m + i] : a[i * k + p]) * double(tb ? b[j * k + p] : b[p * n + j]);
      c[i * n + j] = float(sum);
    }
  return c;
}
bool close(const std::vector<float>& a, const std::vector<float>& b, float margin) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](float x, float y) { return std::abs(x - y) <= margin * (1 + std::abs(y)); });
}

}  // namespace

TEST_CASE("convnet: products of matrices by rows, on the CPU and by cuBLAS's columns") {
  stand_in::reset();
  const bool ta = GENERATE(false, true), tb = GENERATE(false, true);
  if (ta && tb) return;  // nobody asks for that
  constexpr std::size_t m = 5, n = 301, k = 37;
  const auto a = random_values(m * k, 10), b = random_values(k * n, 11);
  const auto expected = expected_product(ta, tb, m, n, k, a, b);
  std::vector<float> c(m * n);
  convnet::CpuBackend().multiply(ta, tb, m, n, k, a.data(), b.data(), c.data());
  CHECK(close(c, expected, 1e-4F));

  const auto stream = convnet::make_stream();
  const auto blas = convnet::make_blas(stream.get());
  std::fill(c.begin(), c.end(), 0.0F);
  convnet::gemm_by_rows(blas.get(), ta, tb, m, n, k, a.data(), b.data(), CUDA_R_32F, c.data(), CUDA_R_32F);
  cudaStreamSynchronize(stream.get());
  CHECK(close(c, expected, 1e-4F));

  std::vector<ht::Half> half_a, half_b;
  for (const float value : a) half_a.emplace_back(value);
  for (const float value : b) half_b.emplace_back(value);
  convnet::gemm_by_rows(blas.get(), ta, tb, m, n, k, half_a.data(), half_b.data(), CUDA_R_16F, c.data(), CUDA_R_32F);
  cudaStreamSynchronize(stream.get());
  CHECK(close(c, expected, 2e-2F));
}

TEST_CASE("convnet: the gradient of the whole network") {
  convnet::Options options;
  options.batch = 3;
  options.filters = {3, 4};
  options.hidden = 7;
  convnet::Network<convnet::CpuBackend, float> network(convnet::CpuBackend{}, options);
  const auto images = random_values(3 * 64, 12);
  const std::vector<std::int32_t> labels{3, 9, 0};
  network.forward_backward(images.data(), labels.data(), 1);
  const auto gradient = network.gradient();
  auto state = network.state();
  check_gradient(
      state.parameters, gradient,
      [&] {
        network.restore(state);
        return network.forward_backward(images.data(), labels.data(), 1);
      },
      1, 8);
}

TEST_CASE("convnet: it learns, in 32 and in 16 bits, and goes on from a state as if nothing had been") {
  convnet::Options options;
  options.batch = 16;
  options.filters = {4, 8};
  options.hidden = 16;
  options.half = GENERATE(false, true);
  auto images = random_values(16 * 64, 13);
  std::vector<std::int32_t> labels(16);
  for (std::size_t i = 0; i < 16; ++i) labels[i] = std::int32_t(i % 10);
  const auto trainer = convnet::make_cpu_trainer(options);
  const double first = trainer->train(images.data(), labels.data());
  for (int i = 0; i < 30; ++i) trainer->train(images.data(), labels.data());
  const auto state = trainer->state();
  const auto other = convnet::make_cpu_trainer(options);
  other->restore(state);
  const double loss = trainer->train(images.data(), labels.data());
  CHECK(loss < first / 2);
  CHECK(other->train(images.data(), labels.data()) == loss);
  CHECK(other->state().parameters == trainer->state().parameters);
  const auto score = trainer->evaluate(images.data(), labels.data(), 13);  // not a whole batch
  CHECK(score.accuracy > 0.8);
  CHECK(trainer->state().updates <= 32);
}

TEST_CASE("convnet: a step whose gradient overflows is left out, and the loss scale falls") {
  convnet::Options options;
  options.half = true;
  options.batch = 2;
  const auto trainer = convnet::make_cpu_trainer(options);
  auto state = trainer->state();
  state.scale.scale = 1e9F;
  trainer->restore(state);
  const auto images = random_values(2 * 64, 14);
  const std::vector<std::int32_t> labels{1, 2};
  trainer->train(images.data(), labels.data());
  const auto after = trainer->state();
  CHECK(after.parameters == state.parameters);
  CHECK(after.updates == 0);
  CHECK(after.scale.scale == 5e8F);
}

TEST_CASE("convnet: other workers' gradients come in between backward and update") {
  convnet::Options options;
  options.batch = 2;
  const auto trainer = convnet::make_cpu_trainer(options);
  const auto before = trainer->state().parameters;
  const auto gradients = trainer->gradients();
  std::vector<std::size_t> ready;
  std::size_t count = 0;
  for (const auto gradient : gradients) count += gradient.size();
  CHECK(count == trainer->parameter_count());
  trainer->train_with({.begin = [&] { CHECK(ready.empty()); },
                       .reduce =
                           [&] {
                             for (const auto gradient : gradients) std::fill(gradient.begin(), gradient.end(), 0.0F);
                           },
                       .ready = [&](std::size_t layer) { ready.push_back(layer); }});
  const auto images = random_values(2 * 64, 15);
  const std::vector<std::int32_t> labels{1, 2};
  trainer->train(images.data(), labels.data());
  CHECK(trainer->state().parameters == before);
  CHECK(ready == std::vector<std::size_t>{3, 2, 1, 0});
}
