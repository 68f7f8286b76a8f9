// GatheredLosses: merges the losses of workers of a trial that are lost together but reported one by one.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// When one cause takes several workers, each loss is reported separately. If each were answered at once, each would
/// form a generation that is broken before it trains. So a loss waits a moment for others of its generation. Not
/// thread-safe; has no clock.
class GatheredLosses {
 public:
  /// Adds a loss. False, and not added: it is of another kind than the waiting ones, which must be answered first.
  /// `until`: when the losses are due; that of the first loss counts.
  bool add(const MemberLost& loss, Seconds until) {
    const auto [at, first] = waiting_.try_emplace(loss.trial, Waiting{loss, {}, until});
    auto& [all, causes, _] = at->second;
    if (!first && !alike(all, loss)) return false;
    if (!first) {
      all.ranks.insert(all.ranks.end(), loss.ranks.begin(), loss.ranks.end());
      all.newcomers.insert(all.newcomers.end(), loss.newcomers.begin(), loss.newcomers.end());
    }
    causes.push_back(loss.cause);
    return true;
  }
  bool waits(TrialId trial) const { return waiting_.contains(trial); }
  /// The waiting losses of the trial as one loss.
  std::optional<MemberLost> take(TrialId trial) {
    auto node = waiting_.extract(trial);
    if (node.empty()) return std::nullopt;
    auto& [all, causes, _] = node.mapped();
    all.cause.text = text_of(causes);
    return std::move(all);
  }
  std::vector<TrialId> due(Seconds now) const {
    std::vector<TrialId> trials;
    for (const auto& [trial, waiting] : waiting_)
      if (waiting.until <= now) trials.push_back(trial);
    return trials;
  }
  std::optional<Seconds> next() const {
    std::optional<Seconds> at;
    for (const auto& [trial, waiting] : waiting_) at = std::min(at.value_or(waiting.until), waiting.until);
    return at;
  }

 private:
  struct Waiting {
    MemberLost all;
    std::vector<Cause> causes;
    Seconds until;
  };

  // Whether both are of the same generation, and both or neither are preemptions.
  static bool alike(const MemberLost& a, const MemberLost& b) {
    return a.attempt == b.attempt && a.generation == b.generation &&
           (a.cause.source == FailureSource::preemption) == (b.cause.source == FailureSource::preemption);
  }
  // "ranks 1, 3: killed by signal 9; rank 2: killed by signal 11".
  static std::string text_of(const std::vector<Cause>& causes) {
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    for (const auto& cause : causes) {
      const std::string own = detail::format("rank {}: ", cause.rank);
      const bool named = cause.text.starts_with(own);
      const std::string text = named ? cause.text.substr(own.size()) : cause.text;
      auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == text; });
      if (group == groups.end()) group = groups.insert(group, {text, {}});
      if (named) group->second.push_back(cause.rank);
    }
    std::string all;
    for (auto& [text, ranks] : groups) {
      std::sort(ranks.begin(), ranks.end());
      std::string names;
      for (const int rank : ranks) names += detail::format("{}{}", names.empty() ? "" : ", ", rank);
      if (!names.empty()) names = detail::format("{} {}: ", ranks.size() > 1 ? "ranks" : "rank", names);
      all += (all.empty() ? "" : "; ") + names + text;
    }
    return all;
  }

  std::map<TrialId, Waiting> waiting_;
};

}  // namespace hypertune::inline v0
