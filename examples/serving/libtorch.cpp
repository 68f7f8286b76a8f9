// Serves a TorchScript module: "model.pt" of each checkpoint, as torch.jit.script(model).save("model.pt") writes it. It takes
// rows of COLUMNS numbers, and gives rows of numbers. Built with -DHYPERTUNE_LIBTORCH=ON.
//     build/bin/examples/serve_libtorch runs/net 64
#include <hypertune/serve/serve.hpp>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/script.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

namespace ht = hypertune;

namespace {

class ScriptModel {
 public:
  ScriptModel(const ht::ModelCheckpoint& from, std::int64_t columns)
      : module_(torch::jit::load(from.checkpoint.file("model.pt").string())), columns_(columns) {
    module_.eval();
  }

  ht::Signature signature() const {
    return {.inputs = {{"x", ht::Datatype::fp32, {-1, columns_}}}, .outputs = {{"y", ht::Datatype::fp32, {-1, -1}}}};
  }

  std::vector<ht::Tensor> predict(std::vector<ht::Tensor> inputs) {
    const torch::NoGradGuard no_gradients;
    ht::Tensor& x = inputs.front();
    const torch::Tensor rows = torch::from_blob(x.data.data(), {x.rows(), columns_}, torch::kFloat32).clone();
    torch::Tensor y = module_.forward({rows}).toTensor();
    y = y.reshape({x.rows(), -1}).to(torch::kCPU, torch::kFloat32).contiguous();
    const std::span<const float> values(y.data_ptr<float>(), static_cast<std::size_t>(y.numel()));
    return {ht::Tensor::of("y", {y.size(0), y.size(1)}, values)};
  }

 private:
  torch::jit::Module module_;
  std::int64_t columns_;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: serve_libtorch DIR COLUMNS\n");
    return 2;
  }
  const std::int64_t columns = std::stoll(argv[2]);
  ht::ServeOptions options;
  options.ready = [](const std::string& address) {
    fmt::print("{}\n", address);
    std::fflush(stdout);
  };
  // LibTorch is first used in the processes that answer: its threads would not exist there if it had been used before.
  ht::serve(
      argv[1],
      [columns](const ht::ModelCheckpoint& from) {
        at::set_num_threads(1);
        return ScriptModel(from, columns);
      },
      options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "serve_libtorch: %s\n", error.what());
  return 1;
}
