#include "charts.hpp"

#include "text.hpp"

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace hypertune::inline v0::plot {

namespace {

struct Point {
  double x, y;
  std::size_t i = 0;  // its place in the columns
};
using Points = std::vector<Point>;

// The points that can be drawn. `x_of` and `y_of` place values.
template <class X, class Y>
Points pairs(const Column& x, const Column& y, X x_of, Y y_of) {
  Points points;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const std::optional<double> a = x_of(x[i]), b = y_of(y[i]);
    if (a && b) points.push_back({*a, *b, i});
  }
  return points;
}

auto fitting(bool log) {
  return [log](const json::value& value) { return fit(value, log); };
}

void see(Panel& panel, const Points& points) {
  for (const auto& point : points) {
    panel.x.see(point.x);
    panel.y.see(point.y);
  }
}

std::string four_digits(double value) { return number(value, 4); }

template <class... Args>
[[noreturn]] void nothing(fmt::format_string<Args...> why, Args&&... args) {
  fail(Errc::input, "there is nothing to draw: {}", fmt::format(why, std::forward<Args>(args)...));
}

Axis across(std::string_view name, bool log = false) {
  Axis axis;
  axis.name = shortened(name, 40);
  axis.name_gap = 26;
  axis.log = log;
  axis.format = four_digits;
  axis.line = true;
  return axis;
}

Axis up(std::string_view name, bool log = false) {
  Axis axis = across(name, log);
  axis.name_gap = 9;
  axis.line = false;
  axis.grid = true;
  return axis;
}

// Whole numbers from 0, or times.
Axis counted(std::string_view name, bool time = false, bool log = false) {
  Axis axis = across(name, log);
  axis.zero = true;
  axis.format = time ? duration : count;
  if (!time) axis.least_interval = 1;
  return axis;
}

Axis counted_to_data(std::string_view name, bool time, bool log = false) {
  Axis axis = counted(name, time, log);
  axis.to_data = true;
  if (time) axis.show_high = false;
  return axis;
}

// One mark for each of the names, the first at 0.
void name_marks(Axis& axis, const Names& names) {
  axis.low = -0.5;
  axis.high = std::max(0.5, static_cast<double>(names.size()) - 0.5);
  for (std::size_t i = 0; i < names.size(); ++i) axis.ticks.push_back(static_cast<double>(i));
  axis.format = [names](double place) { return names.at(static_cast<std::size_t>(place)); };
}

Chart alone(Panel panel, Key key = {}) {
  Chart chart{.key = std::move(key)};
  chart.panels.push_back(std::move(panel));
  return chart;
}

struct Dots {
  double size = 5, opacity = 0.8;
  std::string_view border = "none";
  double border_width = 1;
  int z = 2;
};

// `fill` gives the colour of a point.
template <class Fill>
void add_dots(Panel& panel, Points points, const Dots& dots, Fill fill) {
  see(panel, points);
  panel.add({.z = dots.z, .above = true}, [=, points = std::move(points)](const Frame& frame) {
    std::string out;
    for (const auto& point : points)
      if (const double x = frame.x(point.x), y = frame.y(point.y); frame.contains(x, y))
        out += circle(x, y, dots.size / 2, fill(point));
    return group(fmt::format("fill-opacity=\"{0}\" stroke=\"{1}\" stroke-width=\"{2}\" stroke-opacity=\"{0}\"",
                             dots.opacity, dots.border, dots.border_width),
                 out);
  });
}

auto always(std::string_view colour) {
  return [colour](const Point&) { return colour; };
}

struct Line {
  std::string_view colour;
  double width = 2, opacity = 1;
  bool steps = false;
  std::string_view dash = "none";
  double area = 0;  // the opacity of the area below it
  int z = 2;
};

void add_line(Panel& panel, Points points, const Line& line) {
  see(panel, points);
  panel.add({.z = line.z, .clip = true}, [=, points = std::move(points)](const Frame& frame) {
    if (points.size() < 2) return std::string();
    std::string path, area;
    double before = 0;
    for (const auto& point : points) {
      const double x = frame.x(point.x), y = frame.y(point.y);
      if (line.steps && !path.empty()) path += shape("L# #", {x, before});
      path += shape(path.empty() ? "M# #" : "L# #", {x, y});
      before = y;
    }
    if (line.area > 0) {
      const double base = frame.y(std::clamp(0.0, frame.up.low, frame.up.high));
      area = fmt::format("<path d=\"{}{}\" fill=\"{}\" fill-opacity=\"{}\"/>\n", path,
                         shape("L# #L# #Z", {frame.x(points.back().x), base, frame.x(points.front().x), base}),
                         line.colour, line.area);
    }
    return area + stroke(path, line.colour, line.width,
                         fmt::format("stroke-opacity=\"{}\" stroke-dasharray=\"{}\" stroke-linejoin=\"bevel\"",
                                     line.opacity, line.dash));
  });
}

using Some = std::set<std::string, std::less<>>;

std::vector<Mark> marks_of_states(const Some& some, std::string_view shape) {
  std::vector<Mark> marks;
  for (const std::string_view state :
       {"completed", "stopped", "failed", "running", "paused", "pending", "preempted", "lost", "pause"})
    if (some.contains(state))
      marks.push_back({state == "pause" ? "paused" : std::string(state), colour::of_state(state), shape});
  return marks;
}

// How the values of a parameter are placed on an axis: numbers as they are or as powers of ten, choices by their index.
class ParameterScale {
 public:
  explicit ParameterScale(const json::value& parameter)
      : choices_(list(plot::at(parameter, "choices"))), log_(is_true(plot::at(parameter, "log"))) {
    if (choices_.empty() && text(plot::at(parameter, "kind")) == "bool") choices_ = {false, true};
    if (choices_.empty()) {
      const auto &from = plot::at(parameter, "low"), &to = plot::at(parameter, "high");
      low = at(from);
      high = at(to);
      if (log_ && low && high) ticks = decades(*fit(from), *fit(to));
      return;
    }
    low = -0.5;
    high = static_cast<double>(choices_.size()) - 0.5;
    for (std::size_t i = 0; choices_.size() <= 12 && i < choices_.size(); ++i) ticks.push_back(static_cast<double>(i));
  }

  std::optional<double> at(const json::value& value) const {
    if (choices_.empty()) {
      const auto known = fit(value, log_);
      return known && log_ ? std::log10(*known) : known;
    }
    const auto found = std::find_if(choices_.begin(), choices_.end(), [&](const json::value& choice) {
      return choice.is_number() && value.is_number() ? real(choice) == real(value) : choice == value;
    });
    return found == choices_.end() ? std::nullopt : std::optional(static_cast<double>(found - choices_.begin()));
  }
  auto placing() const {
    return [this](const json::value& value) { return at(value); };
  }

  void set(Axis& axis) const {
    axis.low = low;
    axis.high = high;
    axis.ticks = ticks;
    if (ticks.empty()) axis.show_low = true;
    axis.format = [choices = choices_, log = log_](double place) -> std::string {
      if (choices.empty()) return number(log ? std::pow(10, place) : place, 3);
      const auto i = static_cast<std::size_t>(std::max(0.0, place));
      if (static_cast<double>(i) != place || i >= choices.size()) return "";
      return shortened(choices[i].is_string() ? std::string(text(choices[i])) : json::serialize(choices[i]), 16);
    };
  }

  std::vector<double> ticks;
  std::optional<double> low, high;

 private:
  Column choices_;
  bool log_;
};

// Ranks from 0 (worst) to 1 (best) by place; equal values get the mean of their ranks. Others have none.
std::map<std::size_t, double> ranks_of(const Column& values, bool least_is_best) {
  std::vector<std::pair<double, std::size_t>> known;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (const auto value = fit(values[i])) known.emplace_back(least_is_best ? -*value : *value, i);
  std::sort(known.begin(), known.end());
  std::map<std::size_t, double> ranks;
  for (std::size_t i = 0; i < known.size();) {
    std::size_t end = i + 1;
    while (end < known.size() && known[end].first == known[i].first) ++end;
    const auto middle = static_cast<double>(i + end - 1) / 2;
    for (; i < end; ++i) ranks[known[i].second] = known.size() < 2 ? 1 : middle / static_cast<double>(known.size() - 1);
  }
  return ranks;
}

// A surface through scattered points, in steps: weighted by distance, and only near the points.
struct Surface {
  struct Cell {
    double x0, x1, y0, y1, good;  // good: from 0 to 1
  };
  std::vector<Cell> cells = {};
  double low = 0, high = 0;  // the values of the first and the last step
};

// nullopt: there are not enough places.
std::optional<Surface> surface_of(const Points& points, const Column& values, const ParameterScale& sx,
                                  const ParameterScale& sy, bool least_is_best) {
  constexpr std::size_t n = 64, steps = 9;
  if (points.size() < 4) return std::nullopt;
  const auto ends = [&](const ParameterScale& scale, double Point::* side) {
    const auto by_side = [&](const Point& a, const Point& b) { return a.*side < b.*side; };
    const auto [low, high] = std::minmax_element(points.begin(), points.end(), by_side);
    return std::pair(scale.low.value_or((*low).*side), scale.high.value_or((*high).*side));
  };
  const auto [x_low, x_high] = ends(sx, &Point::x);
  const auto [y_low, y_high] = ends(sy, &Point::y);
  if (!(x_high > x_low) || !(y_high > y_low)) return std::nullopt;
  // With few points the kernel is wide. Nothing is drawn farther than 2.5 widths from the nearest point.
  const double width = std::clamp(0.9 / std::sqrt(static_cast<double>(points.size())), 0.05, 0.16);
  std::vector<std::optional<double>> grid(n * n);
  std::vector<double> known;
  for (std::size_t at = 0; at < n * n; ++at) {
    const std::size_t row = at / n;
    const double x = (static_cast<double>(at % n) + 0.5) / n, y = (static_cast<double>(row) + 0.5) / n;
    double sum = 0, weights = 0, nearest = std::numeric_limits<double>::infinity();
    for (const auto& point : points) {
      const double dx = (point.x - x_low) / (x_high - x_low) - x, dy = (point.y - y_low) / (y_high - y_low) - y;
      const double distance = dx * dx + dy * dy, weight = std::exp(-distance / (2 * width * width)) + 1e-12;
      nearest = std::min(nearest, distance);
      sum += weight * real(values[point.i]);
      weights += weight;
    }
    if (nearest > 6.25 * width * width) continue;
    grid[at] = sum / weights;
    known.push_back(sum / weights);
  }
  if (known.empty()) return std::nullopt;
  // The worst 5 % share a colour, so that one diverged trial does not make all others look alike.
  std::sort(known.begin(), known.end());
  const auto n_known = static_cast<double>(known.size());
  const auto part = [&](double share) {
    return known[std::min(known.size() - 1, static_cast<std::size_t>(share * n_known))];
  };
  Surface surface{.low = least_is_best ? known.front() : part(0.05), .high = least_is_best ? part(0.95) : known.back()};
  const auto level = [&](const std::optional<double>& value) -> std::optional<std::size_t> {
    if (!value) return std::nullopt;
    const double span = surface.high - surface.low;
    const double within = span > 0 ? std::clamp((*value - surface.low) / span, 0.0, 1.0) : 1;
    return std::min(steps - 1, static_cast<std::size_t>((least_is_best ? 1 - within : within) * steps));
  };
  const auto x_at = [&](std::size_t i) { return x_low + (x_high - x_low) * static_cast<double>(i) / n; };
  const auto y_at = [&](std::size_t i) { return y_low + (y_high - y_low) * static_cast<double>(i) / n; };
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = 0, end = 0; i < n; i = end) {  // neighbours of a row are one cell
      const auto own = level(grid[j * n + i]);
      for (end = i + 1; end < n && level(grid[j * n + end]) == own;) ++end;
      if (own)
        surface.cells.push_back({x_at(i), x_at(end), y_at(j), y_at(j + 1), static_cast<double>(*own) / (steps - 1)});
    }
  return surface;
}

