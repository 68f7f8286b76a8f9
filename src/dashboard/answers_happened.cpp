// Answers: timeline, lineage, what runs now, fronts, importance.
#include "average.hpp"

#include <hypertune/error.hpp>
#include <hypertune/record/analysis.hpp>
#include <hypertune/record/pareto.hpp>
#include <hypertune/show/detail/view/answers.hpp>
#include <hypertune/show/detail/view/front.hpp>
#include <hypertune/show/detail/view/space_text.hpp>
#include <hypertune/space/detail/grammar.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace hypertune::inline v0::view {

std::string importance_answer(const ExperimentView& view, const Query& query) {
  const std::uint32_t metric = metric_of(view, query.text("metric"));
  const auto objective = view.objective(view.results().metrics()[metric]);
  const Mode mode = objective ? objective->mode : Mode::minimize;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < view.size(); ++i) {
    const TrialRow& row = view.rows()[i];
    if (std::isfinite(view.value(row, metric)) || row.state == TrialState::failed || !row.curves.empty())
      places.push_back(i);
  }
  places = sampled(view, std::move(places), 4000);
  std::vector<Params> configurations;
  std::vector<double> losses;
  for (const std::size_t at : places) {
    const TrialRow& row = view.rows()[at];
    const double value = view.value(row, metric);
    configurations.push_back(view.results().trial(row.id).params);
    losses.push_back(std::isfinite(value) ? detail::loss_of(value, mode) : worst_loss);
  }
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("importance").begin_array();
  double explained = 0;
  if (places.size() >= 4)
    for (const auto& one : importance(configurations, losses, {.trees = 16})) {
      if (out.size() > max_answer * 9 / 10) break;
      out.begin_object()
          .member("name", one.name)
          .member("value", one.share)
          .member("variance", one.variance)
          .end_object();
      explained += one.variance;
    }
  out.end_array();
  put_number(out, "interactions", places.size() >= 4 ? std::clamp(1 - explained, 0.0, 1.0) : unknown);
  out.member("from_trials", places.size()).end_object();
  return out.take();
}

namespace {

// The hypervolume of the front over the sequence of trials, at 40 points or fewer; exact while the front is small.
void put_hypervolume(JsonWriter& out, const ExperimentView& view,
                     const std::vector<std::optional<std::vector<double>>>& losses) {
  const auto& objectives = view.results().experiment().objectives;
  std::vector<double> worst(objectives.size(), unknown), best(objectives.size(), unknown);
  for (const auto& loss : losses)
    if (loss)
      for (std::size_t k = 0; k < worst.size(); ++k)
        if (std::isfinite((*loss)[k])) {
          worst[k] = std::isnan(worst[k]) ? (*loss)[k] : std::max(worst[k], (*loss)[k]);
          best[k] = std::isnan(best[k]) ? (*loss)[k] : std::min(best[k], (*loss)[k]);
        }
  const bool known = !worst.empty() && std::none_of(worst.begin(), worst.end(), [](double x) { return std::isnan(x); });
  for (std::size_t k = 0; known && k < worst.size(); ++k)  // beyond the worst, so that it counts too
    worst[k] += (worst[k] - best[k]) / 100 + (worst[k] == best[k] ? 1 : 0);
  std::vector<double> x, volume;
  std::vector<std::vector<double>> front;
  const std::size_t every = losses.size() / 40 + 1;
  for (std::size_t i = 0; known && i < losses.size(); ++i) {
    bool changed = false;
    if (losses[i]) {
      const auto& loss = *losses[i];
      const bool inside = std::all_of(loss.begin(), loss.end(), [](double l) { return std::isfinite(l); });
      if (inside && std::none_of(front.begin(), front.end(),
                                 [&](const auto& other) { return detail::weakly_dominates(other, loss); })) {
        std::erase_if(front, [&](const auto& other) { return detail::weakly_dominates(loss, other); });
        front.push_back(loss);
        changed = true;
      }
    }
    if ((i % every != 0 && i + 1 != losses.size()) || front.empty()) continue;
    static_cast<void>(changed);
    if (front.size() > (worst.size() <= 2 ? 5000U : worst.size() == 3 ? 300U : 40U)) continue;
    x.push_back(static_cast<double>(i + 1));
    volume.push_back(hypervolume(front, worst));
  }
  std::vector<double> reference;
  for (std::size_t k = 0; known && k < worst.size(); ++k)
    reference.push_back(objectives[k].mode == Mode::maximize ? -worst[k] : worst[k]);
  out.key("hypervolume")
      .begin_object()
      .values("x", x)
      .values("value", volume)
      .values("reference", reference)
      .end_object();
}

}  // namespace

