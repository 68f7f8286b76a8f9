// AutoState: the searches between which Auto divides the trials.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/detail/ask_budget.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hypertune::inline v0::detail {

/// The state of Auto.
struct AutoState {
  std::optional<AnySearcher> chosen_{};
  std::optional<GaussianProcess> gp_{};  // instead of chosen_, together with tpe_
  std::optional<Tpe> tpe_{};             // together with gp_, or alone
  std::optional<SearchSpace> space_{};
  SearchContext goal_{};
  std::optional<GaussianProcess> other_{};     // searches for other minima
  std::set<TrialId> others_{};                 // its running trials
  std::vector<std::vector<double>> minima_{};  // the minima found by searches so far
  std::size_t others_begun_ = 0;
  std::size_t started_ = 0, parallelism_ = 1;
  std::map<TrialId, int> steps_{};  // steps that each trial has reported
  detail::AskBudget budget_{};
  detail::Tried tried_{};
  bool finite_ = false;
  std::size_t dimensions_ = 0, ended_ = 0;

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  std::string name() const {
    return gp_ ? "auto: gp" : tpe_ ? "auto: tpe" : chosen_ ? "auto: " + chosen_->name() : "auto";
  }
  bool cheap() const { return chosen_ && chosen_->cheap(); }
  bool quick() const;

  enum class Means : std::uint8_t { all, tpe, random };
  /// Which searchers the budget allows for the next suggestion.
  Means means() const {
    if (gp_ && budget_.affords(cost(Means::all))) return Means::all;
    return budget_.affords_quick(cost(Means::tpe)) ? Means::tpe : Means::random;
  }
  Seconds cost(Means by) const;

  enum class Turn : std::uint8_t { gp, tpe, found, other };
  /// Which searcher the next trial comes from. `found`: the first one or TPE, once there is a minimum.
  Turn turn() const;
  GaussianProcess next_other() const;
  void begin_other();
  /// Whether the search for other minima has reached a known one, or has finished with a worse one.
  bool done() const;
  bool known(const std::vector<double>& features) const;
  bool near(const std::vector<double>& a, const std::vector<double>& b) const;

  /// Whether most trials made less than half of the steps of the longest one. The newest trials do not count, as they
  /// may still be running.
  bool cut_short() const;
};

}  // namespace hypertune::inline v0::detail
