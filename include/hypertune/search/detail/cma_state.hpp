// The state of CMA-ES between suggestions and observations: which trial belongs to which generation, when the
// distribution is updated, when the search restarts.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/search/cma_kinds.hpp>
#include <hypertune/search/detail/category_distribution.hpp>
#include <hypertune/search/detail/cma_distribution.hpp>
#include <hypertune/search/detail/cma_margin.hpp>
#include <hypertune/search/detail/fitness.hpp>
#include <hypertune/search/detail/genes.hpp>
#include <hypertune/search/detail/starting_design.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

struct CmaOptions {
  int population = 0;
  double sigma = 0;
  CmaRestarts restarts = CmaRestarts::bipop;
  CmaShape shape = CmaShape::automatic;
};

class CmaState {
 public:
  CmaState() = default;
  CmaState(const SearchSpace& space, const SearchContext& goal, const CmaOptions& options)
      : genes_(space), design_(genes_, goal.seed), goal_(goal), options_(options), tried_(space) {
    for (std::size_t i = 0; i < genes_.size(); ++i)
      (genes_[i].kind == Gene::Kind::category ? categories_ : axes_).push_back(i);
    const std::size_t n = axes_.size();
    const auto samples = static_cast<std::size_t>(std::max<std::int64_t>(goal.samples, 0));
    if (options.population > 0) {
      least_ = static_cast<std::size_t>(options.population);
    } else {
      // Two thirds of the tutorial's default. As the best one is kept, that is faster in the few hundred trials that
      // tuning has, and restarts compensate for it in longer runs.
      const double usual = 4 + std::floor(3 * std::log(static_cast<double>(std::max<std::size_t>(genes_.size(), 1))));
      least_ = static_cast<std::size_t>(0.7 * usual);
      const auto parallel = static_cast<std::size_t>(std::max(goal.parallelism, 1));
      least_ = std::max(least_, std::min(parallel, samples > 0 ? samples / 10 : 4 * least_));
    }
    least_ = std::max<std::size_t>(least_, 4);
    // Learning all correlations takes on the order of n^2 trials.
    separable_ =
        options.shape == CmaShape::separable ||
        (options.shape == CmaShape::automatic && (n > 100 || (n > 8 && (samples > 0 ? samples < 3 * n * n : n > 40))));
    population_ = large_ = least_;
    design_size_ = 3 * population_;
    if (samples > 0) design_size_ = std::min(design_size_, std::max<std::size_t>(2, samples / 3));
    sigma_ = first_sigma();
  }

  /// Samples from the distribution. If there is nothing new near it a point may repeat, until all have been tried.
  Suggestion suggest(const Ask& ask) const {
    Point point = draw(ask.trial).point;
    if (genes_.countable() && tried_.contains(point) && tried_.all_tried()) return Suggestion::exhausted();
    return point;
  }

  void started(TrialId trial, const Point& point) {
    Candidate candidate = candidate_of(trial, point);
    for (const std::size_t axis : axes_) candidate.counts.push_back(is_active(point[genes_[axis].dimension]));
    for (const std::size_t c : categories_) candidate.counts.push_back(is_active(point[genes_[c].dimension]));
    if (genes_.countable()) tried_.add(point);
    pending_.insert_or_assign(trial, Pending{std::move(candidate), std::nullopt, 0});
    ++started_;
    use_last_reports();
  }
  void reported(const Observation& o) {
    const auto found = pending_.find(o.trial);
    if (found == pending_.end()) return;
    found->second.last = Fitness(o);
    found->second.reported = started_;
    reports_.emplace_back(started_, o.trial);
  }
  void ended(const Observation& o) {
    const auto found = pending_.find(o.trial);
    if (found == pending_.end()) return;
    Result result{std::move(found->second.candidate), Fitness(o)};
    pending_.erase(found);
    take(std::move(result));
  }

  const CmaDistribution& distribution() const { return distribution_; }
  std::uint64_t restarts() const { return restarts_; }
  std::size_t population() const { return population_; }

 private:
  struct Candidate {
    std::vector<double> genome{};         // before it was rounded to the options of the space
    std::vector<unsigned char> counts{};  // by axis, then by category: whether it is active
    std::uint64_t generation = 0;         // of the distribution that it was drawn from; 0: none
  };
  struct Pending {
    Candidate candidate;
    std::optional<Fitness> last;  // of its last report
    std::uint64_t reported = 0;   // number of started trials at that time
  };
  struct Result {
    Candidate candidate;
    Fitness fitness;
  };
  struct Drawn {
    std::vector<double> genome;
    Point point;
    bool own = true;  // drawn from the distribution
  };

