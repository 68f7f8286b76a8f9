// Renders ExperimentProgress as lines of text: pure functions, so that every width can be tested.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/plural.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/record/detail/text_table.hpp>
#include <hypertune/show/detail/progress.hpp>
#include <hypertune/show/detail/sparkline.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

struct RenderOptions {
  std::size_t width = 80;   ///< columns; no line is wider
  std::size_t height = 24;  ///< maximum number of lines
  bool color = false;
  bool unicode = false;  ///< shows a small curve beside the best value, if there is room
};

/// "45 s", "3m 05s", "2h 03m", "4d 02h".
inline std::string duration_text(double seconds) {
  if (!(seconds < 1e10)) return "very long";
  const auto s = static_cast<std::int64_t>(std::max(0.0, seconds));
  if (s < 60) return detail::format("{} s", s);
  if (s < 3600) return detail::format("{}m {:02}s", s / 60, s % 60);
  if (s < 86400) return detail::format("{}h {:02}m", s / 3600, s / 60 % 60);
  return detail::format("{}d {:02}h", s / 86400, s / 3600 % 24);
}

namespace detail::terminal {

enum class Style : std::uint8_t { plain, bold, dim, green, yellow, red };

/// A line that takes text until its width is full, and then nothing more.
class Line {
 public:
  Line(std::size_t width, bool color) : left_(width), color_(color) {}

