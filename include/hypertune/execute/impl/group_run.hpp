// How GroupRun works.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/group_run.hpp>

#include <algorithm>
#include <limits>
#include <utility>

namespace hypertune::inline v0 {

HYPERTUNE_INLINE GroupRun::Actions GroupRun::begin() {
  std::vector<int> from(static_cast<std::size_t>(launch_.allocation.workers()), -1);
  follow(machine_.resume(group::Form{launch_.allocation.generation, std::move(from)}));
  newcomers_ = 0;  // there is nobody who would wait for them
  return std::exchange(out_, {});
}

HYPERTUNE_INLINE GroupRun::Actions GroupRun::perform(const Command& command) {
  if (!over_) detail::visit([this](const auto& c) { on(c); }, command);
  return std::exchange(out_, {});
}

HYPERTUNE_INLINE GroupRun::Actions GroupRun::hear(Event event) {
  const bool known = detail::visit(
      [this](const auto& e) {
        if constexpr (requires { e.member; })
          return e.attempt == launch_.attempt && e.member >= 0 && e.member < static_cast<int>(members_.size()) &&
                 (at(e.member).there || std::is_same_v<std::decay_t<decltype(e)>, Checkpointed>);
        else
          return true;
      },
      event);
  if (!over_ && known) detail::visit([this](auto& e) { heard(e); }, event);
  return std::exchange(out_, {});
}

HYPERTUNE_INLINE GroupRun::Actions GroupRun::lost(const std::vector<int>& members, Cause cause) {
  std::vector<int> gone;
  for (const int member : members)
    if (member >= 0 && member < static_cast<int>(members_.size()) && at(member).there) gone.push_back(member);
  if (over_ || gone.empty()) return {};
  if (phase_ == Phase::running && !fixed())
    lose(std::move(gone), std::move(cause));
  else
    for (const int member : gone)
      if (!over_) ended(member, Failed{launch_.trial, launch_.attempt, cause, member});
  return std::exchange(out_, {});
}

HYPERTUNE_INLINE GroupRun::Actions GroupRun::warn(const std::vector<int>& members, Cause cause) {
  std::vector<int> ranks;
  for (const int member : members)
    if (member >= 0 && member < static_cast<int>(members_.size()) && at(member).there)
      if (const int rank = machine_.rank(member); rank >= 0) ranks.push_back(rank);
  if (over_ || phase_ != Phase::running || ranks.empty()) return {};
  if (fixed())
    warned_ = std::move(cause);
  else
    out_.up.emplace_back(
        MemberLost{launch_.trial, launch_.attempt, machine_.generation(), std::move(ranks), std::move(cause), true});
  return std::exchange(out_, {});
}

// ---- Members

HYPERTUNE_INLINE int GroupRun::present() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.there; }));
}

HYPERTUNE_INLINE GroupPlace GroupRun::place_of(int rank) const {
  const Allocation& allocation = launch_.allocation;
  GroupPlace place{.generation = allocation.generation, .rank = rank, .hosts = {}, .network = network_};
  for (int r = 0; r < allocation.workers(); ++r) place.hosts.push_back(allocation[r].host_name);
  return place;
}

HYPERTUNE_INLINE Launch GroupRun::member_launch(int member, int rank) const {
  Launch launch = launch_;
  launch.allocation = {.generation = launch_.allocation.generation, .lead = launch_.allocation[rank]};
  launch.parked = false;
  launch.under_way.reset();
  launch.seat = Seat{member, place_of(rank)};
  if (told_started_) {  // it gets what the others have from them
    launch.restore.clear();
    launch.next_step = told_ + 1;
    launch.must_restore = false;
  }
  return launch;
}

HYPERTUNE_INLINE void GroupRun::send(int member, GroupMessage message) {
  message.trial = launch_.trial;
  message.attempt = launch_.attempt;
  message.member = member;
  out_.down.emplace_back(std::move(message));
}

// ---- Generations

HYPERTUNE_INLINE void GroupRun::form(std::vector<int> from) {
  if (machine_.running()) {
    before_ = machine_.generation();
    intact_ = !std::exchange(unreachable_, false);
  }
  given_up_.clear();
  follow(machine_.resume(group::Form{launch_.allocation.generation, std::move(from)}));
  newcomers_ = 0;
  for (int rank = 0; rank < machine_.size() && intact_; ++rank) newcomers_ += !at(machine_.member(rank)).trained;
  if (newcomers_ == 0) tell_places();
  if (!intact_)
    for (int member = 0; member < static_cast<int>(members_.size()); ++member) answer(member);
}