std::string front_answer(const ExperimentView& view, const Query& query) {
  const auto& info = view.results().experiment();
  const auto losses = front_losses(view);
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < losses.size(); ++i)
    if (losses[i]) places.push_back(i);
  const auto limit = static_cast<std::size_t>(query.whole("limit", 3000, 1, 5000));
  const std::size_t matching = places.size();
  const auto shown = sampled(view, std::move(places), limit);
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("points").begin_object().key("trial").begin_array();
  for (const std::size_t at : shown) out.value(view.rows()[at].id);
  out.end_array().key("state").begin_array();
  for (const std::size_t at : shown) out.value(hypertune::to_string(view.rows()[at].state));
  out.end_array().key("columns").begin_object();
  for (std::size_t k = 0; k < info.objectives.size(); ++k) {
    out.key(info.objectives[k].metric).begin_array();
    const double sign = info.objectives[k].mode == Mode::maximize ? -1 : 1;
    for (const std::size_t at : shown) out.value(sign * (*losses[at])[k]);
    out.end_array();
  }
  out.end_object().member("shown", shown.size()).member("matching", matching).end_object();
  put_hypervolume(out, view, losses);
  out.key("front").begin_array();
  const auto front = front_places(view);
  for (std::size_t i = 0; i < front.size() && i < 500 && out.size() < max_answer * 9 / 10; ++i)
    put_row(out, view, view.rows()[front[i]]);
  out.end_array().end_object();
  return out.take();
}

namespace {

// Merges neighbouring pieces of a lane until there are at most `most`; returns whether any were merged.
bool merge(std::vector<Piece>& pieces, std::size_t most) {
  bool merged = false;
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return std::tuple(a.lane, a.start) < std::tuple(b.lane, b.start); });
  double first = unknown, last = unknown;
  for (const auto& piece : pieces) {
    first = std::isnan(first) ? piece.start : std::min(first, piece.start);
    last = std::isnan(last) ? piece.stop : std::max(last, piece.stop);
  }
  for (double grain = std::max(1e-6, (last - first) / 20000); pieces.size() > most; grain *= 2) {
    merged = true;
    std::size_t out = 0;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
      Piece& before = pieces[out];
      Piece& next = pieces[i];
      if (before.lane == next.lane && next.stop - before.start <= grain) {
        if (next.stop - next.start > before.stop - before.start) {
          before.trial = next.trial;
          before.end = next.end;
        }
        before.stop = std::max(before.stop, next.stop);
      } else {
        pieces[++out] = next;
      }
    }
    pieces.resize(out + 1);
    if (!(grain < last - first)) break;  // one piece in each lane, but more lanes than allowed
  }
  return merged;
}

void put_use(JsonWriter& out, const ExperimentView& view, double from, double to) {
  constexpr std::size_t parts = 299;
  Average busy(from, to, parts), pending(from, to, parts);
  for (const auto& piece : view.pieces()) busy.add(piece.start, piece.end == Piece::End::running ? to : piece.stop);
  for (const auto& row : view.rows()) pending.add(row.created, std::isnan(row.started) ? to : row.started);
  std::vector<double> time;
  for (std::size_t i = 0; i <= parts; ++i) time.push_back(busy.begin(i));
  out.key("use").begin_object().values("time", time).values("busy", busy.take()).values("pending", pending.take());
  out.values("slots", std::vector<std::size_t>(parts + 1, view.lanes().size())).end_object();
}

}  // namespace

