// What takes the time of a training on the CPU: this file alone needs to be optimised.
#include "cuda_convnet/convnet.hpp"
#include "cuda_convnet/cpu_backend.hpp"

#include <hypertune/train/element.hpp>

namespace convnet {

std::unique_ptr<Trainer> make_cpu_trainer(const Options& options) {
  if (options.half) return std::make_unique<Network<CpuBackend, hypertune::Half>>(CpuBackend{}, options);
  return std::make_unique<Network<CpuBackend, float>>(CpuBackend{}, options);
}

}  // namespace convnet
