// A multi-layer perceptron for classification: ReLU layers, softmax, cross-entropy; mini-batches with SGD (Nesterov
// momentum) or Adam, dropout and decoupled weight decay. Plain C++ with Eigen; does not depend on hypertune.
#pragma once

#include <Eigen/Dense>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace digits {

enum class Optimizer : std::uint8_t { sgd, adam };

struct MlpOptions {
  std::vector<int> layers{64, 64, 10};  ///< units of each layer, input and output included
  Optimizer optimizer = Optimizer::adam;
  double learning_rate = 1e-3;
  double momentum = 0.9;    ///< of SGD
  double weight_decay = 0;  ///< subtracted from each weight per update, times learning rate (AdamW); biases have none
  double dropout = 0;       ///< share of hidden units dropped in each training step
  int batch = 32;           ///< images per update
  std::uint64_t seed = 0;   ///< determines the initial weights, the order of the images and the dropout
};

/// All parameters are in one vector, so that the optimisers, save() and the gradient check need no loop over layers.
/// Deterministic: the same options and data give the same weights, also when training continues from a saved state.
template <class Scalar>
class BasicMlp {
 public:
  using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;
  using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

  explicit BasicMlp(MlpOptions options);

  /// Makes one pass over the images (columns) in a new random order. Returns the mean of the batch losses.
  double train_epoch(const Matrix& images, const std::vector<int>& labels);

  /// Returns the mean cross-entropy and sets gradient(), without dropout and weight decay.
  double loss_and_gradient(const Matrix& images, const std::vector<int>& labels);
  /// The same for the images with these indices. If there are none, the loss and the gradient are zero.
  double loss_and_gradient(const Matrix& images, const std::vector<int>& labels, std::span<const std::uint64_t> chosen);
  /// One step of the optimiser with gradient(), which may have been reduced over several workers.
  void step(double learning_rate);
  double loss(const Matrix& images, const std::vector<int>& labels) const;
  /// The share of images whose most probable class is their label.
  double accuracy(const Matrix& images, const std::vector<int>& labels) const;
  /// One column per image, one row per class; columns sum to 1.
  Matrix probabilities(const Matrix& images) const;

  Vector& parameters() { return parameters_; }
  const Vector& parameters() const { return parameters_; }
  const Vector& gradient() const { return gradient_; }
  std::span<Scalar> gradients() { return {gradient_.data(), static_cast<std::size_t>(gradient_.size())}; }
  /// The state that step() changes: the parameters and the optimiser's two moments. updates() is the number of steps.
  std::array<std::span<Scalar>, 3> state();
  std::int64_t& updates() { return updates_; }
  int epochs() const { return epochs_; }

  /// Writes everything that is needed to continue training exactly as if it had not been interrupted.
  void save(const std::filesystem::path& file) const;
  /// Reads a file written by save(). The layers must be the same. The network is unchanged if this throws.
  void load(const std::filesystem::path& file);

 private:
  struct Shape {
    Eigen::Index weights, biases, in, out;  // weights, biases: offsets into the parameters; in, out: units
  };
  struct Header {
    char magic[4];
    std::uint32_t scalar;
    std::int64_t count, updates;
    std::int32_t epochs;
    std::int32_t unused = 0;
  };

  template <class V>
  static auto weights(V& vector, const Shape& s) {
    using Target = std::conditional_t<std::is_const_v<V>, const Matrix, Matrix>;
    return Eigen::Map<Target>(vector.data() + s.weights, s.out, s.in);
  }
  template <class V>
  static auto biases(V& vector, const Shape& s) {
    using Target = std::conditional_t<std::is_const_v<V>, const Vector, Vector>;
    return Eigen::Map<Target>(vector.data() + s.biases, s.out);
  }
  static double log_of(Scalar p) { return std::log(std::max(static_cast<double>(p), 1e-30)); }

  static void softmax(Matrix& z);

