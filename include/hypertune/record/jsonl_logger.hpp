// events.jsonl: the whole history of an experiment, one JSON object per line.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/detail/json_writer.hpp>
#include <hypertune/record/detail/log_files.hpp>
#include <hypertune/record/record.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

/// The line of a record, appended to what `out` has already.
class JsonEvent {
 public:
  explicit JsonEvent(std::string out) : out_(JsonFor::file, std::move(out)) {}

  std::string line_of(const Record& record) {
    out_.begin_object().member("sequence", record.sequence).member("time", record.time);
    detail::visit(*this, record.what);
    return out_.end_object().white("\n").take();
  }

  void operator()(const record::ExperimentStarted& e) {
    event("experiment_started");
    out_.member("name", e.name).key("objectives").begin_array();
    for (const auto& each : e.objectives)
      out_.begin_object().member("metric", each.metric).member("mode", to_string(each.mode)).end_object();
    out_.end_array();
    if (!e.constraints.empty()) {
      out_.key("constraints").begin_array();
      for (const auto& each : e.constraints)
        out_.begin_object()
            .member("metric", each.metric)
            .member(each.side == Mode::minimize ? "at_most" : "at_least", each.value)
            .end_object();
      out_.end_array();
    }
    out_.member("space", e.space)
        .member("searcher", e.searcher)
        .member("scheduler", e.scheduler)
        .member("executor", e.executor)
        .member("samples", e.samples)
        .member("seed", e.seed)
        .member("resumed", e.resumed);
  }
  void operator()(const record::TrialCreated& e) {
    event("trial_created");
    out_.member("trial", e.trial).key("params").pairs(e.params).member("known", e.known);
  }
  void operator()(const record::TrialStarted& e) {
    event("trial_started");
    out_.member("trial", e.trial)
        .member("attempt", e.attempt)
        .member("next_step", e.next_step)
        .member("host", e.host)
        .member("cpus", e.cpus)
        .member("gpus", e.gpus);
    if (!e.others.empty()) hosts("other_hosts", e.others);
  }
  void operator()(const record::TrialResized& e) {
    event("trial_resized");
    out_.member("trial", e.trial).member("attempt", e.attempt).member("generation", e.generation);
    hosts("hosts", e.workers);
    out_.member("why", e.why);
  }
  void operator()(const record::WorkersRequested& e) {
    event("workers_asked");
    out_.member("trial", e.trial).member("workers", e.workers).member("by_user", e.by_user);
  }
  void operator()(const record::TrialReported& e) {
    event("trial_reported");
    out_.member("trial", e.trial).member("attempt", e.attempt).member("step", e.step).key("metrics").pairs(e.metrics);
  }
  void operator()(const record::AttributesSet& e) {
    event("attributes");
    if (e.trial >= 0) out_.member("trial", e.trial);
    out_.key("attributes").pairs(e.attributes);
  }
  void operator()(const record::TrialCheckpointed& e) {
    event("trial_checkpointed");
    out_.member("trial", e.trial);
    checkpoint(e.checkpoint);
  }
  void operator()(const record::CheckpointDropped& e) {
    event("checkpoint_dropped");
    out_.member("trial", e.trial);
    checkpoint(e.checkpoint);
    out_.member("why", e.why);
  }
  void operator()(const record::TrialPaused& e) {
    event("trial_paused");
    out_.member("trial", e.trial);
  }
  void operator()(const record::TrialExploited& e) {
    event("trial_mutated");
    out_.member("trial", e.trial).member("donor", e.donor);
    checkpoint(e.checkpoint);
    out_.key("params").pairs(e.params);
  }
  void operator()(const record::AttemptFailed& e) {
    event("attempt_failed");
    out_.member("trial", e.trial).member("attempt", e.attempt);
    cause(e.cause);
    out_.member("retry", e.retry);
    if (e.doubted) out_.member("doubted", true);
  }
  void operator()(const record::TrialEnded& e) {
    event("trial_ended");
    out_.member("trial", e.trial).member("state", to_string(e.state));
    e.cause ? cause(*e.cause) : static_cast<void>(out_.member("cause", nullptr));
  }
  void operator()(const record::HostGained& e) {
    event("host_gained");
    out_.member("host", e.host);
  }
  void operator()(const record::HostLost& e) {
    event("host_lost");
    out_.member("host", e.host).member("why", e.why);
  }
  void operator()(const record::ExperimentEnded& e) {
    event("experiment_ended");
    out_.member("interrupted", e.interrupted).member("why", e.why);
  }