// The answer's part for an objective; null if it has none.
const json::value& objective_of(const json::value& answer, const std::string& metric) {
  static const json::value null;
  for (const auto& one : list(at(answer, "objectives")))
    if (text(at(one, "metric")) == metric) return one;
  return null;
}

json::value best_of(const Source& source) {
  return objective_of(source.get("/api/best", {{"x", source.picture.time ? "time" : "trial"}}), source.metric);
}

// Several experiments as lines, or one.
struct Named {
  std::string name;
  Column x, y;
};

Chart lines(Panel panel, const std::vector<Named>& all, bool log_x, bool log_y, double width, std::size_t few) {
  std::vector<Mark> marks;
  for (const auto& [name, x, y] : all) {
    const std::string_view own = colour::series[marks.size()];
    auto points = pairs(x, y, fitting(log_x), fitting(log_y));
    if (x.size() < few) add_dots(panel, points, {.size = 4, .opacity = 1}, always(own));
    add_line(panel, std::move(points), {.colour = own, .width = width, .steps = true});
    marks.push_back({shortened(name, 60), own, "line"});
  }
  return alone(std::move(panel), all.size() > 1 ? key_of_marks(std::move(marks)) : Key());
}

Named edf_of(const Source& source, std::string name) {
  const auto answer = source.get("/api/edf", {{"metric", source.field_of_metric(source.metric)}});
  return {std::move(name), list(at(answer, "value")), list(at(answer, "share"))};
}

