// Inference requests and answers as bytes: JSON, and its form with binary tensors behind it. No I/O.
#pragma once

// The Open Inference Protocol, version 2, over REST: github.com/kserve/open-inference-protocol,
// specification/protocol/inference_rest.md and the extension "binary tensor data".

#include <hypertune/serve/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::serving {

/// An output that a request asks for.
struct WantedOutput {
  std::string name;
  bool binary = false;
};

struct InferenceRequest {
  std::optional<std::string> id;
  std::vector<Tensor> inputs;
  std::optional<std::vector<WantedOutput>> outputs;  ///< nullopt: all
  bool binary = false;                               ///< outputs that are not asked for by name are binary
  std::optional<std::uint64_t> timeout;              ///< microseconds until the answer is of no use
  std::optional<std::uint64_t> priority;             ///< 1 comes first; 0 and nullopt: the server's default
};

struct InferenceAnswer {
  std::optional<std::string> id;
  std::string model, version;
  std::vector<Tensor> outputs;
};

/// A text that is JSON for the first `json` bytes, and tensors after it.
struct Encoded {
  std::string bytes;
  std::size_t json = 0;
  bool binary() const { return json != bytes.size(); }
};

/// What a body is read with.
struct DecodeLimits {
  std::size_t tensors = 256;                         ///< inputs, and outputs asked for
  std::size_t rank = 32;                             ///< extents of a shape
  std::uint64_t elements = std::uint64_t{1} << 28U;  ///< of a tensor
};

/// Reads a request. `json`: how many bytes of `body` are JSON; nullopt: all. Error of kind `input`: what is wrong, where,
/// and what was expected. Whether the model takes such inputs is not checked.
InferenceRequest decode_request(std::string_view body, std::optional<std::size_t> json = std::nullopt,
                                const DecodeLimits& limits = {});
/// Inputs to be sent to a model. `id`: of the message; 0: none.
Encoded encode_inputs(const std::vector<Tensor>& inputs, bool binary, std::uint64_t id = 0);
/// The outputs that the request asks for, in the form that it asks for. Error of kind `input`: texts that are no UTF-8, and are not
/// to be binary.
Encoded encode_answer(const InferenceAnswer& answer, const InferenceRequest& request);

/// What a model has answered: its outputs, or why it has none; faults of the outputs are such an error, too. Numbers that are
/// not finite may be written as Python does. Error of kind `input` if it is no JSON object.
struct ModelAnswer {
  std::optional<std::string> id;  ///< of the message that it answers, if it says so
  std::vector<Tensor> outputs;
  std::string error;  ///< empty: none
  int status = 400;   ///< of HTTP, for an error: 400 or 500
};
ModelAnswer decode_answer(std::string_view body, std::optional<std::size_t> json = std::nullopt,
                          const DecodeLimits& limits = {});

/// Whether a line that a program has printed is meant as its first line (`first`) or as an answer: an object with 'outputs' or
/// 'error', or, as the first one, with 'inputs' or empty. Others are what libraries print. It may still be no valid JSON.
bool is_message(std::string_view line, bool first);

/// The metadata of a model: its inputs and outputs; nullopt if the object has neither. Error of kind `input`.
std::optional<Signature> decode_signature(std::string_view json);
/// `"inputs":[…],"outputs":[…]`, without braces.
std::string encode_signature(const Signature& signature);

/// Plain JSON: `{"x": [[…], …]}`, nested lists by the input's name, in place of a protocol. The shapes are those of the
/// lists, the types those of `signature`. Error of kind `input`.
InferenceRequest decode_plain(std::string_view body, const Signature& signature, const DecodeLimits& limits = {});
/// `{"y": [[…], …]}`
std::string encode_plain(const std::vector<Tensor>& outputs);

/// Checks that a model with this signature takes these inputs, and puts them into its order. `batches`: the first extents
/// are the same. Error of kind `input`.
void match_inputs(std::vector<Tensor>& inputs, const Signature& signature);
/// Checks that a request asks for outputs that there are. Error of kind `input`.
void match_wanted(const InferenceRequest& request, const Signature& signature);
/// Checks that the texts of a tensor can be written as JSON. Error of kind `input`.
void require_utf8(const Tensor& tensor);
/// Checks that outputs are those of the signature, and puts them into its order. Error of kind `input`.
void match_outputs(std::vector<Tensor>& outputs, const Signature& signature);

/// Text with `"NaN"`, `"Infinity"` and `"-Infinity"` where it has these words outside of strings.
std::string quote_non_finite(std::string_view json);

}  // namespace hypertune::inline v0::serving
