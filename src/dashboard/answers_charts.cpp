// Answers with the data of charts: best so far, curves, rungs, points.
#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/error.hpp>
#include <hypertune/show/detail/view/answers.hpp>
#include <hypertune/show/detail/view/space_text.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace hypertune::inline v0::view {

namespace {

struct Series {
  std::vector<double> x, value;
};

void put_series(JsonWriter& out, const Series& series) { out.values("x", series.x).values("value", series.value); }

// When a trial reported its best value of an objective, in seconds since the start of the experiment.
double time_of_best(const ExperimentView& view, const TrialRow& row, std::uint32_t metric, Mode mode) {
  const Curve* curve = row.curve(metric);
  const CurvePoint* best = curve == nullptr ? nullptr : mode == Mode::minimize ? curve->least() : curve->greatest();
  return best == nullptr ? unknown
                         : row.started + static_cast<double>(best->time) - view.results().experiment().started;
}

// Thins a step function to at most `most` points; the first and the last one stay.
void thin(Series& series, std::size_t most) {
  while (series.x.size() > most) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (i % 2 != 0 && i + 1 != series.x.size()) continue;
      series.x[out] = series.x[i];
      series.value[out++] = series.value[i];
    }
    series.x.resize(out);
    series.value.resize(out);
  }
}

void put_best(JsonWriter& out, const ExperimentView& view, std::size_t objective, bool by_time) {
  const auto& info = view.results().experiment();
  const Objective& of = info.objectives[objective];
  const auto metric = view.metric(of.metric);
  struct Event {
    double x, value;
    std::size_t place;
  };
  std::vector<Event> events;
  if (metric)
    for (std::size_t i = 0; i < view.size(); ++i) {
      const TrialRow& row = view.rows()[i];
      const double value = view.value(row, *metric);
      if (!std::isfinite(value)) continue;
      events.push_back({by_time ? time_of_best(view, row, *metric, of.mode) : static_cast<double>(row.id), value, i});
    }
  std::vector<std::size_t> places;
  places.reserve(events.size());
  for (const auto& event : events) places.push_back(event.place);
  const auto shown = sampled(view, std::move(places), 3000);

  auto steps = events;
  std::erase_if(steps, [&](const Event& event) { return !view.rows()[event.place].admitted || std::isnan(event.x); });
  if (by_time) {
    if (objective == 0)
      for (const auto& improvement : view.improvements()) {
        const TrialRow* row = view.row(improvement.trial);
        if (row != nullptr && row->admitted)
          steps.push_back(
              {improvement.time - info.started, improvement.value, static_cast<std::size_t>(row - view.rows().data())});
      }
    hypertune::detail::stable_sort(steps.begin(), steps.end(),
                                   [](const Event& a, const Event& b) { return a.x < b.x; });
  }
  Series best;
  for (const auto& event : steps) {
    const bool first = best.x.empty();
    if (!first && !(of.mode == Mode::maximize ? event.value > best.value.back() : event.value < best.value.back()))
      continue;
    if (!first && best.x.back() == event.x) {
      best.value.back() = event.value;
      continue;
    }
    best.x.push_back(event.x);
    best.value.push_back(event.value);
  }
  thin(best, 1999);
  if (!best.x.empty()) {  // extend it to the present
    const double last =
        by_time ? std::max(best.x.back(), view.now() - info.started) : static_cast<double>(view.rows().back().id);
    if (last > best.x.back()) {
      best.x.push_back(last);
      best.value.push_back(best.value.back());
    }
  }
  put_series(out, best);
  out.key("points").begin_object();
  const auto list = [&](const char* name, auto&& put) {
    out.key(name).begin_array();
    auto event = events.begin();
    for (const std::size_t at : shown) {
      while (event->place != at) ++event;
      put(*event);
    }
    out.end_array();
  };
  list("x", [&](const Event& event) { std::isnan(event.x) ? out.value(nullptr) : out.value(event.x); });
  list("value", [&](const Event& event) { out.value(event.value); });
  list("state", [&](const Event& event) { out.value(hypertune::to_string(view.rows()[event.place].state)); });
  list("trial", [&](const Event& event) { out.value(view.rows()[event.place].id); });
  out.end_object();
}

// The value of a curve at x; NaN outside of its range.
template <class X>
double value_at(const std::vector<CurvePoint>& points, double x, std::size_t& from, X x_of) {
  if (x > x_of(points.back()) || x < x_of(points.front())) return unknown;
  while (from + 1 < points.size() && x_of(points[from + 1]) <= x) ++from;
  return points[from].value;
}

