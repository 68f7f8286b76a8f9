// Retention: which checkpoints are dropped, by count, by score and by bytes.
#pragma once

#include <hypertune/checkpoint/detail/top_set.hpp>
#include <hypertune/checkpoint/policy.hpp>
#include <hypertune/trial/checkpoint.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// Decides which checkpoints to delete, without I/O. It is told of every sealed checkpoint of the experiment, and
/// take_dropped() returns those to delete. Of each trial it keeps the newest `keep` and the `keep_best` with the lowest
/// loss. While all together have more than `max_bytes`, it drops more: first those of ended trials, the worst loss
/// first, then those of the others, the oldest first. It never drops
/// - a pinned one (another trial is about to restore it),
/// - the newest of a trial that has not ended,
/// - the one with the lowest loss of all, and the best one of the trial that set_best_trial() names.
/// So the bytes may stay above the limit (see over_budget()).
///
/// Its state depends only on the calls, so that a replay of the records makes the same decisions. Each call takes
/// O(log n), trial_ended() and trial_reopened() that for each checkpoint of the trial. Not thread-safe.
class Retention {
 public:
  /// Error of kind `usage` if the policy is invalid.
  explicit Retention(CheckpointPolicy policy) : policy_(policy) { policy_.validate(); }
  Retention(Retention&&) = default;
  Retention& operator=(Retention&&) = default;

  /// A checkpoint was sealed. `loss`: of the last report before it, lower is better; NaN counts as the worst.
  void add(const CheckpointInfo& checkpoint, double loss);

  /// The checkpoint was deleted or set aside by other code (or a replayed record says that it was dropped).
  void forget(const CheckpointInfo& checkpoint);

  /// Keeps a checkpoint until unpin() was called as often. False if it is not (or no longer) held.
  bool pin(const CheckpointInfo& checkpoint);
  void unpin(const CheckpointInfo& checkpoint);

  /// The trial continues from another state: this checkpoint is no longer its newest, whatever its steps. It may still
  /// be the best of its trial, or of all.
  void supersede(const CheckpointInfo& checkpoint);

  /// The trial will not run again: its newest checkpoint is no longer protected. To be called after its last add().
  void trial_ended(TrialId trial);
  /// An ended trial continues after all (an extended experiment).
  void trial_reopened(TrialId trial);

  /// Sets the trial that has the best result so far, whether or not that result was saved.
  void set_best_trial(TrialId trial);

  /// The checkpoints to delete since the last call, in the order of the decisions. They are already forgotten here.
  std::vector<CheckpointInfo> take_dropped();

  bool contains(const CheckpointInfo& checkpoint) const { return entries_.contains(key(checkpoint)); }
  std::size_t size() const { return entries_.size(); }
  std::uint64_t total_bytes() const { return total_bytes_; }
  /// Whether more bytes are held than allowed, because the remaining checkpoints must not be dropped.
  bool over_budget() const { return policy_.max_bytes > 0 && total_bytes_ > policy_.max_bytes; }
  const CheckpointPolicy& policy() const { return policy_; }

 private:
  struct Trial;
  struct Entry {
    CheckpointInfo info;
    double loss;
    std::uint64_t sequence;  // of add()
    Trial* trial;
    int pins = 0;
    bool superseded = false;  // not in `newest`
  };
  struct Newer {
    bool operator()(const Entry* a, const Entry* b) const {
      return std::tie(a->info.steps, a->sequence) > std::tie(b->info.steps, b->sequence);
    }
  };
  struct Better {
    bool operator()(const Entry* a, const Entry* b) const {
      return a->loss != b->loss ? a->loss < b->loss : a->sequence > b->sequence;
    }
  };
  struct Trial {
    explicit Trial(const CheckpointPolicy& policy)
        : newest(static_cast<std::size_t>(policy.keep)), best(static_cast<std::size_t>(policy.keep_best)) {}
    detail::TopSet<Entry*, Newer> newest;
    detail::TopSet<Entry*, Better> best;
    bool ended = false;
  };
  struct DropsFirst {
    bool operator()(const Entry* a, const Entry* b) const {
      if (a->trial->ended != b->trial->ended) return a->trial->ended;
      if (a->trial->ended && a->loss != b->loss) return a->loss > b->loss;
      return a->sequence < b->sequence;
    }
  };
  using Key = std::pair<TrialId, std::string>;

  static Key key(const CheckpointInfo& checkpoint) { return {checkpoint.trial, checkpoint.name}; }
  bool limited() const { return policy_.keep > 0 || policy_.keep_best > 0; }
  bool wanted(Entry* e) const {
    return !limited() || (!e->superseded && e->trial->newest.top(e)) || e->trial->best.top(e);
  }
  bool needed(Entry* e) const;
  void review(Entry* e);
  void remove(Entry* e);
  void drop(Entry* e);
  void fit_budget();
  Entry* best_of(std::optional<TrialId> trial) const;

  CheckpointPolicy policy_;
  std::map<Key, Entry> entries_;
  std::map<TrialId, Trial> trials_;          // those that have entries
  std::set<Entry*, Better> by_loss_;         // all
  std::set<Entry*, DropsFirst> expendable_;  // all that are not needed
  std::optional<TrialId> best_trial_;
  std::map<Key, std::pair<std::uint64_t, CheckpointInfo>> dropped_;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t sequence_ = 0;
};

inline Retention::Entry* Retention::best_of(std::optional<TrialId> trial) const {
  if (!trial) return by_loss_.empty() ? nullptr : *by_loss_.begin();
  const auto found = trials_.find(*trial);
  return found == trials_.end() ? nullptr : found->second.best.first();
}