// Those that train leave their generation at its next commit, for the one that all newcomers stand ready for.
HYPERTUNE_INLINE void GroupRun::tell_places() {
  newcomers_ = 0;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) tell_place(member);
}
HYPERTUNE_INLINE void GroupRun::tell_place(int member) {
  if (!at(member).there || std::exchange(at(member).told, true)) return;
  const int rank = machine_.rank(member);
  GroupPlace place = place_of(std::max(rank, 0));
  place.rank = rank;
  send(member, {.kind = GroupMessage::Kind::form, .generation = place.generation, .place = place});
}

HYPERTUNE_INLINE void GroupRun::halt(int member, std::uint32_t generation, const std::vector<int>& ranks) {
  if (at(member).there)
    send(member, {.kind = GroupMessage::Kind::halt, .generation = generation, .value = loss_.text, .ranks = ranks});
}

HYPERTUNE_INLINE void GroupRun::follow(const std::vector<group::Action>& actions) {
  for (const auto& action : actions) {
    if (const auto* start = std::get_if<group::Start>(&action)) {
      if (static_cast<std::size_t>(start->member) >= members_.size())
        members_.resize(static_cast<std::size_t>(start->member) + 1);
      out_.down.emplace_back(member_launch(start->member, start->rank));
    } else if (const auto* join = std::get_if<group::Join>(&action)) {
      at(join->member).told = false;
      if (!at(join->member).trained) tell_place(join->member);  // it has nothing to leave
    } else if (const auto* dismissed = std::get_if<group::Dismiss>(&action)) {
      at(dismissed->member).told = false;
    } else if (std::holds_alternative<group::Run>(action)) {
      joined_ = true;
      intact_ = false;
      for (int rank = 0; rank < machine_.size(); ++rank) {
        at(machine_.member(rank)).trained = true;
        send(machine_.member(rank), {.kind = GroupMessage::Kind::run, .generation = machine_.generation()});
      }
      for (int rank = 0; rank < machine_.size(); ++rank) answer(machine_.member(rank));  // rank 0 may be another one
    } else if (const auto* broken = std::get_if<group::Broken>(&action)) {
      tell_lost(broken->ranks);
    } else if (std::holds_alternative<group::Complete>(action)) {
      // Nobody is left who would still read what was said in generations before.
      const std::pair now(machine_.generation(), std::string());
      store_.erase(store_.begin(), store_.lower_bound(now));
      waiting_.erase(waiting_.begin(), waiting_.lower_bound(now));
      if (std::exchange(resizing_, false))
        out_.up.emplace_back(Resized{launch_.trial, launch_.attempt, machine_.generation()});
    }
  }
}

// The generation is broken: the others go on where there is one that has what was trained so far.
HYPERTUNE_INLINE void GroupRun::tell_lost(std::vector<int> ranks) {
  const bool known =
      std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.there && m.trained; });
  if (!known || phase_ != Phase::running) return fail_all(loss_);
  resizing_ = false;
  out_.up.emplace_back(MemberLost{launch_.trial, launch_.attempt, machine_.generation(), std::move(ranks), loss_, false,
                                  std::exchange(committed_, false)});
}

HYPERTUNE_INLINE void GroupRun::lose(std::vector<int> members, Cause cause) {
  loss_ = std::move(cause);
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)  // nor do these take part any more
    if (std::exchange(at(member).done, false)) members.push_back(member);
  bool trained = false;
  std::vector<int> ranks;
  for (const int member : members) {
    at(member).there = false;
    trained = trained || at(member).trained;
    if (const int rank = machine_.rank(member); rank >= 0) ranks.push_back(rank);
  }
  if (phase_ == Phase::running) {
    // Newcomers alone: the generation before goes on. One that was to leave: the next generation may come all the same.
    const bool goes_on = intact_ && !trained;
    const std::uint32_t generation = ranks.empty() ? before_ : machine_.generation();
    for (int member = 0; member < static_cast<int>(members_.size()); ++member)
      if (!goes_on || !at(member).trained) halt(member, generation, ranks);
    intact_ = goes_on;
  }
  follow(machine_.resume(group::Gone{members}));
  if (!intact_ && ranks.empty() && phase_ == Phase::running) tell_places();
  close_if_empty();
}

// ---- Commands

