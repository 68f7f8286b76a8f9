// GroupRun: commands of the Controller.
#pragma once

#include <hypertune/execute/detail/group/group_run.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace hypertune::inline v0 {

void GroupRun::on(const Launch& launch) {
  if (phase_ != Phase::parked) return;
  phase_ = Phase::running;
  const std::uint32_t generation = launch_.allocation.generation;
  launch_.allocation = launch.allocation;
  launch_.allocation.generation = generation;
  answered_ = told_;
  for (int rank = 0; rank < machine_.size(); ++rank) {
    const int member = machine_.member(rank);
    if (at(member).done) continue;
    at(member).parked = false;
    at(member).report.reset();
    Launch go = member_launch(member, rank);
    go.parked = true;
    out_.down.emplace_back(std::move(go));
  }
}

void GroupRun::on(const Continue& c) {
  if (phase_ != Phase::running || answered_ == told_) return;
  if (warned_) {  // a checkpoint now loses no step
    save_at_end_ = true;
    return fail_all(*std::exchange(warned_, std::nullopt));
  }
  answered_ = told_;
  save_ = c.save;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) answer(member);
}

// Answers a member's report, if the answer is known. Only rank 0 reports to the Tuner, and saves.
void GroupRun::answer(int member) {
  Member& m = at(member);
  if (!m.there || !m.report) return;
  const int rank = machine_.rank(member), step = step_of(*m.report);
  const TrialId trial = launch_.trial;
  const Attempt attempt = launch_.attempt;
  if (phase_ == Phase::pausing && step <= told_) {
    m.report.reset();
    out_.down.emplace_back(Pause{trial, attempt, pause_.save && rank == 0, member, pause_.keep});
  } else if (phase_ == Phase::running && step <= answered_) {
    m.report.reset();
    out_.down.emplace_back(
        Continue{trial, attempt, rank == 0 && step == answered_ && std::exchange(save_, false), member});
  } else if (phase_ == Phase::running && rank != 0 && step > told_ && !intact_ &&
             machine_.state() == GroupMachine::State::forming) {
    // It had finished the step when the generation broke, and rank 0 had not: rank 0 needs it to finish the step.
    untold_.emplace(step, *std::exchange(m.report, std::nullopt));
    ahead_ = std::max(ahead_, step);
    out_.down.emplace_back(Continue{trial, attempt, false, member});
  } else if (phase_ == Phase::running && rank == 0 && step > told_ && answered_ == told_) {
    if (tell_untold(step)) return;
    told_ = step;
    breaks_ = 0;
    tell_report(*m.report);
  } else if (phase_ == Phase::stopping && rank == 0 && step > told_) {  // its last checkpoint is of this step
    told_ = step;
    tell_report(*m.report);
  }
}

void GroupRun::tell_report(Reported report) {
  report.member = 0;
  report.fixed = fixed();
  out_.up.emplace_back(std::move(report));
}

// Rank 0 may be lost before it finishes a step that others have finished, or skip it with the state of the others. Then
// the report of one of them counts as the trial's.
bool GroupRun::tell_untold(int before) {
  untold_.erase(untold_.begin(), untold_.upper_bound(told_));
  if (untold_.empty() || untold_.begin()->first >= before) return false;
  told_ = untold_.begin()->first;
  breaks_ = 0;
  tell_report(std::move(untold_.extract(untold_.begin()).mapped()));
  return true;
}

// Sends all reports before the attempt ends, because the checkpoint to go on from may be of later steps.
void GroupRun::tell_all() {
  if (!told_started_) return;
  const int lead = machine_.size() > 0 ? machine_.member(0) : -1;
  const auto* report = lead >= 0 && at(lead).there && at(lead).report ? &*at(lead).report : nullptr;
  while (tell_untold(report != nullptr ? step_of(*report) : std::numeric_limits<int>::max())) {}
  if (report == nullptr || step_of(*report) <= told_) return;
  told_ = step_of(*report);
  tell_report(*report);
}

void GroupRun::on(const Pause& c) {
  if (phase_ != Phase::running || answered_ == told_) return;
  if (machine_.size() == 0 || !at(machine_.member(0)).there || !at(machine_.member(0)).report) {
    save_at_end_ = true;  // the others are within a step: only what they leave can be saved
    return fail_all({.source = FailureSource::preemption, .text = "rank 0 was lost as the trial was to pause"});
  }
  tell_all();
  pause_ = c;
  if (joined_ && (!machine_.running() || ahead_ >= told_)) {  // workers are changing: only rank 0's checkpoint is kept
    pause_.save = true;
    pause_.keep = false;
    phase_ = Phase::pausing;
    for (int member = 0; member < static_cast<int>(members_.size()); ++member)
      if (at(member).there && machine_.rank(member) != 0)
        out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, false, member});
    if (machine_.size() > 0) answer(machine_.member(0));
    return;
  }
  phase_ = Phase::pausing;
  // Rank 0 may be about to end, and may need the others for a collective before that, if they are within a step. So
  // they go on until rank 0 has parked or ended.
  lead_first_ =
      fixed_ && std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.there && !m.report; });
  if (lead_first_) return answer(machine_.member(0));
  rest();
}

void GroupRun::rest() {
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    // Commands of other ranks than 0 do not report: they are within one step all the time.
    if (fixed_ && at(member).there && !at(member).report && !at(member).parked)
      send(member, {.kind = GroupMessage::Kind::rest, .generation = machine_.generation()});
    answer(member);
  }
}

// Rank 0 has paused before the others. If it stays in memory, they pause as well; otherwise it has saved and ended, and
// they stop.
void GroupRun::lead_rests(bool parked) {
  if (!parked) {
    for (int member = 0; member < static_cast<int>(members_.size()); ++member)
      if (at(member).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, false, member});
    return;
  }
  lead_first_ = false;
  if (cause_) return fail_all(Cause(*cause_));
  rest();
}

// The member that saves: rank 0 between two steps; within a step any member with a commit of that step. -1: none.
int GroupRun::who_saves() {
  const int lead = machine_.size() > 0 ? machine_.member(0) : -1;
  if (lead >= 0 && at(lead).there && at(lead).report) return lead;
  if (phase_ != Phase::running || fixed()) return -1;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there && at(member).trained) return member;
  return -1;
}

void GroupRun::on(const Stop& c) {
  const bool parked = phase_ == Phase::parked;
  if (phase_ == Phase::stopping || phase_ == Phase::failing || phase_ == Phase::finishing) return;
  if (phase_ == Phase::running) tell_all();
  const int saver = c.save ? who_saves() : -1;
  phase_ = Phase::stopping;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, member == saver, member});
  if (parked)
    over_ = true;
  else
    close_if_empty();
}

void GroupRun::on(Resize c) {
  if (phase_ != Phase::running || c.allocation.generation <= machine_.generation() ||
      static_cast<int>(c.from.size()) != c.allocation.workers())
    return;
  if (fixed()) return fail_all({.source = FailureSource::preemption, .text = "its workers change"});
  launch_.allocation = std::move(c.allocation);
  resizing_ = true;
  form(std::move(c.from));
}

}  // namespace hypertune::inline v0