  double backward(const Matrix& images, const std::vector<int>& labels, std::mt19937_64* dropout);

  void update();

  MlpOptions options_;
  std::vector<Shape> shapes_;
  Vector parameters_, first_, second_, gradient_;  // first_, second_: the optimiser's moments
  std::int64_t updates_ = 0;
  int epochs_ = 0;
  // Kept between batches to save allocations.
  Matrix batch_, back_;
  std::vector<int> batch_labels_;
  std::vector<Matrix> activations_, masks_;
};

// Not in the class, where they would be inline: a compiler instantiates inline functions in spite of `extern template`.

template <class Scalar>
BasicMlp<Scalar>::BasicMlp(MlpOptions options) : options_(std::move(options)) {
  const auto& layers = options_.layers;
  if (layers.size() < 2) throw std::invalid_argument("a network has at least an input and an output layer");
  if (options_.batch < 1) throw std::invalid_argument("a batch holds at least one image");
  if (!(options_.dropout >= 0 && options_.dropout < 1)) throw std::invalid_argument("dropout lies in [0, 1)");
  Eigen::Index count = 0;
  for (std::size_t l = 0; l + 1 < layers.size(); ++l) {
    if (layers[l] < 1 || layers[l + 1] < 1) throw std::invalid_argument("a layer has at least one unit");
    shapes_.push_back({count, count + layers[l] * layers[l + 1], layers[l], layers[l + 1]});
    count += (layers[l] + 1) * layers[l + 1];
  }
  parameters_ = Vector::Zero(count);
  first_ = second_ = gradient_ = Vector::Zero(count);
  std::mt19937_64 random(options_.seed);
  for (const Shape& s : shapes_) {  // He et al. 2015: keeps the variance of ReLU layers
    std::normal_distribution<double> normal(0, std::sqrt(2.0 / s.in));
    auto w = weights(parameters_, s);
    for (Eigen::Index i = 0; i < w.size(); ++i) w.data()[i] = static_cast<Scalar>(normal(random));
  }
}

template <class Scalar>
double BasicMlp<Scalar>::train_epoch(const Matrix& images, const std::vector<int>& labels) {
  std::mt19937_64 random(options_.seed ^ (0x9e3779b97f4a7c15u * (static_cast<std::uint64_t>(epochs_) + 1)));
  std::vector<Eigen::Index> order(labels.size());
  std::iota(order.begin(), order.end(), Eigen::Index{0});
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  const auto batch = static_cast<std::size_t>(options_.batch);
  double sum = 0;
  for (std::size_t begin = 0; begin < order.size(); begin += batch) {
    const std::size_t count = std::min(batch, order.size() - begin);
    batch_.resize(images.rows(), static_cast<Eigen::Index>(count));
    batch_labels_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      batch_.col(static_cast<Eigen::Index>(i)) = images.col(order[begin + i]);
      batch_labels_[i] = labels[static_cast<std::size_t>(order[begin + i])];
    }
    sum += backward(batch_, batch_labels_, options_.dropout > 0 ? &random : nullptr) * static_cast<double>(count);
    update();
  }
  ++epochs_;
  return sum / static_cast<double>(order.size());
}

template <class Scalar>
double BasicMlp<Scalar>::loss_and_gradient(const Matrix& images, const std::vector<int>& labels) {
  return backward(images, labels, nullptr);
}

template <class Scalar>
double BasicMlp<Scalar>::loss_and_gradient(const Matrix& images, const std::vector<int>& labels,
                                           std::span<const std::uint64_t> chosen) {
  gradient_.setZero();
  if (chosen.empty()) return 0;
  batch_.resize(images.rows(), static_cast<Eigen::Index>(chosen.size()));
  batch_labels_.resize(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    batch_.col(static_cast<Eigen::Index>(i)) = images.col(static_cast<Eigen::Index>(chosen[i]));
    batch_labels_[i] = labels[chosen[i]];
  }
  return backward(batch_, batch_labels_, nullptr);
}