Chart edf_of(const Source& source, const std::vector<Named>& all) {
  Column values;
  for (const auto& one : all) values.insert(values.end(), one.x.begin(), one.x.end());
  source.drawable(values);
  Panel panel{.x = across(source.metric, source.picture.log), .y = up("share of trials")};
  panel.y.low = 0;
  panel.y.high = 1;
  panel.y.interval = 0.25;
  panel.y.format = share;
  return lines(std::move(panel), all, source.picture.log, false, 1.75, 40);
}

std::pair<std::vector<ParameterScale>, std::vector<const Column*>> placed(const Source& source, const Names& names,
                                                                          const Table& table) {
  std::pair<std::vector<ParameterScale>, std::vector<const Column*>> both;
  for (const auto& name : names) {
    both.first.emplace_back(source.parameter(name));
    both.second.push_back(&table.of(source.field_of_parameter(name)));
  }
  return both;
}

}  // namespace

Chart best(Source& source) {
  if (!source.picture.metrics.empty() && !contains(source.objectives, source.metric))
    fail(Errc::input, "'{}' is no objective, of which 'best' is drawn; there are: {}", shortened(source.metric, 100),
         listed(source.objectives));
  source.reported();
  const auto answer = best_of(source);
  const auto &x = list(at(answer, "x")), &y = list(at(answer, "value"));
  if (x.empty()) nothing("no trial has reported a value yet");
  source.drawable(y);
  const auto& [time, log] = std::pair(source.picture.time, source.picture.log);
  Panel panel{.x = counted_to_data(time ? "time since the start" : "trial", time),
              .y = up(fmt::format("{} ({})", shortened(source.metric, 32), text(at(answer, "mode"))), log)};
  std::vector<Mark> legend{{"best so far", colour::best, "dot"}};
  const auto& all = at(answer, "points");
  const auto& states = list(at(all, "state"));
  const auto points = pairs(list(at(all, "x")), list(at(all, "value")), fitting(false), fitting(log));
  for (const std::string_view state : {"completed", "stopped", "failed", "paused", "running"}) {
    Points own;
    for (const auto& point : points)
      if (text(states[point.i]) == state) own.push_back(point);
    if (own.empty()) continue;
    const double opacity = state == "stopped" ? 0.55 : 0.75;
    legend.push_back({std::string(state), colour::of_state(state), "dot", opacity});
    add_dots(panel, std::move(own), {.size = states.size() > 1200 ? 3.0 : 5.0, .opacity = opacity},
             always(colour::of_state(state)));
  }
  for (const auto& one : x) panel.x.see(real(one));  // the line goes on to the last trial
  auto line = pairs(x, y, fitting(false), fitting(log));
  if (x.size() < 60) add_dots(panel, line, {.opacity = 1, .z = 5}, always(colour::best));  // its corners are trials
  add_line(panel, std::move(line), {.colour = colour::best, .steps = true, .z = 5});
  Chart chart = alone(std::move(panel));
  chart.legend = std::move(legend);
  return chart;
}

