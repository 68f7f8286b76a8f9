// A convolutional network for small grey images, on any backend: forward, backward, momentum SGD, mixed precision.
// Plain C++ without hypertune's core headers, so that nvcc can compile it for the GPU.
//
//   image -> conv 3x3, ReLU -> conv 3x3, ReLU -> max-pooling 2x2 -> dense, ReLU -> dense -> softmax
#pragma once

#include "cuda_convnet/kernels.hpp"
#include "cuda_convnet/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace convnet {

/// An array in a backend's memory.
template <class Backend, class T>
class Buffer {
 public:
  Buffer() = default;
  Buffer(Backend& backend, std::size_t size)
      : backend_(&backend), data_(static_cast<T*>(backend.allocate(size * sizeof(T)))), size_(size) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_) backend_->release(data_);
  }
  T* data() const { return data_; }
  std::size_t size() const { return size_; }
  void upload(const T* from, std::size_t count, std::size_t at = 0) {
    backend_->upload(data_ + at, from, count * sizeof(T));
  }
  std::vector<T> download(std::size_t count, std::size_t at = 0) const {
    std::vector<T> values(count);
    backend_->download(values.data(), data_ + at, count * sizeof(T));
    return values;
  }

 private:
  void swap(Buffer& other) {
    std::swap(backend_, other.backend_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  Backend* backend_ = nullptr;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// `T`: the type of the activations and of the weights in matrix products. The parameters themselves and their
/// gradients are float. A Backend allocates, copies, multiplies matrices, and calls a kernel for each index.
template <class Backend, class T>
class Network final : public Trainer {
 public:
  Network(Backend backend, const Options& options) : backend_(std::move(backend)), options_(options) {
    const Index side = index(options.side), half = side / 2, batch = index(options.batch);
    const Index first = index(options.filters[0]), second = index(options.filters[1]);
    add({1, batch, side, side, 3, 1}, options.filters[0], true);
    add({first, batch, side, side, 3, 1}, options.filters[1], true);
    add({second, batch, half, half, half, 0}, options.hidden, true);
    add({index(options.hidden), batch, 1, 1, 1, 0}, options.classes, false);
    parameters_ = Buffer<Backend, float>(backend_, parameter_count_);
    gradient_ = Buffer<Backend, float>(backend_, parameter_count_);
    velocity_ = Buffer<Backend, float>(backend_, parameter_count_);
    weights_ = Buffer<Backend, T>(backend_, parameter_count_);
    columns_ = Buffer<Backend, T>(backend_, max_columns_);
    column_gradient_ = Buffer<Backend, T>(backend_, max_columns_);
    pooled_ = Buffer<Backend, T>(backend_, pooled_size());
    pooled_gradient_ = Buffer<Backend, T>(backend_, pooled_size());
    chosen_ = Buffer<Backend, std::uint8_t>(backend_, pooled_size());
    raw_ = Buffer<Backend, float>(backend_, image_size() * batch);
    images_ = Buffer<Backend, T>(backend_, image_size() * batch);
    labels_ = Buffer<Backend, std::int32_t>(backend_, batch);
    loss_ = Buffer<Backend, float>(backend_, batch);
    predicted_ = Buffer<Backend, std::int32_t>(backend_, batch);
    infinite_ = Buffer<Backend, std::int32_t>(backend_, 1);
    squares_ = Buffer<Backend, float>(backend_, norm_parts);
    row_sums_ = Buffer<Backend, float>(backend_, max_filters_ * row_parts);
    row_fold_sums_ = Buffer<Backend, float>(backend_, max_filters_ * row_folds);

    State state{std::vector<float>(parameter_count_), std::vector<float>(parameter_count_), 0, scale_.state()};
    std::mt19937_64 random(options.seed);
    for (const Layer& layer : layers_) {  // He et al. 2015: keeps the variance of ReLU layers
      std::normal_distribution<float> normal(0, std::sqrt(2.0F / static_cast<float>(layer.window.rows())));
      for (std::size_t i = 0; i < layer.filters * layer.window.rows(); ++i)
        state.parameters[layer.weights + i] = normal(random);
    }
    restore(state);
  }

  double train(const float* images, const std::int32_t* labels) override {
    if (workers_.begin) workers_.begin();
    const float scale = options_.half ? static_cast<float>(scale_.scale()) : 1.0F;
    forward(images, labels, scale);
    backward();
    if (workers_.reduce) workers_.reduce();
    const double loss = mean_loss();  // waits for the device: not between the backward pass and reduce()
    if (options_.half) {
      const std::int32_t zero = 0;
      infinite_.upload(&zero, 1);
      backend_.for_each(parameter_count_, kernels::Unscale{gradient_.data(), 1 / scale, infinite_.data()});
      if (!scale_.update(infinite_.download(1)[0] == 0)) return loss;  // skip this step
    }
    if (options_.clip > 0) {
      const double norm = gradient_norm();
      if (norm > options_.clip)
        backend_.for_each(parameter_count_,
                          kernels::Multiply{gradient_.data(), static_cast<float>(options_.clip / norm)});
    }
    backend_.for_each(parameter_count_,
                      kernels::MomentumSgd{parameters_.data(), velocity_.data(), gradient_.data(),
                                           options_.learning_rate, options_.momentum, options_.weight_decay});
    ++updates_;
    refresh_weights();
    return loss;
  }

  Score evaluate(const float* images, const std::int32_t* labels, std::size_t count) override {
    Score score;
    std::vector<float> part(image_size() * options_.batch);
    std::vector<std::int32_t> part_labels(options_.batch);
    for (std::size_t begin = 0; begin < count; begin += options_.batch) {
      const std::size_t here =
          std::min(options_.batch, count - begin);  // the last batch is padded; the padding is not counted
      std::copy_n(images + begin * image_size(), here * image_size(), part.begin());
      std::copy_n(labels + begin, here, part_labels.begin());
      forward(part.data(), part_labels.data(), 1);
      const auto losses = loss_.download(here);
      const auto predicted = predicted_.download(here);
      for (std::size_t i = 0; i < here; ++i) {
        score.loss += static_cast<double>(losses[i]) / static_cast<double>(count);
        score.accuracy += predicted[i] == part_labels[i] ? 1.0 / static_cast<double>(count) : 0;
      }
    }
    return score;
  }

  State state() const override {
    return {parameters_.download(parameter_count_), velocity_.download(parameter_count_), updates_, scale_.state()};
  }
  void restore(const State& state) override {
    parameters_.upload(state.parameters.data(), parameter_count_);
    velocity_.upload(state.velocity.data(), parameter_count_);
    updates_ = state.updates;
    if (!scale_.restore(state.scale)) throw std::runtime_error("a network's loss scale is out of its bounds");
    refresh_weights();
  }
  std::size_t parameter_count() const override { return parameter_count_; }
  std::vector<std::span<float>> gradients() override {
    std::vector<std::span<float>> all;
    for (const Layer& layer : layers_)
      all.emplace_back(gradient_.data() + layer.weights, layer.bias + layer.filters - layer.weights);
    return all;
  }
  std::shared_ptr<hypertune::GradientMemory> gradient_memory() override { return backend_.gradient_memory(); }
  void train_with(Workers workers) override { workers_ = std::move(workers); }

  /// Returns the mean loss. Its gradient times `scale` is then available by gradient().
  double forward_backward(const float* images, const std::int32_t* labels, float scale) {
    forward(images, labels, scale);
    backward();
    return mean_loss();
  }
  std::vector<float> gradient() const { return gradient_.download(parameter_count_); }

 private:
  using Index = kernels::Index;
  static constexpr std::size_t norm_parts = 1024;
  static constexpr Index row_parts = 2048, row_folds = 32;  // enough for the threads of a GPU
  static constexpr std::size_t pool_after = 1;              // the layer before the pooling

  struct Layer {
    kernels::Window window;
    std::size_t filters;
    bool relu;
    std::size_t weights, bias;     // where they begin in the parameters
    Buffer<Backend, T> out, back;  // the output, and the gradient with respect to it
  };

  std::size_t image_size() const { return options_.side * options_.side; }
  std::size_t pooled_size() const { return options_.filters[1] * options_.batch * image_size() / 4; }

  static Index index(std::size_t size) {
    if (size >= std::size_t{1} << 16U) throw std::runtime_error("a network's size is over 65535");
    return static_cast<Index>(size);
  }
  Index side() const { return index(options_.side); }

  void add(const kernels::Window& window, std::size_t filters, bool relu) {
    if (!window.fits() || static_cast<double>(filters) * window.columns() >= 0x1p32)
      throw std::runtime_error("a batch of a layer has over 4 billion elements");
    const std::size_t weights = parameter_count_, bias = weights + filters * window.rows();
    parameter_count_ = bias + filters;
    max_columns_ = std::max<std::size_t>(max_columns_, window.rows() * window.columns());
    max_filters_ = std::max(max_filters_, filters);
    layers_.push_back({window, filters, relu, weights, bias, Buffer<Backend, T>(backend_, filters * window.columns()),
                       Buffer<Backend, T>(backend_, filters * window.columns())});
  }
  void refresh_weights() {
    backend_.for_each(parameter_count_, kernels::Convert<float, T>{parameters_.data(), weights_.data()});
  }
  const T* input_of(std::size_t layer) const {
    if (layer == 0) return images_.data();
    return layer == pool_after + 1 ? pooled_.data() : layers_[layer - 1].out.data();
  }

  void forward(const float* images, const std::int32_t* labels, float scale) {
    raw_.upload(images, raw_.size());
    labels_.upload(labels, labels_.size());
    backend_.for_each(raw_.size(), kernels::Convert<float, T>{raw_.data(), images_.data()});
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      Layer& layer = layers_[l];
      const kernels::Window& window = layer.window;
      backend_.for_each(window.channels * window.columns(), kernels::Im2Col<T>{window, input_of(l), columns_.data()});
      backend_.multiply(false, false, layer.filters, window.columns(), window.rows(), weights_.data() + layer.weights,
                        columns_.data(), layer.out.data());
      backend_.for_each(layer.out.size(), kernels::BiasRelu<T>{layer.out.data(), parameters_.data() + layer.bias,
                                                               window.columns(), layer.relu});
      if (l == pool_after)
        backend_.for_each(pooled_size(),
                          kernels::MaxPool<T>{side(), side(), 2, layer.out.data(), pooled_.data(), chosen_.data()});
    }
    // In place: the logits become the gradient.
    backend_.for_each(options_.batch,
                      kernels::SoftmaxCrossEntropy<T>{options_.classes, options_.batch, labels_.data(), scale,
                                                      layers_.back().out.data(), loss_.data(), predicted_.data()});
  }

  void backward() {
    for (std::size_t l = layers_.size(); l-- > 0;) {
      Layer& layer = layers_[l];
      const kernels::Window& window = layer.window;
      const bool last = l + 1 == layers_.size();
      T* back = last ? layer.out.data() : layer.back.data();
      if (l == pool_after)
        backend_.for_each(pooled_size(),
                          kernels::MaxPoolBack<T>{side(), side(), 2, pooled_gradient_.data(), chosen_.data(), back});
      if (layer.relu) backend_.for_each(layer.out.size(), kernels::ReluBack<T>{layer.out.data(), back});
      backend_.for_each(layer.filters * row_parts,
                        kernels::RowPartSums<T>{back, window.columns(), row_parts, row_sums_.data()});
      backend_.for_each(layer.filters * row_folds,
                        kernels::RowPartSums<float>{row_sums_.data(), row_parts, row_folds, row_fold_sums_.data()});
      backend_.for_each(layer.filters,
                        kernels::RowSums{row_fold_sums_.data(), row_folds, gradient_.data() + layer.bias});
      backend_.for_each(window.channels * window.columns(), kernels::Im2Col<T>{window, input_of(l), columns_.data()});
      backend_.multiply(false, true, layer.filters, window.rows(), window.columns(), back, columns_.data(),
                        gradient_.data() + layer.weights);
      if (workers_.ready) workers_.ready(l);
      if (l == 0) return;
      backend_.multiply(true, false, window.rows(), window.columns(), layer.filters, weights_.data() + layer.weights,
                        back, column_gradient_.data());
      T* before = l == pool_after + 1 ? pooled_gradient_.data() : layers_[l - 1].back.data();
      backend_.for_each(window.pixels(), kernels::Col2Im<T>{window, column_gradient_.data(), before});
    }
  }

  double mean_loss() const {
    double sum = 0;
    for (const float loss : loss_.download(options_.batch)) sum += static_cast<double>(loss);
    return sum / static_cast<double>(options_.batch);
  }

  double gradient_norm() {
    backend_.for_each(norm_parts, kernels::SquareSums{gradient_.data(), parameter_count_, norm_parts, squares_.data()});
    double sum = 0;
    for (const float part : squares_.download(norm_parts)) sum += static_cast<double>(part);
    return std::sqrt(sum);
  }

  Backend backend_;  // outlives the buffers
  Options options_;
  std::vector<Layer> layers_;
  std::size_t parameter_count_ = 0, max_columns_ = 0, max_filters_ = 0;
  Buffer<Backend, float> parameters_, gradient_, velocity_, raw_, loss_, squares_, row_sums_, row_fold_sums_;
  Buffer<Backend, T> weights_, columns_, column_gradient_, pooled_, pooled_gradient_, images_;
  Buffer<Backend, std::uint8_t> chosen_;
  Buffer<Backend, std::int32_t> labels_, predicted_, infinite_;
  std::int64_t updates_ = 0;
  // Training is short, and an overflow lowers the scale, so that the scale needs no tight upper bound.
  hypertune::LossScale scale_{{.interval = 500, .max = 0x1p100}};
  Workers workers_;
};

}  // namespace convnet
