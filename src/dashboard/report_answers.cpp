#include "report_answers.hpp"

#include <hypertune/detail/percent.hpp>
#include <hypertune/show/detail/view/answers.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hypertune::inline v0::dashboard {

using view::ExperimentView;
using view::JsonWriter;

namespace {

constexpr std::size_t max_experiments = 50, max_fields = 90, max_metrics = 20;

// The same encoding as encodeURIComponent().
std::string encoded(std::string_view text) { return detail::percent_encoded(text, "-_.!~*'()"); }

// In JSON '<' occurs only within strings. When it is escaped, no name can end the HTML element that contains the text.
void append_harmless(std::string& out, std::string_view json) {
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
}

std::string grouped(std::size_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

}  // namespace

std::string request_key(const std::string& path, std::vector<std::pair<std::string, std::string>> parameters) {
  std::sort(parameters.begin(), parameters.end());
  std::string key = path;
  char before = '?';
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    key += fmt::format("{}{}={}", before, encoded(name), encoded(value));
    before = '&';
  }
  return key;
}

ReportAnswers::ReportAnswers(const Experiments& experiments, CostText cost, std::size_t room)
    : api_(experiments, std::move(cost)), text_("{") {
  end_ = room;
  const auto all = experiments.all();
  ask("/api/experiments", {});
  const std::size_t shown = std::min(all.size(), max_experiments);
  for (std::size_t i = 0; i < shown; ++i) {
    left_out_.emplace_back(all[i]->id, std::vector<std::string>());
    if (all[i]->brief().version == 0) {
      ask("/api/summary", {{"experiment", all[i]->id}});  // the answer says why
      left_out_.back().second.emplace_back("all of it, which cannot be read");
      continue;
    }
    // Room that one experiment does not need is left to the next ones.
    add(*all[i], (room - std::min(room, text_.size())) / (shown - i));
  }
  for (std::size_t i = shown; i < all.size(); ++i)
    left_out_.emplace_back(
        all[i]->id, std::vector<std::string>{fmt::format("all of it: a report has {} experiments at most", shown)});
}

std::string ReportAnswers::take() {
  JsonWriter out;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  out.begin_object().member("written", std::chrono::duration_cast<std::chrono::seconds>(now).count());
  out.key("left_out").begin_object();
  for (const auto& [id, what] : left_out_) out.values(id, what);
  out.end_object().end_object();
  text_ += R"("report":)";
  append_harmless(text_, out.take());
  text_ += '}';
  return std::move(text_);
}

bool ReportAnswers::put(const std::string& key, std::string_view answer) {
  if (text_.size() + key.size() + answer.size() + 16 > end_) return false;
  JsonWriter name;
  name.value(key);
  append_harmless(text_, name.take());
  text_ += ':';
  append_harmless(text_, answer);
  text_ += ",\n";
  return true;
}

bool ReportAnswers::ask(const std::string& path, const Parameters& parameters, const Parameters* keep) {
  const auto answer = api_.answer(request_key(path, parameters));
  return answer.status == 200 && put(request_key(path, keep == nullptr ? parameters : *keep), answer.body);
}

void ReportAnswers::add(Followed& followed, std::size_t room) {
  end_ = text_.size() + room;
  add_overview(followed.id);
  add_charts(followed);
}

void ReportAnswers::add_overview(const std::string& id) {
  ask("/api/summary", {{"experiment", id}});
  ask("/api/now", {{"experiment", id}});
  for (const char* x : {"trial", "time"}) ask("/api/best", {{"experiment", id}, {"x", x}});
  for (const char* path : {"/api/front", "/api/rungs", "/api/lineage", "/api/timeline"})
    ask(path, {{"experiment", id}});
}

