// Answers with rows and columns of the table of trials.
#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/parse_number.hpp>
#include <hypertune/detail/utf8.hpp>
#include <hypertune/error.hpp>
#include <hypertune/show/detail/view/answers.hpp>
#include <hypertune/show/detail/view/filter.hpp>
#include <hypertune/show/detail/view/front.hpp>
#include <hypertune/show/detail/view/space_text.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace hypertune::inline v0::view {

namespace {

std::optional<std::size_t> place_of(std::string_view text) {
  return text.starts_with('@') ? detail::parse_number<std::size_t>(text.substr(1)) : std::nullopt;
}

// A hash of the trial id, which alone decides whether a sample contains the trial.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

}  // namespace

std::uint32_t metric_of(const ExperimentView& view, const std::string& name) {
  const auto& names = view.results().metrics();
  const auto& objectives = view.results().experiment().objectives;
  if (name.empty()) {
    if (!objectives.empty())
      if (const auto found = view.metric(objectives.front().metric)) return *found;
    fail(Errc::input, "no trial has reported anything yet");
  }
  if (const auto found = view.metric(name)) return *found;
  if (const auto place = place_of(name); place && *place < names.size()) return static_cast<std::uint32_t>(*place);
  if (view.objective(name)) fail(Errc::input, "no trial has reported '{}' yet", name);
  fail(Errc::input, "there is no metric '{}'{}", shortened(name, 200), detail::suggestion(name, names));
}

Field field_of(const ExperimentView& view, std::string_view name) {
  using Kind = Field::Kind;
  static constexpr std::pair<std::string_view, Kind> fixed[] = {
      {"trial", Kind::trial},       {"state", Kind::state},       {"steps", Kind::steps},    {"value", Kind::value},
      {"duration", Kind::duration}, {"failures", Kind::failures}, {"started", Kind::started}};
  if (name.starts_with("params.")) {
    name.remove_prefix(7);
    auto column = view.params().find(name);
    if (const auto place = place_of(name); column == ParamColumns::nowhere && place && *place < view.params().size())
      column = *place;
    if (column == ParamColumns::nowhere) fail(Errc::input, "no trial has a parameter '{}'", shortened(name, 200));
    return {.kind = Kind::param, .param = column};
  }
  for (const auto& [word, kind] : fixed)
    if (word == name) return {.kind = kind};
  return {.kind = Kind::metric, .metric = metric_of(view, std::string(name))};
}

void put_field(JsonWriter& out, const ExperimentView& view, const Field& field, std::size_t place) {
  const TrialRow& row = view.rows()[place];
  const auto number = [&](double value) { std::isnan(value) ? out.value(nullptr) : out.value(value); };
  switch (field.kind) {
    case Field::Kind::trial: out.value(row.id); return;
    case Field::Kind::state: out.value(hypertune::to_string(row.state)); return;
    case Field::Kind::steps: out.value(row.steps); return;
    case Field::Kind::value: return number(row.value);
    case Field::Kind::duration: return number(row.duration);
    case Field::Kind::failures: out.value(row.failures); return;
    case Field::Kind::started: return number(row.started);
    case Field::Kind::metric: return number(view.value(row, field.metric));
    case Field::Kind::param: break;
  }
  const Cell cell = view.params().at(field.param, place);
  switch (cell.kind) {
    case Cell::Kind::absent: out.value(nullptr); return;
    case Cell::Kind::flag: out.value(cell.number != 0); return;
    case Cell::Kind::text: out.value(shortened(*cell.text)); return;
    case Cell::Kind::whole:
    case Cell::Kind::real: out.value(cell.number); return;
  }
}

std::string_view shortened(std::string_view text, std::size_t most) {
  return text.substr(0, detail::utf8_cut(text, most));
}

void put_version(JsonWriter& out, const ExperimentView& view) {
  out.member("version", view.version());
  if (view.journal_records > view.version() || view.status.state == "reading")
    out.key("reading")
        .begin_object()
        .member("read", view.version())
        .member("of", std::max(view.journal_records, view.version()))
        .end_object();
}

void put_number(JsonWriter& out, std::string_view name, double value) {
  out.key(name);
  std::isnan(value) ? out.value(nullptr) : out.value(value);
}

void put_counts(JsonWriter& out, const ExperimentView& view) {
  out.begin_object();
  for (int s = 0; s <= static_cast<int>(TrialState::failed); ++s) {
    const auto state = static_cast<TrialState>(s);
    out.member(hypertune::to_string(state), view.results().count(state));
  }
  out.end_object();
}

