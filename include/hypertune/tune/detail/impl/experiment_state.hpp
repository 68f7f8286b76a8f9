// ExperimentState: the effect of each record, and queries.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/tune/detail/experiment_state.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

void ExperimentState::apply(const record::Any& what, Seconds time) {
  now_ = std::max(now_, time);
  answering_ = just_reported_;
  if (const auto* report = std::get_if<record::TrialReported>(&what))
    just_reported_ = report->trial;
  else if (!std::holds_alternative<record::TrialCheckpointed>(what) &&
           !std::holds_alternative<record::AttributesSet>(what) &&
           !std::holds_alternative<record::WorkersRequested>(what) &&
           !std::holds_alternative<record::ExperimentStarted>(what))
    just_reported_ = -1;
  detail::visit([this](const auto& r) { this->on(r); }, what);
  last_event_ = now_;
}

std::vector<CheckpointInfo> ExperimentState::restorable(TrialId trial) const {
  const auto own = checkpoints(trial);
  // Restoring from a checkpoint ahead of the last report would skip the reports in between. Earlier versions recorded
  // such checkpoints if they died at the wrong moment.
  const auto reported = [steps = trials_[trial].steps](const CheckpointInfo& c) { return c.steps <= steps; };
  const auto found = takeovers_.find(trial);
  std::vector<CheckpointInfo> list, before;
  if (found == takeovers_.end()) {
    std::copy_if(own.begin(), own.end(), std::back_inserter(list), reported);
    return list;
  }
  const Takeover& takeover = found->second;
  for (const auto& checkpoint : own) {
    if (checkpoint == takeover.base) continue;
    const bool earlier = takeover.before.contains(checkpoint.name);
    if (earlier || reported(checkpoint)) (earlier ? before : list).push_back(checkpoint);
  }
  const auto donors = checkpoints(takeover.base.trial);
  if (std::find(donors.begin(), donors.end(), takeover.base) != donors.end()) list.push_back(takeover.base);
  if (!takeover.saved) list.insert(list.end(), before.begin(), before.end());
  return list;
}

double ExperimentState::loss_at(TrialId trial, int steps) const {
  if (!constraints_.empty()) {
    const auto excesses = excesses_.find(trial);
    if (excesses == excesses_.end() || detail::violation(excesses->second, constraints_) > 0) return worst_loss;
  }
  const auto found = recent_losses_.find(trial);
  if (found == recent_losses_.end()) return worst_loss;
  const auto& recent = found->second;
  const auto later = std::upper_bound(recent.begin(), recent.end(), steps,
                                      [](int wanted, const auto& each) { return wanted < each.first; });
  return later == recent.begin() ? recent.front().second : std::prev(later)->second;
}

const MetricBound* ExperimentState::bound_without_value(TrialId trial) const {
  const auto excesses = excesses_.find(trial);
  for (std::size_t i = 0; i < constraints_.size(); ++i)
    if (excesses == excesses_.end() || std::isnan(excesses->second[i])) return &constraints_[i];
  return nullptr;
}

// The recorded coordinates may mean something else in a changed space. Conditions, formulas and constraints may have
// changed though all values are the same.
std::optional<Point> ExperimentState::present_point(const Point& point, const Params& params) {
  try {
    const bool same = point.size() == space_.size() && (params.empty() || space_.params(point) == params);
    if (same && !space_.invalid(point) && space_.feasible(point)) return point;
    return space_.configuration(params);
  } catch (const Error& error) {
    if (why_foreign_.empty()) why_foreign_ = error.what();
    return std::nullopt;
  }
}

void ExperimentState::on(const record::TrialCreated& r) {
  auto point = present_point(r.point, r.params);
  const bool foreign = !point;
  const TrialId trial = trials_.add(point ? std::move(*point) : Point(space_.size(), inactive));
  trials_[trial].foreign = foreign;
  foreign_ += foreign;
  known_ += r.known;
  if (foreign) return;
  suggestions_->observe({.kind = Observation::Kind::started, .trial = trial, .point = trials_[trial].point});
  if (!r.known)
    scheduler_.on_create(trial, trials_[trial].point);
  else
    known_trials_.insert(trial);
}

