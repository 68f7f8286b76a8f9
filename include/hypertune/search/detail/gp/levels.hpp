// For trials that were stopped or are paused: levels of steps, and the model of each.
#pragma once

#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/search/detail/gp/chain.hpp>
#include <hypertune/search/detail/gp/data.hpp>
#include <hypertune/search/detail/gp/fit.hpp>
#include <hypertune/search/detail/gp/history.hpp>
#include <hypertune/search/detail/gp/learner.hpp>
#include <hypertune/search/detail/gp/transform.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::gp {

/// The steps of the levels, ascending, from the steps that each trial has reached. The highest level is the most steps
/// that at least `least` trials have reached (as in BOHB: Falkner et al. 2018). Each level below has a third more
/// trials than the one above it, so that there are few levels, and they lie at a scheduler's rungs.
inline std::vector<int> level_steps(std::vector<int> reached, std::size_t least) {
  std::vector<int> result;
  if (reached.empty()) return result;
  std::sort(reached.begin(), reached.end(), std::greater<>());
  for (std::size_t wanted = std::max<std::size_t>(1, least);;) {
    result.push_back(reached[std::min(wanted, reached.size()) - 1]);
    const auto there = static_cast<std::size_t>(
        std::upper_bound(reached.begin(), reached.end(), result.back(), std::greater<>()) - reached.begin());
    if (there == reached.size()) break;
    wanted = std::max(there + 3, there + there / 3);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

struct Level {
  int steps = 0;
  Inputs inputs;
  std::vector<double> losses;   // of one objective, or several combined
  std::vector<std::size_t> of;  // subjects
  std::size_t passed = 0;       // how many of them reached the next level
};

/// The learnt parameters of a level.
struct Stage {
  int steps = 0;
  Bend bend = Bend::linear;
  Hyper hyper;
  double slope = 0;  // relative to the level below
};

/// The data of the first `count` arrivals, with at most `local` trials per level.
class Levels {
 public:
  Levels(const History& history, const Encoding& encoding, std::size_t count, std::size_t local)
      : history_(history), encoding_(encoding), local_(local) {
    by_subject_.resize(history.subjects.size());
    for (std::size_t i = 0; i < count; ++i) by_subject_[history.arrivals[i].subject].push_back(i);
  }

  /// The steps of the trial's last arrival; 0: none.
  int reached(std::size_t subject) const { return by_subject_[subject].empty() ? 0 : last(subject).steps; }

  std::vector<int> steps() const {
    std::vector<int> reached;
    for (std::size_t s = 0; s < by_subject_.size(); ++s)
      if (useful(s)) reached.push_back(last(s).steps);
    constexpr std::size_t least = 5;
    return level_steps(std::move(reached), least);
  }

  /// Several objectives are combined, with the same weights while `rng` has the same state.
  Level level(int steps, int next, std::size_t objectives, const Rng* rng) const {
    Level result{steps, Inputs(encoding_.categorical()), {}, {}};
    std::vector<const Arrival*> there;
    for (std::size_t s = 0; s < by_subject_.size(); ++s) {
      if (reached(s) < steps) continue;
      const Arrival* at = nullptr;
      for (const std::size_t i : by_subject_[s])
        if (history_.arrivals[i].steps <= steps) at = &history_.arrivals[i];
      if (at != nullptr) there.push_back(at);
    }
    thin_out(there);
    std::vector<std::vector<double>> losses;
    for (const Arrival* at : there) {
      result.inputs.add(history_.subjects[at->subject].features);
      result.of.push_back(at->subject);
      result.passed += reached(at->subject) >= next ? 1 : 0;
      if (objectives > 1)
        losses.push_back(at->losses);
      else
        result.losses.push_back(at->losses.front());
    }
    if (objectives > 1) {
      Rng same = *rng;
      result.losses = scalarised(losses, objectives, same);
    }
    return result;
  }

 private:
  const Arrival& last(std::size_t subject) const { return history_.arrivals[by_subject_[subject].back()]; }
  bool useful(std::size_t s) const { return !by_subject_[s].empty() && last(s).losses.front() < worst_loss; }

  // Keeps the best half (more steps are better), and of the others an even selection.
  void thin_out(std::vector<const Arrival*>& there) const {
    if (there.size() <= local_) return;
    std::vector<std::size_t> order(there.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto far = [&](std::size_t i) { return useful(there[i]->subject) ? last(there[i]->subject).steps : 0; };
    hypertune::detail::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int x = far(a), y = far(b);
      return x != y ? x > y : last(there[a]->subject).losses.front() < last(there[b]->subject).losses.front();
    });
    const std::size_t best = local_ / 2, others = order.size() - best;
    for (std::size_t i = 0; i < local_ - best; ++i) order[best + i] = order[best + i * others / (local_ - best)];
    order.resize(local_);
    std::sort(order.begin(), order.end());
    std::vector<const Arrival*> kept;
    for (const std::size_t i : order) kept.push_back(there[i]);
    there = std::move(kept);
  }

  const History& history_;
  const Encoding& encoding_;
  std::size_t local_;
  std::vector<std::vector<std::size_t>> by_subject_;  // indices of arrivals
};

/// The slope of a level's (standardised) outputs as a function of the level below at the same trials: least squares,
/// shrunk towards a correlation of 0.7. Trials that passed the level below differ less there than all trials did, so
/// that the correlation seems lower than it is. Never negative: bad trials were stopped below, and would be predicted
/// to be good above.
inline double slope_between(const std::vector<double>& below, const std::vector<double>& outputs) {
  constexpr double expected = 0.7, trust = 4, least = 0.03;
  double mean_x = 0, mean_y = 0;
  const double n = static_cast<double>(below.size());
  for (std::size_t i = 0; i < below.size(); ++i) {
    mean_x += below[i] / n;
    mean_y += outputs[i] / n;
  }
  double xy = 0, xx = 0;
  for (std::size_t i = 0; i < below.size(); ++i) {
    xy += (below[i] - mean_x) * (outputs[i] - mean_y);
    xx += (below[i] - mean_x) * (below[i] - mean_x);
  }
  const double spread = std::max(least, std::sqrt(xx / n));
  return std::clamp((xy / spread + trust * expected) / (n + trust), 0.0, 1.0) / spread;
}

/// Adds `level` on top of `chain` with the parameters `stage`. `learn` may change the stage first, given the outputs
/// for a bend. False if the model cannot be built.
template <class Learn>
bool add_level(Chain& chain, const Level& level, Stage& stage, Learn&& learn) {
  std::vector<double> below, variances;
  if (chain.levels() > 0) {
    Matrix points(level.of.size(), level.inputs.features());
    for (std::size_t i = 0; i < points.rows(); ++i)
      for (std::size_t k = 0; k < points.cols(); ++k) points(i, k) = level.inputs.columns[k][i];
    chain.posterior(points, points.rows(), below, variances);
  }
  const auto outputs = [&](Bend bend, double slope) {
    auto bent = transform(level.losses, bend);
    for (std::size_t i = 0; i < below.size(); ++i) bent.values[i] -= slope * below[i];
    return bent;
  };
  const auto slope = [&](Bend bend) {
    return below.empty() ? 0.0 : slope_between(below, transform(level.losses, bend).values);
  };
  learn(outputs, slope);
  std::vector<double> sorted = transform(level.losses, stage.bend).values;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t next = std::clamp<std::size_t>(level.passed, 1, sorted.size() - 1 + (sorted.size() == 1));
  const double bar = sorted.size() == 1 ? sorted.front() : (sorted[next - 1] + sorted[next]) / 2;
  auto model = Model::of(level.inputs, outputs(stage.bend, stage.slope).values, stage.hyper);
  if (!model) return false;
  chain.add(stage.slope, std::move(*model), bar);
  return true;
}

/// Like Learner, for all levels: fits are made at fixed numbers of arrivals, each from the previous one.
class LevelLearner {
 public:
  const std::vector<Stage>& at(const History& history, const Encoding& encoding, std::size_t local) {
    count_ = follow_fits(count_, history.arrivals.size(), &refit_at, [&](std::size_t c, Refit refit) {
      stages_ = fit(Levels(history, encoding, c, local), refit == Refit::alone ? std::vector<Stage>() : stages_);
    });
    return stages_;
  }

  /// The parameters of all levels, starting from `before`. With `rng`, of several objectives.
  static std::vector<Stage> fit(const Levels& levels, const std::vector<Stage>& before, std::size_t objectives = 1,
                                const Rng* rng = nullptr) {
    std::vector<Stage> result;
    Chain chain;
    for (const int steps : levels.steps()) {
      const Level level = levels.level(steps, Arrival::whole, objectives, rng);
      const std::size_t features = level.inputs.features(), size = level.of.size();
      const auto known = std::find_if(before.begin(), before.end(), [&](const Stage& s) {
        return s.steps == steps && s.hyper.log.size() == features + 2;
      });
      Stage stage{steps, Bend::linear, {}, 0};
      const bool added = add_level(chain, level, stage, [&](const auto& outputs, const auto& slope) {
        if (known != before.end()) {
          stage = *known;
          stage.slope = slope(stage.bend);
          stage.hyper = fit_hyper(level.inputs, outputs(stage.bend, stage.slope).values, {known->hyper}, 8).hyper;
          return;
        }
        double best = std::numeric_limits<double>::infinity();
        for (const Bend bend : all_bends) {
          if (objectives > 1 && bend != Bend::linear) continue;
          const double own = slope(bend);
          const auto bent = outputs(bend, own);
          const auto fitted = fit_hyper(level.inputs, bent.values, Learner::starts(features, size), size < 50 ? 20 : 8);
          const double loss = fitted.loss + complexity_penalty(bend) - bent.log_jacobian;
          if (!stage.hyper.log.empty() && !(loss < best)) continue;
          best = loss;
          stage = {steps, bend, fitted.hyper, own};
        }
      });
      if (!added) break;
      result.push_back(std::move(stage));
    }
    return result;
  }

 private:
  static Refit refit_at(std::size_t count) {
    if (count == 4 || count == 8 || count == 16 || count == 32 || count == 64 || count % 256 == 0) return Refit::alone;
    const bool fitted = (count < 32 && count % 4 == 0) || (count < 128 && count % 8 == 0) ||
                        (count < 512 && count % 16 == 0) || count % 64 == 0;
    return fitted ? Refit::onward : Refit::none;
  }

  std::size_t count_ = 0;
  std::vector<Stage> stages_;
};

}  // namespace hypertune::inline v0::detail::gp
