// A LibTorch model that up to four processes train together; workers may be lost and may join. --kill kills one of them
// during the run. Built with -DHYPERTUNE_LIBTORCH=ON.
#include "digits/data.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/local/processes.hpp>
#include <hypertune/train/elastic_sampler.hpp>
#include <hypertune/train/elastic_state.hpp>

#include <fmt/format.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/torch.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace ht = hypertune;

namespace {

constexpr int epochs = 8;
bool kill_one = false;

const digits::Digits& data() {
  static const digits::Digits loaded = digits::load(HYPERTUNE_DIGITS);
  return loaded;
}

torch::nn::Sequential make_model() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 3).padding(1)), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Conv2d(nn::Conv2dOptions(16, 32, 3).padding(1)), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(128, 10));
}

struct Batch {
  torch::Tensor images, labels;
};
Batch gather(const digits::ImageSet& set, const std::vector<std::uint64_t>& chosen) {
  const auto count = static_cast<std::int64_t>(chosen.size());
  Batch batch{torch::empty({count, 1, 8, 8}), torch::empty({count}, torch::kInt64)};
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const auto image = static_cast<Eigen::Index>(chosen[i]);
    std::copy_n(set.images.col(image).data(), 64, batch.images.data_ptr<float>() + 64 * i);
    batch.labels.data_ptr<std::int64_t>()[i] = set.labels[chosen[i]];
  }
  return batch;
}

std::span<float> values(const torch::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

/// Connects the gradients of a model with `gradients`: each is reduced over the workers as soon as the backward pass
/// has computed it. The gradient tensors must stay in place: set them to zero with zero(), do not reset them to
/// undefined.
class ReducedModel {
 public:
  ReducedModel(torch::nn::Sequential model, ht::DataParallel& gradients) : parameters_(model->parameters()) {
    for (torch::Tensor& parameter : parameters_) {
      parameter.mutable_grad() = torch::zeros_like(parameter);
      const std::size_t index = gradients.add(values(parameter.grad()));
      // A hook of the node that adds to .grad. A hook of the tensor itself would be called before the addition.
      nodes_.push_back(torch::autograd::impl::grad_accumulator(parameter));
      using torch::autograd::variable_list;
      nodes_.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
          [&gradients, index](const variable_list& outputs, const variable_list&) {
            gradients.ready(index);
            return outputs;
          }));
    }
  }
  void zero() {
    for (torch::Tensor& parameter : parameters_) parameter.mutable_grad().zero_();
  }

 private:
  std::vector<torch::Tensor> parameters_;
  std::vector<std::shared_ptr<torch::autograd::Node>> nodes_;
};

/// Whether this is the worker that --kill kills, in the middle of the third epoch. True only once in a trial.
bool is_to_die(const ht::ElasticState& group, const ht::Context& context, const ht::ElasticSampler& sampler) {
  if (!kill_one || sampler.epoch() != 2 || sampler.remaining() > sampler.samples() / 2) return false;
  if (group.rank() != group.size() - 1) return false;
  std::FILE* const mark = std::fopen((context.directory() / "killed").c_str(), "wx");
  if (mark != nullptr) std::fclose(mark);
  return mark != nullptr;
}

/// The share of correct predictions. A function of its own, as NoGradGuard is thread-local and must not live across a
/// suspension of the coroutine.
double share_right(torch::nn::Sequential& model, const Batch& batch) {
  const torch::NoGradGuard no_gradients;
  return model->forward(batch.images).argmax(1).eq(batch.labels).to(torch::kFloat64).mean().item<double>();
}

