// The Judge: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/nearest.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/trial/detail/metric_units.hpp>
#include <hypertune/trial/metric_name.hpp>
#include <hypertune/tune/detail/judge.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace hypertune::inline v0 {

void Judge::track(const record::Any& what) {
  faults_.apply(what);
  if (const auto* paused = std::get_if<record::TrialPaused>(&what))
    offer(paused->trial);
  else if (const auto* sealed = std::get_if<record::TrialCheckpointed>(&what)) {
    // Before add(): a superseded checkpoint with more steps must not count as newer than this one.
    if (bases_.contains(sealed->trial)) on_own_checkpoint(sealed->trial);
    retention_.add(sealed->checkpoint, state_.loss_at(sealed->trial, sealed->checkpoint.steps));
  } else if (const auto* exploited = std::get_if<record::TrialExploited>(&what)) {
    release(bases_, exploited->trial);
    if (retention_.pin(exploited->checkpoint)) bases_.emplace(exploited->trial, exploited->checkpoint);
    for (auto& offer : offers_[exploited->trial]) offer.last = false;
    review_offers();
    without_checkpoint_.erase(exploited->trial);
  } else if (const auto* failed = std::get_if<record::AttemptFailed>(&what)) {
    if (const auto* where = state_.where(failed->trial);
        failed->cause.exclude_host && where != nullptr && where->others.empty())
      excluded_.insert(where->host);
  } else if (const auto* dropped = std::get_if<record::CheckpointDropped>(&what))
    retention_.forget(dropped->checkpoint);
  else if (std::holds_alternative<record::TrialReported>(what) && state_.best() != best_) {
    best_ = state_.best();
    retention_.set_best_trial(*best_);
  }
  if (const auto* ended = std::get_if<record::TrialEnded>(&what); ended && is_final(trials()[ended->trial].state)) {
    release(bases_, ended->trial);
    for (auto& offer : offers_[ended->trial]) offer.last = false;
    review_offers();
    without_checkpoint_.erase(ended->trial);
    retention_.trial_ended(ended->trial);
  }
}

void Judge::release(Pins& pins, TrialId trial) {
  if (const auto node = pins.extract(trial)) retention_.unpin(node.mapped());
}

// A paused trial is judged by its report at the pause. Until its next pause it therefore gives others the checkpoint
// that it had saved by then, not a later one, which has no report to judge it by yet. Also, when a later checkpoint
// arrives may depend on the network, while all checkpoints of before a pause have arrived by the time of the pause.
void Judge::offer(TrialId trial) {
  without_checkpoint_.erase(trial);
  if (!state_.exploits()) return;
  auto& offers = offers_[trial];
  for (auto& offer : offers) offer.last = false;
  const auto saved = state_.restorable(trial);
  if (saved.empty())
    without_checkpoint_.insert(trial);
  else
    offers.push_back({.checkpoint = saved.front(), .steps = trials()[trial].steps});
  review_offers();
}

// Pins the offers that the scheduler may want and unpins the others. An unwanted offer of the last pause is kept in the
// list, as it may be wanted later while its checkpoint still exists.
void Judge::review_offers() {
  for (auto of_trial = offers_.begin(); of_trial != offers_.end();) {
    auto& [trial, offers] = *of_trial;
    const TrialId donor = trial;
    const bool over = is_final(trials()[donor].state);
    std::erase_if(offers, [&](Offer& offer) {
      const bool wanted = !over && state_.may_give(donor, offer.steps, offer.last);
      if (offer.pinned && !wanted) retention_.unpin(offer.checkpoint);
      if (!offer.pinned && wanted && !retention_.pin(offer.checkpoint)) return true;  // its checkpoint is gone
      offer.pinned = wanted;
      return !wanted && !offer.last;
    });
    of_trial = offers.empty() ? offers_.erase(of_trial) : std::next(of_trial);
  }
}

