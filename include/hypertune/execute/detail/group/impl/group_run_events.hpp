// GroupRun: events and ends of its members.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/execute/detail/group/group_run.hpp>
#include <hypertune/execute/detail/host_text.hpp>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0 {

void GroupRun::received(Started& e) {
  at(e.member).started = e.next_step;
  if (told_started_) return;
  const int lead = machine_.member(0);
  for (int rank = 0; rank < machine_.size(); ++rank)
    if (!at(machine_.member(rank)).started) return;
  told_started_ = true;
  const int step = *at(lead).started;
  for (int rank = 1; rank < machine_.size(); ++rank)
    if (at(machine_.member(rank)).started != step)
      return fail_all(
          {.source = FailureSource::infrastructure,
           .text = detail::format("rank {} went on from step {}, but rank 0 from step {}: their checkpoints "
                                  "differ",
                                  rank, *at(machine_.member(rank)).started, step)});
  told_ = answered_ = step - 1;
  if (phase_ == Phase::running) out_.up.emplace_back(Started{launch_.trial, launch_.attempt, step});
  for (int rank = 0; rank < machine_.size(); ++rank) answer(machine_.member(rank));
}

void GroupRun::received(Reported& e) {
  const int member = e.member;
  at(member).report = std::move(e);
  at(member).newcomer = at(member).newcomer && !at(member).trained;
  if (told_started_) answer(member);
  end_if_stuck();
}

// A member has failed because of other members, and all of these wait for the answer to a report that rank 0 has not
// made: none of them will send another event, so the attempt has to end.
void GroupRun::end_if_stuck() {
  if (phase_ != Phase::running || !cause_) return;
  std::string waiting;
  int step = 0;
  for (int rank = 0; rank < machine_.size(); ++rank) {
    const Member& m = at(machine_.member(rank));
    if (!m.there) continue;
    if (!m.report) return;
    waiting += detail::format("{}{}", waiting.empty() ? "" : ", ", rank);
    step = std::max(step, step_of(*m.report));
  }
  if (waiting.empty() || step <= told_) return;
  Cause cause = *cause_;
  cause.text += detail::format(
      "; meanwhile rank{} {} had reported step {}, which rank 0 had not: all ranks are to make the same reports",
      waiting.find(',') == std::string::npos ? "" : "s", waiting, step);
  fail_all(std::move(cause));
}

void GroupRun::received(Checkpointed& e) {
  e.member = 0;
  out_.up.emplace_back(std::move(e));
}

void GroupRun::received(Paused& e) {
  const int member = e.member;
  if (e.parked && phase_ == Phase::pausing)
    at(member).parked = true;
  else
    at(member).there = false;
  if (phase_ == Phase::pausing && lead_first_ && machine_.rank(member) == 0) lead_rests(e.parked);
  if (phase_ == Phase::pausing)
    pause_is_over();
  else
    close_if_empty();
}

// Ends the pause once no member is still pausing or stopping.
void GroupRun::pause_is_over() {
  const int lead = machine_.member(0);
  bool all = true, moving = false;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    const Member& m = at(member);
    moving = moving || (m.there && !m.parked && !m.stuck);
    all = all && (m.there ? m.parked : m.done || machine_.rank(member) < 0);
  }
  if (moving) return;
  if (all) {
    phase_ = Phase::parked;
    out_.up.emplace_back(Paused{launch_.trial, launch_.attempt, true});
    return;
  }
  const bool saved = !at(lead).there;
  std::string why = "a worker was lost while it paused";
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there && at(member).stuck)
      why = detail::format(
          "rank {} waited in a collective for ranks that had paused: all ranks are to make the same reports",
          machine_.rank(member));
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, false, member});
  over_ = true;
  if (saved)
    out_.up.emplace_back(Paused{launch_.trial, launch_.attempt, false});
  else
    out_.up.emplace_back(
        Failed{launch_.trial, launch_.attempt, {.source = FailureSource::infrastructure, .text = why}});
}

void GroupRun::received(GroupMessage& m) {
  using Kind = GroupMessage::Kind;
  const std::pair key(m.generation, std::move(m.key));
  switch (m.kind) {
    case Kind::joined:
      fixed_ = fixed_ || m.value == "fixed";
      committed_ = committed_ || key.second == "committed";
      at(m.member).newcomer = at(m.member).newcomer && key.second != "committed";
      // A message that was sent while the member was starting may not have reached it.
      if (m.generation < machine_.generation() && std::exchange(at(m.member).told, false)) tell_place(m.member);
      if (m.generation != machine_.generation() || machine_.rank(m.member) < 0) return;
      if (newcomers_ > 0 && !at(m.member).trained) {
        --newcomers_;
        if (newcomers_ == 0) tell_places();
      }
      apply(machine_.resume(group::Joined{m.member, m.generation}));
      break;
    case Kind::broken:
      if (phase_ == Phase::pausing && machine_.running()) stick(m.member);
      if (const auto members = training(m.generation);
          std::find(members.begin(), members.end(), m.member) != members.end())
        given_up(m.member);
      break;
    case Kind::set: {
      store_[key] = m.value;
      const auto waiting = waiting_.extract(key);
      if (waiting.empty()) break;
      for (const int member : waiting.mapped())
        if (at(member).there)
          send(member, {.kind = Kind::value, .generation = key.first, .key = key.second, .value = m.value});
      break;
    }
    case Kind::want:
      if (const auto found = store_.find(key); found != store_.end())
        send(m.member, {.kind = Kind::value, .generation = key.first, .key = key.second, .value = found->second});
      else
        waiting_[key].push_back(m.member);
      break;
    case Kind::late:
      if (phase_ == Phase::running) late(m);
      break;
    default: break;
  }
}

