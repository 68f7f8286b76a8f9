#include "inference_codec.hpp"

#include "half.hpp"

#include <hypertune/detail/json_read.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/record/detail/json_text.hpp>

#include <boost/json/monotonic_resource.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

namespace hypertune::inline v0::serving {

static_assert(std::endian::native == std::endian::little, "tensors are kept in the protocol's order of bytes");

namespace json = boost::json;
using hypertune::detail::value_in;

namespace {

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

/// A value in a message: short, whatever was sent.
std::string shown(const json::value& value) {
  if (value.is_array()) return "a list";
  if (value.is_object()) return "an object";
  std::string text;
  if (value.is_double()) {
    hypertune::detail::append_json(text, value.get_double());
    if (text.find_first_not_of("-0123456789") == std::string::npos)
      text += ".0";  // what is wrong with it may be its form
  } else {
    text = json::serialize(value);
  }
  constexpr std::size_t most = 60;
  if (text.size() > most) text = text.substr(0, most) + "…";
  return text;
}

std::string shown(const TensorShape& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

template <class T>
void put(std::string& out, T value) {
  const auto at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

/// Calls `f(T())` with the type of a number's elements.
template <class F>
void with_number_type(Datatype type, const F& f) {
  switch (type) {
    case Datatype::uint8: return f(std::uint8_t());
    case Datatype::uint16: return f(std::uint16_t());
    case Datatype::uint32: return f(std::uint32_t());
    case Datatype::uint64: return f(std::uint64_t());
    case Datatype::int8: return f(std::int8_t());
    case Datatype::int16: return f(std::int16_t());
    case Datatype::int32: return f(std::int32_t());
    case Datatype::int64: return f(std::int64_t());
    case Datatype::fp32: return f(float());
    case Datatype::fp64: return f(double());
    case Datatype::boolean:
    case Datatype::fp16:
    case Datatype::bytes: return;
  }
}

[[noreturn]] void wrong_element(const Tensor& tensor, const json::value& value) {
  fail(Errc::input, "'{}' has elements of {}, and {} is none", tensor.name, to_string(tensor.datatype), shown(value));
}

std::optional<double> real_from(const json::value& value) {
  if (value.is_number()) return value.to_number<double>();
  if (!value.is_string()) return std::nullopt;
  const auto text = view(value.get_string());
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

template <class T>
T number_from(const json::value& value, const Tensor& tensor) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto real = real_from(value);
    if (!real) wrong_element(tensor, value);
    const T narrow = static_cast<T>(*real);
    if (std::isfinite(*real) && !std::isfinite(narrow)) wrong_element(tensor, value);
    return narrow;
  } else {
    if (const auto* whole = value.if_int64(); whole != nullptr && std::in_range<T>(*whole))
      return static_cast<T>(*whole);
    if (const auto* whole = value.if_uint64(); whole != nullptr && std::in_range<T>(*whole))
      return static_cast<T>(*whole);
    wrong_element(tensor, value);
  }
}

void put_text(std::string& out, std::string_view text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out.append(text);
}

/// Appends the elements of a list, which has no lists in it.
void put_elements(Tensor& tensor, const json::array& list) {
  const auto reals = [&](const auto& put_one) {
    for (const auto& value : list) {
      const auto real = real_from(value);
      if (!real) wrong_element(tensor, value);
      put_one(*real, value);
    }
  };
  switch (tensor.datatype) {
    case Datatype::boolean:
      for (const auto& value : list) {
        if (!value.is_bool()) wrong_element(tensor, value);
        tensor.data.push_back(value.get_bool() ? '\1' : '\0');
      }
      return;
    case Datatype::bytes:
      for (const auto& value : list) {
        if (!value.is_string()) wrong_element(tensor, value);
        put_text(tensor.data, view(value.get_string()));
      }
      return;
    case Datatype::fp16:
      return reals([&](double real, const json::value& value) {
        const std::uint16_t half = half_from(real);
        if (std::isfinite(real) && !std::isfinite(real_from_half(half))) wrong_element(tensor, value);
        put(tensor.data, half);
      });
    default:
      with_number_type(tensor.datatype, [&]<class T>(T) {
        const auto at = tensor.data.size();
        tensor.data.resize(at + list.size() * sizeof(T));
        char* to = tensor.data.data() + at;
        for (const auto& value : list) {
          const T number = number_from<T>(value, tensor);
          std::memcpy(to, &number, sizeof number);
          to += sizeof number;
        }
      });
  }
}

[[noreturn]] void wrong_count(const Tensor& tensor, std::size_t given, std::uint64_t wanted) {
  fail(Errc::input, "'{}' of shape {} has {} elements, and {} were given", tensor.name, shown(tensor.shape), wanted,
       given);
}

/// Nested lists, of the extents from number `depth` on.
void put_nested(Tensor& tensor, const json::array& list, std::size_t depth) {
  if (static_cast<std::int64_t>(list.size()) != tensor.shape[depth])
    fail(Errc::input, "'{}' of shape {} has a list of {} where {} are expected, at depth {}", tensor.name,
         shown(tensor.shape), list.size(), tensor.shape[depth], depth);
  if (depth + 1 == tensor.shape.size()) return put_elements(tensor, list);
  for (const auto& inner : list) {
    const auto* inside = inner.if_array();
    if (inside == nullptr)
      fail(Errc::input, "'{}' of shape {} has {} where a list is expected, at depth {}", tensor.name,
           shown(tensor.shape), shown(inner), depth + 1);
    put_nested(tensor, *inside, depth + 1);
  }
}

void put_data(Tensor& tensor, const json::value& data) {
  const std::uint64_t count = *element_count(tensor.shape);
  const auto* list = data.if_array();
  if (list == nullptr) {
    if (!tensor.shape.empty()) fail(Errc::input, "the data of '{}' must be a list, not {}", tensor.name, shown(data));
    return put_elements(tensor, json::array{data});
  }
  if (!list->empty() && list->front().is_array() && !tensor.shape.empty()) return put_nested(tensor, *list, 0);
  if (list->size() != count) wrong_count(tensor, list->size(), count);
  put_elements(tensor, *list);
}

std::string text_of(const json::object& object, std::string_view key, std::string_view where) {
  const auto* value = value_in(object, key);
  if (value == nullptr) fail(Errc::input, "{} lacks '{}'", where, key);
  if (!value->is_string()) fail(Errc::input, "'{}' of {} must be a text, not {}", key, where, shown(*value));
  return std::string(view(value->get_string()));
}

TensorShape shape_of(const json::object& object, std::string_view name, std::int64_t least,
                     const DecodeLimits& limits) {
  const auto* value = value_in(object, "shape");
  const auto* list = value != nullptr ? value->if_array() : nullptr;
  if (list == nullptr) fail(Errc::input, "'{}' needs its 'shape', a list of whole numbers", name);
  if (list->size() > limits.rank) fail(Errc::input, "'{}' has {} extents: {} at most", name, list->size(), limits.rank);
  TensorShape shape;
  for (const auto& extent : *list) {
    const auto* whole = extent.if_int64();
    if (whole == nullptr || *whole < least)
      fail(Errc::input, "the shape of '{}' has {} where a whole number from {} is expected", name, shown(extent),
           least);
    shape.push_back(*whole);
  }
  return shape;
}

Datatype type_of(const json::object& object, std::string_view name) {
  const std::string text = text_of(object, "datatype", fmt::format("'{}'", name));
  if (const auto type = datatype_from(text)) return *type;
  std::string all;
  for (const auto& entry : hypertune::detail::datatypes) all += (all.empty() ? "" : ", ") + std::string(entry.name);
  fail(Errc::input, "'{}' has the datatype '{}', which there is not: {}", name, text.substr(0, 40), all);
}

const json::object* parameters_of(const json::object& object, std::string_view where) {
  const auto* value = value_in(object, "parameters");
  if (value == nullptr) return nullptr;
  const auto* parameters = value->if_object();
  if (parameters == nullptr) fail(Errc::input, "'parameters' of {} must be an object", where);
  return parameters;
}

std::optional<std::uint64_t> whole_in(const json::object* parameters, std::string_view key, std::string_view where) {
  const auto* value = parameters != nullptr ? value_in(*parameters, key) : nullptr;
  if (value == nullptr) return std::nullopt;
  if (const auto* whole = value->if_int64(); whole != nullptr && *whole >= 0) return static_cast<std::uint64_t>(*whole);
  if (const auto* whole = value->if_uint64()) return *whole;
  fail(Errc::input, "'{}' of {} must be a whole number from 0, not {}", key, where, shown(*value));
}

std::optional<bool> flag_in(const json::object* parameters, std::string_view key, std::string_view where) {
  const auto* value = parameters != nullptr ? value_in(*parameters, key) : nullptr;
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) fail(Errc::input, "'{}' of {} must be true or false, not {}", key, where, shown(*value));
  return value->get_bool();
}

/// Elements that stand behind the JSON.
void take_binary(Tensor& tensor, std::uint64_t size, std::string_view& binary) {
  if (size > binary.size())
    fail(Errc::input, "'{}' is said to have {} bytes behind the JSON, where {} are left", tensor.name, size,
         binary.size());
  const std::uint64_t count = *element_count(tensor.shape);
  tensor.data = binary.substr(0, size);
  binary.remove_prefix(size);
  if (tensor.datatype == Datatype::bytes) {
    std::size_t found = 0;
    try {
      found = tensor.texts().size();
    } catch (const Error& error) { fail(Errc::input, "{}", error.what()); }
    if (found != count) wrong_count(tensor, found, count);
    return;
  }
  if (size != count * size_of(tensor.datatype))
    fail(Errc::input, "'{}' of shape {} and {} has {} bytes, and {} were given", tensor.name, shown(tensor.shape),
         to_string(tensor.datatype), count * size_of(tensor.datatype), size);
}

Tensor tensor_from(const json::value& value, std::string_view kind, std::string_view& binary,
                   const DecodeLimits& limits) {
  const auto* object = value.if_object();
  if (object == nullptr) fail(Errc::input, "an entry of '{}' must be an object, not {}", kind, shown(value));
  Tensor tensor;
  tensor.name = text_of(*object, "name", fmt::format("an entry of '{}'", kind));
  tensor.shape = shape_of(*object, tensor.name, 0, limits);
  const auto count = element_count(tensor.shape);
  if (!count || *count > limits.elements)
    fail(Errc::input, "'{}' of shape {} has more than {} elements", tensor.name, shown(tensor.shape), limits.elements);
  tensor.datatype = type_of(*object, tensor.name);
  const auto where = fmt::format("'{}'", tensor.name);
  const auto size = whole_in(parameters_of(*object, where), "binary_data_size", where);
  const auto* data = value_in(*object, "data");
  if (size && data != nullptr) fail(Errc::input, "'{}' has both 'data' and 'binary_data_size'", tensor.name);
  if (size) {
    take_binary(tensor, *size, binary);
  } else if (data != nullptr) {
    put_data(tensor, *data);
  } else {
    fail(Errc::input, "'{}' lacks 'data'", tensor.name);
  }
  return tensor;
}

std::vector<Tensor> tensors_from(const json::object& body, std::string_view kind, std::string_view binary,
                                 const DecodeLimits& limits) {
  const auto* value = value_in(body, kind);
  const auto* list = value != nullptr ? value->if_array() : nullptr;
  if (list == nullptr) fail(Errc::input, "'{}' is missing: a list of tensors", kind);
  if (list->size() > limits.tensors)
    fail(Errc::input, "'{}' has {} tensors: {} at most", kind, list->size(), limits.tensors);
  std::vector<Tensor> tensors;
  for (const auto& entry : *list) {
    tensors.push_back(tensor_from(entry, kind, binary, limits));
    for (std::size_t i = 0; i + 1 < tensors.size(); ++i)
      if (tensors[i].name == tensors.back().name) fail(Errc::input, "'{}' has '{}' twice", kind, tensors.back().name);
  }
  if (!binary.empty()) fail(Errc::input, "{} bytes behind the JSON belong to no tensor", binary.size());
  return tensors;
}

std::vector<WantedOutput> wanted_from(const json::value& value, bool binary, const DecodeLimits& limits) {
  const auto* list = value.if_array();
  if (list == nullptr) fail(Errc::input, "'outputs' must be a list, not {}", shown(value));
  if (list->size() > limits.tensors)
    fail(Errc::input, "'outputs' has {} entries: {} at most", list->size(), limits.tensors);
  std::vector<WantedOutput> all;
  for (const auto& entry : *list) {
    const auto* object = entry.if_object();
    if (object == nullptr) fail(Errc::input, "an entry of 'outputs' must be an object, not {}", shown(entry));
    WantedOutput one{text_of(*object, "name", "an entry of 'outputs'"), binary};
    const auto where = fmt::format("'{}'", one.name);
    one.binary = flag_in(parameters_of(*object, where), "binary_data", where).value_or(binary);
    for (const auto& other : all)
      if (other.name == one.name) fail(Errc::input, "'outputs' has '{}' twice", one.name);
    all.push_back(std::move(one));
  }
  return all;
}

/// The JSON of a body, and what is behind it.
std::pair<std::string_view, std::string_view> parts_of(std::string_view body, std::optional<std::size_t> size) {
  if (!size) return {body, {}};
  if (*size > body.size())
    fail(Errc::input, "the JSON is said to have {} bytes, and the body has {}", *size, body.size());
  return {body.substr(0, *size), body.substr(*size)};
}

json::value parse(std::string_view text, json::storage_ptr storage) {
  if (auto value = hypertune::detail::parse_json(text, storage)) return std::move(*value);
  // Python writes NaN and Infinity as words, which JSON has not.
  if (auto value = hypertune::detail::parse_json(quote_non_finite(text), storage)) return std::move(*value);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    fail(Errc::input, "the body is empty: an inference request is a JSON object with 'inputs'");
  if (!hypertune::detail::is_utf8(text))
    fail(Errc::input, "the body is not valid JSON: it has bytes that are no UTF-8");
  json::stream_parser parser({}, {.max_depth = 64});
  boost::system::error_code error;
  const auto at = parser.write_some(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  fail(Errc::input, "the body is not valid JSON: {}, after {} bytes", error.message(), at);
}

const json::object& object_of(const json::value& value) {
  if (const auto* object = value.if_object()) return *object;
  fail(Errc::input, "the body must be a JSON object, not {}", shown(value));
}

// --- writing

template <class T>
void put_number(std::string& out, T number) {
  if constexpr (std::is_floating_point_v<T>)
    if (!std::isfinite(number)) {
      out += std::isnan(number) ? "\"NaN\"" : number > 0 ? "\"Infinity\"" : "\"-Infinity\"";
      return;
    }
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  out.append(text.data(), end.ptr);
}

/// Calls `f(index)` for each element, which appends it; commas are added.
template <class F>
void put_list(std::string& out, std::size_t from, std::size_t to, const F& f) {
  out += '[';
  for (std::size_t i = from; i < to; ++i) {
    if (i != from) out += ',';
    f(i);
  }
  out += ']';
}

/// Calls `use(f)`, where `f(index)` appends the element of that number as JSON.
template <class Use>
void with_elements(std::string& out, const Tensor& tensor, const Use& use) {
  const char* data = tensor.data.data();
  switch (tensor.datatype) {
    case Datatype::boolean: return use([&](std::size_t i) { out += data[i] != 0 ? "true" : "false"; });
    case Datatype::bytes: {
      const auto texts = tensor.texts();
      return use([&](std::size_t i) { hypertune::detail::append_json(out, texts[i]); });
    }
    case Datatype::fp16:
      return use([&](std::size_t i) {
        std::uint16_t half = 0;
        std::memcpy(&half, data + i * sizeof half, sizeof half);
        put_number(out, static_cast<float>(real_from_half(half)));
      });
    default:
      with_number_type(tensor.datatype, [&]<class T>(T) {
        use([&](std::size_t i) {
          T number{};
          std::memcpy(&number, data + i * sizeof number, sizeof number);
          put_number(out, number);
        });
      });
  }
}

void put_data(std::string& out, const Tensor& tensor) {
  with_elements(out, tensor, [&](const auto& put_one) { put_list(out, 0, tensor.count(), put_one); });
}

void put_tensor(Encoded& out, std::string& binary, const Tensor& tensor, bool as_binary) {
  auto& text = out.bytes;
  text += R"({"name":)";
  hypertune::detail::append_json(text, std::string_view(tensor.name));
  text += R"(,"shape":)";
  put_list(text, 0, tensor.shape.size(), [&](std::size_t i) { put_number(text, tensor.shape[i]); });
  text += R"(,"datatype":")";
  text += to_string(tensor.datatype);
  text += '"';
  if (as_binary) {
    text += R"(,"parameters":{"binary_data_size":)";
    put_number(text, tensor.data.size());
    text += "}}";
    binary += tensor.data;
  } else {
    require_utf8(tensor);
    text += R"(,"data":)";
    put_data(text, tensor);
    text += '}';
  }
}

void finish(Encoded& out, const std::string& binary) {
  out.json = out.bytes.size();
  out.bytes += binary;
}

bool fits(const TensorShape& shape, const TensorShape& wanted) {
  if (shape.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (wanted[i] != -1 && wanted[i] != shape[i]) return false;
  return true;
}

std::string names_of(const std::vector<TensorSpec>& specs) {
  std::string names;
  for (const auto& spec : specs) names += (names.empty() ? "'" : ", '") + spec.name + "'";
  return names.empty() ? "none" : names;
}

/// `kind`: "input" or "output".
void match(std::vector<Tensor>& tensors, const std::vector<TensorSpec>& specs, std::string_view kind) {
  for (const auto& tensor : tensors)
    if (std::none_of(specs.begin(), specs.end(), [&](const auto& spec) { return spec.name == tensor.name; }))
      fail(Errc::input, "the model has no {} '{}': it has {}", kind, tensor.name, names_of(specs));
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto& spec = specs[i];
    const auto at =
        std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) { return tensor.name == spec.name; });
    if (at == tensors.end())
      fail(Errc::input, "the {} '{}' is missing: {} of shape {}", kind, spec.name, to_string(spec.datatype),
           shown(spec.shape));
    if (at->datatype != spec.datatype)
      fail(Errc::input, "the {} '{}' is {}, and {} is expected", kind, spec.name, to_string(at->datatype),
           to_string(spec.datatype));
    if (!fits(at->shape, spec.shape))
      fail(Errc::input, "the {} '{}' has the shape {}, and {} is expected", kind, spec.name, shown(at->shape),
           shown(spec.shape));
    std::iter_swap(tensors.begin() + static_cast<std::ptrdiff_t>(i), at);
  }
}

