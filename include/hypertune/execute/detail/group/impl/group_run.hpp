// GroupRun: members and generations.
#pragma once

#include <hypertune/detail/visit.hpp>
#include <hypertune/execute/detail/group/group_run.hpp>

#include <algorithm>
#include <utility>
#include <variant>

namespace hypertune::inline v0 {

GroupRun::Actions GroupRun::begin() {
  std::vector<int> from(static_cast<std::size_t>(launch_.allocation.workers()), -1);
  apply(machine_.resume(group::Form{launch_.allocation.generation, std::move(from)}));
  newcomers_ = 0;  // no other member waits for them
  return std::exchange(out_, {});
}

GroupRun::Actions GroupRun::perform(const Command& command) {
  if (!over_) detail::visit([this](const auto& c) { on(c); }, command);
  return std::exchange(out_, {});
}

GroupRun::Actions GroupRun::on_event(Event event) {
  const bool known = detail::visit(
      [this](const auto& e) {
        if constexpr (requires { e.member; })
          return e.attempt == launch_.attempt && e.member >= 0 && e.member < static_cast<int>(members_.size()) &&
                 (at(e.member).there || std::is_same_v<std::decay_t<decltype(e)>, Checkpointed>);
        else
          return true;
      },
      event);
  if (!over_ && known) detail::visit([this](auto& e) { received(e); }, event);
  return std::exchange(out_, {});
}

GroupRun::Actions GroupRun::lost(const std::vector<int>& members, Cause cause) {
  std::vector<int> gone;
  for (const int member : members)
    if (member >= 0 && member < static_cast<int>(members_.size()) && at(member).there) gone.push_back(member);
  if (over_ || gone.empty()) return {};
  if (phase_ == Phase::running && !fixed())
    on_loss(std::move(gone), std::move(cause));
  else
    for (const int member : gone)
      if (!over_) ended(member, Failed{launch_.trial, launch_.attempt, cause, member});
  return std::exchange(out_, {});
}

GroupRun::Actions GroupRun::warn(const std::vector<int>& members, Cause cause) {
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

int GroupRun::present() const {
  return static_cast<int>(std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.there; }));
}

GroupPlace GroupRun::place_of(int rank) const {
  const Allocation& allocation = launch_.allocation;
  GroupPlace place{.generation = allocation.generation, .rank = rank, .hosts = {}, .network = network_};
  for (int r = 0; r < allocation.workers(); ++r) {
    place.hosts.push_back(allocation[r].host_name);
    if (allocation[r].host == allocation[rank].host)
      place.cpus.insert(place.cpus.end(), allocation[r].cpus.begin(), allocation[r].cpus.end());
  }
  std::sort(place.cpus.begin(), place.cpus.end());
  return place;
}

Launch GroupRun::member_launch(int member, int rank) const {
  Launch launch = launch_;
  launch.allocation = {.generation = launch_.allocation.generation, .lead = launch_.allocation[rank]};
  launch.parked = false;
  launch.under_way.reset();
  launch.seat = Seat{member, place_of(rank)};
  if (told_started_) {  // it gets its state from the others
    launch.restore.clear();
    launch.next_step = told_ + 1;
    launch.must_restore = false;
  }
  return launch;
}

void GroupRun::send(int member, GroupMessage message) {
  message.trial = launch_.trial;
  message.attempt = launch_.attempt;
  message.member = member;
  out_.down.emplace_back(std::move(message));
}

// ---- Generations

void GroupRun::form(std::vector<int> from) {
  if (machine_.running()) {
    before_ = machine_.generation();
    before_members_ = training(before_);
    intact_ = !std::exchange(unreachable_, false);
  }
  if (!intact_) given_up_.clear();
  apply(machine_.resume(group::Form{launch_.allocation.generation, std::move(from)}));
  newcomers_ = 0;
  for (int rank = 0; rank < machine_.size() && intact_; ++rank) newcomers_ += !at(machine_.member(rank)).trained;
  if (newcomers_ == 0) tell_places();
  if (!intact_ && !told_halted_) tell_halted();  // it has decided this before they stood still
  if (!intact_)
    for (int member = 0; member < static_cast<int>(members_.size()); ++member) answer(member);
}

// Called when all new members are ready. The others then leave their generation at its next commit.
void GroupRun::tell_places() {
  newcomers_ = 0;
  for (int member = 0; member < static_cast<int>(members_.size()); ++member) tell_place(member);
}
void GroupRun::tell_place(int member) {
  if (!at(member).there || std::exchange(at(member).told, true)) return;
  const int rank = machine_.rank(member);
  GroupPlace place = place_of(std::max(rank, 0));
  place.rank = rank;
  send(member, {.kind = GroupMessage::Kind::form, .generation = place.generation, .place = place});
}

void GroupRun::halt(int member, std::uint32_t generation, const std::vector<int>& ranks) {
  if (at(member).there)
    send(member, {.kind = GroupMessage::Kind::halt, .generation = generation, .value = loss_.text, .ranks = ranks});
}