// The trial has saved a checkpoint: those that it made before it took over another trial's state are superseded.
void Judge::on_own_checkpoint(TrialId trial) {
  release(bases_, trial);
  const auto* names = state_.superseded(trial);
  if (names == nullptr) return;
  const auto held = state_.checkpoints(trial);
  for (const auto& checkpoint : std::vector<CheckpointInfo>(held.begin(), held.end()))
    if (names->contains(checkpoint.name)) retention_.supersede(checkpoint);
}

// Keeps what add_known() and start_with are compared with. Called by the replay after it has applied the record.
void Judge::remember(const record::Any& what) {
  if (const auto* created = std::get_if<record::TrialCreated>(&what)) {
    if (created->known) recorded_known_.push_back({.trial = created->trial});
    const auto& entry = trials()[created->trial];
    if (created->known || entry.foreign) return;
    const auto same = std::find_if(first_.begin(), first_.end(),
                                   [&](const Point& point) { return detail::same_point(point, entry.point); });
    if (same != first_.end()) first_.erase(same);
  } else if (const auto* report = std::get_if<record::TrialReported>(&what)) {
    const auto known = std::lower_bound(recorded_known_.begin(), recorded_known_.end(), report->trial,
                                        [](const auto& each, TrialId trial) { return each.trial < trial; });
    if (known == recorded_known_.end() || known->trial != report->trial) return;
    known->metrics = report->metrics;
    known->steps = report->step + 1;
  }
}

void Judge::make_room(Outcome& out) {
  if (rules_.samples == 0) return;
  const auto waiting = static_cast<std::int64_t>(first_.size());
  const std::int64_t created = trials().size() - state_.known();
  if (waiting == 0 || created + waiting <= rules_.samples) return;
  out.notices.push_back(detail::format("{} samples are {} too few for the configurations of start_with: {} are made",
                                       rules_.samples, created + waiting - rules_.samples, created + waiting));
  rules_.samples = created + waiting;
}

bool Judge::carry_out_owed(TrialId trial, Outcome& out) {
  const auto& entry = trials()[trial];
  if (entry.owed == Decision::proceed) return false;
  const auto saved = state_.restorable(trial);
  const bool is_saved = !saved.empty() && saved.front().steps == entry.steps;
  if (entry.owed == Decision::pause) {
    if (state_.exploits() && !is_saved) return false;
    commit(record::TrialPaused{trial}, out);
    return true;
  }
  if (save_at_end() && !is_saved) return false;
  const bool stopped = entry.owed == Decision::stop;
  end(trial, stopped ? TrialState::stopped : TrialState::completed,
      stopped ? std::optional(Cause{.text = state_.reason(trial), .retry = entry.by_condition}) : std::nullopt, out,
      !stopped);
  return true;
}