 private:
  void event(std::string_view name) { out_.member("event", name); }
  void hosts(std::string_view name, const std::vector<record::WorkerPlace>& places) {
    out_.key(name).begin_array();
    for (const auto& place : places) out_.value(place.host);
    out_.end_array();
  }
  void checkpoint(const CheckpointInfo& info) {
    out_.member("checkpoint", info.name)
        .member("steps", info.steps)
        .member("bytes", info.bytes)
        .member("digest", info.digest);
  }
  void cause(const Cause& cause) {
    out_.key("cause").begin_object().member("blame", to_string(cause.source)).member("text", cause.text).end_object();
  }

  JsonWriter out_;
};

/// The number of the record in a complete line of events.jsonl; 0 if the line is not a record.
inline std::int64_t jsonl_sequence(std::string_view line) {
  constexpr std::string_view opening = "{\"sequence\": ";
  std::int64_t sequence = 0;
  if (!line.starts_with(opening) || !line.ends_with('}')) return 0;
  std::from_chars(line.data() + opening.size(), line.data() + line.size(), sequence);
  return sequence;
}

/// The last complete line of events.jsonl with a number below `before`, and where it ends.
struct JsonlTail {
  std::int64_t sequence = 0;
  std::uint64_t bytes = 0;
};
inline JsonlTail jsonl_tail(const std::filesystem::path& path, std::int64_t before) {
  std::error_code none;
  const std::uint64_t size = std::filesystem::exists(path, none) ? std::filesystem::file_size(path) : 0;
  std::ifstream in(path, std::ios::binary);
  // Searches backwards from the end, in growing windows; usually the first one is enough.
  for (std::uint64_t window = 1U << 16U; size > 0; window *= 4) {
    const std::uint64_t begin = size > window ? size - window : 0;
    std::string text(size - begin, '\0');
    in.clear();
    in.seekg(static_cast<std::streamoff>(begin));
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    for (std::size_t end = text.rfind('\n'); end != std::string::npos;) {
      const std::size_t start = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
      if (start == std::string::npos && begin > 0) break;
      const std::size_t first = start == std::string::npos ? 0 : start + 1;
      const std::int64_t sequence = jsonl_sequence(std::string_view(text).substr(first, end - first));
      if (sequence > 0 && sequence < before) return {sequence, begin + end + 1};
      end = start;
    }
    if (begin == 0) break;
  }
  return {};
}

}  // namespace detail

/// A Callback that writes every record of the experiment into `events.jsonl`, one JSON object per line, in order:
/// `{"sequence": 7, "time": 1764.5, "event": "trial_reported", "trial": 3, "attempt": 0, "step": 2, "metrics": {…}}`.
/// JSON cannot represent NaN and infinite numbers: they are the strings "NaN", "Infinity" and "-Infinity".
///
/// After a resume the file continues where it ended: a half-written line is cut off, committed records that were not
/// yet written are added, and none is repeated (`sequence` has no gaps).
class JsonlLogger {
 public:
  void on_open(const std::filesystem::path& directory) {
    path_ = directory / "events.jsonl";
    buffer_.clear();
    started_ = false;
    directory_ = directory;
  }
  void on_record(const Record& record) {
    if (!std::exchange(started_, true)) {
      const auto tail = detail::jsonl_tail(path_, record.sequence);
      detail::append_to(path_, {}, tail.bytes);
      follower_.open(directory_, tail.sequence);
    }
    follower_.follow(record, [&](const Record& r) {
      buffer_ = detail::JsonEvent(std::move(buffer_)).line_of(r);
      if (buffer_.size() > (std::size_t{1} << 20U)) on_batch_end();
    });
  }
  void on_batch_end() {
    if (buffer_.empty()) return;
    detail::append_to(path_, buffer_);
    buffer_.clear();
  }
  std::string name() const { return "jsonl"; }

 private:
  std::filesystem::path directory_, path_;
  detail::LogFollower follower_;
  std::string buffer_;
  bool started_ = false;
};

static_assert(Callback<JsonlLogger>);

}  // namespace hypertune::inline v0