HYPERTUNE_INLINE void GroupRun::on(const Launch& launch) {
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

HYPERTUNE_INLINE void GroupRun::on(const Continue& c) {
  if (phase_ != Phase::running || answered_ == told_) return;
  if (warned_) {  // what is saved now loses no step
    save_at_end_ = true;
    return fail_all(*std::exchange(warned_, std::nullopt));
  }
  answered_ = told_;
  save_ = c.save;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) answer(member);
}

// To what a member has reported; rank 0 alone tells the Tuner, and saves.
HYPERTUNE_INLINE void GroupRun::answer(int member) {
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
    // It was through with the step when the generation broke, and rank 0 was not: rank 0 needs it to get there.
    untold_.emplace(step, *std::exchange(m.report, std::nullopt));
    ahead_ = std::max(ahead_, step);
    out_.down.emplace_back(Continue{trial, attempt, false, member});
  } else if (phase_ == Phase::running && rank == 0 && step > told_ && answered_ == told_) {
    if (tell_untold(step)) return;
    told_ = step;
    breaks_ = 0;
    tell_report(*m.report);
  } else if (phase_ == Phase::stopping && rank == 0 && step > told_) {  // what it saves as it ends is of this step
    told_ = step;
    tell_report(*m.report);
  }
}

HYPERTUNE_INLINE void GroupRun::tell_report(Reported report) {
  report.member = 0;
  report.fixed = fixed();
  out_.up.emplace_back(std::move(report));
}

// Rank 0 may be lost before it gets to a step after which others have gone on, or be led past it by what they have.
// What one of those said is the trial's then.
HYPERTUNE_INLINE bool GroupRun::tell_untold(int before) {
  untold_.erase(untold_.begin(), untold_.upper_bound(told_));
  if (untold_.empty() || untold_.begin()->first >= before) return false;
  told_ = untold_.begin()->first;
  breaks_ = 0;
  tell_report(std::move(untold_.extract(untold_.begin()).mapped()));
  return true;
}

// Before it ends: the checkpoint that it goes on from may be of later steps.
HYPERTUNE_INLINE void GroupRun::tell_all() {
  if (!told_started_) return;
  const int lead = machine_.size() > 0 ? machine_.member(0) : -1;
  const auto* report = lead >= 0 && at(lead).there && at(lead).report ? &*at(lead).report : nullptr;
  while (tell_untold(report != nullptr ? step_of(*report) : std::numeric_limits<int>::max())) {}
  if (report == nullptr || step_of(*report) <= told_) return;
  told_ = step_of(*report);
  tell_report(*report);
}

HYPERTUNE_INLINE void GroupRun::on(const Pause& c) {
  if (phase_ != Phase::running || answered_ == told_) return;
  if (machine_.size() == 0 || !at(machine_.member(0)).there || !at(machine_.member(0)).report) {
    save_at_end_ = true;  // who is left is within a step: what it leaves behind is all that can be saved
    return fail_all({.source = FailureSource::preemption, .text = "rank 0 was lost as the trial was to pause"});
  }
  tell_all();
  pause_ = c;
  if (joined_ &&
      (!machine_.running() || ahead_ >= told_)) {  // workers come and go: what rank 0 saves is all that is kept
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
  // Rank 0 may be about to end, and what it does before that may need the others: a collective, if they are within a
  // step. So they go on until it is known what became of it.
  lead_first_ =
      fixed_ && std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.there && !m.report; });
  if (lead_first_) return answer(machine_.member(0));
  rest();
}

HYPERTUNE_INLINE void GroupRun::rest() {
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    // A command of another rank than 0 reports nothing: all that it does is one step.
    if (fixed_ && at(member).there && !at(member).report && !at(member).parked)
      send(member, {.kind = GroupMessage::Kind::rest, .generation = machine_.generation()});
    answer(member);
  }
}

// Rank 0 has come to rest before the others: in memory, so that they are to do the same, or it has saved and ended.
HYPERTUNE_INLINE void GroupRun::lead_rests(bool parked) {
  if (!parked) {
    for (int member = 0; member < static_cast<int>(members_.size()); ++member)
      if (at(member).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, false, member});
    return;
  }
  lead_first_ = false;
  if (cause_) return fail_all(Cause(*cause_));
  rest();
}

// Between two steps rank 0. Within one, whoever has a commit that brings the step back as far as it was done: any.
HYPERTUNE_INLINE int GroupRun::who_saves() {
  const int lead = machine_.size() > 0 ? machine_.member(0) : -1;
  if (lead >= 0 && at(lead).there && at(lead).report) return lead;
  if (phase_ != Phase::running || fixed()) return -1;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there && at(member).trained) return member;
  return -1;
}