  // 0.13 of the range: a third less than the usual 0.2, as the first mean is the best of a design and not the middle.
  double first_sigma() const { return options_.sigma > 0 ? options_.sigma : 0.13; }

  // The suggestion for `trial` in this state. It has a random number generator of its own, so that started() can draw
  // it again: the sample before rounding cannot be recovered from the point.
  Drawn draw(TrialId trial) const {
    constexpr int tries = 100, tries_for_new = 40;
    Rng rng = derived_rng(goal_.seed, {static_cast<std::uint64_t>(trial), 0x636d61U});
    Drawn drawn{genes_.blank(), {}};
    int known = 0;
    for (int i = 0; i < tries; ++i) {
      // If the neighbourhood of the distribution has been tried in full, any new point is better than a repetition.
      drawn.own = !designing_ && !(known > tries_for_new / 2 && known <= tries_for_new);
      if (drawn.own)
        sample(rng, drawn.genome);
      else
        design_.draw(genes_, trial, i, rng, drawn.genome);
      drawn.point = genes_.point(drawn.genome, rng);
      if (!genes_.feasible(drawn.point)) continue;
      if (known <= tries_for_new && genes_.countable() && tried_.contains(drawn.point)) {
        ++known;
        continue;
      }
      return drawn;
    }
    // Hardly anything here meets the constraints: move half-way to the best feasible point, repeatedly.
    if (best_ && !designing_) {
      for (int i = 0; i < 20; ++i) {
        for (const Gene& gene : genes_) {
          double& x = drawn.genome[gene.dimension];
          const double target = best_->candidate.genome[gene.dimension];
          x = gene.kind == Gene::Kind::category ? target : x + (target - x) / 2;
        }
        drawn.point = genes_.point(drawn.genome, rng);
        if (genes_.feasible(drawn.point)) return drawn;
      }
    }
    drawn.own = false;
    drawn.point = genes_.space().sample(rng);
    drawn.genome = genes_.genome(drawn.point);
    for (double& x : drawn.genome)
      if (!is_active(x)) x = uniform01(rng);
    return drawn;
  }

  // Samples out of bounds: a few more draws, then reflection, which changes a sample least and does not accumulate
  // samples on the bound (Biedrzycki, "Handling bound constraints in CMA-ES: An experimental study", 2020). Discrete
  // axes need no bounds.
  void sample(Rng& rng, std::vector<double>& genome) const {
    const std::size_t n = axes_.size();
    std::vector<double> z(n), x(n);
    const int tries = n <= 30 ? 10 : 1;  // in many dimensions some coordinate is always outside
    for (int i = 0; i < tries; ++i) {
      for (double& one : z) one = normal_quantile(std::max(uniform01(rng), 0x1p-60));
      distribution_.sample(z.data(), x.data());
      bool inside = true;
      for (std::size_t j = 0; j < n && inside; ++j) inside = discrete(j) || (x[j] >= 0 && x[j] <= 1);
      if (inside) break;
    }
    for (std::size_t j = 0; j < n; ++j) {
      if (!discrete(j) && !(x[j] >= 0 && x[j] <= 1)) {
        x[j] -= 2 * std::floor(x[j] / 2);
        if (x[j] > 1) x[j] = 2 - x[j];
      }
      genome[genes_[axes_[j]].dimension] = x[j];
    }
    for (std::size_t c = 0; c < categories_.size(); ++c) {
      const Gene& gene = genes_[categories_[c]];
      genome[gene.dimension] = Genes::of_option(options_of_[c].option(uniform01(rng)), gene.options);
    }
  }
  bool discrete(std::size_t axis) const { return genes_[axes_[axis]].kind == Gene::Kind::discrete; }

  Candidate candidate_of(TrialId trial, const Point& point) const {
    try {
      Drawn drawn = draw(trial);
      if (same_point(drawn.point, point))
        return {.genome = std::move(drawn.genome), .generation = drawn.own ? generation_ : 0};
    } catch (const Error&) {  // no draw meets the constraints, although this point does
    }
    Candidate foreign{.genome = genes_.genome(point)};
    for (double& x : foreign.genome)
      if (!is_active(x)) x = 0.5;
    if (!designing_)
      for (std::size_t j = 0; j < axes_.size(); ++j)
        if (const std::size_t d = genes_[axes_[j]].dimension; !is_active(point[d]))
          foreign.genome[d] = distribution_.mean()[j];
    return foreign;
  }

