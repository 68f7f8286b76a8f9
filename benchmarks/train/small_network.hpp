// A network of two layers on made-up data: its gradient is computed in earnest, by simple loops.
#pragma once

#include <hypertune/random.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace elastic {

struct Shape {
  int inputs = 256, hidden = 256, outputs = 10;
};

/// Points around a centre for each class.
class Blobs {
 public:
  Blobs(std::size_t samples, Shape shape)
      : inputs_(static_cast<std::size_t>(shape.inputs)), labels_(samples), values_(samples * inputs_) {
    hypertune::Rng rng = hypertune::derived_rng(7, {1});
    std::vector<float> centres(static_cast<std::size_t>(shape.outputs) * inputs_);
    for (float& value : centres) value = static_cast<float>(hypertune::uniform01(rng) - 0.5);
    for (std::size_t i = 0; i < samples; ++i) {
      labels_[i] = static_cast<int>(hypertune::uniform01(rng) * shape.outputs);
      for (std::size_t j = 0; j < inputs_; ++j)
        values_[i * inputs_ + j] = centres[static_cast<std::size_t>(labels_[i]) * inputs_ + j] +
                                   static_cast<float>(2 * (hypertune::uniform01(rng) - 0.5));
    }
  }
  std::size_t size() const { return labels_.size(); }
  int label(std::size_t sample) const { return labels_[sample]; }
  const float* input(std::size_t sample) const { return &values_[sample * inputs_]; }

 private:
  std::size_t inputs_;
  std::vector<int> labels_;
  std::vector<float> values_;
};

class Network {
 public:
  explicit Network(Shape shape)
      : inputs_(static_cast<std::size_t>(shape.inputs)),
        hidden_(static_cast<std::size_t>(shape.hidden)),
        outputs_(static_cast<std::size_t>(shape.outputs)),
        weights_((inputs_ + outputs_) * hidden_),
        gradient_(weights_.size()),
        momentum_(weights_.size()),
        active_(hidden_),
        back_(hidden_),
        scores_(outputs_) {
    hypertune::Rng rng = hypertune::derived_rng(8, {2});
    const double scale = std::sqrt(6.0 / static_cast<double>(inputs_));
    for (float& weight : weights_) weight = static_cast<float>(scale * (hypertune::uniform01(rng) - 0.5));
  }

  std::vector<float>& weights() { return weights_; }
  std::vector<float>& momentum() { return momentum_; }
  std::vector<float>& gradient() { return gradient_; }

  /// The gradient becomes the mean of these samples'. Returns their mean loss.
  double backward(const Blobs& data, std::span<const std::uint64_t> batch) {
    std::fill(gradient_.begin(), gradient_.end(), 0.0F);
    double loss = 0;
    for (const std::uint64_t sample : batch) loss += add(data.input(sample), data.label(sample));
    const float share = batch.empty() ? 0 : 1.0F / static_cast<float>(batch.size());
    for (float& value : gradient_) value *= share;
    return loss * static_cast<double>(share);
  }
  void step(float rate) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      momentum_[i] = 0.9F * momentum_[i] + gradient_[i];
      weights_[i] -= rate * momentum_[i];
    }
  }

 private:
  /// The first layer's weights are by input, the second's by output: each row has a weight for each hidden unit.
  double add(const float* input, int label) {
    float* const active = active_.data();
    float* const back = back_.data();
    const auto axpy = [this](float a, const float* x, float* y) {
      for (std::size_t j = 0; j < hidden_; ++j) y[j] += a * x[j];
    };
    std::fill(active_.begin(), active_.end(), 0.0F);
    for (std::size_t i = 0; i < inputs_; ++i) axpy(input[i], &weights_[i * hidden_], active);
    for (float& value : active_) value = std::max(value, 0.0F);
    const float* const second = &weights_[inputs_ * hidden_];
    float* const second_gradient = &gradient_[inputs_ * hidden_];
    float most = -1e30F;
    for (std::size_t o = 0; o < outputs_; ++o) {
      float sum = 0;
      for (std::size_t j = 0; j < hidden_; ++j) sum += second[o * hidden_ + j] * active[j];
      scores_[o] = sum;
      most = std::max(most, sum);
    }
    float total = 0;
    for (float& score : scores_) total += score = std::exp(score - most);
    std::fill(back_.begin(), back_.end(), 0.0F);
    const auto right = static_cast<std::size_t>(label);
    const double loss = -std::log(std::max(1e-12, static_cast<double>(scores_[right] / total)));
    for (std::size_t o = 0; o < outputs_; ++o) {
      const float error = scores_[o] / total - (o == right ? 1.0F : 0.0F);
      axpy(error, second + o * hidden_, back);
      axpy(error, active, second_gradient + o * hidden_);
    }
    for (std::size_t j = 0; j < hidden_; ++j) back[j] = active[j] > 0 ? back[j] : 0;
    for (std::size_t i = 0; i < inputs_; ++i) axpy(input[i], back, &gradient_[i * hidden_]);
    return loss;
  }

  std::size_t inputs_, hidden_, outputs_;
  std::vector<float> weights_, gradient_, momentum_, active_, back_, scores_;
};

}  // namespace elastic