void put_row(JsonWriter& out, const ExperimentView& view, const TrialRow& row, bool all) {
  const TrialResult result = view.results().trial(row.id);
  out.begin_object();
  out.member("trial", row.id).member("state", hypertune::to_string(row.state)).member("steps", row.steps);
  put_number(out, "value", row.value);
  out.key("values").begin_array();
  for (const auto& objective : view.results().experiment().objectives) {
    const auto best = view.results().best_report(row.id, objective);
    best ? out.value(best->value) : out.value(nullptr);
  }
  out.end_array();
  out.key("at_step");
  row.at_step < 0 ? out.value(nullptr) : out.value(row.at_step);
  const bool runs = row.state == TrialState::running && !std::isnan(row.started);
  put_number(out, "duration", runs ? std::max(0.0, view.now() - row.started) : row.duration);
  out.key("host");
  row.host == 0 ? out.value(nullptr) : out.value(shortened(view.host_name(row.host)));
  out.member("failures", row.failures);
  out.key("params").pairs(result.params);
  out.key("cause");
  result.cause ? out.value(all ? std::string_view(result.cause->text) : shortened(result.cause->text))
               : out.value(nullptr);
  out.key("notes").pairs(result.attributes);
  if (result.feasible) out.member("feasible", *result.feasible);
  if (!all) out.end_object();
}

std::vector<std::size_t> filtered(const ExperimentView& view, const std::string& text) {
  const Filter filter(view, text);
  std::vector<std::size_t> places;
  places.reserve(filter.empty() ? view.size() : 0);
  for (std::size_t i = 0; i < view.size(); ++i)
    if (filter.empty() || filter.matches(i)) places.push_back(i);
  return places;
}

std::vector<std::size_t> best_places(const ExperimentView& view, const std::vector<std::size_t>& of, std::size_t most) {
  const double sign = view.maximises() ? -1 : 1;
  std::vector<std::size_t> ranked;
  for (const std::size_t at : of)
    if (ExperimentView::ranks(view.rows()[at])) ranked.push_back(at);
  const auto end = ranked.begin() + static_cast<std::ptrdiff_t>(std::min(most, ranked.size()));
  std::partial_sort(ranked.begin(), end, ranked.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(sign * view.rows()[a].value, a) < std::pair(sign * view.rows()[b].value, b);
  });
  ranked.erase(end, ranked.end());
  return ranked;
}