  // A trial that a scheduler has paused may never end: after some number of further trials its last report counts.
  void use_last_reports() {
    const std::uint64_t patience = 2 * population_ + 4 * static_cast<std::uint64_t>(std::max(goal_.parallelism, 1));
    while (!reports_.empty() && reports_.front().first + patience < started_) {
      const auto [at, trial] = reports_.front();
      reports_.pop_front();
      const auto found = pending_.find(trial);
      if (found == pending_.end() || found->second.reported != at) continue;
      Result result{std::move(found->second.candidate), std::move(*found->second.last)};
      pending_.erase(found);
      take(std::move(result));
    }
  }

  void take(Result result) {
    if (genes_.size() == 0) return;
    if (!result.fitness.failed && (!best_ || fitter(result.fitness, best_->fitness))) best_ = result;
    batch_.push_back(std::move(result));
    ++spent_;
    if (designing_ ? batch_.size() < design_size_ : batch_.size() < population_) return;
    if (designing_)
      begin();
    else
      evolve();
    batch_.clear();
  }

  void rank() {
    hypertune::detail::stable_sort(batch_.begin(), batch_.end(),
                                   [](const Result& a, const Result& b) { return fitter(a.fitness, b.fitness); });
  }
  void keep_elite() {
    elite_.reset();
    if (batch_.front().fitness.loss() < worst_loss) elite_ = batch_.front();
  }

  // Starts the distribution around the better third of the design.
  void begin() {
    rank();
    std::size_t top = 0;
    while (top < std::max<std::size_t>(1, batch_.size() / 3) && batch_[top].fitness.loss() < worst_loss) ++top;
    std::vector<double> mean;
    for (const std::size_t axis : axes_) {
      double sum = 0, weights = 0;
      for (std::size_t i = 0; i < top; ++i) {
        const double w = std::log(static_cast<double>(top) + 0.5) - std::log(static_cast<double>(i + 1));
        sum += w * batch_[i].candidate.genome[genes_[axis].dimension];
        weights += w;
      }
      mean.push_back(top > 0 ? sum / weights : 0.5);
    }
    distribution_.start(mean, sigma_, population_, separable_);
    options_of_.clear();
    const double margin = 1 - std::pow(0.73, 1 / static_cast<double>(std::max<std::size_t>(categories_.size(), 1)));
    for (const std::size_t c : categories_)
      options_of_.emplace_back(genes_[c].options, margin / static_cast<double>(genes_[c].options - 1));
    const CmaWeights weights(std::max<std::size_t>(axes_.size(), 1), batch_.size(), true);
    if (top > 0) learn_categories(tied(weights.weights), weights.mueff);
    keep_elite();
    ++generation_;
    designing_ = false;
    history_.clear();
    spread_ = 0;
    failed_generations_ = 0;
  }

  // The weights of the ranked batch; equally good members get equal weights.
  std::vector<double> tied(std::vector<double> weights) const {
    for (std::size_t i = 0; i < batch_.size();) {
      double sum = weights[i];
      std::size_t end = i + 1;
      while (end < batch_.size() && !fitter(batch_[i].fitness, batch_[end].fitness)) sum += weights[end++];
      for (; i < end; ++i) weights[i] = sum / static_cast<double>(end - i);
    }
    return weights;
  }

  void learn_categories(const std::vector<double>& weights, double mueff) {
    for (std::size_t c = 0; c < categories_.size(); ++c) {
      const Gene& gene = genes_[categories_[c]];
      std::vector<double> gain(gene.options, 0);
      for (std::size_t i = 0; i < batch_.size(); ++i)
        if (weights[i] > 0 && batch_[i].candidate.counts[axes_.size() + c] != 0)
          gain[Genes::option_of(batch_[i].candidate.genome[gene.dimension], gene.options)] += weights[i];
      options_of_[c].update(gain, mueff / (mueff + static_cast<double>(gene.options)));
    }
  }

  void evolve() {
    // The previous best enters again for a few generations only, as with noise it may have been luck.
    if (elite_ && elite_->candidate.generation + 3 >= generation_) batch_.push_back(*elite_);
    rank();
    keep_elite();
    batch_.resize(population_);
    const std::vector<double> weights = tied(distribution_.weights().weights);
    learn_categories(weights, distribution_.weights().mueff);
    if (!axes_.empty()) move(weights);
    note();
    ++generation_;
    if (options_.restarts != CmaRestarts::none && converged()) restart();
  }