// Recorded results are recognised by their contents, not by their position: if the list has grown or was reordered,
// only new results are added.
void Judge::add_known(std::span<const KnownResult> known, Outcome& out) {
  const auto hash_of = [](const Point& point) {
    std::size_t hash = 0;
    for (const double x : point) hash = hash * 0x9e3779b97f4a7c15U + (is_active(x) ? std::hash<double>()(x) : 1);
    return hash;
  };
  const auto same_metrics = [](const Metrics& a, const Metrics& b) {
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& metric) {
             const double* value = find_metric(b, metric.first);
             return value != nullptr &&
                    (*value == metric.second || (*value != *value && metric.second != metric.second));
           });
  };
  std::unordered_multimap<std::size_t, std::vector<RecordedKnown>::iterator> recorded_at;
  for (auto before = recorded_known_.begin(); before != recorded_known_.end() && !known.empty(); ++before)
    recorded_at.emplace(hash_of(trials()[before->trial].point), before);
  for (const auto& result : known) {
    if (result.steps < 1) fail(Errc::usage, "a known result is of {} steps: it must be 1 or more", result.steps);
    if (!losses_of(result.metrics, state_.objectives()))
      fail(Errc::usage, "a known result lacks the metric that is tuned ('{}')", state_.objectives().front().metric);
    for (const auto& [name, value] : result.metrics)
      if (const auto why = detail::refused_name(name); !why.empty()) fail(Errc::usage, "a known result: {}", why);
    const Point point = state_.space().configuration(result.params);
    const auto is_it = [&](const RecordedKnown& before) {
      const auto& entry = trials()[before.trial];
      return !before.listed && !entry.foreign && detail::same_point(entry.point, point) &&
             (before.steps == 0 || (before.steps == result.steps && same_metrics(before.metrics, result.metrics)));
    };
    auto recorded = recorded_known_.end();
    for (auto [each, end] = recorded_at.equal_range(hash_of(point)); each != end; ++each)
      if (each->second < recorded && is_it(*each->second)) recorded = each->second;
    if (recorded == recorded_known_.end())  // not the very same point
      recorded = std::find_if(recorded_known_.begin(), recorded_known_.end(), is_it);
    TrialId trial = trials().size();
    if (recorded != recorded_known_.end()) {
      recorded->listed = true;
      trial = recorded->trial;
      if (is_final(trials()[trial].state)) continue;  // otherwise a driver died while adding it
    } else {
      commit(record::TrialCreated{trial, point, state_.space().params(point), true}, out);
    }
    if (!trials()[trial].judged) commit(record::TrialReported{trial, 0, result.steps - 1, result.metrics}, out);
    end(trial, TrialState::completed, std::nullopt, out);
  }
  const auto gone = std::count_if(recorded_known_.begin(), recorded_known_.end(), [&](const auto& before) {
    return !before.listed && !trials()[before.trial].foreign;
  });
  if (gone > 0 && !known.empty())
    out.notices.push_back(
        detail::format("{} known result{} of before {} not in the list any more: what is recorded stays", gone,
                       gone == 1 ? "" : "s", gone == 1 ? "is" : "are"));
  recorded_known_.clear();
}

void Judge::ask_workers(TrialId trial, int workers, bool by_user, Outcome& out) {
  const auto before = state_.asked_workers(trial);
  if (workers != (by_user ? before.by_user : before.by_trial))
    commit(record::WorkersRequested{trial, workers, by_user}, out);
}

// Called before the report is recorded, so that readers of the report know its attributes. Only changes are recorded.
void Judge::note_reported(TrialId trial, const Attributes& attributes, Outcome& out) {
  if (attributes.empty()) return;
  Attributes all = state_.attributes(trial);
  std::size_t left_out = 0;
  if (auto changed = detail::merge_attributes(all, attributes, left_out); !changed.empty())
    commit(record::AttributesSet{trial, std::move(changed)}, out);
  if (left_out > 0 && overfull_.insert(trial).second)
    out.notices.push_back(detail::format(
        "trial {}: not every attribute is kept: a trial has {} at most, with names of 1 to {} bytes, none of "
        "them a control character",
        trial, max_attributes, max_attribute_name));
}

// A program may choose its unit by the size of the number: then its smallest values would be the worst ones.
void Judge::note_units(TrialId trial, const Report& report, Outcome& out) {
  for (const auto& [metric, unit] : report.units) {
    const std::string name = detail::unit_attribute(metric);
    if (!detail::is_attribute_name(name)) continue;
    const Value* noted = state_.attributes(-1).find(name);
    const auto* text = noted == nullptr ? nullptr : std::get_if<std::string>(noted);
    if (noted != nullptr && text == nullptr) continue;  // it is the user's
    auto now =
        text == nullptr ? detail::unit_of_first(unit, trial) : detail::unit_of_another(*text, metric, unit, trial);
    if (!now) continue;
    if (text != nullptr) out.notices.push_back(detail::format("the unit of '{}' is {}", metric, *now));
    Attributes attributes;
    attributes.set(name, *std::move(now));
    note_reported(-1, attributes, out);
  }
}

// Remembers the names of reported metrics, for a user who has misspelt the objective; a few are enough. Returns whether
// there were new ones.
bool Judge::remember_names(LiveTrial& run, const Metrics& metrics) {
  constexpr std::size_t most = 8;
  const std::size_t before = run.reported.size();
  for (const auto& [name, value] : metrics)
    if (run.reported.size() < most && std::find(run.reported.begin(), run.reported.end(), name) == run.reported.end())
      run.reported.push_back(name);
  return run.reported.size() > before;
}