Chart curves(Source& source) {
  source.reported();
  const auto& picture = source.picture;
  const auto answer = source.get("/api/curves", {{"metric", source.field_of_metric(source.metric)},
                                                 {"x", picture.time ? "time" : "step"},
                                                 {"limit", "100"},
                                                 {"filter", picture.filter}});
  const auto& all = list(at(answer, "curves"));
  if (all.empty() && !picture.filter.empty()) nothing("no trial that matches the filter has reported this metric");
  if (all.empty()) nothing("no trial has reported '{}' yet", shortened(source.metric, 60));
  Column values;
  for (const auto& curve : all)
    values.insert(values.end(), list(at(curve, "value")).begin(), list(at(curve, "value")).end());
  source.drawable(values);
  const bool first = !source.objectives.empty() && source.objectives.front() == source.metric;
  const auto best = first ? source.best() : std::nullopt;

  Panel panel{.x = counted_to_data(picture.time ? "time since the trial's start" : "step", picture.time, picture.log_x),
              .y = up(source.metric, picture.log)};
  // Reported steps count from 0, which has no logarithm: then the number of steps done is drawn.
  const auto x_of = [&](const json::value& value) -> std::optional<double> {
    const auto known = fit(value);
    if (!known || !picture.log_x) return known;
    const double x = *known + (picture.time ? 0 : 1);
    return x > 0 ? std::optional(x) : std::nullopt;
  };
  Some states;
  std::set<double> trials;
  bool best_shown = false;
  for (const int rank : {0, 1, 2})  // the least important states first, the best trial last
    for (const auto& curve : all) {
      const auto state = text(at(curve, "state"));
      const double trial = real(at(curve, "trial"));
      const bool is_best = best == trial, stopped = state == "stopped";
      if (rank != (is_best ? 2 : stopped ? 0 : 1)) continue;
      best_shown = best_shown || is_best;
      states.emplace(state);
      trials.insert(trial);
      const Line line{.colour = is_best ? colour::best : colour::of_state(state),
                      .width = is_best ? 2.25 : 1,
                      .opacity = is_best            ? 1
                                 : all.size() <= 40 ? (stopped ? 0.55 : 0.85)
                                                    : (stopped ? 0.35 : 0.6),
                      .z = is_best ? 6 : 2 + rank};
      auto points = pairs(list(at(curve, "x")), list(at(curve, "value")), x_of, fitting(picture.log));
      if (points.size() == 1) add_dots(panel, points, {.size = 4, .opacity = 1, .z = line.z}, always(line.colour));
      add_line(panel, std::move(points), line);
    }
  auto marks = marks_of_states(states, "line");
  if (best_shown) marks.insert(marks.begin(), {"best", colour::best, "line"});
  if (const auto& bands = at(answer, "bands"); bands.is_object()) {
    const auto quantile = [&](const char* name) {
      return pairs(list(at(bands, "x")), list(at(bands, name)), x_of, fitting(picture.log));
    };
    const auto low = quantile("p10"), high = quantile("p90");
    if (low.size() > 1 && high.size() > 1)
      panel.add({.z = 1, .clip = true}, [low, high](const Frame& frame) {
        std::string path;
        for (const auto& point : high)
          path += shape(path.empty() ? "M# #" : "L# #", {frame.x(point.x), frame.y(point.y)});
        for (std::size_t i = low.size(); i-- > 0;) path += shape("L# #", {frame.x(low[i].x), frame.y(low[i].y)});
        return fmt::format("<path d=\"{}Z\" fill=\"{}\" fill-opacity=\"0.1\"/>\n", path, colour::accent);
      });
    for (const auto& edge : {low, high})
      if (!edge.empty()) see(panel, {edge.front()});
    add_line(panel, quantile("p50"), {.colour = colour::ink, .width = 1.5, .dash = "5 3", .z = 5});
    marks.push_back({"median", colour::ink, "dash"});
    marks.push_back({"10–90 %", colour::accent, "band"});
  }
  Column cut_x, cut_y;
  if (first && source.has("rungs") && !picture.time) {
    const auto ladder = source.get("/api/rungs");
    for (const auto& cut : list(at(ladder, "cuts")))
      if (trials.contains(real(at(cut, "trial")))) {
        cut_x.push_back(at(cut, "step"));
        cut_y.push_back(at(cut, "value"));
      }
  }
  if (!cut_x.empty()) marks.push_back({"cut", colour::bad, "cross"});
  const auto cuts = pairs(cut_x, cut_y, x_of, fitting(picture.log));
  see(panel, cuts);
  panel.add({.z = 4, .above = true}, [cuts](const Frame& frame) {
    std::string path;
    for (const auto& cut : cuts) path += shape("M# #l5 5m-5 0l5 -5", {frame.x(cut.x) - 2.5, frame.y(cut.y) - 2.5});
    return path.empty() ? path : stroke(path, colour::bad, 1.25, "stroke-opacity=\"0.8\"");
  });
  return alone(std::move(panel), key_of_marks(std::move(marks)));
}

Chart rungs(Source& source) {
  const auto ladder = source.has("rungs") ? source.get("/api/rungs") : json::value();
  const auto& all = list(at(ladder, "rungs"));
  if (all.empty()) nothing("the schedule has no rungs, or no trial was stopped or waits at one");
  Panel panel{.x = across("steps done"), .y = up("trials")};
  panel.y.zero = true;
  panel.y.least_interval = 1;
  Names names;
  for (const auto& rung : all) names.push_back(count(real(at(rung, "step"))));
  name_marks(panel.x, names);
  std::vector<Mark> legend;
  std::vector<double> done(all.size(), 0);
  for (const auto& [name, member, state] :
       {std::tuple("went on", "promoted", "completed"), std::tuple("stopped", "stopped", "stopped"),
        std::tuple("paused", "paused", "paused"), std::tuple("open", "reached", "pending")}) {
    const auto fill = colour::of_state(state);
    std::vector<std::pair<double, double>> bars;
    bool some = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      // Open are those that are neither of the others.
      const double number = fit(at(all[i], member)).value_or(0) - (std::string_view(name) == "open" ? done[i] : 0);
      bars.emplace_back(done[i], done[i] + std::max(0.0, number));
      some = some || number > 0;
      done[i] = bars.back().second;
      panel.y.see(done[i]);
    }
    if (!some) continue;
    legend.push_back({name, fill, "box"});
    panel.add({}, [bars, fill](const Frame& frame) {
      std::string out;
      const double width = std::min(34.0, 0.69 * frame.box.width / static_cast<double>(bars.size()));
      for (std::size_t i = 0; i < bars.size(); ++i) {
        const double left = frame.x(static_cast<double>(i)) - width / 2, top = frame.y(bars[i].second);
        if (const double height = frame.y(bars[i].first) - top; height > 0)
          out +=
              rectangle({left + 0.5, top + 0.5, width - 1, std::max(0.0, height - 1)}, fill, 0, "stroke=\"#ffffff\"");
      }
      return out;
    });
  }
  Chart chart = alone(std::move(panel));
  chart.legend = std::move(legend);
  return chart;
}