void require_same_rows(const std::vector<Tensor>& tensors, std::string_view kind) {
  for (const auto& tensor : tensors)
    if (tensor.rows() != tensors.front().rows())
      fail(Errc::input, "the {}s '{}' and '{}' are of one batch, and have {} and {} rows", kind, tensors.front().name,
           tensor.name, tensors.front().rows(), tensor.rows());
}

std::vector<TensorSpec> specs_from(const json::object& body, std::string_view kind) {
  std::vector<TensorSpec> specs;
  const auto* value = value_in(body, kind);
  const auto* list = value != nullptr ? value->if_array() : nullptr;
  if (list == nullptr) fail(Errc::input, "'{}' must be a list of objects with name, datatype and shape", kind);
  for (const auto& entry : *list) {
    const auto* object = entry.if_object();
    if (object == nullptr) fail(Errc::input, "an entry of '{}' must be an object, not {}", kind, shown(entry));
    TensorSpec spec;
    spec.name = text_of(*object, "name", fmt::format("an entry of '{}'", kind));
    spec.datatype = type_of(*object, spec.name);
    spec.shape = shape_of(*object, spec.name, -1, {});
    for (const auto& other : specs)
      if (other.name == spec.name) fail(Errc::input, "'{}' has '{}' twice", kind, spec.name);
    specs.push_back(std::move(spec));
  }
  return specs;
}

