// events.jsonl: the whole history of an experiment, one JSON object per line.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/callback.hpp>
#include <hypertune/record/json_text.hpp>
#include <hypertune/record/log_files.hpp>
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

/// Writes the fields of an event, each after a comma.
class JsonEvent {
 public:
  JsonEvent(std::string& out, const Record& record) : out_(&out) {
    out += detail::format("{{\"sequence\": {}, \"time\": ", record.sequence);
    append_json(out, record.time);
    detail::visit(*this, record.what);
    out += "}\n";
  }

  void operator()(const record::ExperimentStarted& e) const {
    event("experiment_started");
    text("name", e.name);
    key("objectives");
    *out_ += '[';
    for (std::size_t i = 0; i < e.objectives.size(); ++i) {
      *out_ += i == 0 ? "{\"metric\": " : ", {\"metric\": ";
      append_json(*out_, e.objectives[i].metric);
      *out_ += detail::format(", \"mode\": \"{}\"}}", to_string(e.objectives[i].mode));
    }
    *out_ += ']';
    if (!e.constraints.empty()) {
      key("constraints");
      *out_ += '[';
      for (std::size_t i = 0; i < e.constraints.size(); ++i) {
        *out_ += i == 0 ? "{\"metric\": " : ", {\"metric\": ";
        append_json(*out_, e.constraints[i].metric);
        *out_ += e.constraints[i].side == Mode::minimize ? ", \"at_most\": " : ", \"at_least\": ";
        append_json(*out_, e.constraints[i].value);
        *out_ += '}';
      }
      *out_ += ']';
    }
    text("space", e.space);
    text("searcher", e.searcher);
    text("scheduler", e.scheduler);
    text("executor", e.executor);
    number("samples", e.samples);
    number("seed", e.seed);
    flag("resumed", e.resumed);
  }
  void operator()(const record::TrialCreated& e) const {
    event("trial_created");
    number("trial", e.trial);
    key("params");
    append_json_object(*out_, e.params);
    flag("known", e.known);
  }
  void operator()(const record::TrialStarted& e) const {
    event("trial_started");
    number("trial", e.trial);
    number("attempt", e.attempt);
    number("next_step", e.next_step);
    text("host", e.host);
    numbers("cpus", e.cpus);
    numbers("gpus", e.gpus);
    if (!e.others.empty()) hosts("other_hosts", e.others);
  }
  void operator()(const record::TrialResized& e) const {
    event("trial_resized");
    number("trial", e.trial);
    number("attempt", e.attempt);
    number("generation", e.generation);
    hosts("hosts", e.workers);
    text("why", e.why);
  }
  void operator()(const record::WorkersRequested& e) const {
    event("workers_asked");
    number("trial", e.trial);
    number("workers", e.workers);
    flag("by_user", e.by_user);
  }
  void operator()(const record::TrialReported& e) const {
    event("trial_reported");
    number("trial", e.trial);
    number("attempt", e.attempt);
    number("step", e.step);
    key("metrics");
    append_json_object(*out_, e.metrics);
  }
  void operator()(const record::AttributesSet& e) const {
    event("attributes");
    if (e.trial >= 0) number("trial", e.trial);
    key("attributes");
    append_json_object(*out_, e.attributes);
  }
  void operator()(const record::TrialCheckpointed& e) const {
    event("trial_checkpointed");
    number("trial", e.trial);
    checkpoint(e.checkpoint);
  }
  void operator()(const record::CheckpointDropped& e) const {
    event("checkpoint_dropped");
    number("trial", e.trial);
    checkpoint(e.checkpoint);
    text("why", e.why);
  }
  void operator()(const record::TrialPaused& e) const {
    event("trial_paused");
    number("trial", e.trial);
  }
  void operator()(const record::TrialExploited& e) const {
    event("trial_mutated");
    number("trial", e.trial);
    number("donor", e.donor);
    checkpoint(e.checkpoint);
    key("params");
    append_json_object(*out_, e.params);
  }
  void operator()(const record::AttemptFailed& e) const {
    event("attempt_failed");
    number("trial", e.trial);
    number("attempt", e.attempt);
    cause(e.cause);
    flag("retry", e.retry);
    if (e.doubted) flag("doubted", true);
  }
  void operator()(const record::TrialEnded& e) const {
    event("trial_ended");
    number("trial", e.trial);
    text("state", to_string(e.state));
    if (e.cause)
      cause(*e.cause);
    else
      (key("cause"), *out_ += "null");
  }
  void operator()(const record::HostGained& e) const {
    event("host_gained");
    text("host", e.host);
  }
  void operator()(const record::HostLost& e) const {
    event("host_lost");
    text("host", e.host);
    text("why", e.why);
  }
  void operator()(const record::ExperimentEnded& e) const {
    event("experiment_ended");
    flag("interrupted", e.interrupted);
    text("why", e.why);
  }

 private:
  void key(std::string_view name) const { ((*out_ += ", \"") += name) += "\": "; }
  void event(std::string_view name) const { text("event", name); }
  void text(std::string_view name, std::string_view value) const {
    key(name);
    append_json(*out_, value);
  }
  template <class Number>
  void number(std::string_view name, Number value) const {
    key(name);
    *out_ += detail::format("{}", value);
  }
  void flag(std::string_view name, bool value) const {
    key(name);
    *out_ += value ? "true" : "false";
  }
  void numbers(std::string_view name, const std::vector<int>& values) const {
    key(name);
    *out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) *out_ += detail::format("{}{}", i == 0 ? "" : ", ", values[i]);
    *out_ += ']';
  }
  void hosts(std::string_view name, const std::vector<record::WorkerPlace>& places) const {
    key(name);
    *out_ += '[';
    for (const auto& place : places) {
      if (&place != &places.front()) *out_ += ", ";
      append_json(*out_, place.host);
    }
    *out_ += ']';
  }
  void checkpoint(const CheckpointInfo& info) const {
    text("checkpoint", info.name);
    number("steps", info.steps);
    number("bytes", info.bytes);
    text("digest", info.digest);
  }
  void cause(const Cause& cause) const {
    key("cause");
    *out_ += detail::format("{{\"blame\": \"{}\", \"text\": ", to_string(cause.source));
    append_json(*out_, cause.text);
    *out_ += '}';
  }

  std::string* out_;
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
      detail::JsonEvent(buffer_, r);
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