Chart importance(Source& source) {
  source.reported();
  const auto answer = source.get("/api/importance", {{"metric", source.field_of_metric(source.metric)}});
  std::vector<std::pair<double, std::string>> rows;
  for (const auto& one : list(at(answer, "importance")))
    if (rows.size() < 20) rows.emplace_back(real(at(one, "value")), shortened(text(at(one, "name")), 22));
  if (rows.empty()) nothing("too few trials have ended to tell");
  hypertune::detail::stable_sort(rows.begin(), rows.end(),
                                 [](const auto& a, const auto& b) { return a.first < b.first; });
  Panel panel{.x = across(""), .y = up(""), .right = 44};
  panel.x.name = fmt::format("share of the variance of {}", shortened(source.metric, 40));
  panel.x.name_gap = 8;
  panel.x.low = 0;
  panel.x.labels = panel.x.line = panel.y.grid = false;
  panel.y.size = 11.5;
  panel.y.colour = colour::ink2;
  Names names;
  for (const auto& [value, name] : rows) {
    names.push_back(name);
    panel.x.see(value);
  }
  name_marks(panel.y, names);
  panel.add({}, [rows](const Frame& frame) {
    std::string out;
    const double height = std::min(26.0, 0.7 * frame.box.height / static_cast<double>(rows.size()));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double left = frame.x(0), right = frame.x(rows[i].first), middle = frame.y(static_cast<double>(i));
      out += rectangle({left, middle - height / 2, right - left, height}, colour::accent, 2);
      out += text_at(right + 5, middle, share(rows[i].first), {.central = true});
    }
    return out;
  });
  return alone(std::move(panel));
}

// A small chart for each parameter.
Chart slice(Source& source) {
  source.reported();
  Names names = source.chosen(16);
  if (source.picture.parameters.empty()) names.resize(std::min<std::size_t>(names.size(), 8));
  const Table table = source.points(names, {source.metric});
  const Column& values = table.of(source.field_of_metric(source.metric));
  source.drawable(values);
  const auto columns = std::clamp<std::size_t>(static_cast<std::size_t>(source.picture.width) / 170, 1, names.size());
  const std::size_t rows = (names.size() + columns - 1) / columns;
  const double width = 1.0 / static_cast<double>(columns), height = 1.0 / static_cast<double>(rows);
  const double last = std::max(1.0, *std::max_element(table.trial.begin(), table.trial.end()));
  Chart chart{.key = key_of_colours("first trial", "last trial", "", 0.25)};
  for (const auto& [scales, fields] = placed(source, names, table); const auto& name : names) {
    const std::size_t k = chart.panels.size(), row = k / columns;
    // The empty name gives the charts of a row the same height.
    Panel panel{.x = across(shortened(name, 26)),
                .y = up(k % columns == 0 ? shortened(source.metric, 24) : "\u00a0", source.picture.log),
                .room = {static_cast<double>(k % columns) * width, static_cast<double>(row) * height + 0.01,
                         width - (columns > 1 ? 0.012 : 0), height - 0.02}};
    panel.x.name_gap = 22;
    scales[k].set(panel.x);
    add_dots(panel, pairs(*fields[k], values, scales[k].placing(), fitting(source.picture.log)),
             {.size = table.trial.size() > 800 ? 3.0 : 5.0}, [trials = table.trial, last](const Point& point) {
               return colour::mix(0.25 + 0.75 * trials[point.i] / last);
             });
    chart.panels.push_back(std::move(panel));
  }
  return chart;
}

Chart contour_or_rank(Source& source) {
  source.reported();
  const Names names = source.chosen(2, 2);
  const Table table = source.points(names, {source.metric});
  const Column& values = table.of(source.field_of_metric(source.metric));
  source.drawable(values, false, source.metric);
  const auto [scales, fields] = placed(source, names, table);
  auto points = pairs(*fields[0], *fields[1], scales[0].placing(), scales[1].placing());
  std::erase_if(points, [&](const Point& point) { return !fit(values[point.i]); });
  Panel panel{.x = across(names[0]), .y = up(names[1])};
  scales[0].set(panel.x);
  scales[1].set(panel.y);
  const std::string metric = shortened(source.metric, 40);
  if (source.picture.kind == "rank") {
    add_dots(panel, points, {.size = 7, .border = colour::ink3, .border_width = 0.4, .z = 3},
             [ranks = ranks_of(values, source.least_is_best)](const Point& point) {
               return colour::mix(ranks.at(point.i));
             });
    return alone(std::move(panel), key_of_colours("worst", "best", "rank by " + metric));
  }
  const auto surface = surface_of(points, values, scales[0], scales[1], source.least_is_best);
  if (!surface) nothing("a contour needs at least four trials at different places; the kind rank draws fewer");
  panel.add({.z = 1}, [cells = surface->cells](const Frame& frame) {
    std::string out;
    for (const auto& cell : cells) {  // they overlap, so that there are no gaps
      const double left = frame.x(cell.x0), top = frame.y(cell.y1);
      const double bottom = std::min(frame.y(cell.y0) + 0.7, frame.box.y + frame.box.height);
      out += rectangle({left, top, frame.x(cell.x1) + 0.7 - left, bottom - top}, colour::mix(cell.good));
    }
    return out;
  });
  const double size = points.size() > 500 ? 3 : 5;
  add_dots(panel, std::move(points),
           {.size = size, .opacity = 0.75, .border = colour::ink, .border_width = 0.8, .z = 3}, always(colour::panel));
  auto ends = std::pair(four_digits(surface->low), four_digits(surface->high));
  if (source.least_is_best) std::swap(ends.first, ends.second);
  const auto title = fmt::format("{} ({})", metric, source.least_is_best ? "min" : "max");
  return alone(std::move(panel), key_of_colours(ends.first, ends.second, title, 0, 9));
}

