// The state of NSGA-II and NSGA-III: a population that is updated one trial at a time.
#pragma once

#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/nondominated.hpp>
#include <hypertune/search/detail/offspring.hpp>
#include <hypertune/search/detail/pending.hpp>
#include <hypertune/search/detail/starting_design.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/detail/variation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

struct NsgaOptions {
  int population = 0;
  double crossover = 0.9, mutation = 0;
  double crossover_eta = 20, mutation_eta = 20;
  bool by_directions = false;
};

class NsgaState {
 public:
  NsgaState() = default;
  NsgaState(const SearchSpace& space, const SearchContext& goal, const NsgaOptions& options)
      : genes_(space), design_(genes_, goal.seed), options_(options), tried_(space) {
    // A small population for few trials: evolution takes generations.
    std::size_t size = options.population > 0 ? static_cast<std::size_t>(options.population)
                       : goal.samples > 0 ? static_cast<std::size_t>(std::clamp<std::int64_t>(goal.samples / 15, 8, 50))
                                          : 50;
    if (options.by_directions) {
      directions_ = directions_for(std::max<std::size_t>(goal.objectives, 1), size);
      if (options.population == 0) size = std::max<std::size_t>(directions_.size(), 4);
    }
    size_ = size;
    patience_ = 2 * size_ + 4 * static_cast<std::uint64_t>(std::max(goal.parallelism, 1));
  }

  Suggestion suggest(const Ask& ask) const {
    const bool evolves = population_.size() >= std::min<std::size_t>(size_, 2) && pending_.started() >= size_;
    return offspring(genes_, tried_, ask.rng, [&](int i, std::vector<double>& genome) {
      if (evolves && i < offspring_tries / 2)
        breed(ask.rng, genome);
      else
        design_.draw(genes_, ask.trial, i, ask.rng, genome);
    });
  }

  void observe(const Observation& o) {
    follow_trials(o, genes_, tried_, pending_, patience_, [this](Individual i) { take(std::move(i)); });
  }

  const std::vector<Individual>& population() const { return population_; }

 private:
  std::vector<const Fitness*> fitnesses() const {
    std::vector<const Fitness*> all;
    for (const Individual& i : population_) all.push_back(&i.fitness);
    return all;
  }

  // Steady state: each result enters the population and the worst member leaves. It does not wait for a generation.
  void take(Individual individual) {
    if (individual.fitness.failed) return;
    population_.push_back(std::move(individual));
    auto all = fitnesses();
    auto fronts = nondominated_fronts(all);
    if (population_.size() > size_) {
      const std::size_t out = options_.by_directions && !directions_.empty() ? most_crowded_niche(all, fronts)
                                                                             : most_crowded(all, fronts.back());
      population_.erase(population_.begin() + static_cast<std::ptrdiff_t>(out));
      all = fitnesses();
      fronts = nondominated_fronts(all);
    }
    rank_.assign(population_.size(), 0);
    room_.assign(population_.size(), 0);
    for (std::size_t f = 0; f < fronts.size(); ++f) {
      const auto distances = crowding(all, fronts[f]);
      for (std::size_t i = 0; i < fronts[f].size(); ++i) {
        rank_[fronts[f][i]] = f;
        room_[fronts[f][i]] = options_.by_directions ? 0 : distances[i];
      }
    }
  }
  static std::size_t most_crowded(const std::vector<const Fitness*>& all, const std::vector<std::size_t>& front) {
    const auto distances = crowding(all, front);
    std::size_t out = 0;
    for (std::size_t i = 0; i < front.size(); ++i)  // among equal distances the youngest
      if (distances[i] <= distances[out]) out = i;
    return front[out];
  }
  // In the last front, of the direction with most members, the member farthest from the direction: the one that niching
  // (Deb and Jain 2014, algorithm 4) would leave out.
  std::size_t most_crowded_niche(const std::vector<const Fitness*>& all,
                                 const std::vector<std::vector<std::size_t>>& fronts) const {
    const Niches niches(all, fronts.front(), directions_);
    std::vector<std::size_t> count(directions_.size(), 0);
    for (std::size_t i = 0; i < all.size(); ++i) ++count[niches.niche(i)];
    std::size_t out = fronts.back().front();
    for (const std::size_t i : fronts.back()) {
      const std::size_t now = count[niches.niche(i)], most = count[niches.niche(out)];
      if (now > most || (now == most && niches.distance(i) >= niches.distance(out))) out = i;
    }
    return out;
  }

  std::size_t tournament(Rng& rng) const {
    const auto pick = [&] {
      const auto i = static_cast<std::size_t>(uniform01(rng) * static_cast<double>(population_.size()));
      return std::min(i, population_.size() - 1);
    };
    const std::size_t a = pick(), b = pick();
    if (rank_[a] != rank_[b]) return rank_[a] < rank_[b] ? a : b;
    return room_[a] >= room_[b] ? a : b;
  }

  void breed(Rng& rng, std::vector<double>& genome) const {
    const Individual& mother = population_[tournament(rng)];
    const Individual& father = population_[tournament(rng)];
    const bool cross = uniform01(rng) < options_.crossover;
    const double rate =
        options_.mutation > 0 ? options_.mutation : 1 / static_cast<double>(std::max<std::size_t>(genes_.size(), 1));
    for (const Gene& gene : genes_) {
      double a = mother.genome[gene.dimension], b = father.genome[gene.dimension];
      // If the gene is inactive in one parent, take the other's value; if in both, a random one.
      if (!is_active(a)) a = b;
      if (!is_active(a)) a = uniform01(rng);
      if (!is_active(b)) b = a;
      double& x = genome[gene.dimension];
      x = a;
      if (cross && uniform01(rng) < 0.5)
        x = gene.kind == Gene::Kind::category ? b : simulated_binary(a, b, options_.crossover_eta, rng);
      if (uniform01(rng) < rate) x = mutated(gene, x, options_.mutation_eta, rng);
    }
  }

  Genes genes_;
  StartingDesign design_;
  NsgaOptions options_;
  std::size_t size_ = 50;
  std::uint64_t patience_ = 0;
  std::vector<std::vector<double>> directions_;
  std::vector<Individual> population_;
  std::vector<std::size_t> rank_;  // the front of each individual
  std::vector<double> room_;       // its crowding distance
  PendingTrials pending_;
  Tried tried_;
};

}  // namespace hypertune::inline v0::detail