void put_specs(std::string& out, const std::vector<TensorSpec>& specs) {
  put_list(out, 0, specs.size(), [&](std::size_t i) {
    out += R"({"name":)";
    hypertune::detail::append_json(out, std::string_view(specs[i].name));
    out += fmt::format(R"(,"datatype":"{}","shape":{}}})", to_string(specs[i].datatype), shown(specs[i].shape));
  });
}

/// The extents of nested lists, by the first of each.
TensorShape extents_of(const json::value& value, std::size_t rank) {
  TensorShape shape;
  const json::value* at = &value;
  while (shape.size() < rank && at->is_array()) {
    const auto& list = at->get_array();
    shape.push_back(static_cast<std::int64_t>(list.size()));
    if (list.empty()) break;
    at = &list.front();
  }
  return shape;
}

void put_nested(std::string& out, const Tensor& tensor, std::size_t depth, std::size_t& next, const auto& put_one) {
  if (depth == tensor.shape.size()) return put_one(next++);
  put_list(out, 0, static_cast<std::size_t>(tensor.shape[depth]),
           [&](std::size_t) { put_nested(out, tensor, depth + 1, next, put_one); });
}

}  // namespace

std::string quote_non_finite(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\' && i + 1 < text.size()) {
        out += c;
        out += text[i + 1];
        i += 2;
        continue;
      }
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else {
      bool found = false;
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (text.substr(i).starts_with(word)) {
          out += '"';
          out += word;
          out += '"';
          i += word.size();
          found = true;
          break;
        }
      if (found) continue;
    }
    out += c;
    ++i;
  }
  return out;
}