  /// `text` must be printable().
  Line& add(std::string_view text, Style style = Style::plain) {
    if (left_ == 0 || text.empty()) return *this;
    const std::string shown = elide(text, left_);
    left_ = shown.size() < text.size() || shown != text ? 0 : left_ - text_width(shown);
    static constexpr std::string_view codes[] = {"", "\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};
    if (color_ && style != Style::plain)
      out_ += detail::format("{}{}\x1b[0m", codes[static_cast<std::size_t>(style)], shown);
    else
      out_ += shown;
    return *this;
  }
  std::string text() const { return out_; }

 private:
  std::string out_;
  std::size_t left_;
  bool color_;
};

inline std::string metric_text(double value) { return detail::format("{:.5g}", value); }

/// 1234567 -> "1,234,567"
inline std::string count_text(std::int64_t value) {
  std::string text = std::to_string(value);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

inline std::string rate_text(double value) {
  return value >= 100 ? count_text(std::llround(value)) : detail::format("{:.3g}", value);
}

/// "57/200 trials"
inline std::string done_text(const ExperimentProgress& p) {
  return p.planned() > 0
             ? detail::format("{}/{} trial{}", count_text(p.ended()), count_text(p.planned()), plural(p.planned()))
             : detail::format("{} trial{}", count_text(p.ended()), plural(p.ended()));
}

inline std::string rates_text(const ExperimentProgress& p) {
  const auto rates = p.rates();
  const auto rate = [](double value, const char* what, const char* per) {
    const std::string text = rate_text(value);
    return detail::format("{} {}{}/{}", text, what, text == "1" ? "" : "s", per);
  };
  return rate(rates.trials_per_minute, "trial", "min") + ", " + rate(rates.reports_per_second, "report", "s");
}

inline std::string resources_text(const ExperimentProgress& p) {
  std::string text;
  // Trials may not ask for cpus: "0 of 8" would then read as if nothing ran.
  const bool counted = p.cpus_used() > 0 || (p.running().empty() && p.capacity().per_trial.cpus > 0);
  if (p.capacity().cpus > 0 && counted) text = detail::format("cpus {:g} of {:g}", p.cpus_used(), p.capacity().cpus);
  if (p.capacity().gpus > 0 && (p.gpus_used() > 0 || p.running().empty() || p.capacity().per_trial.gpus > 0))
    text += detail::format("{}gpus {:g} of {:g}", text.empty() ? "" : ", ", p.gpus_used(), p.capacity().gpus);
  return text;
}

/// "accuracy 0.98 by trial 17 at step 26"
inline std::string best_text(const ExperimentProgress& p, std::size_t objective) {
  const auto& best = p.best()[objective];
  const std::string metric = printable(p.objectives()[objective].metric);
  if (!best) return detail::format("no {} yet", metric);
  return detail::format("{} {} by trial {} at step {}", metric, metric_text(best->value), best->trial, best->step);
}

/// "3 workers a trial"; empty if there is only one.
inline std::string workers_text(const ExperimentProgress& p) {
  const auto [least, most] = std::pair(p.capacity().least_workers, p.capacity().max_workers);
  if (most <= 1) return {};
  return least < most ? detail::format("{} to {} workers a trial", least, most)
                      : detail::format("{} workers a trial", most);
}

inline std::string header_line(const ExperimentProgress& p, const RenderOptions& o) {
  Line line(o.width, o.color);
  line.add(p.name(), Style::bold).add("  ").add(duration_text(p.elapsed()));
  if (p.finished())
    line.add("  ").add(p.finished()->interrupted ? "interrupted" : "done",
                       p.finished()->interrupted ? Style::yellow : Style::green);
  else if (const auto left = p.time_left())
    line.add(detail::format("  about {} left", duration_text(*left)));
  if (const auto workers = workers_text(p); !workers.empty()) line.add("  " + workers);
  return line.text();
}

inline std::string counts_line(const ExperimentProgress& p, const RenderOptions& o) {
  Line line(o.width, o.color);
  line.add(done_text(p), Style::bold);
  const char* separator = ": ";
  const auto count = [&](TrialState state, Style style) {
    if (p.count(state) == 0) return;
    line.add(separator).add(detail::format("{} {}", count_text(p.count(state)), to_string(state)), style);
    separator = ", ";
  };
  count(TrialState::running, Style::green);
  if (const auto held = static_cast<std::int64_t>(p.capacity().held); held > 0 && p.count(TrialState::running) > 0)
    line.add(detail::format(" ({} {} for a host)", count_text(held), held == 1 ? "waits" : "wait"));
  count(TrialState::pending, Style::plain);
  count(TrialState::paused, Style::yellow);
  count(TrialState::completed, Style::plain);
  count(TrialState::stopped, Style::plain);
  count(TrialState::failed, Style::red);
  return line.text();
}

/// "name=value" of each parameter, in lines of at most `width` columns; `used` columns of the first line are taken. The
/// last of `most` lines gets all the rest and may be too long: it is to be cut.
inline std::vector<std::string> params_lines(const Params& params, std::size_t used, std::size_t width,
                                             std::size_t most) {
  std::vector<std::string> lines(1);
  for (const auto& [name, value] : params) {
    const std::string part = name + "=" + value_text(value);
    const std::size_t room = lines.size() == 1 ? width - std::min(used, width) : width;
    const bool full = text_width(lines.back()) + 1 + text_width(part) > room;
    if (full && lines.size() < most && (lines.size() == 1 || !lines.back().empty())) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + part;
  }
  return lines;
}

inline void add_running(const ExperimentProgress& p, const RenderOptions& o, std::size_t room,
                        std::vector<std::string>& lines) {
  const auto& running = p.running();
  if (running.empty() || room < 2) return;
  const std::string metric = p.objectives().empty() ? "metric" : p.objectives().front().metric;
  const auto table_of = [&](std::size_t trials) {
    std::vector<std::string> names;
    auto end = running.begin();
    for (std::size_t n = 0; n < trials; ++n, ++end)
      if (end->second.values) merge_names(names, *end->second.values);
    std::vector<TextTable::Column> columns{{"trial", true, 0, 5}, {"steps", true, 5, 7}, {metric, true, 8, 9}};
    for (const auto& name : names) columns.push_back({name, true, 6});
    TextTable table(std::move(columns));
    for (auto it = running.begin(); it != end; ++it) {
      const auto& [id, run] = *it;
      std::vector<Cell> row{id, count_text(run.steps), run.metric ? Cell(*run.metric, 5) : "-"};
      for (const auto& name : names) row.push_back(Cell::of(run.values ? run.values->find(name) : nullptr, 5));
      table.add(std::move(row));
    }
    return table.lines(o.width);
  };
  std::size_t shown = std::min(running.size(), room);
  auto table = table_of(shown);
  if (shown < running.size() || table.size() > room) {
    // Fewer trials, but all parameters of each.
    const std::size_t blocks = table.size() / (shown + 1);
    shown = std::max<std::size_t>(2, (room - 1) / blocks) - 1;
    table = table_of(shown);
  }
  const bool all = shown == running.size();
  table.resize(std::min(table.size(), all ? room : room - 1));
  for (const auto& row : table) {
    const auto trial = row.row == 0 ? running.end() : std::next(running.begin(), static_cast<long>(row.row) - 1);
    const bool best = row.row > 0 && !p.best().empty() && p.best().front() && p.best().front()->trial == trial->first;
    Line line(o.width, o.color);
    line.add(row.text, row.row == 0 ? Style::dim : best ? Style::green : Style::plain);
    lines.push_back(line.text());
  }
  if (!all) {
    Line line(o.width, o.color);
    line.add(detail::format("… and {} more running", count_text(static_cast<std::int64_t>(running.size() - shown))),
             Style::dim);
    lines.push_back(line.text());
  }
}

}  // namespace detail::terminal

/// The live table: at most options.height lines, each at most options.width columns wide (colour codes not counted).
/// Colours: bold for the name and the count, green for running trials and the best, yellow for paused and interrupted,
/// red for failures, dim for titles.
inline std::vector<std::string> render(const ExperimentProgress& p, const RenderOptions& o) {
  using detail::terminal::Line;
  using detail::terminal::Style;
  std::vector<std::string> lines{detail::terminal::header_line(p, o), detail::terminal::counts_line(p, o)};
  // On a terminal of the usual height, up to a quarter of it shows the parameters of the best trials.
  std::size_t more = o.height < 16 ? 0 : o.height / 4;
  for (std::size_t i = 0; i < p.best().size() && i < 4; ++i) {
    const auto& best = p.best()[i];
    const std::string text = detail::terminal::best_text(p, i);
    Line line(o.width, o.color);
    line.add("best  ").add(text, best ? Style::green : Style::plain);
    std::string spark;
    if (const std::size_t used = detail::terminal::text_width(text) + 8; o.unicode && best && used < o.width)
      spark = detail::terminal::sparkline(best->curve, p.reports(),
                                          std::min({std::size_t{16}, o.width / 8, o.width - used}));
    if (!spark.empty()) line.add("  ").add(spark, Style::dim);
    const std::size_t sparks = spark.empty() ? 0 : detail::terminal::text_width(spark) + 2;
    const bool params = best && best->values && !best->values->empty();
    if (!params) {
      lines.push_back(line.text());
      continue;
    }
    constexpr std::size_t indent = 6;
    const auto rest = detail::terminal::params_lines(*best->values, detail::terminal::text_width(text) + sparks + 2,
                                                     o.width - std::min(o.width, indent), more + 1);
    if (!rest.front().empty()) line.add("  ").add(rest.front());
    lines.push_back(line.text());
    for (std::size_t n = 1; n < rest.size(); ++n, --more)
      lines.push_back(Line(o.width, o.color).add(std::string(indent, ' ')).add(rest[n]).text());
  }
  {
    Line line(o.width, o.color);
    line.add("rate  ").add(detail::terminal::rates_text(p));
    if (const auto resources = detail::terminal::resources_text(p); !resources.empty()) line.add("  ").add(resources);
    lines.push_back(line.text());
  }
  if (!p.last_failure().empty()) {
    Line line(o.width, o.color);
    line.add("fail  ").add(p.last_failure(), Style::red);
    lines.push_back(line.text());
  }
  if (!p.finished() && lines.size() < o.height) detail::terminal::add_running(p, o, o.height - lines.size(), lines);
  if (lines.size() > o.height) lines.resize(o.height);
  return lines;
}

// ---- Lines for a log, where there is no terminal. -------------------------------------------------------------------

inline std::string start_text(const ExperimentProgress& p) {
  const auto& e = p.started();
  std::string text = detail::format("{}: {}", p.name(), e.resumed ? "resumed" : "started");
  if (p.planned() > 0)
    text += detail::format(", {} trial{}", detail::terminal::count_text(p.planned()), detail::plural(p.planned()));
  const auto part = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += detail::format(", {} {}", what, detail::terminal::printable(value));
  };
  if (const auto workers = detail::terminal::workers_text(p); !workers.empty()) text += ", " + workers;
  part("search", e.searcher);
  part("schedule", e.scheduler);
  part("executor", e.executor);
  return text;
}

inline std::string best_line(const ExperimentProgress& p, std::size_t objective) {
  std::string text = detail::format("{}: {}: best {}", p.name(), duration_text(p.elapsed()),
                                    detail::terminal::best_text(p, objective));
  if (p.best()[objective] && !p.best()[objective]->params.empty()) text += "  " + p.best()[objective]->params;
  return text;
}

/// "2 attempts failed", "8 trials failed (24 attempts)". A trial that is tried again has not failed yet.
inline std::string failures_text(const ExperimentProgress& p) {
  const auto number = [](std::int64_t n, const char* what) {
    return detail::format("{} {}{}", detail::terminal::count_text(n), what, detail::plural(n));
  };
  const std::int64_t trials = p.count(TrialState::failed);
  if (trials == 0) return number(p.failures(), "attempt") + " failed";
  const std::string text = number(trials, "trial") + " failed";
  return p.failures() > trials ? text + " (" + number(p.failures(), "attempt") + ")" : text;
}

inline std::string summary_line(const ExperimentProgress& p) {
  const RenderOptions wide{.width = 10'000, .height = 1, .color = false};
  std::string text =
      detail::format("{}: {}: {}", p.name(), duration_text(p.elapsed()), detail::terminal::counts_line(p, wide));
  for (std::size_t i = 0; i < p.best().size(); ++i)
    if (p.best()[i]) text += detail::format("; best {}", detail::terminal::best_text(p, i));
  text += "; " + detail::terminal::rates_text(p);
  if (const auto resources = detail::terminal::resources_text(p); !resources.empty() && !p.finished())
    text += "; " + resources;
  if (const auto left = p.time_left()) text += detail::format("; about {} left", duration_text(*left));
  return text;
}

inline std::string end_text(const ExperimentProgress& p) {
  const RenderOptions wide{.width = 10'000, .height = 1, .color = false};
  const char* const how = !p.finished() ? "left" : p.finished()->interrupted ? "interrupted" : "done";
  std::string text = detail::format("{}: {} after {}: {}", p.name(), how, duration_text(p.elapsed()),
                                    detail::terminal::counts_line(p, wide));
  if (p.finished() && !p.finished()->why.empty())
    text += detail::format(" ({})", detail::terminal::printable(p.finished()->why));
  return text;
}

}  // namespace hypertune::inline v0