std::string Judge::why_unjudged(const LiveTrial& run) const {
  std::string names;
  for (const auto& objective : state_.objectives()) names += (names.empty() ? "'" : "', '") + objective.metric;
  return "ended without a report of " + names + "'" + reported_instead(run);
}

std::string Judge::nearest_reported(const LiveTrial& run) const {
  for (const auto& objective : state_.objectives())
    if (std::find(run.reported.begin(), run.reported.end(), objective.metric) == run.reported.end())
      if (auto near = detail::nearest(objective.metric, run.reported); !near.empty()) return std::string(near);
  return "";
}

std::string Judge::reported_instead(const LiveTrial& run) const {
  if (run.reported.empty()) return "";
  std::string text;
  for (const auto& name : run.reported) text += (text.empty() ? "; reported were: " : ", ") + name;
  if (!rules_.metric_given)
    return text +
           detail::format("; the metric is '{}' where .metric is not set: set it", state_.objectives().front().metric);
  const auto near = nearest_reported(run);
  return near.empty() ? text : text + detail::format("; is '{}' meant?", near);
}

// Warns of a misspelt metric early: otherwise the user would only be told at the end of a trial, perhaps after hours. A
// metric that is merely not reported at every step rarely has a name similar to another one's.
void Judge::note_misnamed(TrialId trial, const LiveTrial& run, Outcome& out) {
  if (told_misnamed_ || trials()[trial].judged || (rules_.metric_given && nearest_reported(run).empty())) return;
  told_misnamed_ = true;
  out.notices.push_back(detail::format("trial {} has not reported '{}' yet, without which it fails{}", trial,
                                       state_.objectives().front().metric, reported_instead(run)));
}

// A line break in a name would break tables, and lines of a log.
void Judge::leave_out_misnamed(TrialId trial, Metrics& metrics, Outcome& out) {
  const auto is_refused = [](const auto& metric) { return !detail::refused_name(metric.first).empty(); };
  const auto first = std::find_if(metrics.begin(), metrics.end(), is_refused);
  if (first == metrics.end()) return;
  if (!std::exchange(told_unnamed_, true))
    out.notices.push_back(
        detail::format("trial {}: {}: it is left out (said once)", trial, detail::refused_name(first->first)));
  std::erase_if(metrics, is_refused);
}

void Judge::note_doubled(TrialId trial, const Metrics& metrics, Outcome& out) {
  for (auto metric = metrics.begin(); metric != metrics.end() && !told_doubled_; ++metric)
    if (find_metric(metrics, metric->first) != &metric->second) {
      told_doubled_ = true;
      out.notices.push_back(
          detail::format("trial {} has '{}' twice in one report: the first value counts", trial, metric->first));
    }
}

// A trial without a value for a bound ranks behind all others, whatever its objective is.
void Judge::note_unbounded(TrialId trial, Outcome& out) {
  if (told_unbounded_) return;
  if (const auto* bound = state_.bound_without_value(trial)) {
    told_unbounded_ = true;
    out.notices.push_back(
        detail::format("trial {} has ended without a value of '{}', which a constraint bounds: it counts as a trial "
                       "that does not meet "
                       "it (said once)",
                       trial, bound->metric));
  }
}

// That trials do not save is otherwise noticed when one has failed, and begins again from its start.
void Judge::note_unsaved(TrialId trial, Outcome& out) {
  const int every = rules_.checkpoint.every, steps = trials()[trial].steps;
  const bool ran = trials()[trial].attempts > 0;  // a known result did not
  if (told_unsaved_ || every == 0 || steps < every || !ran) return;
  if (saved_ || save_failures_.any() || !state_.checkpoints(trial).empty()) return;
  told_unsaved_ = true;
  out.notices.push_back(detail::format(
      "trial {} has ended after {} steps without a checkpoint, though one was asked for after each {}: it "
      "does not save, so a trial that fails begins again from its start (said once)",
      trial, steps, every));
}

