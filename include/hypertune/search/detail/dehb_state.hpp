// DEHB: one population per fidelity, fed by the rungs of HyperBand.
#pragma once

#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/search/detail/differential.hpp>
#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/offspring.hpp>
#include <hypertune/search/detail/starting_design.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct DehbOptions {
  int max = 81, reduction = 3;
  double weight = 0.5, crossover = 0.5;
};

class DehbState {
 public:
  DehbState() = default;
  DehbState(const SearchSpace& space, const SearchContext& goal, const DehbOptions& options)
      : genes_(space), design_(genes_, goal.seed), options_(options), tried_(space) {
    for (const auto& bracket : hyperband_brackets(options.max, options.reduction)) {
      starts_.push_back({bracket.front().trials, bracket.front().steps});
      for (const BracketRung& rung : bracket) {  // a population has room for the trials of any bracket
        auto at = std::find_if(levels_.begin(), levels_.end(), [&](const Level& l) { return l.steps == rung.steps; });
        if (at == levels_.end()) at = levels_.insert(levels_.end(), Level{.steps = rung.steps});
        at->room = std::max(at->room, static_cast<std::size_t>(std::max<std::int64_t>(rung.trials, 4)));
      }
    }
    std::sort(levels_.begin(), levels_.end(), [](const Level& a, const Level& b) { return a.steps < b.steps; });
  }

  Suggestion suggest(const Ask& ask) const {
    const std::size_t level = level_of_next();
    const std::vector<const Individual*> parents = pool(level);
    const bool evolves = genes_.size() > 0 && parents.size() >= 4 && started_ >= starts_.front().trials;
    return offspring(genes_, tried_, ask.rng, [&](int i, std::vector<double>& genome) {
      if (evolves && i < offspring_tries / 2) {
        const auto& target =
            *parents[static_cast<std::size_t>(started_) % std::min(parents.size(), levels_[level].room)];
        differential_child(genes_, parents, target, options_.weight, options_.crossover, ask.rng, genome);
      } else {
        design_.draw(genes_, ask.trial, i, ask.rng, genome);
      }
    });
  }

  void observe(const Observation& o) {
    if (o.kind == Observation::Kind::started) {
      if (genes_.countable()) tried_.add(o.point);
      pending_.insert_or_assign(o.trial, Pending{genes_.genome(o.point), 0});
      ++started_;
      return;
    }
    const auto found = pending_.find(o.trial);
    if (found == pending_.end()) return;
    Pending& trial = found->second;
    Fitness fitness(o);
    fitness.stopped = false;  // within a level all trials have made the same steps
    fitness.steps = 0;
    for (; trial.next < levels_.size() && levels_[trial.next].steps <= o.steps; ++trial.next)
      if (!fitness.failed) enter(levels_[trial.next], {o.trial, trial.genome, fitness});
    if (o.kind == Observation::Kind::ended) {
      // A trial that ended before the first rung still counts there.
      if (trial.next == 0 && !fitness.failed) enter(levels_.front(), {o.trial, std::move(trial.genome), fitness});
      pending_.erase(found);
    }
  }

 private:
  struct Start {
    std::int64_t trials;
    int steps;
  };
  struct Level {
    int steps = 1;
    std::size_t room = 4;
    std::vector<Individual> members{};  // best first
  };
  struct Pending {
    std::vector<double> genome;
    std::size_t next = 0;  // the next level that it will reach
  };

  // HyperBand fills its brackets in the order of creation, so that the number of trials tells where the next one
  // starts.
  std::size_t level_of_next() const {
    std::int64_t round = 0, k = started_;
    for (const Start& s : starts_) round += s.trials;
    k %= round;
    std::size_t bracket = 0;
    while (k >= starts_[bracket].trials) k -= starts_[bracket++].trials;
    const auto at =
        std::find_if(levels_.begin(), levels_.end(), [&](const Level& l) { return l.steps == starts_[bracket].steps; });
    return static_cast<std::size_t>(at - levels_.begin());
  }
  // The level's own members and, while they are too few, the best of the levels below.
  std::vector<const Individual*> pool(std::size_t level) const {
    std::vector<const Individual*> parents;
    for (std::size_t l = level + 1; l-- > 0;) {
      for (const Individual& member : levels_[l].members) {
        if (parents.size() >= levels_[level].room) return parents;
        const bool known =
            std::any_of(parents.begin(), parents.end(), [&](const Individual* p) { return p->trial == member.trial; });
        if (!known) parents.push_back(&member);
      }
      if (parents.size() >= 4) break;
    }
    return parents;
  }
  static void enter(Level& level, Individual individual) {
    const auto at =
        std::upper_bound(level.members.begin(), level.members.end(), individual,
                         [](const Individual& a, const Individual& b) { return fitter(a.fitness, b.fitness); });
    level.members.insert(at, std::move(individual));
    if (level.members.size() > level.room) level.members.pop_back();
  }

  Genes genes_;
  StartingDesign design_;
  DehbOptions options_;
  std::vector<Start> starts_;  // by bracket
  std::vector<Level> levels_;  // by steps, rising
  std::unordered_map<TrialId, Pending> pending_;
  std::int64_t started_ = 0;
  Tried tried_;
};

}  // namespace hypertune::inline v0::detail
