// Part of hypertune::k8s.
#include "log_machine.hpp"

#include "exec_plugin.hpp"

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::k8s::detail {

std::optional<LogTime> parse_log_time(std::string_view text) {
  if (text.size() < 20 || text.size() > 40) return std::nullopt;
  const std::string_view whole = text.substr(0, 19);
  std::string_view rest = text.substr(19);
  LogTime time;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    std::int32_t unit = 100'000'000;
    for (; !rest.empty() && rest.front() >= '0' && rest.front() <= '9'; rest.remove_prefix(1), unit /= 10)
      time.nanoseconds += unit * (rest.front() - '0');
  }
  const auto seconds = parse_time(std::string(whole) + std::string(rest));
  if (!seconds) return std::nullopt;
  time.seconds = static_cast<std::int64_t>(*seconds);
  return time;
}

void LogMachine::tell(LogEvent::Kind kind, std::string_view text) const {
  if (handler_) handler_({.kind = kind, .text = text, .time = {}});
}

Query LogMachine::begin(bool follow) {
  partial_.clear();
  heard_ = false;
  seen_ = 0;
  in_line_ = false;
  Query query{{"timestamps", "true"}};
  if (follow) query.emplace_back("follow", "true");
  if (!what_.container.empty()) query.emplace_back("container", what_.container);
  if (last_)
    query.emplace_back("sinceTime", last_text_);
  else if (!what_.since.empty())
    query.emplace_back("sinceTime", what_.since);
  return query;
}

void LogMachine::feed(std::string_view bytes) {
  const std::size_t most = std::max<std::size_t>(what_.max_line, 1024);
  heard_ = heard_ || !bytes.empty();
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    const std::size_t size = std::min({end, bytes.size(), most - partial_.size()});
    partial_ += bytes.substr(0, size);
    bytes.remove_prefix(size);
    if (!bytes.empty() && bytes.front() == '\n') {
      bytes.remove_prefix(1);
      part(std::exchange(partial_, {}), true);
    } else if (!bytes.empty()) {  // too long a line; otherwise its line break may still come
      part(std::exchange(partial_, {}), false);
    }
  }
}

void LogMachine::part(std::string_view text, bool ends) {
  if (!std::exchange(in_line_, true)) {
    const auto space = std::min(text.find(' '), text.size());
    time_ = parse_log_time(text.substr(0, space));
    time_text_ = time_ ? text.substr(0, space) : std::string_view();
    if (time_) text.remove_prefix(std::min(space + 1, text.size()));
    given_ = 0;
    skipped_ = time_ && last_ && (*time_ < *last_ || (*time_ == *last_ && seen_ < told_));
    if (skipped_ && *time_ == *last_) ++seen_;
    drop_ = !skipped_ && time_ && cut_ && *time_ == *cut_ ? cut_given_ : 0;
    if (!skipped_ && time_) cut_.reset();
  }
  if (!skipped_) {
    const auto dropped = std::min<std::uint64_t>(drop_, text.size());
    const bool again = dropped > 0 && dropped == text.size();
    drop_ -= dropped;
    given_ += text.size();
    text.remove_prefix(dropped);
    if (!again && handler_) handler_({.kind = LogEvent::Kind::line, .text = text, .time = time_text_});
  }
  if (!ends) return;
  in_line_ = false;
  if (skipped_ || !time_) return;
  if (last_ == time_) {
    ++told_;
    ++seen_;
  } else {
    last_ = time_;
    last_text_ = time_text_;
    told_ = seen_ = 1;
  }
}

void LogMachine::over(bool complete) {
  if (complete && (!partial_.empty() || in_line_)) part(std::exchange(partial_, {}), true);
  if (in_line_ && !skipped_ && time_) {
    cut_ = time_;
    cut_given_ = given_ + drop_;  // + drop_: an earlier stream may have broken further on
  }
  partial_.clear();
  in_line_ = false;
}

}  // namespace hypertune::inline v0::k8s::detail