void ExperimentState::on(const record::TrialStarted& r) {
  auto& entry = trials_[r.trial];
  if (entry.state == TrialState::paused && entry.before_pause == Decision::pause && !entry.foreign)
    scheduler_.on_resume(r.trial);
  auto& where = where_[r.trial];
  where = {.host = r.host, .others = {}, .generation = r.generation};
  for (const auto& other : r.others) where.others.push_back(other.host);
  displaced_.erase(r.trial);
  entry.attempts = r.attempt + 1;
  entry.since = now_;
  entry.started_at = r.next_step;
  entry.reported = false;
  entry.exploited = false;
  trials_.set_state(r.trial, TrialState::running);
}

void ExperimentState::on(const record::TrialResized& r) {
  if (r.workers.empty()) return;
  auto& where = where_[r.trial];
  const int workers = static_cast<int>(r.workers.size());
  const Seconds last = where.broken.value_or(trials_[r.trial].since);
  where.growths += workers > where.workers() ? 1 : 0;
  const bool formed = where.broken ? *where.broken + startup_ <= now_ : where.joined.empty();
  if (formed || (where.trains && answering_ != r.trial)) where.leaving.clear();
  where.trains = false;
  const Growths::Stage before{.generation = where.generation, .workers = where.workers(), .last = last};
  const Growths::Stage next{.generation = r.generation, .workers = workers, .asked = now_, .formed = now_};
  if (!r.lost.empty()) {
    where.joined.lose(before, ranks_on(where, r.lost), next, startup_);
    if (where.joined.empty()) where.broken = now_;
  } else {
    for (int rank = workers; rank < where.workers(); ++rank) where.leaving.push_back(where[rank]);
    where.joined.resize(before, next);
  }
  where.host = r.workers.front().host;
  where.others.clear();
  where.generation = r.generation;
  for (std::size_t rank = 1; rank < r.workers.size(); ++rank) where.others.push_back(r.workers[rank].host);
  displaced_.erase(r.trial);
}

std::vector<int> ExperimentState::ranks_on(const Whereabouts& where, const std::vector<std::string>& hosts) {
  std::vector<int> ranks;
  for (int rank = 0; rank < where.workers(); ++rank)
    if (std::find(hosts.begin(), hosts.end(), where[rank]) != hosts.end()) ranks.push_back(rank);
  return ranks;
}

void ExperimentState::on(const record::TrialReported& r) {
  auto& entry = trials_[r.trial];
  if (const auto where = where_.find(r.trial); where != where_.end()) {
    where->second.broken.reset();
    where->second.trains = where->second.joined.complete(now_, startup_);
    where->second.growths = 0;
  }
  const int done = r.step + 1;
  total_steps_ += std::max(0, done - entry.steps);
  if (done > entry.steps) entry.taken = 0;
  entry.steps = std::max(entry.steps, done);
  entry.elapsed += std::max(0.0, now_ - entry.since);
  entry.since = now_;
  entry.reported = true;
  entry.owed = Decision::proceed;
  entry.by_condition = false;
  reasons_.erase(r.trial);
  if (entry.foreign) return;
  const auto losses = losses_of(r.metrics, objectives_);
  const auto excesses = learn_constraints(r);
  if (losses) {
    entry.judged = true;
    note_best(r, {detail::violation(excesses, constraints_), losses->front()});
    last_losses_[r.trial] = *losses;
    auto& recent = recent_losses_[r.trial];
    while (!recent.empty() && recent.back().first >= done) recent.pop_back();  // of steps that it now does again
    if (recent.size() == max_recent) recent.erase(recent.begin());
    recent.emplace_back(done, losses->front());
    suggestions_->observe({.kind = Observation::Kind::report,
                           .trial = r.trial,
                           .point = entry.point,
                           .steps = done,
                           .losses = *losses,
                           .constraints = excesses,
                           .state = TrialState::running,
                           .elapsed = timed_ ? entry.elapsed : 0});
    if (!known_trials_.contains(r.trial))
      entry.owed = scheduler_.on_report({.trial = r.trial,
                                         .steps = done,
                                         .losses = *losses,
                                         .elapsed = entry.elapsed,
                                         .now = elapsed(),
                                         .over = r.over});
    // To give it up would save nothing. A limit of steps and stop conditions hold, so that programs that buffer their
    // output and those that do not are compared alike; and a trial that pauses to be given another state does so.
    if (r.over && (entry.owed == Decision::stop || (entry.owed == Decision::pause && !exploits_)))
      entry.owed = Decision::proceed;
    if (entry.owed == Decision::stop) reasons_[r.trial] = scheduler_reason(r.trial);
  }
  judge(r);
}

