// Serves the best network of the digits example over HTTP; with --follow while it is still tuned:
//     build/bin/examples/digits &
//     build/bin/examples/serve_digits runs/digits --port 8000 --follow
#include "digits/mlp.hpp"

#include <hypertune/serve/serve.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace ht = hypertune;

namespace {

// One of them is made in each process that answers.
class DigitsModel {
 public:
  explicit DigitsModel(const ht::ModelCheckpoint& from) : network_(options_of(from.params)) {
    network_.load(from.checkpoint.file("network.bin"));
  }

  // As all first extents are -1, requests may come together as one batch.
  ht::Signature signature() const {
    return {.inputs = {{"pixels", ht::Datatype::fp32, {-1, 64}}},
            .outputs = {{"digit", ht::Datatype::int64, {-1}}, {"probability", ht::Datatype::fp32, {-1, 10}}}};
  }

  std::vector<ht::Tensor> predict(const std::vector<ht::Tensor>& inputs) const {
    const auto pixels = inputs.front().values<float>();
    const std::int64_t rows = inputs.front().rows();
    // A row of the tensor is a column of the network's matrix: both have an image's 64 numbers in a sequence.
    const Eigen::MatrixXf images = Eigen::Map<const Eigen::MatrixXf>(pixels.data(), 64, rows);
    const Eigen::MatrixXf probabilities = network_.probabilities(images);
    std::vector<std::int64_t> digits;
    for (std::int64_t i = 0; i < rows; ++i) {
      Eigen::Index digit = 0;
      probabilities.col(i).maxCoeff(&digit);
      digits.push_back(digit);
    }
    const std::vector<float> values(probabilities.data(), probabilities.data() + probabilities.size());
    return {ht::Tensor::of("digit", {rows}, digits), ht::Tensor::of("probability", {rows, 10}, values)};
  }

 private:
  static digits::MlpOptions options_of(const ht::Params& params) {
    digits::MlpOptions options;
    options.layers = {64, params.get<int>("hidden"), 10};
    if (const int second = params.get<int>("second"); second > 0)
      options.layers.insert(options.layers.end() - 1, second);
    return options;
  }

  digits::Mlp network_;
};

}  // namespace

int main(int argc, char** argv) try {
  std::filesystem::path directory;
  ht::ServeOptions options;
  CLI::App app("Serves the best network of the digits example.", "serve_digits");
  app.add_option("DIR", directory, "The experiment's folder")->required();
  app.add_flag("--follow", options.follow, "A better network takes over while the experiment goes on");
  app.add_option("--port", options.port, "0: any free one")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  options.ready = [](const std::string& address) {
    fmt::print("{}\n", address);
    std::fflush(stdout);
  };
  ht::serve(directory, [](const ht::ModelCheckpoint& from) { return DigitsModel(from); }, options);
} catch (const std::exception& error) {
  std::fprintf(stderr, "serve_digits: %s\n", error.what());
  return 1;
}