Chart parallel(Source& source) {
  source.reported();
  const Names names = source.chosen(12);
  Names parameters, metrics{source.metric};
  std::vector<std::tuple<std::string, std::string, json::value>> axes;  // name, field, description
  for (const auto& name : source.varied)
    if (contains(names, name)) {
      parameters.push_back(name);
      axes.emplace_back(name, source.field_of_parameter(name), source.parameter(name));
    }
  for (const auto& name : source.objectives)
    if (!contains(metrics, name)) metrics.push_back(name);
  for (const auto& name : metrics) axes.emplace_back(name, source.field_of_metric(name), nullptr);
  const Table table = source.points(parameters, metrics);
  const Column& values = table.of(source.field_of_metric(source.metric));
  source.drawable(values, false, source.metric);

  Chart chart{.key = key_of_colours("worst", "best", "rank by " + shortened(source.metric, 40), 0.15)};
  const auto ranks = ranks_of(values, source.least_is_best);
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < table.trial.size(); ++i) order.emplace_back(ranks.contains(i) ? ranks.at(i) : 0, i);
  std::sort(order.begin(), order.end());  // the best are drawn on top
  const double faintest = table.trial.size() > 400 ? 0.08 : 0.18;
  for (const auto& [rank, i] : order)
    chart.threads.push_back({.colour = colour::mix(0.15 + 0.85 * rank),
                             .opacity = faintest + 0.7 * rank * rank * rank,
                             .width = rank > 0.95 ? 1.75 : 1});
  for (const auto& [name, field, parameter] : axes) {
    const ParameterScale scale(parameter);
    Pole pole{.name = shortened(name, 14), .axis = {}};
    scale.set(pole.axis);
    for (std::size_t k = 0; k < order.size(); ++k)
      if (const auto place = scale.at(table.of(field)[order[k].second])) {
        pole.axis.see(*place);
        chart.threads[k].points.emplace_back(chart.poles.size(), *place);
      }
    if (!scale.low || !scale.high) {
      const bool some = pole.axis.least <= pole.axis.most;
      const double low = some ? pole.axis.least : 0, high = some ? pole.axis.most : 1;
      const double around = high > low ? 0 : low == 0 ? 1 : std::abs(low) / 2;  // puts a single value into the middle
      pole.axis.low = low - around;
      pole.axis.high = high + around;
    }
    if (!(*pole.axis.high > *pole.axis.low)) pole.axis.high = *pole.axis.low + 1;
    chart.poles.push_back(std::move(pole));
  }
  return chart;
}

// Two metrics; the second one is on the vertical axis.
Chart pareto_or_against(Source& source) {
  source.reported();
  const auto& picture = source.picture;
  const auto& asked = picture.metrics;
  const bool front = picture.kind == "pareto", several = source.objectives.size() > 1;
  if (asked.size() > 2) fail(Errc::input, "'{}' takes two metrics at most, not {}", picture.kind, asked.size());
  const std::string first = source.objectives.empty() ? source.metric : source.objectives.front();
  std::string x = asked.size() == 1 && source.metric != first ? source.metric : "duration", y = first;
  if (front && several) {
    y = asked.empty() ? source.objectives[1] : source.metric;
    x = y == first ? source.objectives[1] : first;
  }
  if (asked.size() == 2) std::tie(x, y) = std::pair(asked[0], asked[1]);
  if (front && several)
    for (const auto& metric : {x, y})
      if (!contains(source.objectives, metric))
        fail(Errc::input, "'{}' is no objective, of which the front is made; there are: {}", shortened(metric, 100),
             listed(source.objectives));
  // All trials of the front are known only without a filter.
  std::optional<std::set<double>> members;
  std::optional<Table> table;
  if (front && several && picture.filter.empty()) {
    const auto answer = source.get("/api/front");
    members.emplace();
    for (const auto& row : list(at(answer, "front"))) members->insert(real(at(row, "trial")));
    table.emplace(at(answer, "points"));
    if (table->trial.empty()) nothing("no trial has reported all objectives yet");
  } else {
    table = source.points({}, {x, y});
  }
  const auto column = [&](const std::string& metric) -> const Column& {
    return table->of(members ? metric : source.field_of_metric(metric));
  };
  source.drawable(column(x), picture.log_x, x);
  source.drawable(column(y), picture.log, y);
  const auto all = pairs(column(x), column(y), fitting(picture.log_x), fitting(picture.log));
  const auto name = [&](const std::string& metric) {
    const std::string own = metric == "duration" ? "duration in seconds" : metric;
    return front ? fmt::format("{} ({})", shortened(own, 30), source.mode_of(metric)) : own;
  };
  Panel panel{.x = across(name(x), picture.log_x), .y = up(name(y), picture.log)};
  const double size = all.size() > 1200 ? 3 : 5;
  if (!front) {
    Some states;
    for (const auto& point : all) states.insert(table->state[point.i]);
    add_dots(panel, all, {.size = size, .opacity = 0.7},
             [states = table->state](const Point& point) { return colour::of_state(states[point.i]); });
    return alone(std::move(panel), key_of_marks(marks_of_states(states, "dot")));
  }

  // The trials that no other trial beats in both. A corner between two of them has the worse value of both in each.
  const double sign_x = source.mode_of(x) == "min" ? 1 : -1, sign_y = source.mode_of(y) == "min" ? 1 : -1;
  auto sorted = all;
  std::erase_if(sorted, [&](const Point& point) { return table->state[point.i] == "failed"; });
  hypertune::detail::stable_sort(sorted.begin(), sorted.end(), [&](const Point& a, const Point& b) {
    return std::pair(sign_x * a.x, sign_y * a.y) < std::pair(sign_x * b.x, sign_y * b.y);
  });
  Points stairs, on, others;
  std::set<double> own;
  for (const auto& point : sorted) {
    if (!stairs.empty() && !(sign_y * point.y < sign_y * stairs.back().y)) continue;
    if (!stairs.empty()) stairs.push_back({point.x, stairs.back().y});
    stairs.push_back(point);
    own.insert(table->trial[point.i]);
  }
  for (const auto& point : all) (members.value_or(own).contains(table->trial[point.i]) ? on : others).push_back(point);
  const auto other = colour::of_state("stopped");
  add_dots(panel, std::move(others), {.size = size, .opacity = 0.55}, always(other));
  add_line(panel, std::move(stairs), {.colour = colour::best, .width = 1.25, .dash = "4 3"});
  add_dots(panel, std::move(on), {.size = 8, .border = colour::panel, .z = 4}, always(colour::best));
  Chart chart = alone(std::move(panel));
  chart.legend = {{"on the front", colour::best, "ring", 0.8}, {"the others", other, "dot", 0.55}};
  return chart;
}

Chart hypervolume(Source& source) {
  if (source.objectives.size() < 2) nothing("a hypervolume needs several objectives, and there is one");
  const auto answer = source.get("/api/front");
  const auto& volume = at(answer, "hypervolume");
  if (list(at(volume, "x")).empty()) nothing("no trial has reported all objectives yet");
  Panel panel{.x = counted_to_data("trials", false), .y = up("hypervolume")};
  add_line(panel, pairs(list(at(volume, "x")), list(at(volume, "value")), fitting(false), fitting(false)),
           {.colour = colour::accent, .steps = true, .area = 0.08});
  return alone(std::move(panel));
}

