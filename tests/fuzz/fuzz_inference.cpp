// What any client may send to a model server, and what a model may answer: JSON with tensors in it or behind it. What is
// accepted is written and read again as the same.
//
// The first byte chooses what is read, the second one how much of the rest is JSON.
#include "serve/inference_codec.hpp"

#include <hypertune/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

using namespace hypertune;
using namespace hypertune::serving;

namespace {

const Signature signature{{{"x", Datatype::fp32, {-1, 2}}, {"t", Datatype::bytes, {-1}}},
                          {{"y", Datatype::fp64, {-1}}}};

void check(const Tensor& tensor) {
  if (tensor.datatype == Datatype::bytes ? tensor.texts().size() != tensor.count()
                                         : tensor.data.size() != tensor.count() * size_of(tensor.datatype))
    std::abort();
}

// Binary data is kept to the bit; of texts, JSON keeps what is UTF-8.
void check_again(const std::vector<Tensor>& tensors) {
  for (const auto& tensor : tensors) check(tensor);
  const Encoded encoded = encode_inputs(tensors, true);
  if (decode_request(encoded.bytes, encoded.json).inputs != tensors) std::abort();
  decode_request(encode_inputs(tensors, false).bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 2), size - 2);
  const std::optional<std::size_t> json =
      data[1] == 0 ? std::nullopt : std::optional<std::size_t>(rest.size() * data[1] / 255);
  constexpr DecodeLimits limits{.tensors = 8, .rank = 8, .elements = 1 << 12};
  try {
    switch (data[0] % 4) {
      case 0: {
        auto request = decode_request(rest, json, limits);
        check_again(request.inputs);
        InferenceAnswer answer{request.id, "m", "1-2", request.inputs};
        const Encoded encoded = encode_answer(answer, request);
        if (decode_answer(encoded.bytes, encoded.json).outputs.size() > request.inputs.size()) std::abort();
        match_wanted(request, signature);
        match_inputs(request.inputs, signature);
        break;
      }
      case 1: {
        auto answer = decode_answer(rest, json, limits);
        check_again(answer.outputs);
        match_outputs(answer.outputs, signature);
        break;
      }
      case 2: check_again(decode_plain(rest, signature, limits).inputs); break;
      default: decode_signature(rest); break;
    }
  } catch (const Error& error) {
    if (error.code() != Errc::input) std::abort();
  }
  return 0;
}