std::string timeline_answer(const ExperimentView& view, const Query& query) {
  const auto& info = view.results().experiment();
  const bool runs = view.status.state == "running" || view.status.state == "paused";
  const double now = runs ? std::max(view.now(), info.updated) : info.updated;
  const double from = query.real("from").value_or(info.started), to = query.real("to").value_or(now);
  const auto limit = static_cast<std::size_t>(query.whole("limit", 4000, 1, 8000));
  std::vector<Piece> pieces;
  for (Piece piece : view.pieces()) {
    if (piece.end == Piece::End::running) piece.stop = std::max(piece.start, now);
    if (piece.start <= to && piece.stop >= from) pieces.push_back(piece);
  }
  const bool merged = merge(pieces, limit);
  // Lanes ordered by host and slot; only the first 1,000.
  std::vector<std::size_t> order(view.lanes().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const Lane &x = view.lanes()[a], &y = view.lanes()[b];
    return std::tuple(x.host, x.slot) < std::tuple(y.host, y.slot);
  });
  if (order.size() > 1000) order.resize(1000);
  std::vector<std::int64_t> shown(view.lanes().size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) shown[order[i]] = static_cast<std::int64_t>(i);
  std::erase_if(pieces, [&](const Piece& piece) { return shown[piece.lane] < 0; });
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("lanes").begin_array();
  for (const std::size_t at : order)
    out.begin_object()
        .member("host", shortened(view.host_name(view.lanes()[at].host), 200))
        .member("slot", view.lanes()[at].slot)
        .end_object();
  out.end_array().key("segments").begin_object();
  const auto list = [&](const char* name, auto&& of) {
    out.key(name).begin_array();
    for (const auto& piece : pieces) out.value(of(piece));
    out.end_array();
  };
  const auto milliseconds = [](double time) { return std::round(time * 1000) / 1000; };
  list("lane", [&](const Piece& piece) { return shown[piece.lane]; });
  list("trial", [](const Piece& piece) { return piece.trial; });
  list("start", [&](const Piece& piece) { return milliseconds(piece.start); });
  list("end", [&](const Piece& piece) { return milliseconds(piece.stop); });
  list("kind", [](const Piece& piece) { return to_string(piece.end); });
  out.end_object().key("hosts").begin_array();
  const auto& changes = view.host_changes();
  for (std::size_t i = changes.size() > 1000 ? changes.size() - 1000 : 0; i < changes.size(); ++i) {
    out.begin_object().member("host", shortened(view.host_name(changes[i].host), 200));
    put_number(out, "gained", changes[i].gained ? changes[i].time : unknown);
    put_number(out, "lost", changes[i].gained ? unknown : changes[i].time);
    out.member("why", shortened(changes[i].why, 300)).end_object();
  }
  out.end_array().member("merged", merged);
  put_use(out, view, from, to);
  out.end_object();
  return out.take();
}

std::string lineage_answer(const ExperimentView& view) {
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("population").begin_array();
  std::set<TrialId> members;
  const auto& all = view.takeovers();
  const std::size_t most = 5000;
  for (std::size_t i = all.size() > most ? all.size() - most : 0; i < all.size(); ++i) {
    if (out.size() > max_answer * 8 / 10) break;
    out.begin_object().member("trial", all[i].trial).member("donor", all[i].donor).member("step", all[i].step);
    out.member("time", all[i].time).key("changes").raw(all[i].changes).end_object();
  }
  for (const auto& one : all) {
    members.insert(one.trial);
    members.insert(one.donor);
  }
  out.end_array().key("rows").begin_array();
  std::size_t n = 0;
  for (const TrialId id : members)
    if (++n <= 10000) out.value(id);
  out.end_array().end_object();
  return out.take();
}