InferenceRequest decode_request(std::string_view body, std::optional<std::size_t> size, const DecodeLimits& limits) {
  const auto [text, binary] = parts_of(body, size);
  std::array<unsigned char, 8192> buffer;  // most requests need no memory but this
  json::monotonic_resource memory(buffer.data(), buffer.size());
  const json::value value = parse(text, &memory);
  const auto& object = object_of(value);
  InferenceRequest request;
  if (const auto* id = value_in(object, "id")) {
    if (!id->is_string()) fail(Errc::input, "'id' must be a text, not {}", shown(*id));
    request.id = std::string(view(id->get_string()));
  }
  const auto* parameters = parameters_of(object, "the request");
  request.binary = flag_in(parameters, "binary_data_output", "the request").value_or(false);
  request.timeout = whole_in(parameters, "timeout", "the request");
  request.priority = whole_in(parameters, "priority", "the request");
  request.inputs = tensors_from(object, "inputs", binary, limits);
  if (const auto* outputs = value_in(object, "outputs"))
    request.outputs = wanted_from(*outputs, request.binary, limits);
  return request;
}

Encoded encode_inputs(const std::vector<Tensor>& inputs, bool as_binary, std::uint64_t id) {
  Encoded out;
  std::string binary;
  out.bytes = id != 0 ? fmt::format(R"({{"id":"{}","inputs":)", id) : R"({"inputs":)";
  put_list(out.bytes, 0, inputs.size(), [&](std::size_t i) { put_tensor(out, binary, inputs[i], as_binary); });
  out.bytes += '}';
  finish(out, binary);
  return out;
}