// Kills members that are late for a collective (`m.ranks`) or, if `m` names none, for the generation that is being
// formed. New members are never late; nor are members that still train in the previous generation, until one of them
// has left it.
void GroupRun::late(const GroupMessage& m) {
  const auto members = training(m.generation);
  for (const int rank : m.ranks) {
    if (rank < 0 || rank >= static_cast<int>(members.size())) continue;
    const int member = members[static_cast<std::size_t>(rank)];
    if (out_of_step(member, rank, m)) return;
    end_late(member);
  }
  if (!m.ranks.empty() || m.generation != machine_.generation() || machine_.state() != GroupMachine::State::forming ||
      (intact_ && !at(m.member).trained))
    return;
  bool others = false;
  for (int rank = 0; rank < machine_.size(); ++rank) {
    const int member = machine_.member(rank);
    if (machine_.ready(member)) continue;
    others = others || at(member).trained;
    if (at(member).trained) end_late(member);
  }
  if (!others && !std::exchange(told_waiting_, true)) tell_waiting();
}

void GroupRun::end_late(int member) {
  const Member& m = at(member);
  const bool waits_for_tuner = m.report && step_of(*m.report) <= told_;
  if (m.there && !waits_for_tuner && late_.insert(member).second) out_.kill.push_back(member);
}

// Only new members are missing, without which too few are left: the Tuner has decided to wait for them.
void GroupRun::tell_waiting() {
  std::string names;
  for (int rank = 0; rank < machine_.size(); ++rank)
    if (!machine_.ready(machine_.member(rank)))
      names += detail::format("{}rank {} on {}", names.empty() ? "" : ", ", rank,
                              detail::host_text(launch_.allocation[rank].host_name));
  out_.up.emplace_back(
      Notice{detail::format("trial {} stands still: too few of its workers are left to go on without the new ones, "
                            "which have not begun yet: {} (hang_timeout ends a worker that hangs)",
                            launch_.trial, names)});
}

// A member has reported a step that rank 0 has not, and is late for a collective of that step: it makes other reports
// than the rest. Once this may happen to a member that was stopped at that moment; it is ended as late then. True: it
// has happened before, and the attempt ends.
bool GroupRun::out_of_step(int member, int rank, const GroupMessage& m) {
  const Member& ahead = at(member);
  if (!ahead.there || !ahead.report || step_of(*ahead.report) <= told_ || late_.contains(member)) return false;
  const auto members = training(m.generation);
  const auto waiting = std::find(members.begin(), members.end(), m.member) - members.begin();
  std::string why = detail::format(
      "rank {} has reported step {}, while rank {} waits for it in a collective before that report: all ranks are to "
      "make the same reports",
      rank, step_of(*ahead.report), waiting);
  if (++out_of_step_ > 1) {
    fail_all({.source = FailureSource::user, .text = std::move(why), .rank = rank});
    return true;
  }
  out_.up.emplace_back(Notice{detail::format("trial {}: {}", launch_.trial, why)});
  return false;
}

// While the trial pauses: a member waits for others in a step, and these do not come, because they have paused.
void GroupRun::stick(int member) {
  at(member).stuck = !at(member).report && !at(member).parked;
  pause_is_over();
}

// A member has given up its generation. A member that caused this is lost, or was killed as late. If all are there,
// they try again as another generation.
void GroupRun::given_up(int member) {
  given_up_.insert(member);
  all_given_up();
}

void GroupRun::all_given_up() {
  const auto members = training(intact_ ? before_ : machine_.generation());
  if (phase_ != Phase::running || members.empty() || given_up_.empty()) return;
  int ended = -1;  // a rank that has finished by itself
  for (int rank = 0; rank < static_cast<int>(members.size()); ++rank) {
    const int member = members[static_cast<std::size_t>(rank)];
    const Member& m = at(member);
    const bool ahead = m.report && step_of(*m.report) > told_ && !late_.contains(member);  // it waits for the others
    if (m.done)
      ended = rank;
    else if (!given_up_.contains(member) && !ahead)
      return;
  }
  given_up_.clear();
  if (ended >= 0) {
    const std::string text =
        detail::format("rank {}: it had ended, while the others waited for it in a collective", ended);
    if (++breaks_ > patience) return fail_all({.source = FailureSource::user, .text = text});
    return on_loss({}, {.source = FailureSource::preemption, .text = text, .rank = ended});
  }
  loss_ = {.source = FailureSource::infrastructure,
           .text = "its workers do not reach each other, or do not all make the same collectives"};
  if (++breaks_ > patience) return fail_all(loss_);
  if (intact_) return halt_before();
  unreachable_ = true;
  out_.up.emplace_back(MemberLost{launch_.trial, launch_.attempt, machine_.generation(), {}, loss_});
}