void Judge::end(TrialId trial, TrialState state, std::optional<Cause> cause, Outcome& out, bool at_limit) {
  const auto& entry = trials()[trial];
  if (entry.state == TrialState::paused && entry.parked)
    out.commands.push_back(Stop{trial, entry.attempts - 1, false});  // the executor need not keep the run
  if (entry.judged && state != TrialState::failed) note_unbounded(trial, out);
  if (state != TrialState::failed && rules_.tell_changes && !rules_.manual) note_unsaved(trial, out);
  commit(record::TrialEnded{trial, state, std::move(cause), at_limit}, out);
  drop_superfluous(out);
}

void Judge::keep(const CheckpointInfo& checkpoint, Outcome& out) {
  saved_ = true;
  commit(record::TrialCheckpointed{checkpoint.trial, checkpoint}, out);
  drop_superfluous(out);
}

// Checkpoints that the retention releases are recorded as dropped now, and deleted once that record is durable.
void Judge::drop_superfluous(Outcome& out) {
  for (const auto& checkpoint : retention_.take_dropped()) {
    const auto held = state_.checkpoints(checkpoint.trial);
    if (std::any_of(held.begin(), held.end(), [&](const auto& c) { return c.name == checkpoint.name; }))
      drop(checkpoint, record::by_retention, out);
  }
}

void Judge::drop(const CheckpointInfo& checkpoint, const std::string& why, Outcome& out) {
  commit(record::CheckpointDropped{checkpoint.trial, checkpoint, why}, out);
}

std::string Judge::why_fewer() const {
  const auto made = static_cast<std::int64_t>(trials().size()) - static_cast<std::int64_t>(state_.known());
  if (!exhausted_ || made >= rules_.samples) return "";
  return detail::format("no configuration is left that was not tried: {} trial{} instead of {}", made,
                        made == 1 ? "" : "s", rules_.samples);
}

std::string Judge::note(TrialId trial, const Attributes& attributes, Outcome& out) {
  if (trial >= 0 && !trials().contains(trial))
    fail(Errc::usage, "there is no trial {}: there are {}", trial, trials().size());
  auto [changed, line] = detail::noted(trial < 0 ? "the experiment" : detail::format("trial {}", trial),
                                       state_.attributes(trial), attributes);
  if (!changed.empty()) commit(record::AttributesSet{trial, std::move(changed)}, out);
  return std::move(line);
}

// If the donor has no checkpoint, the trial goes on from its own state: a failed checkpoint must not end the
// experiment. That the state which a donor saved at its pause is gone is ordinary: it was not among the best then, and
// is now because better trials have ended.
void Judge::exploit(const Choice& choice, Outcome& out) {
  const auto& entry = trials()[choice.trial];
  if (!trials().contains(choice.donor))
    fail(Errc::usage, "the scheduler '{}' let trial {} take over trial {}, which does not exist", state_.scheduler(),
         choice.trial, choice.donor);
  require_sound(choice.point, detail::format("the scheduler '{}'", state_.scheduler()));
  std::vector<CheckpointInfo> donated;
  if (!without_checkpoint_.contains(choice.donor)) donated = state_.restorable(choice.donor);
  if (choice.steps > 0) std::erase_if(donated, [&](const auto& c) { return c.steps > choice.steps; });
  if (const auto offers = offers_.find(choice.donor); offers != offers_.end())
    for (const auto& offer : offers->second)
      if (choice.steps > 0 ? offer.steps == choice.steps : offer.last)
        donated.insert(donated.begin(), offer.checkpoint);
  const auto held = std::find_if(donated.begin(), donated.end(), [&](const auto& c) { return retention_.contains(c); });
  if (held == donated.end()) {
    const bool saves = !without_checkpoint_.contains(choice.donor) && !state_.checkpoints(choice.donor).empty();
    if (!saves && !std::exchange(told_nothing_to_take_over_, true))
      out.notices.push_back(detail::format(
          "trial {} goes on as it was: trial {} has no checkpoint to take over (a trial must save its state for that; "
          "said once, and true of all that save none)",
          choice.trial, choice.donor));
    return;
  }
  if (entry.parked) out.commands.push_back(Stop{choice.trial, entry.attempts - 1, false});
  commit(record::TrialExploited{choice.trial, choice.donor, *held, choice.point, state_.space().params(choice.point)},
         out);
  drop_superfluous(out);
}