std::string now_answer(const ExperimentView& view, const Surroundings& around) {
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.key("running").begin_array();
  std::size_t running = 0, waiting = 0;
  std::vector<TrialId> waits;
  for (const TrialRow& row : view.rows()) {
    if (row.state == TrialState::running) {
      if (++running > 500 || out.size() > max_answer * 6 / 10) continue;
      put_row(out, view, row, true);
      out.member("step", row.steps);
      put_number(out, "since_report", std::isnan(row.reported) ? unknown : std::max(0.0, view.now() - row.reported));
      put_number(out, "last_report", row.reported);
      out.end_object();
    } else if (row.state == TrialState::pending || row.state == TrialState::paused) {
      if (++waiting <= 500) waits.push_back(row.id);
    }
  }
  out.end_array().member("running_total", running);
  std::vector<std::pair<TrialId, std::string>> reasons;
  std::string whole;
  if (around.why_waiting) whole = around.why_waiting(waits, reasons);
  std::map<TrialId, std::string> why(reasons.begin(), reasons.end());
  out.key("waiting").begin_array();
  for (const TrialId id : waits) {
    if (out.size() > max_answer * 8 / 10) break;
    out.begin_object().member("trial", id).key("why");
    const auto reason = why.find(id);
    reason == why.end() ? out.value(nullptr) : out.value(shortened(reason->second, 500));
    out.end_object();
  }
  out.end_array().member("waiting_total", waiting).member("nothing_runs", whole);
  std::map<std::uint32_t, std::pair<std::size_t, std::size_t>> slots;  // all, busy
  for (const Lane& lane : view.lanes()) {
    auto& [all, busy] = slots[lane.host];
    ++all;
    busy += lane.piece >= 0 ? 1 : 0;
  }
  std::map<std::string, const HostChange*> last;
  for (const auto& change : view.host_changes()) last[view.host_name(change.host)] = &change;
  out.key("hosts").begin_array();
  std::size_t n = 0;
  for (const HostUse& host : view.results().hosts()) {
    if (++n > 1000) break;
    const auto found = last.find(host.host);
    const bool lost = found != last.end() && !found->second->gained;
    std::pair<std::size_t, std::size_t> use;
    for (const auto& [number, counts] : slots)
      if (view.host_name(number) == host.host) use = counts;
    out.begin_object().member("host", shortened(host.host, 200));
    out.member("state", !host.excluded_why.empty() ? "aside" : lost ? "lost" : use.second > 0 ? "busy" : "idle");
    out.member("slots", use.first).member("busy", use.second).member("attempts", host.attempts);
    out.key("cpu").value(nullptr).key("memory").value(nullptr).key("gpu").value(nullptr);
    out.member("why", !host.excluded_why.empty() ? shortened(host.excluded_why, 300)
                      : lost                     ? shortened(found->second->why, 300)
                                                 : std::string_view());
    out.end_object();
  }
  out.end_array().key("cost").raw(around.cost ? around.cost() : "null");
  put_number(out, "left", seconds_left(view));
  out.end_object();
  return out.take();
}

std::string config_answer(const ExperimentView& view, const Query& query) {
  const TrialId id = query.whole("trial", -1, 0, std::numeric_limits<std::int64_t>::max());
  const bool yaml = query.word("format", {"yaml", "c++"}) == "yaml";
  if (view.row(id) == nullptr) fail(Errc::input, "there is no trial {}", query.text("trial"));
  const Params params = view.results().trial(id).params;
  std::string text = yaml ? "" : "hypertune::Params{";
  for (const auto& [name, value] : params) {
    if (yaml) {
      text += fmt::format("{}: {}\n", detail::scalar_text(name), detail::value_text(value));
      continue;
    }
    std::string literal = detail::value_text(value);
    if (const auto* whole = std::get_if<std::int64_t>(&value)) literal = fmt::format("std::int64_t{{{}}}", *whole);
    if (const auto* words = std::get_if<std::string>(&value))
      literal = fmt::format("std::string({})", detail::quoted(*words));
    text += fmt::format("{}{{{}, {}}}", text.ends_with('{') ? "" : ", ", detail::quoted(name), literal);
  }
  if (!yaml) text += "}";
  JsonWriter out;
  out.begin_object();
  put_version(out, view);
  out.member("text", text).end_object();
  return out.take();
}

}  // namespace hypertune::inline v0::view