void ReportAnswers::add_charts(Followed& followed) {
  const std::string& id = followed.id;
  auto& left = left_out_.back().second;
  struct Names {
    std::size_t params = 0, trials = 0;
    std::vector<std::string> metrics;
    std::vector<std::size_t> first;  // metrics that are objectives
  };
  const auto names = followed.look([](const ExperimentView& seen) {
    Names found{
        .params = seen.params().size(), .trials = seen.size(), .metrics = seen.results().metrics(), .first = {}};
    for (const auto& objective : seen.results().experiment().objectives)
      if (const auto metric = seen.metric(objective.metric)) found.first.push_back(*metric);
    return found;
  });
  std::vector<std::size_t> metrics = names.first;
  for (std::size_t i = 0; i < names.metrics.size(); ++i)
    if (std::find(metrics.begin(), metrics.end(), i) == metrics.end()) metrics.push_back(i);
  if (metrics.size() > max_metrics) {
    left.push_back(
        fmt::format("charts of {} metrics beyond the first {}", grouped(metrics.size() - max_metrics), max_metrics));
    metrics.resize(max_metrics);
  }
  // Named by index, which is short even if the name is not; the page uses the same keys.
  std::string fields = "duration,steps";
  std::size_t count = 2;
  for (const std::size_t at : metrics) fields += fmt::format(",@{}", at), ++count;
  for (std::size_t at = 0; at < names.params && count < max_fields; ++at)
    fields += fmt::format(",params.@{}", at), ++count;
  const std::size_t sample = std::min<std::size_t>(3000, std::max<std::size_t>(100, 40000 / (count + 2)));
  const Parameters plain{{"experiment", id}};
  ask("/api/points", {{"experiment", id}, {"fields", fields}, {"limit", std::to_string(sample)}}, &plain);
  bool curves = true;
  const auto curve = [&](std::size_t at, const char* x, int limit) {
    const Parameters of{
        {"experiment", id}, {"metric", fmt::format("@{}", at)}, {"x", x}, {"limit", std::to_string(limit)}};
    return ask("/api/curves", of);
  };
  for (const std::size_t at : metrics) {
    const Parameters of{{"experiment", id}, {"metric", fmt::format("@{}", at)}};
    ask("/api/importance", of);
    ask("/api/edf", of);
  }
  // Half of the room is reserved for the trials.
  const std::size_t end = end_;
  end_ -= (end_ - std::min(end_, text_.size())) / 2;
  for (const std::size_t at : metrics) curves &= curve(at, "step", 100);
  for (const std::size_t at : metrics) curves &= curve(at, "time", 100);
  if (!names.first.empty() && names.trials > 25) {
    curve(names.first.front(), "step", 25);
    if (names.trials > 100) curve(names.first.front(), "step", 300);
  }
  if (!curves) left.emplace_back("curves of some metrics");
  end_ = end;
  add_trials(followed, sample);
}

void ReportAnswers::add_trials(Followed& followed, std::size_t sample) {
  const std::string& id = followed.id;
  auto& left = left_out_.back().second;
  std::vector<TrialId> shown;
  std::size_t total = 0;
  const std::size_t before = text_.size(), room = (end_ - std::min(end_, before)) * 2 / 3;
  const std::string rows = followed.look([&](const ExperimentView& seen) {
    std::vector<std::size_t> places(seen.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = i;
    total = places.size();
    const auto taken = view::sampled(seen, places, sample);
    // The best trials first, so that they fit in any case; then in order.
    auto order = view::best_places(seen, taken, 20);
    for (const std::size_t at : taken)
      if (std::find(order.begin(), order.end(), at) == order.end()) order.push_back(at);
    JsonWriter out;
    out.begin_object();
    view::put_version(out, seen);
    out.key("rows").begin_array();
    for (const std::size_t at : order) {
      if (out.size() > room) break;
      view::put_row(out, seen, seen.rows()[at]);
      shown.push_back(seen.rows()[at].id);
    }
    out.end_array().member("total", total).member("matching", shown.size()).member("cut", false).end_object();
    return out.take();
  });
  if (!put(request_key("/api/trials", {{"experiment", id}}), rows)) shown.clear();
  if (shown.size() < total)
    left.push_back(fmt::format("{} of {} trials (the best and a sample of the others are in it)",
                               grouped(total - shown.size()), grouped(total)));
  std::size_t whole = 0;
  for (const TrialId trial : shown) {
    const auto number = std::to_string(trial);
    if (!ask("/api/trial", {{"experiment", id}, {"trial", number}, {"points", "500"}})) break;
    for (const char* format : {"yaml", "c++"})
      ask("/api/config", {{"experiment", id}, {"trial", number}, {"format", format}});
    ++whole;
  }
  if (whole < shown.size())
    left.push_back(fmt::format("the curves and attempts of {} trials", grouped(shown.size() - whole)));
  left.emplace_back("logs");
}

}  // namespace hypertune::inline v0::dashboard