// A searcher or scheduler must not wait if nothing runs: it would never be asked again, and the experiment would seem
// to be finished.
void Judge::require_progress() const {
  if (!more_trials()) return;
  const bool none = trials().size() == state_.known();
  if (searcher_waits_)
    fail(Errc::experiment,
         "the searcher '{}' waits though no trial runs, so that it will never learn anything: it must suggest a "
         "configuration, or say that it is exhausted (after {} trials)",
         state_.searcher(), trials().size() - state_.known());
  if (none && rules_.samples > 0)
    fail(Errc::experiment, "the scheduler '{}' starts no trial: it waits though none runs and none is paused",
         state_.scheduler());
}

void Judge::require_sound(const Point& point, const std::string& who) const {
  const auto& space = state_.space();
  if (point.size() != space.size())
    fail(Errc::usage, "{} gave a point of {} coordinates in a space of {}", who, point.size(), space.size());
  if (const auto why = space.invalid(point))
    fail(Errc::usage, "{} gave a configuration that the space does not have: {}", who, *why);
}

Judge::Created Judge::create(Outcome& out) {
  Point point;
  if (!first_.empty()) {
    point = std::move(first_.front());
    first_.pop_front();
  } else {
    auto suggestion = state_.suggest(trials().size(), rules_.seed);
    if (!suggestion) return Created::later;
    if (suggestion->kind == Suggestion::Kind::exhausted) exhausted_ = true;
    searcher_waits_ = suggestion->kind == Suggestion::Kind::wait;
    if (suggestion->kind != Suggestion::Kind::point) return Created::none;
    point = std::move(suggestion->point);
    require_sound(point, detail::format("the searcher '{}'", state_.searcher()));
    if (const auto constraint = state_.space().violated(point))
      fail(Errc::usage, "the searcher '{}' gave a configuration that violates the constraint '{}'", state_.searcher(),
           *constraint);
  }
  Params params = state_.space().params(point);
  commit(record::TrialCreated{trials().size(), std::move(point), std::move(params), false}, out);
  return Created::one;
}

void Judge::add(Point point, Params params, Outcome& out) {
  commit(record::TrialCreated{trials().size(), std::move(point), std::move(params), false}, out);
  if (rules_.samples > 0) rules_.samples = std::max(rules_.samples, trials().size() - state_.known());
}

void Judge::take(Reported& e, LiveTrial& run, int step, bool counts, Outcome& out) {
  const bool restored = !run.restoring.empty();
  unpin_restorable(run);
  if (counts && step >= trials()[e.trial].steps) {
    leave_out_misnamed(e.trial, e.report.metrics, out);
    note_reported(e.trial, e.report.attributes, out);
    note_units(e.trial, e.report, out);
    if (!trials()[e.trial].reported) note_doubled(e.trial, e.report.metrics, out);
    const bool new_names = !trials()[e.trial].judged && remember_names(run, e.report.metrics);
    commit(record::TrialReported{e.trial, e.attempt, step, std::move(e.report.metrics), e.report.over}, out);
    if (new_names) note_misnamed(e.trial, run, out);
  }
  if (e.checkpoint) keep(*e.checkpoint, out);
  if (restored) drop_superfluous(out);  // checkpoints that were only pinned for the restore
}

std::vector<CheckpointInfo> Judge::pin_restorable(TrialId trial) {
  auto restore = state_.restorable(trial);
  std::erase_if(restore, [&](const auto& checkpoint) { return !retention_.contains(checkpoint); });
  for (const auto& checkpoint : restore) retention_.pin(checkpoint);
  return restore;
}
void Judge::unpin_restorable(LiveTrial& run) {
  for (const auto& checkpoint : run.restoring) retention_.unpin(checkpoint);
  run.restoring.clear();
}

}  // namespace hypertune::inline v0