/// Whether it must not be dropped, whatever the limits.
inline bool Retention::needed(Entry* e) const {
  return e->pins > 0 || (!e->trial->ended && e->trial->newest.first() == e) || best_of(std::nullopt) == e ||
         (best_trial_ == e->info.trial && e->trial->best.first() == e);
}

/// Updates `e` after a change that may have made it needed, or no longer needed. Dropping an entry that is not needed
/// does not affect the others, so no review requires another.
inline void Retention::review(Entry* e) {
  if (e == nullptr) return;
  if (needed(e))
    expendable_.erase(e);
  else if (wanted(e))
    expendable_.insert(e);
  else
    drop(e);
}

inline void Retention::remove(Entry* e) {
  Trial& trial = *e->trial;
  expendable_.erase(e);
  by_loss_.erase(e);
  if (!e->superseded) trial.newest.erase(e);
  trial.best.erase(e);
  total_bytes_ -= e->info.bytes;
  if (trial.best.empty()) trials_.erase(e->info.trial);
  entries_.erase(key(e->info));
}

inline void Retention::drop(Entry* e) {
  dropped_.insert_or_assign(key(e->info), std::pair(++sequence_, e->info));
  remove(e);
}

inline void Retention::fit_budget() {
  while (over_budget() && !expendable_.empty()) drop(*expendable_.begin());
}

inline void Retention::add(const CheckpointInfo& checkpoint, double loss) {
  forget(checkpoint);  // in case a replay reports it twice
  Trial& trial = trials_.try_emplace(checkpoint.trial, policy_).first->second;
  Entry entry{.info = checkpoint,
              .loss = std::isfinite(loss) ? loss : worst_loss,  // an infinite value counts as the worst, too
              .sequence = ++sequence_,
              .trial = &trial,
              .pins = 0};
  Entry* const e = &entries_.emplace(key(checkpoint), std::move(entry)).first->second;
  total_bytes_ += checkpoint.bytes;

  Entry* const best = best_of(std::nullopt);
  Entry* const newest = trial.newest.first();
  Entry* const best_of_trial = trial.best.first();
  by_loss_.insert(e);
  Entry* const not_newest = trial.newest.insert(e);
  Entry* const not_best = trial.best.insert(e);
  // Each only once, because a review may delete it, and in an order that does not depend on their addresses.
  Entry* changed[] = {best, newest, best_of_trial, not_newest, not_best, e};
  for (auto* one = std::begin(changed); one != std::end(changed); ++one)
    if (std::find(std::begin(changed), one, *one) == one) review(*one);
  fit_budget();
}

inline void Retention::forget(const CheckpointInfo& checkpoint) {
  dropped_.erase(key(checkpoint));
  const auto found = entries_.find(key(checkpoint));
  if (found == entries_.end()) return;
  remove(&found->second);
  // Others take its place and are needed now.
  review(best_of(std::nullopt));
  const auto trial = trials_.find(checkpoint.trial);
  if (trial == trials_.end()) return;
  review(trial->second.newest.first());
  if (best_trial_ == checkpoint.trial) review(trial->second.best.first());
}

inline bool Retention::pin(const CheckpointInfo& checkpoint) {
  const auto found = entries_.find(key(checkpoint));
  if (found == entries_.end()) return false;
  ++found->second.pins;
  review(&found->second);
  return true;
}

inline void Retention::unpin(const CheckpointInfo& checkpoint) {
  const auto found = entries_.find(key(checkpoint));
  if (found == entries_.end() || found->second.pins == 0) return;
  --found->second.pins;
  review(&found->second);
  fit_budget();
}

inline void Retention::supersede(const CheckpointInfo& checkpoint) {
  const auto found = entries_.find(key(checkpoint));
  if (found == entries_.end() || found->second.superseded) return;
  Entry* const e = &found->second;
  Trial& trial = *e->trial;
  trial.newest.erase(e);
  e->superseded = true;
  Entry* const newest = trial.newest.first();
  review(e);
  review(newest);
  fit_budget();
}

inline void Retention::trial_ended(TrialId id) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || found->second.ended) return;
  const std::vector<Entry*> all(found->second.best.begin(), found->second.best.end());
  for (Entry* const e : all) expendable_.erase(e);  // its position there depends on `ended`
  found->second.ended = true;
  for (Entry* const e : all) review(e);
  fit_budget();
}

inline void Retention::trial_reopened(TrialId id) {
  const auto found = trials_.find(id);
  if (found == trials_.end() || !found->second.ended) return;
  const std::vector<Entry*> all(found->second.best.begin(), found->second.best.end());
  for (Entry* const e : all) expendable_.erase(e);
  found->second.ended = false;
  for (Entry* const e : all) review(e);
}

inline void Retention::set_best_trial(TrialId trial) {
  if (best_trial_ == trial) return;
  Entry* const before = best_trial_ ? best_of(best_trial_) : nullptr;
  best_trial_ = trial;
  review(best_of(trial));
  review(before);
  fit_budget();
}

inline std::vector<CheckpointInfo> Retention::take_dropped() {
  std::vector<std::pair<std::uint64_t, CheckpointInfo>> ordered;
  for (auto& [_, dropped] : dropped_) ordered.push_back(std::move(dropped));
  dropped_.clear();
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<CheckpointInfo> out;
  for (auto& [_, info] : ordered) out.push_back(std::move(info));
  return out;
}

}  // namespace hypertune::inline v0
