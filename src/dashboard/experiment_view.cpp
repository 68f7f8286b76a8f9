// How an ExperimentView applies records.
#include <hypertune/detail/utf8.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/record/detail/front.hpp>
#include <hypertune/record/detail/journal_lock.hpp>
#include <hypertune/show/detail/view/experiment_view.hpp>
#include <hypertune/show/detail/view/json_writer.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace hypertune::inline v0::view {

const char* to_string(Piece::End end) {
  switch (end) {
    case Piece::End::running: return "running";
    case Piece::End::completed: return "completed";
    case Piece::End::paused: return "paused";
    case Piece::End::failed: return "failed";
    case Piece::End::preempted: return "preempted";
    case Piece::End::lost: return "lost";
    case Piece::End::stopped: return "stopped";
  }
  return "running";
}

void ExperimentView::add(const Record& record) {
  if (record.sequence > results_.experiment().records) results_.add(record);
  version_ = record.sequence;
  detail::visit([&](const auto& event) { take(event, record.time); }, record.what);
  last_time_ = record.time;
}

void ExperimentView::settle(bool driven) {
  const auto running = results_.count(TrialState::running);
  const bool judged_anew = std::exchange(restarted_, false) && !results_.experiment().constraints.empty();
  if ((running == 0 || driven) && !judged_anew) return;
  results_.update();
  if (results_.count(TrialState::running) != running || judged_anew) touch_all();
  if (results_.count(TrialState::running) == 0) end_all(Piece::End::lost, last_time_);
}

void ExperimentView::refresh() {
  const std::size_t known_metrics = metrics_.size();
  for (std::size_t i = known_metrics; i < results_.metrics().size(); ++i)
    metrics_.emplace(results_.metrics()[i], static_cast<std::uint32_t>(i));
  for (const std::size_t at : changed_) {
    TrialRow& row = rows_[at];
    row.changed = false;
    const TrialResult result = results_.trial(row.id);
    row.state = result.state;
    row.steps = result.steps;
    row.attempts = result.attempts;
    row.failures = static_cast<std::int32_t>(result.failure_count());
    row.value = result.best ? result.best->value : unknown;
    row.at_step = result.best ? result.best->step : -1;
    row.admitted = results_.experiment().admits(result);
    row.duration = result.duration.value_or(unknown);
    if (std::exchange(row.moved, false)) params_.set(at, result.params);
  }
  changed_.clear();
}

const TrialRow* ExperimentView::row(TrialId id) const {
  if (id >= 0 && static_cast<std::size_t>(id) < rows_.size() && rows_[static_cast<std::size_t>(id)].id == id)
    return &rows_[static_cast<std::size_t>(id)];
  const auto at = std::lower_bound(rows_.begin(), rows_.end(), id,
                                   [](const TrialRow& row, TrialId value) { return row.id < value; });
  return at != rows_.end() && at->id == id ? &*at : nullptr;
}

std::optional<std::uint32_t> ExperimentView::metric(std::string_view name) const {
  const auto& names = results_.metrics();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) return std::nullopt;
  return static_cast<std::uint32_t>(at - names.begin());
}

std::optional<Objective> ExperimentView::objective(std::string_view metric) const {
  for (const auto& objective : results_.experiment().objectives)
    if (objective.metric == metric) return objective;
  return std::nullopt;
}

bool ExperimentView::maximises() const {
  const auto& objectives = results_.experiment().objectives;
  return !objectives.empty() && objectives.front().mode == Mode::maximize;
}

double ExperimentView::value(const TrialRow& row, std::uint32_t metric) const {
  const auto& name = results_.metrics()[metric];
  const auto& objectives = results_.experiment().objectives;
  for (std::size_t i = 0; i < objectives.size(); ++i) {
    if (objectives[i].metric != name) continue;
    if (i == 0) return row.value;
    const auto best = results_.best_report(row.id, objectives[i]);
    return best ? best->value : unknown;
  }
  const Curve* curve = row.curve(metric);
  return curve == nullptr ? unknown : curve->points().back().value;
}

void ExperimentView::touch(TrialRow& row) {
  if (std::exchange(row.changed, true)) return;
  changed_.push_back(static_cast<std::size_t>(&row - rows_.data()));
}
void ExperimentView::touch_all() {
  for (auto& row : rows_) touch(row);
}

std::uint32_t ExperimentView::host(const std::string& name) {
  const auto [found, added] = host_index_.emplace(name, static_cast<std::uint32_t>(hosts_.size()));
  if (added) hosts_.push_back(name);
  return found->second;
}