template <class Scalar>
void BasicMlp<Scalar>::step(double learning_rate) {
  options_.learning_rate = learning_rate;
  update();
}

template <class Scalar>
double BasicMlp<Scalar>::loss(const Matrix& images, const std::vector<int>& labels) const {
  Matrix p = probabilities(images);
  double sum = 0;
  for (Eigen::Index i = 0; i < p.cols(); ++i) sum -= log_of(p(labels[static_cast<std::size_t>(i)], i));
  return sum / static_cast<double>(p.cols());
}

template <class Scalar>
double BasicMlp<Scalar>::accuracy(const Matrix& images, const std::vector<int>& labels) const {
  const Matrix p = probabilities(images);
  Eigen::Index right = 0;
  for (Eigen::Index i = 0; i < p.cols(); ++i) {
    Eigen::Index best = 0;
    p.col(i).maxCoeff(&best);
    right += best == labels[static_cast<std::size_t>(i)];
  }
  return static_cast<double>(right) / static_cast<double>(p.cols());
}

template <class Scalar>
auto BasicMlp<Scalar>::probabilities(const Matrix& images) const -> Matrix {
  Matrix a = images;
  for (const Shape& s : shapes_) {
    Matrix z = (weights(parameters_, s) * a).colwise() + biases(parameters_, s);
    if (&s != &shapes_.back()) z = z.cwiseMax(Scalar(0));
    a = std::move(z);
  }
  softmax(a);
  return a;
}

template <class Scalar>
std::array<std::span<Scalar>, 3> BasicMlp<Scalar>::state() {
  const auto span = [](Vector& v) { return std::span<Scalar>(v.data(), static_cast<std::size_t>(v.size())); };
  return {span(parameters_), span(first_), span(second_)};
}

template <class Scalar>
void BasicMlp<Scalar>::save(const std::filesystem::path& file) const {
  std::ofstream out(file, std::ios::binary);
  const Header header{
      {'M', 'L', 'P', '1'}, static_cast<std::uint32_t>(sizeof(Scalar)), parameters_.size(), updates_, epochs_};
  out.write(reinterpret_cast<const char*>(&header), sizeof header);
  for (const Vector* v : {&parameters_, &first_, &second_})
    out.write(reinterpret_cast<const char*>(v->data()), static_cast<std::streamsize>(v->size() * sizeof(Scalar)));
  out.close();
  if (!out) throw std::runtime_error("cannot write the network to " + file.string());
}

template <class Scalar>
void BasicMlp<Scalar>::load(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  Header header{};
  in.read(reinterpret_cast<char*>(&header), sizeof header);
  if (!in || std::memcmp(header.magic, "MLP1", 4) != 0 || header.scalar != sizeof(Scalar) ||
      header.count != parameters_.size())
    throw std::runtime_error(file.string() + " does not hold a network of these layers");
  Vector values[3];
  for (Vector& v : values) {
    v.resize(parameters_.size());
    in.read(reinterpret_cast<char*>(v.data()), static_cast<std::streamsize>(v.size() * sizeof(Scalar)));
  }
  if (!in) throw std::runtime_error(file.string() + " is cut short");
  parameters_ = values[0];  // copied, so that the spans of state() stay valid
  first_ = values[1];
  second_ = values[2];
  updates_ = header.updates;
  epochs_ = header.epochs;
}

template <class Scalar>
void BasicMlp<Scalar>::softmax(Matrix& z) {
  z.rowwise() -= z.colwise().maxCoeff().eval();
  z = z.array().exp().matrix();
  z.array().rowwise() /= z.colwise().sum().array().eval();
}