  void move(const std::vector<double>& weights) {
    const std::size_t n = axes_.size();
    Matrix xs(batch_.size(), n);
    std::vector<CmaSample> samples;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      const Candidate& candidate = batch_[i].candidate;
      for (std::size_t j = 0; j < n; ++j) xs(i, j) = candidate.genome[genes_[axes_[j]].dimension];
      samples.push_back({xs.row(i), weights[i], candidate.generation != generation_, candidate.counts.data()});
    }
    distribution_.update(samples);
    // Larger steps are needed to leave a plateau.
    if (!fitter(batch_.front().fitness, batch_[batch_.size() * 7 / 10].fitness))
      distribution_.sigma() *= std::exp(0.2 + distribution_.weights().cs / distribution_.weights().damping);
    distribution_.sigma() = std::min(distribution_.sigma(), 1.0);
    const double margin = 1 / static_cast<double>(n * population_);
    for (std::size_t j = 0; j < n; ++j) {
      if (discrete(j))
        keep_margin(distribution_, j, genes_[axes_[j]].edges, margin);
      else
        distribution_.mean()[j] = std::clamp(distribution_.mean()[j], 0.0, 1.0);
    }
  }

  std::size_t window() const { return 10 + 30 * genes_.size() / population_; }
  void note() {
    const double best = batch_.front().fitness.loss(), worst = batch_.back().fitness.loss();
    history_.push_back(best);
    if (history_.size() > window()) history_.pop_front();
    if (worst < worst_loss) spread_ = std::max(spread_, worst - best);
    failed_generations_ = best < worst_loss ? 0 : failed_generations_ + 1;
  }
  bool converged() const {
    if (failed_generations_ >= 3) return true;  // no finite loss at all: there may be some elsewhere
    const auto [least, most] = std::minmax_element(history_.begin(), history_.end());
    if (history_.size() >= window() && *most - *least <= 1e-9 * spread_) return true;
    if (axes_.empty()) return false;
    if (distribution_.condition() > 1e14) return true;
    bool any = false;
    for (std::size_t j = 0; j < axes_.size(); ++j) {
      if (discrete(j)) continue;
      any = true;
      if (std::max(distribution_.deviation(j), distribution_.drift(j)) > 1e-6) return false;
    }
    return any;
  }
  void restart() {
    if (restarts_++ > 0) (small_ ? small_spent_ : large_spent_) += spent_;
    spent_ = 0;
    Rng rng = derived_rng(goal_.seed, {restarts_, 0x6269706fU});
    const double u = uniform01(rng), v = uniform01(rng);
    small_ = options_.restarts == CmaRestarts::bipop && restarts_ > 1 && small_spent_ < large_spent_;
    if (small_) {
      const double ratio = static_cast<double>(large_) / static_cast<double>(least_) / 2;
      population_ = static_cast<std::size_t>(static_cast<double>(least_) * std::pow(ratio, u * u));
      sigma_ = first_sigma() * std::pow(10, -2 * v);
    } else {
      population_ = large_ = std::min<std::size_t>(2 * large_, 10'000);
      sigma_ = first_sigma();
    }
    population_ = std::max<std::size_t>(population_, 4);
    design_size_ = 3 * population_;
    designing_ = true;
    elite_.reset();
  }

  Genes genes_;
  StartingDesign design_;
  SearchContext goal_;
  CmaOptions options_;
  std::vector<std::size_t> axes_, categories_;  // indices of genes
  CmaDistribution distribution_;
  std::vector<CategoryDistribution> options_of_;  // by category
  std::size_t least_ = 4, large_ = 4;             // populations: the first, the largest so far
  std::size_t population_ = 4, design_size_ = 12;
  double sigma_ = 0.13;
  bool separable_ = false;
  bool designing_ = true;         // still in the initial design of a search
  std::uint64_t generation_ = 0;  // counted over all searches
  std::uint64_t started_ = 0;     // number of started trials
  std::unordered_map<TrialId, Pending> pending_;
  std::deque<std::pair<std::uint64_t, TrialId>> reports_;
  std::vector<Result> batch_;  // results since the last update
  std::optional<Result> elite_, best_;
  Tried tried_;
  std::deque<double> history_;  // best loss by generation
  double spread_ = 0;           // largest difference of losses within a generation
  int failed_generations_ = 0;  // generations in a row without a finite loss
  bool small_ = false;
  std::uint64_t restarts_ = 0, spent_ = 0, small_spent_ = 0, large_spent_ = 0;
};

}  // namespace detail
}  // namespace hypertune::inline v0
