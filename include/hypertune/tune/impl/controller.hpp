// Controller: what it follows in the records, and how it takes up an experiment where an earlier driver left it.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/tune/controller.hpp>

#include <iterator>

namespace hypertune {

HYPERTUNE_INLINE void Controller::track(const record::Any& what) {
  faults_.apply(what);
  if (const auto* paused = std::get_if<record::TrialPaused>(&what))
    offer(paused->trial);
  else if (const auto* sealed = std::get_if<record::TrialCheckpointed>(&what)) {
    // First: one of a longer past that leads nowhere must not pass for newer than this.
    if (bases_.contains(sealed->trial)) settle_takeover(sealed->trial);
    retention_.add(sealed->checkpoint, state_.loss_at(sealed->trial, sealed->checkpoint.steps));
  } else if (const auto* mutated = std::get_if<record::TrialMutated>(&what)) {
    release(bases_, mutated->trial);
    if (retention_.pin(mutated->checkpoint)) bases_.emplace(mutated->trial, mutated->checkpoint);
    for (auto& offer : offers_[mutated->trial]) offer.last = false;
    review_offers();
    empty_handed_.erase(mutated->trial);
  } else if (const auto* failed = std::get_if<record::AttemptFailed>(&what)) {
    if (const auto* host = state_.host_of(failed->trial); failed->cause.exclude_host && host != nullptr)
      excluded_.insert(*host);
  } else if (const auto* dropped = std::get_if<record::CheckpointDropped>(&what))
    retention_.forget(dropped->checkpoint);
  else if (std::holds_alternative<record::TrialReported>(what) && state_.best() != best_) {
    best_ = state_.best();
    retention_.set_best_trial(*best_);
  }
  if (const auto* ended = std::get_if<record::TrialEnded>(&what);
      ended && is_final(state_.trials()[ended->trial].state)) {
    release(bases_, ended->trial);
    for (auto& offer : offers_[ended->trial]) offer.last = false;
    review_offers();
    empty_handed_.erase(ended->trial);
    retention_.trial_ended(ended->trial);
  }
  if (replaying_) follow_queue(what);
}

HYPERTUNE_INLINE void Controller::release(Pins& pins, TrialId trial) {
  if (const auto node = pins.extract(trial)) retention_.unpin(node.mapped());
}

// A trial that has paused is judged by what it reported there, and until its next pause it gives what it had saved by
// then to who takes it over: not what it saves later on, with nothing to judge it by yet. When that arrives may depend
// on the network; by the time that a trial has paused, all that it had saved has.
HYPERTUNE_INLINE void Controller::offer(TrialId trial) {
  empty_handed_.erase(trial);
  if (!state_.takes_over()) return;
  auto& offers = offers_[trial];
  for (auto& offer : offers) offer.last = false;
  const auto saved = state_.restorable(trial);
  if (saved.empty())
    empty_handed_.insert(trial);
  else
    offers.push_back({.checkpoint = saved.front(), .steps = state_.trials()[trial].steps});
  review_offers();
}

// One that has not been wanted may be later on, as long as it is there anyway.
HYPERTUNE_INLINE void Controller::review_offers() {
  for (auto of_trial = offers_.begin(); of_trial != offers_.end();) {
    auto& [trial, offers] = *of_trial;
    const TrialId donor = trial;
    const bool over = is_final(state_.trials()[donor].state);
    std::erase_if(offers, [&](Offer& offer) {
      const bool wanted = !over && state_.may_give(donor, offer.steps, offer.last);
      if (offer.pinned && !wanted) retention_.unpin(offer.checkpoint);
      if (!offer.pinned && wanted && !retention_.pin(offer.checkpoint)) return true;  // it is gone
      offer.pinned = wanted;
      return !wanted && !offer.last;
    });
    of_trial = offers.empty() ? offers_.erase(of_trial) : std::next(of_trial);
  }
}

// It has saved: what it had saved before it took over another one's state leads nowhere.
HYPERTUNE_INLINE void Controller::settle_takeover(TrialId trial) {
  release(bases_, trial);
  const auto* names = state_.superseded(trial);
  if (names == nullptr) return;
  const auto held = state_.checkpoints(trial);
  for (const auto& checkpoint : std::vector<CheckpointInfo>(held.begin(), held.end()))
    if (names->contains(checkpoint.name)) retention_.supersede(checkpoint);
}

// Replay: the order in which the earlier run would have started what was pending.
HYPERTUNE_INLINE void Controller::follow_queue(const record::Any& what) {
  const auto leave_queue = [&](TrialId trial) {
    if (const auto node = place_.extract(trial)) queue_.erase(node.mapped());
  };
  const auto enter_queue = [&](TrialId trial, bool front) {
    leave_queue(trial);
    const std::int64_t place = queue_.empty() ? 0 : front ? queue_.begin()->first - 1 : queue_.rbegin()->first + 1;
    queue_.emplace(place, trial);
    place_.emplace(trial, place);
  };
  if (const auto* created = std::get_if<record::TrialCreated>(&what))
    enter_queue(created->trial, false);
  else if (const auto* started = std::get_if<record::TrialStarted>(&what))
    leave_queue(started->trial);
  else if (const auto* failed = std::get_if<record::AttemptFailed>(&what)) {
    if (failed->retry) {
      doomed_.erase(failed->trial);
      enter_queue(failed->trial, true);
    } else {
      doomed_.emplace(failed->trial, failed->cause);
    }
  } else if (const auto* ended = std::get_if<record::TrialEnded>(&what)) {
    doomed_.erase(ended->trial);
    if (state_.trials()[ended->trial].state == TrialState::pending)
      enter_queue(ended->trial, false);  // reopened
    else
      leave_queue(ended->trial);
  } else if (const auto* gained = std::get_if<record::HostGained>(&what)) {
    lost_.erase(gained->host);
  } else if (const auto* lost = std::get_if<record::HostLost>(&what)) {
    lost_[lost->host] = lost->for_good;
  }
}

HYPERTUNE_INLINE void Controller::settle(Seconds now, bool survivors, Outcome& out) {
  now_ = now;
  newest_possible_ = state_.trials().size() - 1;
  drop_superfluous(out);
  for (const auto& [place, trial] : queue_)
    if (!state_.trials()[trial].foreign) pending_.push_back(trial);
  queue_.clear();
  place_.clear();
  // Hosts whose workers do not outlive the driver are looked at anew; of the others the executor will not say again
  // what it has said already.
  if (survivors)
    for (const auto& [name, for_good] : lost_)
      if (const auto host = placement_.find_host(name)) placement_.remove_host(*host, for_good);
  lost_.clear();
  settle_exclusions(out);
  hosts_changed_ = true;
  // Where drivers end and workers with them, somebody may have seen to the hosts since.
  if (!survivors) faults_.forget();
  judge_hosts(out);
  const auto doomed_ones = std::exchange(doomed_, {});
  std::vector<TrialId> again;
  for (TrialId trial = 0; trial < state_.trials().size(); ++trial) {
    const auto& entry = state_.trials()[trial];
    if (is_final(entry.state)) continue;
    if (const auto doomed = doomed_ones.find(trial); doomed != doomed_ones.end()) {
      end_trial(trial, TrialState::failed, doomed->second, out);
      continue;
    }
    if (entry.foreign) {  // its space is not ours any more: it cannot go on
      end_trial(trial, TrialState::stopped, Cause{.text = record::space_changed, .retry = false}, out);
      continue;
    }
    switch (entry.state) {
      case TrialState::paused:
        state_.set_parked(trial, survivors && !entry.mutated);
        if (entry.mutated) {
          again.push_back(trial);  // its start was decided together with that
        } else if (entry.before_pause == Decision::go_on) {
          again.push_back(trial);  // a person had it wait, or a scheduler that is not ours
        } else if (entry.before_pause != Decision::pause) {
          const bool stopped = entry.before_pause == Decision::stop;
          end_trial(trial, stopped ? TrialState::stopped : TrialState::completed,
                    stopped ? std::optional(Cause{.text = record::by_scheduler, .retry = false}) : std::nullopt, out,
                    !stopped);
        }
        break;
      case TrialState::running: {
        if (survivors) {
          take_over(trial, out);
        } else if (!settle_owed(trial, out)) {
          commit(record::AttemptFailed{trial, entry.attempts - 1,
                                       Cause{.blame = Blame::preemption, .text = "the driver ended"}, true},
                 out);
          again.push_back(trial);
        }
        break;
      }
      case TrialState::pending:
        if (!survivors && entry.attempts > 0 && settle_owed(trial, out)) std::erase(pending_, trial);
        break;
      default: break;
    }
  }
  pending_.insert(pending_.begin(), again.begin(), again.end());  // what was under way goes first
  // A condition that holds already ends it before anything new is begun.
  if (const auto why = state_.ending() ? state_.ending() : state_.check_time(now); !ending_ && why)
    end_experiment(*why, out);
  for (const TrialId trial : live_ids())
    if (const auto& entry = state_.trials()[trial]; entry.reported)
      answer(trial, live_.at(trial), entry.steps - 1, out);
}

// The answer to a trial's last report may not have been carried out. It is now, unless the trial is to report that step
// once more: where it has saved after it, it would not, and go on.
HYPERTUNE_INLINE bool Controller::settle_owed(TrialId trial, Outcome& out) {
  const auto& entry = state_.trials()[trial];
  if (entry.owed == Decision::go_on) return false;
  if (entry.owed == Decision::pause) {
    commit(record::TrialPaused{trial}, out);
    return true;
  }
  const auto saved = state_.restorable(trial);
  if (save_at_end() && (saved.empty() || saved.front().steps < entry.steps)) return false;
  const bool stopped = entry.owed == Decision::stop;
  end_trial(trial, stopped ? TrialState::stopped : TrialState::completed,
            stopped ? std::optional(Cause{.text = state_.reason(trial), .retry = entry.by_condition}) : std::nullopt,
            out, !stopped);
  return true;
}

// Who goes on with an experiment whose every host was excluded has seen to them.
HYPERTUNE_INLINE void Controller::settle_exclusions(Outcome& out) {
  if (excluded_.empty()) return;
  std::string names;
  for (const auto& name : excluded_) names += (names.empty() ? "" : ", ") + name;
  const Resources need = rules_.uniform_resources ? rules_.resources({}) : Resources{};
  if (placement_.possible(need) && !placement_.possible(need, excluded_)) {
    excluded_.clear();
    out.notices.push_back("used again, as no host would be left: " + names);
  } else {
    out.notices.push_back("not used, as a failure there has excluded them: " + names);
  }
}

// A trial whose worker has outlived the driver: the executor is told where it stands, and gets the answer to the last
// report again, as it may have been lost with the driver.
HYPERTUNE_INLINE void Controller::take_over(TrialId trial, Outcome& out) {
  const auto& entry = state_.trials()[trial];
  const auto* host = state_.host_of(trial);
  auto slot = host == nullptr ? std::nullopt : placement_.place_on(*host, needs(trial));
  if (!slot) slot = placement_.place(needs(trial));
  if (!slot) fail(Errc::resources, "there is no room for trial {}, which was running", trial);
  Launch go;
  go.trial = trial;
  go.attempt = entry.attempts - 1;
  go.point = entry.point;
  go.params = state_.space().params(entry.point);
  go.allocation.lead = *slot;
  go.seed = trial_seed(trial);
  go.restore = state_.restorable(trial);
  go.next_step = entry.reported ? entry.steps : entry.started_at;
  std::erase_if(go.restore, [&](const CheckpointInfo& c) { return c.steps > go.next_step; });
  go.since = entry.since;
  go.reported = entry.reported;
  LiveTrial run;
  run.slot = std::move(*slot);
  run.next_step = go.next_step;
  live_.insert_or_assign(trial, std::move(run));
  out.commands.push_back(std::move(go));
}

// What the lists of the options are compared with. In the replay, after the record was taken over.
HYPERTUNE_INLINE void Controller::remember(const record::Any& what) {
  if (const auto* created = std::get_if<record::TrialCreated>(&what)) {
    if (created->known) recorded_known_.push_back({.trial = created->trial});
    const auto& entry = state_.trials()[created->trial];
    if (created->known || entry.foreign) return;
    const auto same = std::find_if(first_.begin(), first_.end(),
                                   [&](const Point& point) { return detail::same_point(point, entry.point); });
    if (same != first_.end()) first_.erase(same);
  } else if (const auto* report = std::get_if<record::TrialReported>(&what)) {
    if (recorded_known_.empty() || report->trial > recorded_known_.back().trial) return;
    for (auto& known : recorded_known_)
      if (known.trial == report->trial) {
        known.metrics = report->metrics;
        known.steps = report->step + 1;
      }
  }
}

HYPERTUNE_INLINE void Controller::make_room(Outcome& out) {
  if (rules_.samples == 0) return;
  const auto waiting = static_cast<std::int64_t>(first_.size());
  const std::int64_t created = state_.trials().size() - state_.known();
  if (waiting == 0 || created + waiting <= rules_.samples) return;
  out.notices.push_back(detail::format("{} samples are {} too few for the configurations of start_with: {} are made",
                                       rules_.samples, created + waiting - rules_.samples, created + waiting));
  rules_.samples = created + waiting;
}

HYPERTUNE_INLINE void Controller::try_again(std::span<const TrialId> trials, Seconds now, Outcome& out) {
  now_ = now;
  for (const TrialId trial : trials) {
    const auto& entry = state_.trials()[trial];
    record::Any what = record::AttemptFailed{trial, entry.attempts - std::min<Attempt>(1, entry.attempts),
                                             Cause{.blame = Blame::preemption, .text = record::tried_again}, true};
    follow_queue(what);  // as the next replay: it is not doomed any more, and waits
    commit(std::move(what), out);
  }
}

// Those that are recorded are found by what they say, wherever they stand in the list: a list that has grown, or was
// put into another order, adds what is new.
HYPERTUNE_INLINE void Controller::add_known(std::span<const KnownResult> known, Seconds now, Outcome& out) {
  now_ = now;
  const auto same_metrics = [](const Metrics& a, const Metrics& b) {
    return a.size() == b.size() && std::all_of(a.begin(), a.end(), [&](const auto& metric) {
             const double* value = find_metric(b, metric.first);
             return value != nullptr &&
                    (*value == metric.second || (*value != *value && metric.second != metric.second));
           });
  };
  for (const auto& result : known) {
    if (result.steps < 1) fail(Errc::usage, "a known result is of {} steps: it must be 1 or more", result.steps);
    if (!losses_of(result.metrics, state_.objectives()))
      fail(Errc::usage, "a known result lacks the metric that is tuned ('{}')", state_.objectives().front().metric);
    const Point point = state_.space().point(result.params);
    const auto recorded = std::find_if(recorded_known_.begin(), recorded_known_.end(), [&](const auto& before) {
      const auto& entry = state_.trials()[before.trial];
      return !before.listed && !entry.foreign && detail::same_point(entry.point, point) &&
             (before.steps == 0 || (before.steps == result.steps && same_metrics(before.metrics, result.metrics)));
    });
    TrialId trial = state_.trials().size();
    if (recorded != recorded_known_.end()) {
      recorded->listed = true;
      trial = recorded->trial;
      if (is_final(state_.trials()[trial].state)) continue;  // else a driver died within it
    } else {
      commit(record::TrialCreated{trial, point, result.params, true}, out);
    }
    if (!state_.trials()[trial].judged) commit(record::TrialReported{trial, 0, result.steps - 1, result.metrics}, out);
    std::erase(pending_, trial);
    end_trial(trial, TrialState::completed, std::nullopt, out);
  }
  const auto gone = std::count_if(recorded_known_.begin(), recorded_known_.end(), [&](const auto& before) {
    return !before.listed && !state_.trials()[before.trial].foreign;
  });
  if (gone > 0 && !known.empty())
    out.notices.push_back(
        detail::format("{} known result{} of before {} not in the list any more: what is recorded stays", gone,
                       gone == 1 ? "" : "s", gone == 1 ? "is" : "are"));
  recorded_known_.clear();
}

}  // namespace hypertune