template <class X>
void put_bands(JsonWriter& out, const ExperimentView& view, std::uint32_t metric,
               const std::vector<std::size_t>& places, X x_of) {
  constexpr std::size_t grid = 60;
  double least = unknown, most = unknown;
  for (const std::size_t at : places) {
    const Curve* curve = view.rows()[at].curve(metric);
    if (curve == nullptr) continue;
    least = std::isnan(least) ? x_of(curve->points().front()) : std::min(least, x_of(curve->points().front()));
    most = std::isnan(most) ? x_of(curve->points().back()) : std::max(most, x_of(curve->points().back()));
  }
  std::vector<double> at;
  if (!std::isnan(least)) {
    const double span = most - least;
    const bool each = x_of(CurvePoint{.step = 1, .time = 0, .value = 0}) == 1 && span < grid;  // one for every step
    const std::size_t n = each ? static_cast<std::size_t>(span) + 1 : span > 0 ? grid : 1;
    for (std::size_t i = 0; i < n; ++i)
      at.push_back(each || n == 1 ? least + static_cast<double>(i)
                                  : least + span * static_cast<double>(i) / static_cast<double>(n - 1));
  }
  std::vector<std::vector<double>> values(at.size());
  for (const std::size_t place : places) {
    const Curve* curve = view.rows()[place].curve(metric);
    if (curve == nullptr) continue;
    std::size_t from = 0;
    for (std::size_t i = 0; i < at.size(); ++i)
      if (const double value = value_at(curve->points(), at[i], from, x_of); std::isfinite(value))
        values[i].push_back(value);
  }
  out.key("bands").begin_object().values("x", at);
  for (const auto& [name, share] : {std::pair("p10", 0.1), std::pair("p50", 0.5), std::pair("p90", 0.9)}) {
    out.key(name).begin_array();
    for (auto& one : values) {
      if (one.empty()) {
        out.value(nullptr);
        continue;
      }
      const auto nth = one.begin() + std::llround(share * static_cast<double>(one.size() - 1));
      std::nth_element(one.begin(), nth, one.end());
      out.value(*nth);
    }
    out.end_array();
  }
  out.key("n").begin_array();
  for (const auto& one : values) out.value(one.size());
  out.end_array().end_object();
}

}  // namespace

std::string best_answer(const ExperimentView& view, const Query& query) {
  const bool by_time = query.word("x", {"trial", "time"}) == "time";
  const auto& objectives = view.results().experiment().objectives;
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  if (!objectives.empty())
    put_best(out, view, 0, by_time);
  else
    out.raw(R"("x":[],"value":[],"points":{"x":[],"value":[],"state":[],"trial":[]})");
  out.key("objectives").begin_array();
  for (std::size_t i = 0; i < objectives.size() && (i == 0 || out.size() < max_answer * 2 / 3); ++i) {
    out.begin_object().member("metric", objectives[i].metric).member("mode", hypertune::to_string(objectives[i].mode));
    put_best(out, view, i, by_time);
    out.end_object();
  }
  out.end_array().end_object();
  return out.take();
}

std::string curves_answer(const ExperimentView& view, const Query& query) {
  const std::uint32_t metric = metric_of(view, query.text("metric"));
  const bool by_time = query.word("x", {"step", "time"}) == "time";
  const auto limit = static_cast<std::size_t>(query.whole("limit", 100, 1, 300));
  auto matching = filtered(view, query.text("filter"));
  std::erase_if(matching, [&](std::size_t at) { return view.rows()[at].curve(metric) == nullptr; });
  auto shown = best_places(view, matching, (limit + 1) / 2);
  for (const std::size_t at : sampled(view, matching, limit)) {
    if (shown.size() >= limit) break;
    if (std::find(shown.begin(), shown.end(), at) == shown.end()) shown.push_back(at);
  }
  std::sort(shown.begin(), shown.end());
  const auto step = [](const CurvePoint& point) { return static_cast<double>(point.step); };
  const auto time = [](const CurvePoint& point) { return static_cast<double>(point.time); };
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("curves").begin_array();
  for (const std::size_t at : shown) {
    const TrialRow& row = view.rows()[at];
    // A step that was repeated, after a failure or with the state of another trial, replaces the later part of the
    // curve.
    std::vector<CurvePoint> points;
    for (const auto& point : row.curve(metric)->points()) {
      while (!by_time && !points.empty() && points.back().step >= point.step) points.pop_back();
      points.push_back(point);
    }
    out.begin_object().member("trial", row.id).member("state", hypertune::to_string(row.state));
    out.key("x").begin_array();
    for (const auto& point : points) by_time ? out.value(time(point)) : out.value(point.step);
    out.end_array().key("value").begin_array();
    for (const auto& point : points) out.value(point.value);
    out.end_array().end_object();
  }
  out.end_array().member("shown", shown.size()).member("matching", matching.size());
  const auto of = sampled(view, matching, 10000);
  by_time ? put_bands(out, view, metric, of, time) : put_bands(out, view, metric, of, step);
  out.end_object();
  return out.take();
}