HYPERTUNE_INLINE void GroupRun::on(const Stop& c) {
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

HYPERTUNE_INLINE void GroupRun::on(Resize c) {
  if (phase_ != Phase::running || c.allocation.generation <= machine_.generation() ||
      static_cast<int>(c.from.size()) != c.allocation.workers())
    return;
  if (fixed()) return fail_all({.source = FailureSource::preemption, .text = "its workers change"});
  launch_.allocation = std::move(c.allocation);
  resizing_ = true;
  form(std::move(c.from));
}

// ---- What members say

HYPERTUNE_INLINE void GroupRun::heard(Started& e) {
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

HYPERTUNE_INLINE void GroupRun::heard(Reported& e) {
  const int member = e.member;
  at(member).report = std::move(e);
  if (told_started_) answer(member);
  end_if_stuck();
}

// A member has failed because of others, which are all there and wait for the answer to a report that it has not made:
// none of them will be heard of.
HYPERTUNE_INLINE void GroupRun::end_if_stuck() {
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

HYPERTUNE_INLINE void GroupRun::heard(Checkpointed& e) {
  e.member = 0;
  out_.up.emplace_back(std::move(e));
}

HYPERTUNE_INLINE void GroupRun::heard(Paused& e) {
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

// When nobody is on the way any more.
HYPERTUNE_INLINE void GroupRun::pause_is_over() {
  const int lead = machine_.member(0);
  bool all = true, moving = false;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) {
    const Member& m = at(member);
    moving = moving || (m.there && !m.parked);
    all = all && (m.there ? m.parked : m.done || machine_.rank(member) < 0);
  }
  if (moving) return;
  if (all) {
    phase_ = Phase::parked;
    out_.up.emplace_back(Paused{launch_.trial, launch_.attempt, true});
    return;
  }
  const bool saved = !at(lead).there;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, false, member});
  over_ = true;
  if (saved)
    out_.up.emplace_back(Paused{launch_.trial, launch_.attempt, false});
  else
    out_.up.emplace_back(
        Failed{launch_.trial,
               launch_.attempt,
               {.source = FailureSource::infrastructure, .text = "a worker was lost while it paused"}});
}

HYPERTUNE_INLINE void GroupRun::heard(GroupMessage& m) {
  using Kind = GroupMessage::Kind;
  const std::pair key(m.generation, std::move(m.key));
  switch (m.kind) {
    case Kind::joined:
      fixed_ = fixed_ || m.value == "fixed";
      committed_ = committed_ || key.second == "committed";
      // What it was told while it was still being started may not have reached it.
      if (m.generation < machine_.generation() && std::exchange(at(m.member).told, false)) tell_place(m.member);
      if (m.generation != machine_.generation() || machine_.rank(m.member) < 0) return;
      if (newcomers_ > 0 && !at(m.member).trained) {
        --newcomers_;
        if (newcomers_ == 0) tell_places();
      }
      follow(machine_.resume(group::Joined{m.member, m.generation}));
      break;
    case Kind::broken:
      if (m.generation == machine_.generation() && machine_.running() && machine_.rank(m.member) >= 0)
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
      if (m.generation == machine_.generation() && phase_ == Phase::running) late(m);
      break;
    default: break;
  }
}

// Who has not come to a collective; or, where `m` names nobody, not to the generation that is formed. Newcomers may
// take their time, and while the generation before goes on, those that train in it, too: until one of them has left it.
HYPERTUNE_INLINE void GroupRun::late(const GroupMessage& m) {
  const auto end = [this](int member) {
    if (at(member).there && late_.insert(member).second) out_.kill.push_back(member);
  };
  if (machine_.running()) {
    for (const int rank : m.ranks)
      if (rank >= 0 && rank < machine_.size()) end(machine_.member(rank));
  } else if (m.ranks.empty() && machine_.state() == GroupMachine::State::forming &&
             (!intact_ || at(m.member).trained)) {
    for (int rank = 0; rank < machine_.size(); ++rank)
      if (const int member = machine_.member(rank); at(member).trained && !machine_.ready(member)) end(member);
  }
}

// Whoever is the reason is lost, or ended as it is late. Where all are there, they try again as another generation.
HYPERTUNE_INLINE void GroupRun::given_up(int member) {
  given_up_.insert(member);
  all_given_up();
}

HYPERTUNE_INLINE void GroupRun::all_given_up() {
  if (phase_ != Phase::running || !machine_.running() || given_up_.empty()) return;
  int ended = -1;  // a rank that has come to its end by itself
  for (int rank = 0; rank < machine_.size(); ++rank) {
    const int member = machine_.member(rank);
    if (at(member).done)
      ended = rank;
    else if (!given_up_.contains(member))
      return;
  }
  given_up_.clear();
  if (ended >= 0) {
    const std::string text =
        detail::format("rank {}: it had ended, while the others waited for it in a collective", ended);
    if (++breaks_ > patience) return fail_all({.source = FailureSource::user, .text = text});
    return lose({}, {.source = FailureSource::preemption, .text = text, .rank = ended});
  }
  loss_ = {.source = FailureSource::infrastructure,
           .text = "its workers do not reach each other, or do not all make the same collectives"};
  if (++breaks_ > patience) return fail_all(loss_);
  unreachable_ = true;
  out_.up.emplace_back(MemberLost{launch_.trial, launch_.attempt, machine_.generation(), {}, loss_});
}

// ---- Ends

HYPERTUNE_INLINE void GroupRun::ended(int member, const Finished&) {
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
  // The others form a group that would wait for it.
  if (!lead && phase_ == Phase::running && !fixed() && !machine_.running() && !intact_)
    return lose({}, {.source = FailureSource::preemption, .text = "a worker had finished before the others"});
  if (!lead && phase_ == Phase::running) all_given_up();
  if (!lead && phase_ == Phase::running) end_if_stuck();
  close_if_empty();
}

HYPERTUNE_INLINE void GroupRun::ended(int member, const Stopped&) {
  if (phase_ != Phase::running || machine_.rank(member) < 0) return leave(member);
  Cause cause{.source = FailureSource::preemption, .text = "its worker was asked to leave"};
  if (late_.contains(member))
    cause = {.source = FailureSource::infrastructure, .text = "it did not take part in a collective within the limit"};
  ended(member, Failed{launch_.trial, launch_.attempt, std::move(cause), member});
}

HYPERTUNE_INLINE void GroupRun::leave(int member) {
  at(member).there = false;
  if (phase_ == Phase::running || phase_ == Phase::finishing) follow(machine_.resume(group::Gone{{member}}));
  if (phase_ == Phase::pausing) return pause_is_over();
  close_if_empty();
}

HYPERTUNE_INLINE void GroupRun::ended(int member, Failed e) {
  const int rank = machine_.rank(member);
  Cause cause = std::move(e.cause);
  const bool follows = std::exchange(cause.follows, false);
  if (rank < 0 && (phase_ == Phase::running || phase_ == Phase::pausing))
    return follows || phase_ == Phase::pausing ? leave(member) : lose({member}, std::move(cause));
  if (phase_ != Phase::running && phase_ != Phase::pausing) {
    at(member).there = false;
    return close_if_empty();
  }
  cause.text = detail::format("rank {}: {}", rank, cause.text);
  cause.rank = rank;
  for (int other = 0; phase_ == Phase::running && other < machine_.size(); ++other)
    if (at(machine_.member(other)).done) cause.text += detail::format(" (rank {} had ended before)", other);
  if (phase_ == Phase::running && !fixed() && cause.source != FailureSource::user)
    return lose({member}, std::move(cause));
  at(member).there = false;
  if (phase_ == Phase::pausing && lead_first_ && rank != 0) {  // if rank 0 has saved and ends, all is well
    if (!cause_) cause_ = std::move(cause);
    return pause_is_over();
  }
  if (!follows || phase_ == Phase::pausing) return fail_all(std::move(cause));
  // Others are the reason. Whoever they are will be heard of, and it may be a fault of the trial's own.
  if (!cause_) cause_ = std::move(cause);
  if (present() <= 1) return fail_all(Cause(*cause_));
  end_if_stuck();
}

HYPERTUNE_INLINE void GroupRun::fail_all(Cause cause) {
  if (phase_ == Phase::running) tell_all();
  const int saver = save_at_end_ ? who_saves() : -1;
  phase_ = Phase::failing;
  cause_ = std::move(cause);
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)
    if (at(member).there) out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, member == saver, member});
  close_if_empty();
}

HYPERTUNE_INLINE void GroupRun::close_if_empty() {
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
    cause.follows = false;
    out_.up.emplace_back(Failed{trial, attempt, std::move(cause)});
  }
}

}  // namespace hypertune::inline v0
