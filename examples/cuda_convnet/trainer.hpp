// What trains a network, whatever it runs on: a plain header, for nvcc as well.
#pragma once

#include <hypertune/train/gradient_memory.hpp>
#include <hypertune/train/loss_scale.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace convnet {

struct Options {
  std::size_t side = 8, classes = 10;  ///< of the images
  std::size_t batch = 32;
  std::array<std::size_t, 2> filters{8, 16};
  std::size_t hidden = 64;
  float learning_rate = 0.05F, momentum = 0.9F, weight_decay = 0;
  double clip = 0;         ///< the global norm of the gradient is at most this; 0: no limit
  bool half = false;       ///< mixed precision: 16 bits where matrices are multiplied, with a scaled loss
  std::uint64_t seed = 0;  ///< of the first weights
};

/// All that training needs to go on.
struct State {
  std::vector<float> parameters, velocity;
  std::int64_t updates = 0;
  hypertune::LossScale::State scale;  ///< of the loss, where `half`
};

struct Score {
  double accuracy = 0, loss = 0;
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  /// One step on a batch: images [image][y][x]. The mean loss.
  virtual double train(const float* images, const std::int32_t* labels) = 0;
  virtual Score evaluate(const float* images, const std::int32_t* labels, std::size_t count) = 0;
  virtual State state() const = 0;
  virtual void restore(const State& state) = 0;
  virtual std::size_t parameter_count() const = 0;

  /// The gradients of the layers, in the order of the forward pass, where they are, and who computes with them there.
  virtual std::vector<std::span<float>> gradients() = 0;
  virtual std::shared_ptr<hypertune::GradientMemory> gradient_memory() = 0;
  /// Where several workers train. `begin` comes before the backward pass, `ready` in it as soon as the gradient of a
  /// layer is done (on a GPU: as soon as the stream has all that makes it), `reduce` between it and the update.
  struct Workers {
    std::function<void()> begin, reduce;
    std::function<void(std::size_t layer)> ready;
  };
  virtual void train_with(Workers workers) = 0;
};

std::unique_ptr<Trainer> make_cpu_trainer(const Options& options);
/// Throws std::runtime_error where there is no such device.
std::unique_ptr<Trainer> make_gpu_trainer(const Options& options, int device);
/// Why there is no training on a GPU in this process; empty: there is. It sets CUDA up: not to be asked before a fork.
std::string no_gpu_because();
/// Whether the program was built with CUDA. Sets nothing up.
bool built_with_cuda();

}  // namespace convnet
