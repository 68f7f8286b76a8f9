// LogMachine: lines of a container's log from streams that are cut and resumed. No clock and no I/O.
#pragma once

#include <hypertune/k8s/forward.hpp>
#include <hypertune/k8s/request.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

/// A time as the kubelet writes it, exact.
struct LogTime {
  std::int64_t seconds = 0;
  std::int32_t nanoseconds = 0;
  auto operator<=>(const LogTime&) const = default;
};
std::optional<LogTime> parse_log_time(std::string_view text);

/// The API server resumes by whole seconds: what comes again is known by its time, and by how many lines had that.
class LogMachine {
 public:
  LogMachine(PodLog what, LogHandler handler) : what_(std::move(what)), handler_(std::move(handler)) {}

  const PodLog& what() const { return what_; }
  /// What the next stream is asked for with; it begins then.
  Query begin(bool follow);
  void feed(std::string_view bytes);
  /// The stream ended. `complete`: what has no line break is the last line.
  void over(bool complete);
  void tell(LogEvent::Kind kind, std::string_view text) const;
  /// Lines or parts of them have come in this stream.
  bool heard() const { return heard_; }

 private:
  void part(std::string_view text, bool ends);

  PodLog what_;
  LogHandler handler_;
  std::string partial_;
  bool heard_ = false;
  // The newest line that was told, and how many had its time: in all, and in this stream.
  std::optional<LogTime> last_;
  std::string last_text_;  // of that time
  std::uint64_t told_ = 0, seen_ = 0;
  // The line that is read now.
  bool in_line_ = false, skipped_ = false;
  std::optional<LogTime> time_;
  std::string time_text_;
  std::uint64_t given_ = 0;     // bytes of it that were told
  std::uint64_t drop_ = 0;      // … that are not told, as they were before
  std::optional<LogTime> cut_;  // the line in which the last stream was cut
  std::uint64_t cut_given_ = 0;
};

}  // namespace hypertune::inline v0::k8s::detail
