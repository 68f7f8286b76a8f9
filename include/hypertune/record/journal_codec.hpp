// Encoding of a record's payload in the Journal: little-endian, varints, length-prefixed strings. Schema versions 1 to
// 5.
#pragma once

#include <hypertune/detail/byte_codec.hpp>
#include <hypertune/record/record.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0::detail {

/// The values of the `kind` column. Persisted: append only, never renumber.
enum class Kind : std::uint8_t {
  experiment_started = 1,
  trial_created = 2,
  trial_started = 3,
  trial_reported = 4,
  checkpointed = 5,
  checkpoint_dropped = 6,
  trial_paused = 7,
  attempt_failed = 8,
  trial_completed = 9,
  trial_stopped = 10,
  trial_failed = 11,
  host_gained = 12,
  host_lost = 13,
  experiment_ended = 14,
  trial_exploited = 15,  // since version 2
  attributes_set = 16,   // since version 3
  trial_resized = 17,    // since version 4
  workers_asked = 18,    // since version 5
};

class Encoder : public ByteWriter {
 public:
  using ByteWriter::ByteWriter;
  using ByteWriter::put;

  void put(const std::vector<record::WorkerPlace>& places) {
    put(std::uint64_t{places.size()});
    for (const auto& place : places) {
      put(std::string_view(place.host));
      put(place.cpus);
      put(place.gpus);
    }
  }
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

/// Reads what Encoder wrote.
class Decoder : public ByteReader {
 public:
  using ByteReader::ByteReader;

  std::uint32_t generation() {
    const std::uint64_t value = number();
    if (value > std::numeric_limits<std::uint32_t>::max()) bad();
    return static_cast<std::uint32_t>(value);
  }
  std::vector<record::WorkerPlace> places() {
    std::vector<record::WorkerPlace> places(count(3));
    for (auto& place : places) {
      place.host = text();
      place.cpus = small_numbers();
      place.gpus = small_numbers();
    }
    return places;
  }
  std::vector<std::string> texts() {
    std::vector<std::string> texts(count(1));
    for (auto& one : texts) one = text();
    return texts;
  }
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