std::string rungs_answer(const ExperimentView& view) {
  struct Rung {
    std::size_t reached = 0, promoted = 0, stopped = 0, paused = 0;
    double threshold = unknown;
  };
  std::map<std::int32_t, Rung> rungs;
  for (const Cut& cut : view.cuts()) {
    Rung& rung = rungs[cut.rung_steps];
    ++rung.stopped;
    if (!std::isnan(cut.needed)) rung.threshold = cut.needed;
  }
  if (has_rungs(view))  // with promotion, trials wait at rungs
    for (const TrialRow& row : view.rows())
      if (row.state == TrialState::paused && row.steps > 0) ++rungs[row.steps].paused;
  for (auto& [steps, rung] : rungs)
    for (const TrialRow& row : view.rows()) {
      rung.reached += row.steps >= steps ? 1 : 0;
      rung.promoted += row.steps > steps || (row.steps == steps && row.state == TrialState::completed) ? 1 : 0;
    }
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("rungs").begin_array();
  std::size_t n = 0;
  for (const auto& [steps, rung] : rungs) {
    if (++n > 500) break;
    out.begin_object().member("step", steps).member("reached", rung.reached).member("promoted", rung.promoted);
    out.member("stopped", rung.stopped).member("paused", rung.paused);
    put_number(out, "threshold", rung.threshold);
    out.end_object();
  }
  out.end_array().key("cuts").begin_array();
  const std::size_t every = view.cuts().size() / 2000 + 1;
  for (std::size_t i = 0; i < view.cuts().size(); i += every) {
    const Cut& cut = view.cuts()[i];
    out.begin_object().member("trial", cut.trial).member("step", cut.step);
    put_number(out, "value", cut.value);
    put_number(out, "needed", cut.needed);
    out.end_object();
  }
  out.end_array().end_object();
  return out.take();
}

std::string points_answer(const ExperimentView& view, const Query& query) {
  const auto limit = static_cast<std::size_t>(query.whole("limit", 3000, 1, 5000));
  const auto names = split(query.text("fields"), ',');
  std::vector<Field> fields;
  for (const auto& name : names) fields.push_back(field_of(view, name));
  if (fields.size() > 100) fail(Errc::input, "'fields' names {} columns: at most 100", fields.size());
  const auto places = filtered(view, query.text("filter"));
  // As many as fit into an answer.
  const auto shown = sampled(view, places, std::min(limit, std::max<std::size_t>(100, 40000 / (fields.size() + 2))));
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("trial").begin_array();
  for (const std::size_t at : shown) out.value(view.rows()[at].id);
  out.end_array().key("state").begin_array();
  for (const std::size_t at : shown) out.value(hypertune::to_string(view.rows()[at].state));
  out.end_array().key("columns").begin_object();
  for (std::size_t f = 0; f < fields.size(); ++f) {
    out.key(names[f]).begin_array();
    for (const std::size_t at : shown) put_field(out, view, fields[f], at);
    out.end_array();
  }
  out.end_object().member("shown", shown.size()).member("matching", places.size()).end_object();
  return out.take();
}

std::string edf_answer(const ExperimentView& view, const Query& query) {
  const std::uint32_t metric = metric_of(view, query.text("metric"));
  std::vector<double> values;
  for (const TrialRow& row : view.rows()) {
    const double value = view.value(row, metric);
    if (row.state != TrialState::failed && std::isfinite(value)) values.push_back(value);
  }
  std::sort(values.begin(), values.end());
  Series series;
  const std::size_t n = values.size(), shown = std::min<std::size_t>(n, 500);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t at = shown == 1 ? 0 : i * (n - 1) / (shown - 1);
    series.x.push_back(values[at]);
    series.value.push_back(static_cast<double>(at + 1) / static_cast<double>(n));
  }
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.values("value", series.x).values("share", series.value).end_object();
  return out.take();
}

}  // namespace hypertune::inline v0::view