std::span<const double> ExperimentState::learn_constraints(const record::TrialReported& r) {
  if (constraints_.empty()) return {};
  auto& excesses = excesses_[r.trial];
  if (!detail::update_excesses(excesses, constraints_, r.metrics)) return excesses;
  const double violation = detail::violation(excesses, constraints_);
  if (best_ == r.trial) best_rank_.violation = std::min(best_rank_.violation, violation);
  if (const auto losses = last_losses_.find(r.trial); losses != last_losses_.end())
    note_best(r, {violation, losses->second.front()});
  return excesses;
}

void ExperimentState::note_best(const record::TrialReported& r, detail::ResultRank rank) {
  if (best_ && !(rank < best_rank_)) return;
  best_ = r.trial;
  best_rank_ = rank;
  best_steps_ = r.step + 1;
}

void ExperimentState::on(const record::TrialCheckpointed& r) {
  auto& list = checkpoints_[r.trial];
  const auto later = [](const auto& a, const auto& b) { return a.steps > b.steps; };
  // The workers of a group may have stopped within a step: of two checkpoints with the same number of steps, the newer
  // one then contains more of the next step, and comes first. Otherwise the older one comes first: a checkpoint that is
  // found at a resumption may be of a history that was given up.
  const auto* place = where(r.trial);
  const bool several = place != nullptr && (place->workers() > 1 || place->generation > 0);
  list.insert(several && !takeovers_.contains(r.trial)
                  ? std::lower_bound(list.begin(), list.end(), r.checkpoint, later)
                  : std::upper_bound(list.begin(), list.end(), r.checkpoint, later),
              r.checkpoint);
  if (const auto takeover = takeovers_.find(r.trial); takeover != takeovers_.end()) takeover->second.saved = true;
}

void ExperimentState::on(const record::TrialExploited& r) {
  auto& entry = trials_[r.trial];
  Takeover takeover{.base = r.checkpoint};
  for (const auto& checkpoint : checkpoints(r.trial)) takeover.before.insert(checkpoint.name);
  takeovers_.insert_or_assign(r.trial, std::move(takeover));
  if (auto point = present_point(r.point, r.params)) {
    entry.point = std::move(*point);
  } else {
    foreign_ += !entry.foreign;
    entry.foreign = true;
  }
  entry.steps = r.checkpoint.steps;
  entry.owed = Decision::proceed;
  entry.exploited = true;
  entry.parked = false;
  if (!entry.foreign) scheduler_.on_exploit(r.trial, r.donor, entry.point, r.checkpoint.steps);
}

void ExperimentState::on(const record::CheckpointDropped& r) {
  // The name may be used again by a later checkpoint.
  if (const auto found = takeovers_.find(r.trial); found != takeovers_.end())
    found->second.before.erase(r.checkpoint.name);
  const auto found = checkpoints_.find(r.trial);
  if (found == checkpoints_.end()) return;
  std::erase_if(found->second, [&](const auto& c) { return c.name == r.checkpoint.name; });
  if (found->second.empty()) checkpoints_.erase(found);
}

void ExperimentState::on(const record::TrialPaused& r) {
  auto& entry = trials_[r.trial];
  entry.before_pause = std::exchange(entry.owed, Decision::proceed);
  trials_.set_state(r.trial, TrialState::paused);
  if (!entry.foreign && entry.before_pause == Decision::pause) scheduler_.on_pause(r.trial);
}