// ---- Ends

void GroupRun::ended(int member, const Finished&) {
  const bool lead = machine_.rank(member) == 0;
  at(member).there = false;
  if (lead && phase_ == Phase::running) {
    if (!std::exchange(told_started_, true))
      out_.up.emplace_back(Started{launch_.trial, launch_.attempt, at(member).started.value_or(0)});
    tell_all();
    finished_ = true;
    phase_ = Phase::finishing;
    for (int other = 0; other < static_cast<int>(members_.size()); ++other)
      if (at(other).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, false, other});
  }
  at(member).done = !lead;
  if (!lead && phase_ == Phase::pausing) return pause_is_over();
  // The others are forming a generation that would wait for it.
  if (!lead && phase_ == Phase::running && !fixed() && !machine_.running() && !intact_)
    return on_loss({}, {.source = FailureSource::preemption, .text = "a worker had finished before the others"});
  if (!lead && phase_ == Phase::running) all_given_up();
  if (!lead && phase_ == Phase::running) end_if_stuck();
  close_if_empty();
}

void GroupRun::ended(int member, const Stopped&) {
  if (phase_ != Phase::running || machine_.rank(member) < 0) return leave(member);
  Cause cause{.source = FailureSource::preemption, .text = "its worker was asked to leave"};
  if (late_.contains(member))
    cause = {.source = FailureSource::infrastructure, .text = "it did not take part in a collective within the limit"};
  ended(member, Failed{launch_.trial, launch_.attempt, std::move(cause), member});
}

void GroupRun::leave(int member) {
  at(member).there = false;
  if (phase_ == Phase::running || phase_ == Phase::finishing) apply(machine_.resume(group::Gone{{member}}));
  if (phase_ == Phase::pausing) return pause_is_over();
  close_if_empty();
}

void GroupRun::ended(int member, Failed e) {
  const int rank = machine_.rank(member);
  Cause cause = std::move(e.cause);
  const bool caused_by_peers = std::exchange(cause.caused_by_peers, false);
  if (rank < 0 && (phase_ == Phase::running || phase_ == Phase::pausing))
    return caused_by_peers || phase_ == Phase::pausing || !at(member).trained ? leave(member)
                                                                              : on_loss({member}, std::move(cause));
  if (phase_ != Phase::running && phase_ != Phase::pausing) {
    at(member).there = false;
    return close_if_empty();
  }
  cause.text = detail::format("rank {}: {}", rank, cause.text);
  cause.rank = rank;
  for (int other = 0; phase_ == Phase::running && other < machine_.size(); ++other)
    if (at(machine_.member(other)).done) cause.text += detail::format(" (rank {} had ended before)", other);
  // A new member that fails, whatever the reason, leaves the others as they were.
  if (phase_ == Phase::running && !fixed() && (cause.source != FailureSource::user || at(member).newcomer))
    return on_loss({member}, std::move(cause));
  at(member).there = false;
  if (phase_ == Phase::pausing && lead_first_ && rank != 0) {  // no failure if rank 0 saves and ends
    if (!cause_) cause_ = std::move(cause);
    return pause_is_over();
  }
  if (!caused_by_peers || phase_ == Phase::pausing) return fail_all(std::move(cause));
  // Other members are the cause. Their own events will tell it; it may be the trial's own fault.
  if (!cause_) cause_ = std::move(cause);
  if (present() <= 1) return fail_all(Cause(*cause_));
  end_if_stuck();
}

void GroupRun::fail_all(Cause cause) {
  if (phase_ == Phase::running) tell_all();
  const int saver = save_at_end_ ? who_saves() : -1;
  phase_ = Phase::failing;
  cause_ = std::move(cause);
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, member == saver, member});
  close_if_empty();
}

void GroupRun::close_if_empty() {
  if (over_ || present() > 0) return;
  over_ = true;
  const TrialId trial = launch_.trial;
  const Attempt attempt = launch_.attempt;
  if (finished_)
    out_.up.emplace_back(Finished{trial, attempt});
  else if (phase_ == Phase::stopping)
    out_.up.emplace_back(Stopped{trial, attempt});
  else {
    Cause cause = cause_.value_or(
        Cause{.source = FailureSource::infrastructure, .text = "its workers ended before rank 0 had finished"});
    cause.caused_by_peers = false;
    out_.up.emplace_back(Failed{trial, attempt, std::move(cause)});
  }
}

}  // namespace hypertune::inline v0
