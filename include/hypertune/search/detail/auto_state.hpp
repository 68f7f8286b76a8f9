// AutoState: the searches that Auto shares trials out to.
#pragma once

#include <hypertune/random.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/detail/ask_budget.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail {

/// See Auto.
struct AutoState {
  std::optional<AnySearcher> chosen_{};
  std::optional<GaussianProcess> gp_{};  // instead of chosen_: this and …
  std::optional<Tpe> tpe_{};             // … this
  std::optional<SearchSpace> space_{};
  SearchContext goal_{};
  std::optional<GaussianProcess> other_{};     // for other minima
  std::set<TrialId> others_{};                 // its trials that are under way
  std::vector<std::vector<double>> minima_{};  // where a search has ended
  std::size_t others_begun_ = 0;
  std::size_t started_ = 0, parallelism_ = 1;
  std::map<TrialId, int> steps_{};  // that each trial has done, by what it reported
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

  enum class Means : std::uint8_t { all, tpe, random };
  /// What the next suggestion may be made by.
  Means means() const {
    if (gp_ && budget_.affords(cost(Means::all))) return Means::all;
    return budget_.affords(cost(Means::tpe)) ? Means::tpe : Means::random;
  }
  Seconds cost(Means by) const;

  enum class Turn : std::uint8_t { gp, tpe, found, other };
  /// Whose turn the next trial is; `found`: the first one's or TPE's, once there is a minimum.
  Turn turn() const;
  GaussianProcess next_other() const;
  void begin_other();
  /// Whether the search for other minima came to one that is known, or to the end of one that is worse.
  bool done() const;
  bool known(const std::vector<double>& features) const;
  bool near(const std::vector<double>& a, const std::vector<double>& b) const;

  /// Whether most trials did not come half as far as the one that came farthest. The newest ones do not count: they may
  /// be on their way.
  bool cut_short() const;
};

}  // namespace hypertune::inline v0::detail
