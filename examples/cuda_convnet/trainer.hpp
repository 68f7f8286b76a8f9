// The interface of network training on any device: a plain header, so that nvcc can compile it as well.
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
  std::size_t side = 8, classes = 10;  ///< of the images: pixels per side, and classes
  std::size_t batch = 32;
  std::array<std::size_t, 2> filters{8, 16};
  std::size_t hidden = 64;
  float learning_rate = 0.05F, momentum = 0.9F, weight_decay = 0;
  double clip = 0;         ///< upper bound of the gradient's global norm; 0: no limit
  bool half = false;       ///< mixed precision: 16-bit matrix products, with a scaled loss
  std::uint64_t seed = 0;  ///< of the initial weights
};

/// Everything that is needed to continue training.
struct State {
  std::vector<float> parameters, velocity;
  std::int64_t updates = 0;
  hypertune::LossScale::State scale;  ///< of the loss, if `half`
};

struct Score {
  double accuracy = 0, loss = 0;
};

class Trainer {
 public:
  virtual ~Trainer() = default;
  /// Makes one step on a batch of images [image][y][x] and returns the mean loss.
  virtual double train(const float* images, const std::int32_t* labels) = 0;
  virtual Score evaluate(const float* images, const std::int32_t* labels, std::size_t count) = 0;
  virtual State state() const = 0;
  virtual void restore(const State& state) = 0;
  virtual std::size_t parameter_count() const = 0;

  /// The gradients of the layers, in the order of the forward pass, in the memory that gradient_memory() works on.
  virtual std::vector<std::span<float>> gradients() = 0;
  virtual std::shared_ptr<hypertune::GradientMemory> gradient_memory() = 0;
  /// For several workers. `begin` is called before the backward pass; `ready` during it, as soon as the gradient of a
  /// layer is done (on a GPU: as soon as the stream has all work that computes it); `reduce` between it and the update.
  struct Workers {
    std::function<void()> begin, reduce;
    std::function<void(std::size_t layer)> ready;
  };
  virtual void train_with(Workers workers) = 0;
};

std::unique_ptr<Trainer> make_cpu_trainer(const Options& options);
/// Throws std::runtime_error if there is no such device.
std::unique_ptr<Trainer> make_gpu_trainer(const Options& options, int device);
/// Why this process cannot train on a GPU; empty if it can. It initialises CUDA: do not call it before a fork.
std::string no_gpu_because();
/// Whether the program was built with CUDA. Initialises nothing.
bool built_with_cuda();

}  // namespace convnet
