// serve(): the best checkpoint of an experiment behind HTTP.
#pragma once

#include <hypertune/serve/serve_options.hpp>
#include <hypertune/serve/tensor.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <concepts>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// What a predictor is made from.
struct ModelCheckpoint {
  Checkpoint checkpoint;  ///< verified, in files that stay as long as it is served
  Params params;          ///< of its trial
};

/// A model that answers: `signature()` says what it takes and gives, and `predict(inputs)` answers a batch. The inputs are
/// in the order of the signature, with its names and types. If the first extents of all inputs and outputs are -1, several
/// requests come as one batch. An exception of predict() is
/// answered with its text: status 400 for a std::logic_error or an Error of kind `input` or `usage`, else 500. Each
/// predictor is used by one thread, in a process of its own.
template <class P>
concept Predictor = requires(P& predictor, const P& same, std::vector<Tensor> inputs) {
  { same.signature() } -> std::convertible_to<Signature>;
  { predictor.predict(std::move(inputs)) } -> std::convertible_to<std::vector<Tensor>>;
};

namespace detail {
/// A predictor with its type erased.
struct AnyPredictor {
  Signature signature;
  std::function<std::vector<Tensor>(std::vector<Tensor>)> predict;
};
using MakePredictor = std::function<AnyPredictor(const ModelCheckpoint&)>;

/// What answers: predictors of this program, or a command.
struct ServedProgram {
  MakePredictor make;
  std::vector<std::string> command;
};

void serve(const std::filesystem::path& directory, const ServedProgram& program, const ServeOptions& options);
}  // namespace detail

/// Serves the best checkpoint of the experiment in `directory` over HTTP (the Open Inference Protocol v2), until SIGINT or
/// SIGTERM; requests under way are answered then. `make(const ModelCheckpoint&)` returns a Predictor; it is called in the
/// processes that answer, which are forked from this one: call serve() before the program starts threads. Needs
/// hypertune::serve. Errors: `input` (no experiment), `experiment` (no checkpoint, unless the experiment is followed),
/// `usage`, `io` (the port is taken).
template <class Make>
  requires Predictor<std::invoke_result_t<Make&, const ModelCheckpoint&>>
void serve(const std::filesystem::path& directory, Make make, const ServeOptions& options = {}) {
  detail::MakePredictor erased = [make = std::move(make)](const ModelCheckpoint& from) mutable {
    using P = std::invoke_result_t<Make&, const ModelCheckpoint&>;
    auto predictor = std::make_shared<P>(make(from));
    return detail::AnyPredictor{predictor->signature(), [predictor](std::vector<Tensor> inputs) {
                                  return std::vector<Tensor>(predictor->predict(std::move(inputs)));
                                }};
  };
  detail::serve(directory, {std::move(erased), {}}, options);
}

/// The same, with a command that answers: it is started with its checkpoint's folder in HYPERTUNE_RESTORE, prints its
/// metadata as one line of JSON when it is ready, and then an answer in one line for each request that it reads in one
/// line (docs/serving.md).
inline void serve_command(const std::filesystem::path& directory, std::vector<std::string> command,
                          const ServeOptions& options = {}) {
  detail::serve(directory, {{}, std::move(command)}, options);
}

}  // namespace hypertune::inline v0
