// AutoState: the searches between which Auto divides the trials.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/search/detail/ask_budget.hpp>
#include <hypertune/search/detail/tried.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace hypertune::inline v0::detail {

/// The searches of Auto by models: the definitions of <hypertune/src/models.hpp>, which a program may lack.
class AutoModels;

/// The state of Auto.
struct AutoState {
  std::optional<AnySearcher> chosen_{};
  std::optional<Tpe> tpe_{};       // instead of chosen_
  Indirect<AutoModels> models_{};  // together with tpe_, or none
  std::optional<SearchSpace> space_{};
  AskBudget budget_{};
  Tried tried_{};
  bool finite_ = false;
  std::size_t dimensions_ = 0, ended_ = 0;

  void prepare(const SearchSpace& space, const SearchContext& goal);
  Suggestion suggest(const Ask& ask);
  void observe(const Observation& o);
  std::string name() const {
    return models_ ? "auto: gp" : tpe_ ? "auto: tpe" : chosen_ ? "auto: " + chosen_->name() : "auto";
  }
  bool cheap() const { return chosen_ && chosen_->cheap(); }
  bool quick() const;

  enum class Means : std::uint8_t { all, tpe, random };
  /// Which searchers the budget allows for the next suggestion.
  Means means() const {
    if (models_ && budget_.affords(cost(Means::all))) return Means::all;
    return budget_.affords_quick(cost(Means::tpe)) ? Means::tpe : Means::random;
  }
  Seconds cost(Means by) const;
};

}  // namespace hypertune::inline v0::detail