void ExperimentView::begin(TrialRow& row, Attempt attempt, int step, const std::string& where, Seconds time) {
  end(row, Piece::End::lost, time);
  row.host = host(where);
  if (std::isnan(row.started)) row.started = time;
  if (pieces_.size() >= max_pieces) return;
  std::size_t lane = 0;
  std::uint32_t slot = 0;
  for (; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].host != row.host) continue;
    if (lanes_[lane].piece < 0) break;
    ++slot;
  }
  if (lane == lanes_.size()) lanes_.push_back({row.host, slot});
  row.open = static_cast<std::int32_t>(pieces_.size());
  lanes_[lane].piece = row.open;
  pieces_.push_back({.trial = row.id,
                     .attempt = static_cast<std::int32_t>(attempt),
                     .from_step = step,
                     .to_step = step,
                     .lane = static_cast<std::uint32_t>(lane),
                     .start = time,
                     .stop = time});
}

void ExperimentView::end(TrialRow& row, Piece::End how, Seconds time, std::string_view why) {
  if (row.open < 0) return;
  if (!why.empty() && causes_.size() < max_causes)
    causes_.emplace(static_cast<std::size_t>(row.open), why.substr(0, detail::utf8_cut(why, 500)));
  Piece& piece = pieces_[static_cast<std::size_t>(row.open)];
  piece.end = how;
  piece.stop = std::max(piece.start, time);
  lanes_[piece.lane].piece = -1;
  row.open = -1;
}

void ExperimentView::end_all(Piece::End how, Seconds time) {
  for (auto& lane : lanes_)
    if (lane.piece >= 0)
      if (TrialRow* row = find(pieces_[static_cast<std::size_t>(lane.piece)].trial)) end(*row, how, time);
}

// The most points of each curve: fewer, the more points there are in all.
std::size_t ExperimentView::curve_limit() const {
  return points_ < max_points / 2 ? 64 : points_ < max_points * 3 / 4 ? 32 : points_ < max_points ? 16 : 8;
}

void ExperimentView::take(const record::ExperimentStarted&, Seconds) {
  end_all(Piece::End::lost, last_time_);  // the previous driver may have been killed
  touch_all();
  restarted_ = true;
}
void ExperimentView::take(const record::ExperimentEnded& event, Seconds time) {
  end_all(event.interrupted ? Piece::End::paused : Piece::End::lost, time);
  touch_all();
}
void ExperimentView::take(const record::TrialCreated& event, Seconds time) {
  if (find(event.trial) != nullptr) return;
  const auto at = std::upper_bound(rows_.begin(), rows_.end(), event.trial,
                                   [](TrialId id, const TrialRow& row) { return id < row.id; });
  TrialRow row;
  row.id = event.trial;
  row.created = time;
  if (at != rows_.end()) {  // an id out of order moves rows: recompute all
    const auto place = at - rows_.begin();
    rows_.insert(at, std::move(row));
    changed_.clear();
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      rows_[i].changed = rows_[i].moved = true;
      changed_.push_back(i);
    }
    static_cast<void>(place);
    return;
  }
  rows_.push_back(std::move(row));
  changed_.push_back(rows_.size() - 1);
}
void ExperimentView::take(const record::TrialStarted& event, Seconds time) {
  TrialRow* row = find(event.trial);
  if (row == nullptr) return;
  begin(*row, event.attempt, event.next_step, event.host, time);
  touch(*row);
}
void ExperimentView::take(const record::TrialResized& event, Seconds time) {
  TrialRow* row = find(event.trial);
  if (row == nullptr || event.workers.empty()) return;
  const int step = row->open < 0 ? row->steps : pieces_[static_cast<std::size_t>(row->open)].to_step;
  end(*row, Piece::End::paused, time);
  begin(*row, event.attempt, step, event.workers.front().host, time);
}
void ExperimentView::take(const record::TrialReported& event, Seconds time) {
  TrialRow* row = find(event.trial);
  if (row == nullptr) return;
  touch(*row);
  row->reported = time;
  if (std::isnan(row->started)) row->started = time;
  if (row->open >= 0) pieces_[static_cast<std::size_t>(row->open)].to_step = event.step + 1;
  const std::size_t limit = curve_limit();
  const auto& names = results_.metrics();
  const auto& objectives = results_.experiment().objectives;
  std::uint32_t hint = 0;
  for (const auto& [name, value] : event.metrics) {
    // A report nearly always has all metrics of the trial, in the same order.
    std::uint32_t metric = hint < names.size() && names[hint] == name ? hint : this->metric(name).value_or(0);
    hint = metric + 1;
    Curve* curve = nullptr;
    for (auto& one : row->curves)
      if (one.metric() == metric) curve = &one;
    if (curve == nullptr) {
      row->curves.reserve(row->curves.size() + 1);
      curve = &row->curves.emplace_back(metric);
    }
    const std::size_t before = curve->points().size();
    curve->add({event.step, static_cast<float>(time - row->started), value}, limit);
    points_ += curve->points().size();
    points_ -= before;
    if (objectives.empty() || name != objectives.front().metric || !std::isfinite(value)) continue;
    const bool higher = objectives.front().mode == Mode::maximize;
    if (!improvements_.empty() && !(higher ? value > improvements_.back().value : value < improvements_.back().value))
      continue;
    if (improvements_.size() >= max_improvements) {
      std::size_t out = 0;
      for (std::size_t i = 0; i < improvements_.size(); i += 2) improvements_[out++] = improvements_[i];
      improvements_.resize(out);
    }
    improvements_.push_back({time, event.trial, value});
  }
}
void ExperimentView::take(const record::TrialPaused& event, Seconds time) {
  TrialRow* row = find(event.trial);
  if (row == nullptr) return;
  end(*row, Piece::End::paused, time);
  touch(*row);
}
void ExperimentView::take(const record::TrialExploited& event, Seconds time) {
  TrialRow* row = find(event.trial);
  if (row == nullptr) return;
  if (takeovers_.size() < max_takeovers) {
    refresh();  // to compare with its parameters before the change
    const auto at = static_cast<std::size_t>(row - rows_.data());
    JsonWriter changes;
    changes.begin_object();
    for (const auto& [name, value] : event.params) {
      const auto column = params_.find(name);
      const Cell old = column == ParamColumns::nowhere ? Cell() : params_.at(column, at);
      Value before = std::string();
      if (old.kind == Cell::Kind::flag) before = old.number != 0;
      if (old.kind == Cell::Kind::whole) before = static_cast<std::int64_t>(old.number);
      if (old.kind == Cell::Kind::real) before = old.number;
      if (old.kind == Cell::Kind::text) before = *old.text;
      if (old.kind != Cell::Kind::absent && before == value) continue;
      changes.key(name).begin_array();
      old.kind == Cell::Kind::absent ? changes.value(nullptr) : changes.value(before);
      changes.value(value).end_array();
    }
    changes.end_object();
    takeovers_.push_back({event.trial, event.donor, event.checkpoint.steps, time, changes.take()});
  }
  row->moved = true;
  touch(*row);
}
void ExperimentView::take(const record::AttemptFailed& event, Seconds time) {
  TrialRow* row = find(event.trial);
  if (row == nullptr) return;
  end(*row,
      event.cause.source == FailureSource::user             ? Piece::End::failed
      : event.cause.source == FailureSource::infrastructure ? Piece::End::lost
                                                            : Piece::End::preempted,
      time, event.cause.text);
  touch(*row);
}

