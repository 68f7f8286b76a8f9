// The state of DifferentialEvolution.
#pragma once

#include <hypertune/search/detail/differential.hpp>
#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/offspring.hpp>
#include <hypertune/search/detail/pending.hpp>
#include <hypertune/search/detail/starting_design.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct DifferentialOptions {
  int population = 0;
  double weight = 0.5, crossover = 0.5;
};

/// Members at fixed places. A result that is at least as good as the member at its place replaces it.
class DifferentialState {
 public:
  DifferentialState() = default;
  DifferentialState(const SearchSpace& space, const SearchContext& goal, const DifferentialOptions& options)
      : genes_(space), design_(genes_, goal.seed), options_(options), tried_(space) {
    std::size_t size = static_cast<std::size_t>(options.population);
    if (size == 0)
      size = goal.samples > 0 ? static_cast<std::size_t>(std::clamp<std::int64_t>(goal.samples / 20, 8, 40)) : 20;
    members_.resize(size);
    patience_ = 2 * size + 4 * static_cast<std::uint64_t>(std::max(goal.parallelism, 1));
  }

  Suggestion suggest(const Ask& ask) const {
    std::vector<const Individual*> parents;
    for (const auto& member : members_)
      if (member) parents.push_back(&*member);
    const auto& target = members_[place(ask.trial)];
    const bool evolves = genes_.size() > 0 && target && parents.size() >= 4 && pending_.started() >= members_.size();
    return offspring(genes_, tried_, ask.rng, [&](int i, std::vector<double>& genome) {
      if (evolves && i < offspring_tries / 2)
        differential_child(genes_, parents, *target, options_.weight, options_.crossover, ask.rng, genome);
      else
        design_.draw(genes_, ask.trial, i, ask.rng, genome);
    });
  }
  void observe(const Observation& o) {
    follow_trials(o, genes_, tried_, pending_, patience_, [this](Individual i) { take(std::move(i)); });
  }

 private:
  std::size_t place(TrialId trial) const {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(trial) % members_.size());
  }
  void take(Individual individual) {
    if (individual.fitness.failed) return;
    auto& member = members_[place(individual.trial)];
    if (!member || !fitter(member->fitness, individual.fitness)) member = std::move(individual);
  }

  Genes genes_;
  StartingDesign design_;
  DifferentialOptions options_;
  std::uint64_t patience_ = 0;
  std::vector<std::optional<Individual>> members_;
  PendingTrials pending_;
  Tried tried_;
};

}  // namespace hypertune::inline v0::detail
