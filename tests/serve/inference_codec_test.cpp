// Requests and answers of the Open Inference Protocol as bytes.
#include "serve/inference_codec.hpp"

#include "serve/half.hpp"
#include "support/test.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using namespace hypertune;
using namespace hypertune::serving;

namespace {

std::string refusal(std::string_view body, std::optional<std::size_t> json = std::nullopt) {
  try {
    decode_request(body, json);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::input);
    return error.what();
  }
  return "accepted";
}

std::string one(std::string_view shape, std::string_view type, std::string_view data) {
  return std::string(R"({"inputs":[{"name":"x","shape":)") + std::string(shape) + R"(,"datatype":")" +
         std::string(type) + R"(","data":)" + std::string(data) + "}]}";
}

Tensor decoded(std::string_view shape, std::string_view type, std::string_view data) {
  auto request = decode_request(one(shape, type, data));
  REQUIRE(request.inputs.size() == 1);
  return request.inputs.front();
}

template <class T>
std::vector<T> values(const Tensor& tensor) {
  const auto span = tensor.values<T>();
  return {span.begin(), span.end()};
}

const Signature signature{{{"x", Datatype::fp32, {-1, 2}}, {"n", Datatype::int32, {-1}}},
                          {{"y", Datatype::fp64, {-1}}}};

}  // namespace

TEST_CASE("flat and nested data are the same tensor") {
  CHECK(values<float>(decoded("[2,2]", "FP32", "[1,2,3,4.5]")) == std::vector<float>{1, 2, 3, 4.5});
  CHECK(decoded("[2,2]", "FP32", "[[1,2],[3,4.5]]") == decoded("[2,2]", "FP32", "[1,2,3,4.5]"));
  CHECK(decoded("[]", "INT8", "-3") == Tensor::of<std::int8_t>("x", {}, std::vector<std::int8_t>{-3}));
  CHECK(decoded("[1]", "INT8", "[-3]").shape == TensorShape{1});
  CHECK(decoded("[0,4]", "FP64", "[]").data.empty());
  CHECK(values<std::uint64_t>(decoded("[1]", "UINT64", "[18446744073709551615]")).front() == UINT64_MAX);
  CHECK(values<bool>(decoded("[2]", "BOOL", "[true,false]")) == std::vector<bool>{true, false});
  const auto texts = decoded("[2]", "BYTES", R"(["a\u00e4",""])");
  CHECK(texts.texts() == std::vector<std::string_view>{"a\xC3\xA4", ""});
}

TEST_CASE("numbers that are not finite are told apart, in and out") {
  for (const char* form : {R"(["NaN","Infinity","-Infinity"])", "[NaN, Infinity, -Infinity]"}) {
    const auto tensor = decoded("[3]", "FP32", form);
    const auto read = values<float>(tensor);
    CHECK(std::isnan(read[0]));
    CHECK(read[1] == std::numeric_limits<float>::infinity());
    CHECK(read[2] == -std::numeric_limits<float>::infinity());
    const auto written = encode_answer({{}, "", "", {tensor}}, {}).bytes;
    CHECK_THAT(written, ContainsSubstring(R"("data":["NaN","Infinity","-Infinity"])"));
  }
  // Words within texts stay.
  CHECK(quote_non_finite(R"({"NaN \" Infinity": NaN})") == R"({"NaN \" Infinity": "NaN"})");
}

TEST_CASE("what is wrong with a request is said: which tensor, what, and what was expected") {
  for (const auto& [body, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "empty"},
           {"{", "not valid JSON"},
           {"{\"a\": \"\xff\"}", "bytes that are no UTF-8"},
           {"[1]", "must be a JSON object"},
           {"{}", "'inputs' is missing"},
           {R"({"inputs":{}})", "'inputs' is missing: a list"},
           {R"({"inputs":[1]})", "must be an object"},
           {R"({"inputs":[{}]})", "lacks 'name'"},
           {R"({"inputs":[{"name":"x"}]})", "'x' needs its 'shape'"},
           {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32"}]})", "'x' lacks 'data'"},
           {R"({"id":7,"inputs":[]})", "'id' must be a text"},
           {one("[2]", "FP32", "[1]"), "'x' of shape [2] has 2 elements, and 1 were given"},
           {one("[2,2]", "FP32", "[[1,2],[3]]"), "a list of 1 where 2 are expected, at depth 1"},
           {one("[2,2]", "FP32", "[[1,2],3]"), "where a list is expected"},
           {one("[1]", "FP32", "[\"1\"]"), "'x' has elements of FP32, and \"1\" is none"},
           {one("[1]", "FP32", "[1e39]"), "FP32"},
           {one("[1]", "FP16", "[70000]"), "FP16"},
           {one("[1]", "UINT8", "[256]"), "UINT8, and 256 is none"},
           {one("[1]", "INT32", "[1.5]"), "INT32"},
           {one("[1]", "BOOL", "[1]"), "BOOL"},
           {one("[1]", "FP8", "[1]"), "'FP8', which there is not: BOOL"},
           {one("[-1]", "FP32", "[1]"), "whole number from 0"},
           {one("[4294967296,4294967296,4294967296]", "FP32", "[1]"), "more than"},
           {one("[1.5]", "FP32", "[1]"), "whole number"},
           {R"({"inputs":[{"name":"x","shape":[1],"datatype":"FP32","data":[1]},)"
            R"({"name":"x","shape":[1],"datatype":"FP32","data":[1]}]})",
            "'x' twice"}})
    CHECK_THAT(refusal(body), ContainsSubstring(expected));
}

