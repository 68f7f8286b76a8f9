// ValueWriter, ValueReader: parameters, points, checkpoints and causes as bytes.
#pragma once

#include <hypertune/detail/byte_codec.hpp>
#include <hypertune/space/params.hpp>
#include <hypertune/space/point.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hypertune::inline v0::detail {

/// Encodes what occurs both in the Journal and in the messages of the protocols. Persisted by the Journal: must not
/// change. A protocol that needs more of a type encodes it itself (see PayloadWriter).
class ValueWriter : public ByteWriter {
 public:
  using ByteWriter::ByteWriter;
  using ByteWriter::put;

  void put(const Value& value) {
    put(std::uint64_t{value.index()});
    if (const auto* flag = std::get_if<bool>(&value))
      put(*flag);
    else if (const auto* number = std::get_if<std::int64_t>(&value))
      put_signed(*number);
    else if (const auto* real = std::get_if<double>(&value))
      put(*real);
    else
      put(std::string_view(std::get<std::string>(value)));
  }
  void put(const Cause& cause) {
    put(static_cast<std::uint64_t>(cause.source));
    put(std::string_view(cause.text));
    put(cause.retry);
    put(cause.exclude_host);
  }
  void put(const CheckpointInfo& info) {
    put_signed(info.trial);
    put_signed(info.steps);
    put(std::string_view(info.name));
    put(info.bytes);
    put(std::string_view(info.digest));
  }
  void put(const Point& point, const Params& params) {
    put(std::uint64_t{point.size()});
    for (const double coordinate : point) put(coordinate);
    put(params);
  }
  void put(const Params& params) {
    put(std::uint64_t{params.size()});
    for (const auto& [name, value] : params) {
      put(std::string_view(name));
      put(value);
    }
  }
};

/// Reads what ValueWriter wrote.
class ValueReader : public ByteReader {
 public:
  using ByteReader::ByteReader;

  Value value() {
    switch (number()) {
      case 0: return flag();
      case 1: return signed_number();
      case 2: return real();
      case 3: return text();
      default: bad();
    }
  }
  Cause cause() {
    Cause cause;
    const std::uint64_t source = number();
    if (source > static_cast<std::uint64_t>(FailureSource::preemption)) bad();
    cause.source = static_cast<FailureSource>(source);
    cause.text = text();
    cause.retry = flag();
    cause.exclude_host = flag();
    return cause;
  }
  CheckpointInfo checkpoint() {
    CheckpointInfo info;
    info.trial = signed_number();
    info.steps = small_number();
    info.name = text();
    info.bytes = number();
    info.digest = text();
    return info;
  }
  std::pair<Point, Params> configuration() {
    Point point(count(8));
    for (double& coordinate : point) coordinate = real();
    return {std::move(point), params()};
  }
  Params params() {
    Params params;
    for (std::size_t left = count(2); left > 0; --left) {
      std::string name = text();
      params.set(std::move(name), value());
    }
    return params;
  }
};

}  // namespace hypertune::inline v0::detail