template <class Scalar>
double BasicMlp<Scalar>::backward(const Matrix& images, const std::vector<int>& labels, std::mt19937_64* dropout) {
  const std::size_t last = shapes_.size() - 1;
  activations_.resize(shapes_.size());
  masks_.resize(shapes_.size());
  for (std::size_t l = 0; l <= last; ++l) {
    const Shape& s = shapes_[l];
    const Matrix& input = l == 0 ? images : activations_[l - 1];
    Matrix& z = activations_[l];
    z.noalias() = weights(std::as_const(parameters_), s) * input;
    z.colwise() += biases(std::as_const(parameters_), s);
    if (l == last) break;
    z = z.cwiseMax(Scalar(0));
    if (dropout) {  // scaled here, so that prediction needs no scaling
      const auto keep = static_cast<Scalar>(1 / (1 - options_.dropout));
      const auto limit = static_cast<std::uint32_t>(options_.dropout * 4294967296.0);
      Matrix& mask = masks_[l];
      mask.resize(z.rows(), z.cols());
      for (Eigen::Index i = 0; i < mask.size(); i += 2) {  // two draws of 32 bits from one of 64
        const std::uint64_t bits = (*dropout)();
        mask.data()[i] = static_cast<std::uint32_t>(bits) < limit ? Scalar(0) : keep;
        if (i + 1 < mask.size()) mask.data()[i + 1] = static_cast<std::uint32_t>(bits >> 32) < limit ? Scalar(0) : keep;
      }
      z.array() *= mask.array();
    }
  }
  Matrix& delta = activations_[last];
  softmax(delta);
  double loss = 0;
  const auto count = static_cast<Scalar>(images.cols());
  for (Eigen::Index i = 0; i < images.cols(); ++i) {
    const int label = labels[static_cast<std::size_t>(i)];
    loss -= log_of(delta(label, i));
    delta(label, i) -= Scalar(1);
  }
  delta /= count;
  for (std::size_t l = last;; --l) {
    const Shape& s = shapes_[l];
    const Matrix& input = l == 0 ? images : activations_[l - 1];
    weights(gradient_, s).noalias() = activations_[l] * input.transpose();
    biases(gradient_, s) = activations_[l].rowwise().sum();
    if (l == 0) break;
    back_.noalias() = weights(std::as_const(parameters_), s).transpose() * activations_[l];
    Matrix& a = activations_[l - 1];
    if (dropout)
      a = (a.array() > Scalar(0)).select(back_.array() * masks_[l - 1].array(), Scalar(0));
    else
      a = (a.array() > Scalar(0)).select(back_.array(), Scalar(0));
  }
  return loss / static_cast<double>(images.cols());
}

template <class Scalar>
void BasicMlp<Scalar>::update() {
  ++updates_;
  const auto rate = static_cast<Scalar>(options_.learning_rate);
  if (options_.weight_decay > 0)
    for (const Shape& s : shapes_) weights(parameters_, s) *= 1 - rate * static_cast<Scalar>(options_.weight_decay);
  if (options_.optimizer == Optimizer::sgd) {
    const auto momentum = static_cast<Scalar>(options_.momentum);
    first_ = momentum * first_ + gradient_;
    parameters_ -= rate * (gradient_ + momentum * first_);
  } else {
    constexpr double beta1 = 0.9, beta2 = 0.999;
    first_ = static_cast<Scalar>(beta1) * first_ + static_cast<Scalar>(1 - beta1) * gradient_;
    second_.array() =
        static_cast<Scalar>(beta2) * second_.array() + static_cast<Scalar>(1 - beta2) * gradient_.array().square();
    const double n = static_cast<double>(updates_);
    const auto step =
        static_cast<Scalar>(options_.learning_rate * std::sqrt(1 - std::pow(beta2, n)) / (1 - std::pow(beta1, n)));
    parameters_.array() -= step * first_.array() / (second_.array().sqrt() + static_cast<Scalar>(1e-8));
  }
}

using Mlp = BasicMlp<float>;
extern template class BasicMlp<float>;  // in network.cpp

}  // namespace digits