Encoded encode_answer(const InferenceAnswer& answer, const InferenceRequest& request) {
  Encoded out;
  std::string binary;
  auto& text = out.bytes;
  text = '{';
  if (!answer.model.empty()) {
    text += R"("model_name":)";
    hypertune::detail::append_json(text, std::string_view(answer.model));
    text += R"(,"model_version":)";
    hypertune::detail::append_json(text, std::string_view(answer.version));
    text += ',';
  }
  if (answer.id) {
    text += R"("id":)";
    hypertune::detail::append_json(text, std::string_view(*answer.id));
    text += ',';
  }
  text += R"("outputs":)";
  if (request.outputs) {
    put_list(text, 0, request.outputs->size(), [&](std::size_t i) {
      const auto& wanted = (*request.outputs)[i];
      for (const auto& output : answer.outputs)
        if (output.name == wanted.name) put_tensor(out, binary, output, wanted.binary);
    });
  } else {
    put_list(text, 0, answer.outputs.size(),
             [&](std::size_t i) { put_tensor(out, binary, answer.outputs[i], request.binary); });
  }
  text += '}';
  finish(out, binary);
  return out;
}

ModelAnswer decode_answer(std::string_view body, std::optional<std::size_t> size, const DecodeLimits& limits) {
  const auto [text, binary] = parts_of(body, size);
  std::array<unsigned char, 8192> buffer;
  json::monotonic_resource memory(buffer.data(), buffer.size());
  const json::value value = parse(text, &memory);
  const auto& object = object_of(value);
  ModelAnswer answer;
  if (const auto* id = value_in(object, "id"); id != nullptr && !id->is_null())
    answer.id = id->is_string() ? std::string(view(id->get_string())) : json::serialize(*id);
  if (const auto* error = value_in(object, "error")) {
    answer.error = error->is_string() ? std::string(view(error->get_string())) : json::serialize(*error);
    if (answer.error.empty()) answer.error = "the model gave no reason";
    const auto* status = value_in(object, "status");
    if (status != nullptr && status->is_int64() && status->get_int64() >= 500) answer.status = 500;
    return answer;
  }
  try {
    answer.outputs = tensors_from(object, "outputs", binary, limits);
  } catch (const Error& error) {
    answer.error = fmt::format("the model's answer is wrong: {}", error.what());
    answer.status = 500;
  }
  return answer;
}