TEST_CASE("binary tensors stand behind the JSON, in the order of the inputs") {
  const std::vector<Tensor> inputs{Tensor::of<float>("x", {2}, std::vector<float>{1, 2}),
                                   Tensor::of_texts("t", {2}, std::vector<std::string>{"", "two"})};
  const Encoded encoded = encode_inputs(inputs, true);
  CHECK(encoded.binary());
  CHECK(decode_request(encoded.bytes, encoded.json).inputs == inputs);
  CHECK(decode_request(encode_inputs(inputs, false).bytes).inputs == inputs);

  const std::string head =
      R"({"inputs":[{"name":"x","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":8}}]})";
  CHECK_THAT(refusal(head + "1234567", head.size()), ContainsSubstring("8 bytes behind the JSON, where 7 are left"));
  CHECK_THAT(refusal(head + "123456789", head.size()),
             ContainsSubstring("1 bytes behind the JSON belong to no tensor"));
  CHECK_THAT(refusal(head, head.size() + 1), ContainsSubstring("the body has"));
  const std::string small =
      R"({"inputs":[{"name":"x","shape":[2],"datatype":"FP32","parameters":{"binary_data_size":7}}]})";
  CHECK_THAT(refusal(small + "1234567", small.size()), ContainsSubstring("has 8 bytes, and 7 were given"));
  const std::string text =
      R"({"inputs":[{"name":"t","shape":[1],"datatype":"BYTES","parameters":{"binary_data_size":6}}]})";
  CHECK_THAT(refusal(text + std::string("\x09\0\0\0ab", 6), text.size()),
             ContainsSubstring("end within one of 9 bytes"));
}

TEST_CASE("texts that are no UTF-8 are binary, or refused: JSON would change them") {
  const Tensor bytes = Tensor::of_texts("t", {1}, std::vector<std::string>{"\xff\xd8"});
  CHECK_THROWS_WITH(encode_answer({{}, "", "", {bytes}}, {}),
                    "'t' has bytes that are no UTF-8, which JSON cannot have");
  InferenceRequest request;
  request.binary = true;
  const Encoded encoded = encode_answer({{}, "", "", {bytes}}, request);
  CHECK(decode_answer(encoded.bytes, encoded.json).outputs.front() == bytes);
}

TEST_CASE("an answer has the outputs that were asked for, in the form that was asked for") {
  const InferenceAnswer answer{"7",
                               "m",
                               "3-9",
                               {Tensor::of<float>("a", {1, 2}, std::vector<float>{0.1F, 2}),
                                Tensor::of<std::int64_t>("b", {1}, std::vector<std::int64_t>{5})}};
  CHECK(
      encode_answer(answer, {}).bytes ==
      R"({"model_name":"m","model_version":"3-9","id":"7","outputs":[)"
      R"({"name":"a","shape":[1,2],"datatype":"FP32","data":[0.1,2]},{"name":"b","shape":[1],"datatype":"INT64","data":[5]}]})");
  auto request = decode_request(
      R"({"inputs":[],"parameters":{"binary_data_output":true},"outputs":[{"name":"b","parameters":{"binary_data":false}},{"name":"a"}]})");
  const Encoded encoded = encode_answer(answer, request);
  CHECK(encoded.bytes.substr(0, encoded.json) ==
        R"({"model_name":"m","model_version":"3-9","id":"7","outputs":[)"
        R"({"name":"b","shape":[1],"datatype":"INT64","data":[5]},)"
        R"({"name":"a","shape":[1,2],"datatype":"FP32","parameters":{"binary_data_size":8}}]})");
  CHECK(encoded.bytes.size() == encoded.json + 8);
}