namespace {

// The number after `mark`, if there is one.
std::optional<double> number_after(std::string_view text, std::string_view mark) {
  const auto at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + mark.size());
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

}  // namespace

void ExperimentView::take(const record::TrialEnded& event, Seconds time) {
  TrialRow* row = find(event.trial);
  if (row == nullptr) return;
  end(*row,
      event.state == TrialState::completed ? Piece::End::completed
      : event.state == TrialState::stopped ? Piece::End::stopped
                                           : Piece::End::failed,
      time, event.cause ? std::string_view(event.cause->text) : std::string_view());
  touch(*row);
  // "stopped by asha at rung 3 (9 steps): accuracy 0.71, needed 0.83 (the best 9 of 27)": schedule/reason.hpp
  if (event.state != TrialState::stopped || !event.cause || cuts_.size() >= max_cuts) return;
  const std::string_view why = event.cause->text;
  if (!why.starts_with(record::stopped_by)) return;
  const auto rung = why.find(" at rung ");
  if (rung == std::string_view::npos) return;
  const auto steps = number_after(why.substr(rung), " (");
  if (!steps || !(*steps >= 1 && *steps < 2e9)) return;
  Cut cut{.trial = event.trial, .rung_steps = static_cast<std::int32_t>(*steps)};
  cut.step = cut.rung_steps - 1;
  cut.needed = number_after(why, ", needed ").value_or(unknown);
  if (!results_.experiment().objectives.empty())
    if (const auto metric = this->metric(results_.experiment().objectives.front().metric))
      if (const Curve* curve = row->curve(*metric)) {
        cut.value = curve->points().back().value;
        for (const auto& point : curve->points())
          if (point.step <= cut.step) cut.value = point.value;
      }
  cuts_.push_back(cut);
}
void ExperimentView::take(const record::HostGained& event, Seconds time) {
  if (host_changes_.size() < max_changes) host_changes_.push_back({host(event.host), true, time, {}});
}
void ExperimentView::take(const record::HostLost& event, Seconds time) {
  if (host_changes_.size() < max_changes) host_changes_.push_back({host(event.host), false, time, event.why});
}
void ExperimentView::take(const record::AttributesSet& event, Seconds) {
  if (TrialRow* row = find(event.trial)) touch(*row);
}

}  // namespace hypertune::inline v0::view