Chart edf(Source& source) {
  source.reported();
  const std::vector<Named> all{edf_of(source, source.name())};
  if (all.front().x.empty()) nothing("no trial has a finite value of '{}'", shortened(source.metric, 60));
  return edf_of(source, all);
}

Chart together(const std::vector<Source>& sources, const Names& names) {
  const Source& first = sources.front();
  const auto& [time, log] = std::pair(first.picture.time, first.picture.log);
  std::vector<Named> all;
  Column values;
  for (const auto& source : sources) {
    const std::string& name = names[all.size()];
    if (first.picture.kind == "edf") {
      all.push_back(edf_of(source, name));
      continue;
    }
    const auto answer = best_of(source);
    all.push_back({name, list(at(answer, "x")), list(at(answer, "value"))});
    values.insert(values.end(), all.back().y.begin(), all.back().y.end());
  }
  if (first.picture.kind == "edf") return edf_of(first, all);
  first.drawable(values);
  return lines({.x = counted(time ? "time since the start" : "trial", time),
                .y = up(fmt::format("best {} so far", shortened(first.metric, 32)), log)},
               all, false, log, 2, 200);
}

// Times are drawn from the start of the run, because the time of day means nothing in a paper.
Chart timeline_or_slots(Source& source) {
  const double start = fit(at(source.summary, "started")).value_or(0);
  const auto answer = source.get("/api/timeline", {{"limit", "4000"}});
  const auto &segments = at(answer, "segments"), &use = at(answer, "use");
  const auto &starts = list(at(segments, "start")), &ends = list(at(segments, "end")), &times = list(at(use, "time"));
  if (starts.empty()) nothing("no trial has started yet");
  const auto since = [start](const json::value& time) { return std::optional(real(time) - start); };
  Panel panel{.x = across("time since the start"), .y = up("slots, trials")};
  panel.x.format = duration;
  panel.x.least_interval = 0.001;
  panel.x.low = 0;
  panel.x.high = 1e-3;
  for (const auto& time : starts) panel.x.low = std::min(*panel.x.low, *since(time));
  for (const auto* column : {&ends, &times})
    for (const auto& time : *column) panel.x.high = std::max(*panel.x.high, *since(time));

  if (source.picture.kind == "slots") {
    if (times.empty()) nothing("it is not known which slots were in use");
    panel.y.zero = true;
    panel.y.least_interval = 1;
    panel.y.format = count;
    const auto row = [&](const char* name) { return pairs(times, list(at(use, name)), since, fitting(false)); };
    const auto running = colour::of_state("running"), paused = colour::of_state("paused");
    add_line(panel, row("busy"), {.colour = running, .width = 0, .steps = true, .area = 0.55});
    add_line(panel, row("slots"), {.colour = colour::ink2, .width = 1.25, .steps = true});
    add_line(panel, row("pending"), {.colour = paused, .width = 1.25, .steps = true, .dash = "4 3"});
    Chart chart = alone(std::move(panel));
    chart.legend = {{"busy", running, "line"}, {"slots", colour::ink2, "line"}, {"pending", paused, "line"}};
    return chart;
  }

  struct Lanes {
    double first = 0, number = 0;
  };
  std::map<std::string, Lanes, std::less<>> hosts;
  Names names;
  for (const auto& lane : list(at(answer, "lanes"))) {
    const auto host = text(at(lane, "host"));
    const auto slot = fmt::format("{}", real(at(lane, "slot")));
    Lanes& own = hosts[std::string(host)];
    if (own.number == 0) own.first = static_cast<double>(names.size());
    names.push_back(own.number == 0 ? fmt::format("{}  {}", shortened(host, 18), slot) : slot);
    ++own.number;
  }
  panel.top = 8;
  panel.y = up("");
  panel.y.grid = panel.y.hide_overlap = false;
  panel.y.inverse = true;
  panel.y.colour = colour::ink2;
  name_marks(panel.y, names);
  if (names.size() > 60)
    for (const auto& [name, lanes] : hosts) panel.y.labelled.push_back(lanes.first);
  panel.add({.z = 0}, [hosts](const Frame& frame) {
    std::string out;
    for (const auto& [name, lanes] : hosts)
      out += stroke(shape("M# #h#", {frame.box.x, frame.y(lanes.first - 0.5), frame.box.width}), colour::line);
    return out;
  });
  struct Piece {
    double lane, start, end;
    std::string trial, kind;
  };
  std::vector<Piece> pieces;
  Some kinds;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    kinds.emplace(text(list(at(segments, "kind"))[i]));
    pieces.push_back({real(list(at(segments, "lane"))[i]), *since(starts[i]), *since(ends[i]),
                      fmt::format("{}", real(list(at(segments, "trial"))[i])),
                      std::string(text(list(at(segments, "kind"))[i]))});
  }
  panel.add({.clip = true}, [pieces](const Frame& frame) {
    const double lane = frame.box.height / (frame.up.high - frame.up.low), height = std::clamp(lane * 0.72, 2.0, 22.0);
    std::string boxes, texts;
    for (const auto& piece : pieces) {
      const double y = frame.y(piece.lane), left = std::max(frame.x(piece.start), frame.box.x);
      const double right = std::min(frame.x(piece.end), frame.box.x + frame.box.width);
      const double width = std::max(1.5, right - left - (right - left > 4 ? 1 : 0));
      const bool pause = piece.kind == "pause";
      boxes += rectangle({left, y - height / 2, width, height}, colour::of_state(piece.kind), std::min(2.0, width / 3),
                         pause ? "fill-opacity=\"0.9\"" : "");
      if (width > std::max(26.0, 10 + 6.5 * static_cast<double>(piece.trial.size())))
        texts += text_at(left + width / 2, y, piece.trial,
                         {.size = 10,
                          .anchor = "middle",
                          .colour = pause || piece.kind == "pending" ? colour::ink2 : colour::panel,
                          .central = true});
    }
    return boxes + texts;
  });
  panel.add({.z = 4, .clip = true}, [hosts, start, changes = list(at(answer, "hosts"))](const Frame& frame) {
    std::string out;
    for (const auto& change : changes)
      for (const bool lost : {true, false}) {
        const auto when = fit(at(change, lost ? "lost" : "gained"));
        const auto host = hosts.find(text(at(change, "host")));
        if (!when || host == hosts.end()) continue;
        const double x = frame.x(*when - start), top = frame.y(host->second.first - 0.5);
        const double bottom = frame.y(host->second.first + host->second.number - 0.5);
        out += stroke(shape("M# #L# #", {x, top, x, bottom}), lost ? colour::bad : colour::of_state("running"), 1.5,
                      lost ? "" : "stroke-dasharray=\"3 3\"");
      }
    return out;
  });
  return alone(std::move(panel), key_of_marks(marks_of_states(kinds, "box")));
}