ht::Training train(const ht::Params& params, ht::Context& context) {
  torch::set_num_threads(1);
  torch::manual_seed(context.seed());
  torch::nn::Sequential model = make_model();
  torch::optim::Adam optimizer(model->parameters(), params.get<double>("learning_rate"));
  const auto& [training, validation] = data();
  ht::ElasticSampler sampler(training.labels.size(), {.seed = context.seed()});

  // Before the gradients are registered, as loading gives the parameters other memory.
  int epoch = context.next_step();
  const auto save = [&](ht::CheckpointWriter& out) {
    torch::save(model, out.file("model.pt").string());
    torch::save(optimizer, out.file("optimizer.pt").string());
  };
  const auto load = [&](const ht::Checkpoint& in) {
    torch::load(model, in.file("model.pt").string());
    torch::load(optimizer, in.file("optimizer.pt").string());
    sampler.restore({.epoch = static_cast<std::uint64_t>(epoch), .processed = 0});
  };
  context.checkpoints(save, load);

  ht::ElasticState group(context);
  ht::DataParallel& gradients = group.gradients();
  ReducedModel reduced(model, gradients);
  for (const torch::Tensor& parameter : model->parameters()) group.keep(values(parameter));
  for (const torch::Tensor& buffer : model->buffers()) group.keep(values(buffer));  // of BatchNorm, if there were one
  const auto save_optimizer = [&] {  // the optimiser has no state before its first step
    std::ostringstream out;
    torch::save(optimizer, out);
    return out.str();
  };
  const auto load_optimizer = [&](std::string_view bytes) {
    std::istringstream in{std::string(bytes)};
    torch::load(optimizer, in);
  };
  group.keep(save_optimizer, load_optimizer).keep(sampler).keep(epoch);

  std::vector<std::uint64_t> all(validation.labels.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const Batch held_out = gather(validation, all);

  for (; epoch < epochs; ++epoch) {
    group.run([&] {
      while (!sampler.done()) {
        const auto mine = sampler.next(64, group.rank(), group.size());
        reduced.zero();
        if (is_to_die(group, context, sampler)) std::raise(SIGKILL);
        gradients.begin(std::ssize(mine));
        if (!mine.empty()) {
          const Batch batch = gather(training, mine);
          torch::nn::functional::cross_entropy(model->forward(batch.images), batch.labels).backward();
        }
        gradients.reduce(std::ssize(mine));
        optimizer.step();
        group.commit();
      }
      sampler.next_epoch();
    });
    const double accuracy = share_right(model, held_out);
    co_yield ht::report("accuracy", accuracy, "workers", group.size());
  }
}

struct Lines {
  void on_trial_report(const ht::record::TrialReported& report) {
    fmt::print("epoch {}:", report.step + 1);
    for (const auto& [name, value] : report.metrics) fmt::print("  {} {:.4g}", name, value);
    fmt::print("\n");
  }
  void on_trial_resize(const ht::record::TrialResized& change) {
    fmt::print("{} workers from now on: {}\n", change.workers.size(), change.why);
  }
};

}  // namespace

int main(int argc, char** argv) try {
  kill_one = argc == 2 && argv[1] == std::string_view("--kill");
  if (argc > 1 && !kill_one) {
    std::fprintf(stderr, "usage: libtorch [--kill]\n");
    return 2;
  }
  // Loaded before the workers are forked, so that they share the memory. LibTorch is not used before the fork, because
  // its threads would not exist in the workers.
  data();
  const auto results = ht::tune(ht::space(ht::dim("learning_rate", ht::log_uniform(1e-3, 1e-2))), train,
                                {.name = "libtorch",
                                 .metric = "accuracy",
                                 .mode = ht::Mode::maximize,
                                 .samples = 1,
                                 .workers = {.min = 1, .max = 4},
                                 .max_retries = 1,
                                 .checkpoint = {.every = 4, .keep = 1},
                                 .executor = ht::processes({.pool = 4}),
                                 .display = ht::Display::quiet,
                                 .callbacks = {Lines{}}});
  const auto trial = results.best();
  fmt::print("The best accuracy was {:.2f} %, after {} epochs. Failures of the trial: {}.\n", 100 * trial.best->value,
             trial.best->step + 1, trial.failures[0]);
} catch (const std::exception& error) {
  std::fprintf(stderr, "libtorch: %s\n", error.what());
  return 1;
}