TEST_CASE("inputs are matched with what the model takes, in its order") {
  auto request = decode_request(
      R"({"inputs":[{"name":"n","shape":[1],"datatype":"INT32","data":[1]},{"name":"x","shape":[1,2],"datatype":"FP32","data":[1,2]}]})");
  match_inputs(request.inputs, signature);
  CHECK(request.inputs[0].name == "x");
  const auto wrong = [](std::vector<Tensor> inputs) {
    try {
      match_inputs(inputs, signature);
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("accepted");
  };
  const auto x = [](TensorShape shape) {
    return Tensor{"x", Datatype::fp32, shape, std::string(static_cast<std::size_t>(*element_count(shape)) * 4, '\0')};
  };
  const auto n = [](std::int64_t rows) {
    return Tensor{"n", Datatype::int32, {rows}, std::string(static_cast<std::size_t>(rows) * 4, '\0')};
  };
  CHECK(wrong({x({1, 2})}) == "the input 'n' is missing: INT32 of shape [-1]");
  CHECK(wrong({x({1, 3}), n(1)}) == "the input 'x' has the shape [1,3], and [-1,2] is expected");
  CHECK(wrong({x({2}), n(1)}) == "the input 'x' has the shape [2], and [-1,2] is expected");
  CHECK_THAT(wrong({x({1, 2}), n(2)}), ContainsSubstring("of one batch, and have 1 and 2 rows"));
  CHECK_THAT(wrong({x({0, 2}), n(0)}), ContainsSubstring("no rows"));
  CHECK_THAT(wrong({x({1, 2}), n(1), {"z", Datatype::fp32, {}, "1234"}}),
             ContainsSubstring("no input 'z': it has 'x', 'n'"));
  request.outputs = {{"q", false}};
  CHECK_THROWS_WITH(match_wanted(request, signature), "the model has no output 'q': it has 'y'");
}

TEST_CASE("plain JSON has nested lists by the input's name") {
  const auto request = decode_plain(R"({"x": [[1,2],[3,4]], "n": [5,6]})", signature);
  CHECK(request.inputs[0] == Tensor::of<float>("x", {2, 2}, std::vector<float>{1, 2, 3, 4}));
  CHECK(request.inputs[1] == Tensor::of<std::int32_t>("n", {2}, std::vector<std::int32_t>{5, 6}));
  CHECK(encode_plain(request.inputs) == R"({"x":[[1,2],[3,4]],"n":[5,6]})");
  CHECK_THROWS_WITH(decode_plain(R"({"x": [[1,2],[3]]})", signature),
                    Catch::Matchers::Contains("a list of 1 where 2 are expected"));
  CHECK_THROWS_WITH(decode_plain(R"({"z": 1})", signature), Catch::Matchers::Contains("no input 'z'"));
}

TEST_CASE("a model's metadata and answers are read as they come") {
  CHECK(decode_signature("{" + encode_signature(signature) + "}") == signature);
  CHECK_FALSE(decode_signature("{}"));
  CHECK_THROWS_WITH(decode_signature(R"({"error":"no file"})"), "no file");
  CHECK_THROWS(decode_signature(R"({"inputs":[{"name":"x","datatype":"FP32","shape":[-2]}],"outputs":[]})"));
  CHECK(decode_answer(R"({"error":"too long"})").error == "too long");
  CHECK(decode_answer(R"({"error":"","status":503})").status == 500);
  CHECK(std::isnan(decode_answer(R"({"outputs":[{"name":"y","shape":[1],"datatype":"FP64","data":[NaN]}]})")
                       .outputs.front()
                       .values<double>()
                       .front()));
}

TEST_CASE("each half is itself again, and rounding is to the nearest, ties to even") {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const double real = real_from_half(static_cast<std::uint16_t>(half));
    if (std::isnan(real)) continue;
    REQUIRE(half_from(real) == half);
  }
  CHECK(half_from(2049) == half_from(2048));
  CHECK(half_from(2051) == half_from(2052));
  CHECK(half_from(65519) == half_from(65504));
  CHECK(real_from_half(half_from(65520)) == std::numeric_limits<double>::infinity());
  CHECK(half_from(std::ldexp(1, -25)) == 0);
  CHECK(half_from(std::ldexp(1.5, -25)) == 1);
}