namespace {

// Which trial took whose weights.
Chart lineage(const json::value& answer) {
  Panel panel{.x = counted("step"), .y = up("member")};
  std::map<double, double> place;
  Names names;
  for (const auto& row : list(at(answer, "rows"))) {
    place.emplace(real(row), static_cast<double>(names.size()));
    names.push_back(fmt::format("{}", real(row)));
  }
  name_marks(panel.y, names);
  if (names.size() <= 40) panel.y.labelled = panel.y.ticks;
  panel.y.ticks.clear();  // between the members
  panel.y.interval = 1;
  panel.y.inverse = true;
  panel.y.grid = names.size() <= 60;
  panel.y.format = [name_of = panel.y.format](double row) { return std::trunc(row) == row ? name_of(row) : ""; };
  Points takers;
  std::vector<std::tuple<double, double, double>> arrows;  // step, from, to
  for (const auto& event : list(at(answer, "population"))) {
    const double trial = real(at(event, "trial")), donor = real(at(event, "donor")), step = real(at(event, "step"));
    if (!place.contains(trial)) continue;
    takers.push_back({step, place[trial]});
    if (place.contains(donor) && donor != trial) arrows.emplace_back(step, place[donor], place[trial]);
  }
  panel.add({.z = 1, .clip = true}, [arrows](const Frame& frame) {
    std::string out;
    for (const auto& [step, from, to] : arrows) {
      const double x = frame.x(step), y0 = frame.y(from), y1 = frame.y(to);
      const double bend = std::min(26.0, std::abs(y1 - y0) * 0.25 + 6);
      out += stroke(shape("M# #Q# # # #", {x, y0, x - bend, (y0 + y1) / 2, x, y1}), colour::ink3, 1,
                    "stroke-opacity=\"0.75\"");
    }
    return out;
  });
  add_dots(panel, std::move(takers), {.size = 7, .border = colour::panel, .z = 3}, always(colour::accent));
  return alone(std::move(panel),
               key_of_marks({{"a member that went on from the other end of its line", colour::accent, "dot"}}));
}

}  // namespace

Chart lineage_or_schedule(Source& source) {
  const auto answer = source.has("population") ? source.get("/api/lineage") : json::value();
  Column events = list(at(answer, "population"));
  if (events.empty()) nothing("it is no population, or no member has gone on from another one yet");
  if (source.picture.kind == "lineage") return lineage(answer);
  Names changed;
  double last = 0;
  for (const auto& event : events) {
    last = std::max(last, real(at(event, "step")));
    if (const auto* changes = at(event, "changes").if_object())
      for (const auto& change : *changes)
        if (std::string name(change.key()); !contains(changed, name)) changed.push_back(std::move(name));
  }
  const Names& asked = source.picture.parameters.empty() ? source.varied : source.picture.parameters;
  const auto found = std::find_if(asked.begin(), asked.end(), [&](const auto& one) { return contains(changed, one); });
  if (found == asked.end() && source.picture.parameters.empty()) nothing("no parameter has been changed yet");
  const std::string name = found == asked.end() || &asked != &source.varied ? asked.front() : *found;
  if (!contains(changed, name))
    nothing("the parameter '{}' was never changed; these were: {}", shortened(name, 60), listed(changed));

  // The values that the parameter had in each member, in the order in which they changed first.
  hypertune::detail::stable_sort(events.begin(), events.end(), [](const json::value& a, const json::value& b) {
    return real(at(a, "step")) < real(at(b, "step"));
  });
  std::vector<std::tuple<double, Column, Column>> members;
  for (const auto& event : events) {
    const auto& change = list(at(at(event, "changes"), name));
    if (change.size() < 2) continue;
    const double trial = real(at(event, "trial"));
    auto member =
        std::find_if(members.begin(), members.end(), [&](const auto& one) { return std::get<0>(one) == trial; });
    if (member == members.end()) member = members.insert(member, {trial, {0}, {change[0]}});
    std::get<1>(*member).push_back(at(event, "step"));
    std::get<2>(*member).push_back(change[1]);
  }
  const bool log = source.picture.log || is_true(at(source.parameter(name), "log"));
  const auto best = source.best();
  bool best_shown = false;
  Panel panel{.x = counted("step"), .y = up(name, log)};
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto& [trial, steps, values] = members[i];
    steps.emplace_back(std::max(last, real(steps.back())));
    values.push_back(json::value(values.back()));
    const bool is_best = best == trial;
    best_shown = best_shown || is_best;
    const Line line{.colour = is_best ? colour::best : colour::series[i % std::size(colour::series)],
                    .width = is_best ? 2.25 : 1.25,
                    .opacity = is_best ? 1 : 0.6,
                    .steps = true,
                    .z = is_best ? 5 : 2};
    auto points = pairs(steps, values, fitting(false), fitting(log));
    add_dots(panel, points, {.size = 4, .opacity = 1, .z = line.z}, always(line.colour));
    add_line(panel, std::move(points), line);
  }
  return alone(std::move(panel), best_shown ? key_of_marks({{"the best member", colour::best, "line"}}) : Key());
}

}  // namespace hypertune::inline v0::plot