bool is_message(std::string_view line, bool first) {
  constexpr std::string_view spaces = " \t\r\n";
  const auto after = [&](std::size_t at) { return line.find_first_not_of(spaces, at); };
  const auto begin = after(0);
  if (begin == std::string_view::npos || line[begin] != '{') return false;
  const auto has = [&](std::string_view key) {
    for (auto at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1))
      if (const auto next = after(at + key.size()); next != std::string_view::npos && line[next] == ':') return true;
    return false;
  };
  if (has(R"("outputs")") || has(R"("error")")) return true;
  if (!first) return false;
  const auto next = after(begin + 1);
  return has(R"("inputs")") || (next != std::string_view::npos && line[next] == '}');
}

std::optional<Signature> decode_signature(std::string_view text) {
  const json::value value = parse(text, {});
  const auto& object = object_of(value);
  if (const auto* error = value_in(object, "error"))
    fail(Errc::input, "{}", error->is_string() ? view(error->get_string()) : "the model gave no reason");
  if (value_in(object, "inputs") == nullptr && value_in(object, "outputs") == nullptr) return std::nullopt;
  return Signature{specs_from(object, "inputs"), specs_from(object, "outputs")};
}

std::string encode_signature(const Signature& signature) {
  std::string out = R"("inputs":)";
  put_specs(out, signature.inputs);
  out += R"(,"outputs":)";
  put_specs(out, signature.outputs);
  return out;
}