void ExperimentState::on(const record::AttemptFailed& r) {
  auto& entry = trials_[r.trial];
  if (!r.doubted && (r.cause.source == FailureSource::user ||
                     (r.cause.source == FailureSource::infrastructure && !on_lost_host(r.trial))))
    ++entry.failures;
  if (r.cause.source == FailureSource::preemption && entry.taken < max_taken) ++entry.taken;
  if (record::is_tried_again(r)) entry.failures = 0;
  if (r.retry) trials_.set_state(r.trial, TrialState::pending);
}

void ExperimentState::on(const record::TrialEnded& r) {
  auto& entry = trials_[r.trial];
  // The schedule or a stop condition of an earlier session ended the trial. The present ones, to which the reports were
  // replayed, did not: the trial goes on when there is room, or, if paused, waits to be chosen.
  if (reopens(r) && !entry.foreign && (entry.owed == Decision::proceed || entry.owed == Decision::pause)) {
    trials_.set_state(r.trial, entry.owed == Decision::pause ? TrialState::paused : TrialState::pending);
    entry.before_pause = entry.owed;
    if (entry.owed == Decision::pause) scheduler_.on_pause(r.trial);
    entry.owed = Decision::proceed;
    return;
  }
  trials_.set_state(r.trial, r.state);
  if (!entry.foreign) {
    const auto losses = last_losses_.find(r.trial);
    const auto excesses = excesses_.find(r.trial);
    suggestions_->observe({.kind = Observation::Kind::ended,
                           .trial = r.trial,
                           .point = entry.point,
                           .steps = entry.steps,
                           .losses = losses == last_losses_.end() ? std::span<const double>{} : losses->second,
                           .constraints = excesses == excesses_.end() ? std::span<const double>{} : excesses->second,
                           .state = r.state,
                           .elapsed = timed_ ? entry.elapsed : 0});
    if (!known_trials_.contains(r.trial)) scheduler_.on_end(r.trial, r.state);
  }
  last_losses_.erase(r.trial);
  recent_losses_.erase(r.trial);
  reasons_.erase(r.trial);
  excesses_.erase(r.trial);
  where_.erase(r.trial);
  displaced_.erase(r.trial);
  judge(r);
}

bool ExperimentState::reopens(const record::TrialEnded& r) {
  if (r.at_limit) return true;
  if (r.state != TrialState::stopped || !r.cause || !r.cause->retry || ending_) return false;
  if (auto why = check_time(now_)) ending_ = std::move(why);  // the time limit ended it, between reports
  return !ending_;
}

ExperimentProgressView ExperimentState::view() const {
  ExperimentProgressView now;
  now.total_steps = total_steps_;
  now.completed = trials_.counts()[TrialState::completed];
  now.stopped = trials_.counts()[TrialState::stopped];
  now.failed = trials_.counts()[TrialState::failed];
  now.elapsed = elapsed();
  return now;
}

void ExperimentState::judge(const record::TrialReported& r) {
  if (trial_stop_.empty() && experiment_stop_.empty()) return;
  auto& entry = trials_[r.trial];
  const TrialProgressView report{.trial = r.trial, .steps = r.step + 1, .metrics = r.metrics, .elapsed = entry.elapsed};
  if (auto why = trial_stop_.check(report); why && entry.owed != Decision::complete) {
    entry.owed = Decision::stop;
    entry.by_condition = true;
    reasons_[r.trial] = std::move(*why);
  }
  auto now = view();
  now.report = &report;
  if (auto why = experiment_stop_.check(now)) ending_ = std::move(why);
}

void ExperimentState::judge(const record::TrialEnded& r) {
  trial_stop_.forget(r.trial);
  if (experiment_stop_.empty()) return;
  auto now = view();
  now.ended = r.trial;
  now.ended_state = r.state;
  if (auto why = experiment_stop_.check(now)) ending_ = std::move(why);
}

}  // namespace hypertune::inline v0
