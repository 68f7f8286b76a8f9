// ReportJoin: definitions.
#pragma once

#include <hypertune/local/report_join.hpp>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::local {

namespace detail {

inline bool share_a_name(const Metrics& some, const Metrics& others) {
  return std::any_of(some.begin(), some.end(), [&](const auto& m) { return find_metric(others, m.first) != nullptr; });
}

}  // namespace detail

void ReportJoin::add(FoundMetrics found, std::deque<JoinedReport>& ready) {
  choose_stream(found);
  if (found.step && found.step != step_) {  // what is there is of the step before it
    flush(ready);
    step_ = found.step;
  }
  if (found.drawn && found.stays)
    for (const auto& metric : found.metrics) drawn_stay_.insert(metric.first);
  else if (found.drawn)
    std::erase_if(found.metrics, [&](const auto& metric) { return drawn_stay_.contains(metric.first); });
  if (found.metrics.empty()) return;
  const bool same_row = !passing_.empty() && found.row == passing_row_ && found.error_stream == passing_stream_;
  if (detail::share_a_name(found.metrics, kept_) ||
      (!found.stays && !same_row && detail::share_a_name(found.metrics, passing_)))
    flush(ready);
  if (same_row)  // newer values of that line
    std::erase_if(passing_, [&](const auto& m) { return find_metric(found.metrics, m.first) != nullptr; });
  else if (detail::share_a_name(found.metrics, passing_))
    passing_.clear();
  if (!found.stays) {
    for (auto& metric : found.metrics) passing_.push_back(std::move(metric));
    passing_row_ = found.row;
    passing_stream_ = found.error_stream;
    return;
  }
  any_stays_ = true;
  for (auto& metric : found.metrics) kept_.push_back(std::move(metric));
  // What was written over is complete with the end of its line. On the other stream it is a bar, and is of now.
  const bool complete = same_row || found.error_stream != passing_stream_;
  if (kept_.size() + (complete ? passing_.size() : 0) >= count_) flush(ready);
}

void ReportJoin::flush(std::deque<JoinedReport>& ready) {
  Metrics metrics = std::exchange(kept_, {});
  for (auto& metric : passing_) metrics.push_back(std::move(metric));
  passing_.clear();
  if (metrics.empty()) return;
  const bool wanted = objectives_.empty() || std::any_of(objectives_.begin(), objectives_.end(), [&](const auto& name) {
                        return find_metric(metrics, name) != nullptr;
                      });
  if (wanted) ready.push_back({std::move(metrics), step_});
}

void ReportJoin::choose_stream(FoundMetrics& found) {
  std::erase_if(found.metrics, [&](const auto& metric) {
    const auto [place, fresh] = on_error_stream_.emplace(metric.first, found.error_stream);
    if (fresh || place->second == found.error_stream) return false;
    if (found.error_stream) return true;
    // Only now it is found on standard output: what standard error said of the same report is no other one.
    place->second = false;
    for (auto* metrics : {&kept_, &passing_})
      std::erase_if(*metrics, [&](const auto& other) { return other.first == metric.first; });
    return false;
  });
}

}  // namespace hypertune::inline v0::local