InferenceRequest decode_plain(std::string_view body, const Signature& signature, const DecodeLimits& limits) {
  const json::value value = parse(body, {});
  const auto& object = object_of(value);
  InferenceRequest request;
  for (const auto& entry : object) {
    const std::string name(entry.key());
    const auto spec = std::find_if(signature.inputs.begin(), signature.inputs.end(),
                                   [&](const auto& one) { return one.name == name; });
    if (spec == signature.inputs.end())
      fail(Errc::input, "the model has no input '{}': it has {}", name, names_of(signature.inputs));
    Tensor tensor{name, spec->datatype, extents_of(entry.value(), limits.rank), {}};
    const auto count = element_count(tensor.shape);
    if (!count || *count > limits.elements)
      fail(Errc::input, "'{}' of shape {} has more than {} elements", name, shown(tensor.shape), limits.elements);
    put_data(tensor, entry.value());
    request.inputs.push_back(std::move(tensor));
  }
  return request;
}

std::string encode_plain(const std::vector<Tensor>& outputs) {
  std::string out = "{";
  for (const auto& output : outputs) {
    if (out.size() > 1) out += ',';
    hypertune::detail::append_json(out, std::string_view(output.name));
    out += ':';
    std::size_t next = 0;
    with_elements(out, output, [&](const auto& put_one) { put_nested(out, output, 0, next, put_one); });
  }
  return out + "}";
}

