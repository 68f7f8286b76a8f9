// Differential evolution: steps along the differences between good configurations.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/search/detail/differential.hpp>
#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/offspring.hpp>
#include <hypertune/search/detail/pending.hpp>
#include <hypertune/search/detail/starting_design.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune {

namespace detail {

struct DifferentialOptions {
  int population = 0;
  double weight = 0.5, crossover = 0.5;
};

/// Members in places; a result that is as good as the member in its place takes it.
class DifferentialState {
 public:
  DifferentialState() = default;
  DifferentialState(const SearchSpace& space, const SearchGoal& goal, const DifferentialOptions& options)
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

}  // namespace detail

/// Differential evolution (Storn and Price, "Differential Evolution: A Simple and Efficient Heuristic", Journal of
/// Global Optimization 11, 1997): rand/1/bin in the unit cube, for one objective. Asynchronous: trial k challenges
/// member k modulo the population as soon as it has ended, whatever the others do; failed trials challenge nobody, and
/// none is waited for. The population begins with a scrambled Sobol design, or draws from the user's priors.
struct DifferentialEvolution {
  static constexpr const char* type = "differential_evolution";

  int population_size = 0;
  double mutation_factor = 0.5;
  double crossover_probability = 0.9;

  static void describe(auto& self, auto&& option) {
    option("population_size", self.population_size, at_least(4).or_zero(),
           "0: a twentieth of the samples, between 8 and 40");
    option("mutation_factor", self.mutation_factor, above(0).at_most(2), "of differences");
    option("crossover_probability", self.crossover_probability, between(0, 1),
           "of a parameter to come from the mutant");
  }

  detail::DifferentialState state_{};

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    state_ = detail::DifferentialState(space, goal, {population_size, mutation_factor, crossover_probability});
  }
  Suggestion suggest(const Ask& ask) { return state_.suggest(ask); }
  void observe(const Observation& o) { state_.observe(o); }
};

}  // namespace hypertune