void GroupRun::apply(const std::vector<group::Action>& actions) {
  for (const auto& action : actions) {
    if (const auto* start = std::get_if<group::Start>(&action)) {
      if (static_cast<std::size_t>(start->member) >= members_.size())
        members_.resize(static_cast<std::size_t>(start->member) + 1);
      at(start->member).newcomer =
          std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.there && m.trained; });
      out_.down.emplace_back(member_launch(start->member, start->rank));
    } else if (const auto* join = std::get_if<group::Join>(&action)) {
      at(join->member).told = false;
      if (!at(join->member).trained) tell_place(join->member);  // it is in no generation that it would have to leave
    } else if (const auto* dismissed = std::get_if<group::Dismiss>(&action)) {
      if (at(dismissed->member).trained)
        at(dismissed->member).told = false;
      else  // it is in no generation that it would have to leave, and may never ask for its place
        out_.down.emplace_back(Stop{launch_.trial, launch_.attempt, false, dismissed->member});
    } else if (std::holds_alternative<group::Run>(action)) {
      joined_ = true;
      intact_ = told_halted_ = told_waiting_ = false;
      given_up_.clear();
      for (int rank = 0; rank < machine_.size(); ++rank) {
        at(machine_.member(rank)).trained = true;
        send(machine_.member(rank), {.kind = GroupMessage::Kind::run, .generation = machine_.generation()});
      }
      for (int rank = 0; rank < machine_.size(); ++rank) answer(machine_.member(rank));  // rank 0 may have changed
    } else if (const auto* broken = std::get_if<group::Broken>(&action)) {
      tell_lost(broken->ranks);
    } else if (std::holds_alternative<group::Complete>(action)) {
      // No member reads values of earlier generations any more.
      const std::pair now(machine_.generation(), std::string());
      store_.erase(store_.begin(), store_.lower_bound(now));
      waiting_.erase(waiting_.begin(), waiting_.lower_bound(now));
      if (std::exchange(resizing_, false))
        out_.up.emplace_back(Resized{launch_.trial, launch_.attempt, machine_.generation()});
    }
  }
}

// The generation is broken: the others go on if one of them has the trained state.
void GroupRun::tell_lost(std::vector<int> ranks) {
  const bool known =
      std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.there && m.trained; });
  if (!known || phase_ != Phase::running) return fail_all(loss_);
  resizing_ = false;
  out_.up.emplace_back(MemberLost{launch_.trial, launch_.attempt, machine_.generation(), std::move(ranks), loss_, false,
                                  std::exchange(committed_, false), newcomers()});
  told_halted_ = told_halted_ || !intact_;
}

// Those that train are about to stand still: they join the newest generation.
void GroupRun::halt_before() {
  intact_ = false;
  tell_places();
  tell_halted();
}
// The Tuner can form a generation without the members that the others wait for.
void GroupRun::tell_halted() {
  auto waited_for = newcomers();
  if (phase_ != Phase::running || machine_.state() != GroupMachine::State::forming || waited_for.empty()) return;
  told_halted_ = true;
  out_.up.emplace_back(
      MemberLost{launch_.trial, launch_.attempt, machine_.generation(), {}, loss_, false, true, std::move(waited_for)});
}

// MemberLost::newcomers of the newest generation.
std::vector<int> GroupRun::newcomers() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < machine_.size(); ++rank) {
    const int member = machine_.member(rank);
    const Member& m = at(member);
    if (m.there ? !intact_ && !m.trained && !machine_.ready(member) : m.newcomer) ranks.push_back(rank);
  }
  return ranks;
}

// The members that train, by rank, and the number of their generation.
std::vector<int> GroupRun::training(std::uint32_t generation) const {
  if (intact_) return generation == before_ ? before_members_ : std::vector<int>();
  std::vector<int> members;
  for (int rank = 0; rank < machine_.size() && machine_.running() && generation == machine_.generation(); ++rank)
    members.push_back(machine_.member(rank));
  return members;
}

void GroupRun::on_loss(std::vector<int> members, Cause cause) {
  loss_ = std::move(cause);
  for (int member = 0; member < static_cast<int>(members_.size()); ++member)  // nor are finished ones
    if (std::exchange(at(member).done, false)) members.push_back(member);
  bool trained = false, halts = false;
  std::vector<int> ranks;
  for (const int member : members) {
    at(member).there = false;
    trained = trained || at(member).trained;
    if (const int rank = machine_.rank(member); rank >= 0) ranks.push_back(rank);
  }
  if (phase_ == Phase::running) {
    // If only new members are lost, the previous generation goes on. If a member that was to leave is lost, the next
    // generation can still be formed.
    const bool goes_on = intact_ && !trained;
    halts = intact_ && trained;
    const std::uint32_t generation = ranks.empty() ? before_ : machine_.generation();
    for (int member = 0; member < static_cast<int>(members_.size()); ++member)
      if (!goes_on || !at(member).trained) halt(member, generation, ranks);
    intact_ = goes_on;
  }
  apply(machine_.resume(group::Gone{members}));
  if (halts && ranks.empty())
    halt_before();
  else if (!intact_ && ranks.empty() && phase_ == Phase::running)
    tell_places();
  close_if_empty();
}

}  // namespace hypertune::inline v0