void match_inputs(std::vector<Tensor>& inputs, const Signature& signature) {
  match(inputs, signature.inputs, "input");
  if (!signature.batches()) return;
  require_same_rows(inputs, "input");
  if (inputs.front().rows() == 0) fail(Errc::input, "the input '{}' has no rows", inputs.front().name);
}

void require_utf8(const Tensor& tensor) {
  if (tensor.datatype != Datatype::bytes) return;
  for (const auto text : tensor.texts())
    if (!hypertune::detail::is_utf8(text))
      fail(Errc::input, "'{}' has bytes that are no UTF-8, which JSON cannot have", tensor.name);
}

void match_wanted(const InferenceRequest& request, const Signature& signature) {
  if (!request.outputs) return;
  for (const auto& wanted : *request.outputs)
    if (std::none_of(signature.outputs.begin(), signature.outputs.end(),
                     [&](const auto& spec) { return spec.name == wanted.name; }))
      fail(Errc::input, "the model has no output '{}': it has {}", wanted.name, names_of(signature.outputs));
}

void match_outputs(std::vector<Tensor>& outputs, const Signature& signature) {
  match(outputs, signature.outputs, "output");
  if (signature.batches()) require_same_rows(outputs, "output");
}

}  // namespace hypertune::inline v0::serving

namespace hypertune::inline v0 {

Tensor Tensor::of_texts(std::string name, TensorShape shape, std::span<const std::string> texts) {
  Tensor tensor{std::move(name), Datatype::bytes, std::move(shape), {}};
  tensor.require_count(texts.size());
  for (const auto& text : texts) serving::put_text(tensor.data, text);
  return tensor;
}

std::vector<std::string_view> Tensor::texts() const {
  if (datatype != Datatype::bytes)
    fail(Errc::usage, "the tensor '{}' has elements of {}, not texts", name, to_string(datatype));
  std::vector<std::string_view> found;
  std::string_view rest = data;
  while (!rest.empty()) {
    std::uint32_t size = 0;
    if (rest.size() < sizeof size) fail(Errc::corrupt, "the texts of '{}' end within the size of one", name);
    std::memcpy(&size, rest.data(), sizeof size);
    rest.remove_prefix(sizeof size);
    if (rest.size() < size) fail(Errc::corrupt, "the texts of '{}' end within one of {} bytes", name, size);
    found.push_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return found;
}

}  // namespace hypertune::inline v0