std::vector<std::size_t> sampled(const ExperimentView& view, std::vector<std::size_t> places, std::size_t most) {
  if (places.size() <= most) return places;
  std::vector<bool> taken(view.size());
  auto chosen = best_places(view, places, std::max<std::size_t>(1, most / 10));
  if (view.results().experiment().objectives.size() > 1)
    for (const std::size_t at : front_places(view))
      if (chosen.size() < most / 2) chosen.push_back(at);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  std::erase_if(chosen, [&](std::size_t at) { return !std::binary_search(places.begin(), places.end(), at); });
  for (const std::size_t at : chosen) taken[at] = true;
  std::erase_if(places, [&](std::size_t at) { return taken[at]; });
  const auto end = places.begin() + static_cast<std::ptrdiff_t>(most - chosen.size());
  std::nth_element(places.begin(), end, places.end(), [&](std::size_t a, std::size_t b) {
    return mixed(static_cast<std::uint64_t>(view.rows()[a].id)) < mixed(static_cast<std::uint64_t>(view.rows()[b].id));
  });
  chosen.insert(chosen.end(), places.begin(), end);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::string summary_answer(const ExperimentView& view, const Surroundings& around) {
  const Results& results = view.results();
  const auto& info = results.experiment();
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.member("name", shortened(info.name)).member("folder", results.directory().string());
  out.member("state", view.status.state).member("why", shortened(view.status.why));
  out.member("resumed", std::max(0, info.starts - 1));
  out.key("objectives").begin_array();
  for (const auto& objective : info.objectives)
    out.begin_object()
        .member("metric", objective.metric)
        .member("mode", hypertune::to_string(objective.mode))
        .end_object();
  out.end_array();
  out.member("search", shortened(info.searcher)).member("schedule", shortened(info.scheduler));
  out.member("search_options", shortened(info.searcher_options))
      .member("schedule_options", shortened(info.scheduler_options))
      .member("command", shortened(info.command));
  out.member("executor", shortened(info.executor))
      .member("seed", std::to_string(info.seed))
      .member("planned", info.planned);
  put_counts((out.key("counts"), out), view);
  out.member("reports", info.reports);
  put_number(out, "started", info.starts == 0 ? unknown : info.started);
  put_number(out, "updated", info.starts == 0 ? unknown : info.updated);
  out.member("elapsed", info.elapsed);
  put_number(out, "left", seconds_left(view));
  out.key("best").begin_array();
  if (info.objectives.size() > 1) {
    auto front = front_places(view);
    if (front.size() > 100) front.resize(100);
    for (const std::size_t at : front)
      if (out.size() < max_answer / 2) put_row(out, view, view.rows()[at]);
  } else if (const auto best = results.find_best()) {
    if (const TrialRow* row = view.row(best->trial)) put_row(out, view, *row);
  }
  out.end_array();
  put_parameters(out, view);
  out.values("metrics", results.metrics());
  out.key("notes").pairs(info.attributes);
  out.key("cost").raw(around.cost ? around.cost() : "null");
  out.key("failures").begin_object();
  for (const auto source : {FailureSource::user, FailureSource::infrastructure, FailureSource::preemption})
    out.member(hypertune::to_string(source), results.failures(source));
  std::int64_t counted = 0;  // as the column of the trials has them
  for (const auto& row : view.rows()) counted += row.failures;
  out.member("counted", counted).end_object();
  out.key("has").begin_object();
  out.member("rungs", !view.cuts().empty() || has_rungs(view)).member("population", !view.takeovers().empty());
  out.member("hosts", view.hosts() > 2 || !view.host_changes().empty()).end_object();
  out.end_object();
  return out.take();
}

std::string trials_answer(const ExperimentView& view, const Query& query) {
  auto places = filtered(view, query.text("filter"));
  const Field field = field_of(view, query.text("sort", "trial"));
  const bool falling = query.word("order", {"asc", "desc"}) == "desc";
  const auto most = std::numeric_limits<std::int64_t>::max();
  const auto offset = static_cast<std::size_t>(query.whole("offset", 0, 0, most));
  const auto limit = static_cast<std::size_t>(query.whole("limit", 100, 0, 500));

  // Trials without a value come last in either order.
  struct Key {
    bool missing;
    double number;
    const std::string* text;
    std::size_t place;
  };
  std::vector<Key> keys;
  keys.reserve(places.size());
  for (const std::size_t at : places) {
    const TrialRow& row = view.rows()[at];
    Key key{false, 0, nullptr, at};
    switch (field.kind) {
      case Field::Kind::trial: key.number = static_cast<double>(row.id); break;
      case Field::Kind::state: key.number = static_cast<double>(row.state); break;
      case Field::Kind::steps: key.number = row.steps; break;
      case Field::Kind::value: key.number = row.value; break;
      case Field::Kind::duration: key.number = row.duration; break;
      case Field::Kind::failures: key.number = row.failures; break;
      case Field::Kind::started: key.number = row.started; break;
      case Field::Kind::metric: key.number = view.value(row, field.metric); break;
      case Field::Kind::param: {
        const Cell cell = view.params().at(field.param, at);
        key.missing = cell.kind == Cell::Kind::absent;
        key.number = cell.text == nullptr ? cell.number : 0;
        key.text = cell.text;
      }
    }
    if (std::isnan(key.number)) key.missing = true, key.number = 0;
    keys.push_back(key);
  }
  const auto before = [&](const Key& a, const Key& b) {
    if (a.missing != b.missing) return b.missing;
    if (a.number != b.number) return (a.number < b.number) != falling;
    if (a.text != b.text && a.text != nullptr && b.text != nullptr) return (*a.text < *b.text) != falling;
    if ((a.text == nullptr) != (b.text == nullptr)) return a.text == nullptr;
    return a.place < b.place;
  };
  const std::size_t from = std::min(offset, keys.size()), to = std::min(keys.size(), from + limit);
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(to), keys.end(), before);
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.member("total", view.size()).member("matching", keys.size());
  out.key("rows").begin_array();
  bool cut = false;
  for (std::size_t i = from; i < to && !cut; ++i) {
    put_row(out, view, view.rows()[keys[i].place]);
    cut = i + 1 < to && out.size() + out.size() / (i + 1 - from) > max_answer * 9 / 10;
  }
  out.end_array().member("cut", cut).end_object();  // whether to ask for further rows
  return out.take();
}

}  // namespace hypertune::inline v0::view
