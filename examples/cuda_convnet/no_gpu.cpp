// Replaces gpu_trainer.cu in a program that is built without CUDA.
#include "cuda_convnet/trainer.hpp"

#include <stdexcept>

namespace convnet {

std::unique_ptr<Trainer> make_gpu_trainer(const Options&, int) { throw std::runtime_error(no_gpu_because()); }
std::string no_gpu_because() { return "this program was built without CUDA"; }
bool built_with_cuda() { return false; }

}  // namespace convnet
