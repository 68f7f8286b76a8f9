// The expensive code of training on the CPU: only this file needs to be compiled with optimisation.
#include "cuda_convnet/convnet.hpp"
#include "cuda_convnet/cpu_backend.hpp"

#include <hypertune/train/element.hpp>

namespace convnet {

std::unique_ptr<Trainer> make_cpu_trainer(const Options& options) {
  if (options.half) return std::make_unique<Network<CpuBackend, hypertune::Half>>(CpuBackend{}, options);
  return std::make_unique<Network<CpuBackend, float>>(CpuBackend{}, options);
}

}  // namespace convnet
