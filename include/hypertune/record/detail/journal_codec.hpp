// Encoding of a record's payload in the Journal: little-endian, varints, length-prefixed strings. Schema versions 1 to
// 5.
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/trial/detail/value_codec.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
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

class Encoder : public ValueWriter {
 public:
  using ValueWriter::put;
  using ValueWriter::ValueWriter;

  void put(const std::vector<record::WorkerPlace>& places) {
    put(std::uint64_t{places.size()});
    for (const auto& place : places) {
      put(std::string_view(place.host));
      put(place.cpus);
      put(place.gpus);
    }
  }
};

/// Reads what Encoder wrote.
class Decoder : public ValueReader {
 public:
  using ValueReader::ValueReader;

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
};

}  // namespace hypertune::inline v0::detail
