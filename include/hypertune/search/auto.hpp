// Auto: the searcher that fits the problem.
#pragma once

#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/searcher.hpp>
#include <hypertune/search/tpe.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace hypertune {

namespace detail {

enum class AutoChoice : std::uint8_t { random, gp, tpe, cma_es };

/// What fits a problem, by what is known before it begins.
template <class = void>
AutoChoice auto_choice(const SearchSpace& space, const SearchGoal& goal) {
  std::size_t numeric = 0, discrete = 0;
  bool conditional = false;
  for (std::size_t d = 0; d < space.size(); ++d) {
    const DomainInfo& info = space.domain(d);
    if (info.kind == DomainKind::derived || info.kind == DomainKind::constant || info.grid) continue;
    const bool number = info.kind == DomainKind::real || info.kind == DomainKind::integer;
    ++(number ? numeric : discrete);
    conditional = conditional || space.conditional(d);
  }
  const std::size_t dimensions = numeric + discrete;
  if (dimensions == 0) return AutoChoice::random;
  const bool many =
      goal.samples > 2000;  // a model of all results would learn little more, and costs more than it gains
  if (goal.objectives == 1 && discrete == 0 && !conditional && (many || dimensions > 60)) return AutoChoice::cma_es;
  if (many || dimensions > 60) return AutoChoice::tpe;
  return AutoChoice::gp;
}

}  // namespace detail

template <class>
struct BasicAuto;
using Auto = BasicAuto<void>;

/// Chooses by dimensions, types, budget and objectives, once, before the first trial: a Gaussian process for the usual
/// case (up to 60 dimensions and 2,000 trials); CMA-ES for larger problems of numbers alone; TPE for larger ones with
/// choices, conditions or several objectives. What was chosen stands in name().
///
/// The rules rest on benchmarks/quality: with up to 200 trials the Gaussian process was the best or among the best on
/// most problems, by orders of magnitude where they are smooth. Where it was not, its model did not fit what is
/// near the best (kinks, valleys at a bound, many small basins) or had written off a branch, and it brought nothing new
/// for many trials in a row. So while GaussianProcess::settled() says so, every other trial is TPE's, which assumes
/// less and has seen all results, too; as soon as either finds something better it is the model's turn again.
template <class Lazy>
struct BasicAuto {
  std::optional<AnySearcher> chosen_{};
  std::optional<GaussianProcess> gp_{};  // instead of chosen_: this and …
  std::optional<Tpe> tpe_{};             // … this
  std::size_t started_ = 0;

  void prepare(const SearchSpace& space, const SearchGoal& goal) {
    *this = {};
    switch (detail::auto_choice(space, goal)) {
      case detail::AutoChoice::random: chosen_ = Random{}; break;
      case detail::AutoChoice::gp:
        gp_ = GaussianProcess{};
        tpe_ = Tpe{};
        gp_->prepare(space, goal);
        tpe_->prepare(space, goal);
        return;
      case detail::AutoChoice::tpe: chosen_ = Tpe{}; break;
      case detail::AutoChoice::cma_es: chosen_ = CmaEs{}; break;
    }
    chosen_->prepare(space, goal);
  }
  Suggestion suggest(const Ask& ask) {
    if (!gp_) return chosen_->suggest(ask);
    return started_ % 2 == 1 && gp_->settled() ? tpe_->suggest(ask) : gp_->suggest(ask);
  }
  void observe(const Observation& o) {
    if (!gp_) return chosen_->observe(o);
    if (o.kind == Observation::Kind::started) ++started_;
    gp_->observe(o);
    tpe_->observe(o);
  }
  std::string name() const { return gp_ ? "auto: gp" : chosen_ ? "auto: " + chosen_->name() : "auto"; }
  bool cheap() const { return chosen_ && chosen_->cheap(); }
  static constexpr bool multi_objective = true;
};

}  // namespace hypertune
