// LogMachine: lines of a container's log, from streams that break and are resumed. No clock and no I/O.
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

/// A time as the kubelet writes it, with nanoseconds.
struct LogTime {
  std::int64_t seconds = 0;
  std::int32_t nanoseconds = 0;
  auto operator<=>(const LogTime&) const = default;
};
std::optional<LogTime> parse_log_time(std::string_view text);

/// The API server resumes logs at whole seconds. Repeated lines are recognised by their time and by how many lines had
/// it.
class LogMachine {
 public:
  LogMachine(PodLog what, LogHandler handler) : what_(std::move(what)), handler_(std::move(handler)) {}

  const PodLog& what() const { return what_; }
  /// Begins a new stream; returns the query to request it with.
  Query begin(bool follow);
  void feed(std::string_view bytes);
  /// The stream has ended. `complete`: remaining text without a line break is the last line.
  void over(bool complete);
  void tell(LogEvent::Kind kind, std::string_view text) const;
  /// Whether any data of lines has come in this stream.
  bool heard() const { return heard_; }

 private:
  void part(std::string_view text, bool ends);

  PodLog what_;
  LogHandler handler_;
  std::string partial_;
  bool heard_ = false;
  // The time of the newest reported line, and how many lines with that time were reported in all and seen in this
  // stream.
  std::optional<LogTime> last_;
  std::string last_text_;  // that time as text
  std::uint64_t told_ = 0, seen_ = 0;
  // The line being read.
  bool in_line_ = false, skipped_ = false;
  std::optional<LogTime> time_;
  std::string time_text_;
  std::uint64_t given_ = 0;     // bytes of it already reported
  std::uint64_t drop_ = 0;      // bytes of it still to be dropped, as an earlier stream reported them
  std::optional<LogTime> cut_;  // the line in which the last stream broke
  std::uint64_t cut_given_ = 0;
};

}  // namespace hypertune::inline v0::k8s::detail
