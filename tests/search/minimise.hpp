// Runs a searcher on a function, as an experiment would.
#pragma once

#include <hypertune/search/searcher.hpp>
#include <hypertune/space/space.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace hypertune_test {

/// [0, 1]^n, named x0, x1, …
inline hypertune::SearchSpace unit_cube(std::size_t n) {
  std::vector<hypertune::Dim<hypertune::Params>> dims;
  for (std::size_t i = 0; i < n; ++i) dims.push_back(hypertune::dim("x" + std::to_string(i), hypertune::uniform(0, 1)));
  return hypertune::Space<>(dims);
}

struct Run {
  std::vector<hypertune::Point> points;
  std::vector<double> losses;
  double best() const {
    return losses.empty() ? hypertune::worst_loss : *std::min_element(losses.begin(), losses.end());
  }
};

inline void tell_started(hypertune::AnySearcher& searcher, hypertune::TrialId trial, const hypertune::Point& point) {
  searcher.observe({.kind = hypertune::Observation::Kind::started, .trial = trial, .point = point});
}
inline void tell_ended(hypertune::AnySearcher& searcher, hypertune::TrialId trial, const hypertune::Point& point,
                       const std::vector<double>& losses,
                       hypertune::TrialState state = hypertune::TrialState::completed, int steps = 1,
                       const std::vector<double>& constraints = {}) {
  searcher.observe({.kind = hypertune::Observation::Kind::ended,
                    .trial = trial,
                    .point = point,
                    .steps = steps,
                    .losses = losses,
                    .constraints = constraints,
                    .state = state});
}

/// `parallel` trials at a time, which end in a random order; fewer where the searcher is exhausted.
inline Run minimise(hypertune::AnySearcher searcher, const hypertune::SearchSpace& space,
                    const std::function<double(const hypertune::Point&)>& f, int trials, std::uint64_t seed,
                    int parallel = 1) {
  Run run;
  hypertune::Rng chance(seed + 99);
  searcher.prepare(space, {.samples = trials, .parallelism = parallel, .seed = seed});
  std::vector<std::pair<hypertune::TrialId, hypertune::Point>> running;
  for (hypertune::TrialId t = 0; t < trials || !running.empty();) {
    if (t < trials && static_cast<int>(running.size()) < parallel) {
      hypertune::Rng rng = hypertune::derived_rng(seed, {static_cast<std::uint64_t>(t), 1});
      auto suggestion = searcher.suggest({.trial = t, .rng = rng});
      if (suggestion.kind == hypertune::Suggestion::Kind::exhausted) {
        trials = static_cast<int>(t);
        continue;
      }
      tell_started(searcher, t, suggestion.point);
      running.emplace_back(t++, std::move(suggestion.point));
      continue;
    }
    const auto at = running.begin() +
                    static_cast<std::ptrdiff_t>(hypertune::uniform01(chance) * static_cast<double>(running.size()));
    run.losses.push_back(f(at->second));
    run.points.push_back(at->second);
    tell_ended(searcher, at->first, at->second, {run.losses.back()});
    running.erase(at);
  }
  return run;
}

/// The median of the best losses over seeds.
inline double median_best(const std::function<hypertune::AnySearcher()>& make, const hypertune::SearchSpace& space,
                          const std::function<double(const hypertune::Point&)>& f, int trials, int seeds = 9,
                          int parallel = 1) {
  std::vector<double> bests;
  for (int seed = 0; seed < seeds; ++seed)
    bests.push_back(minimise(make(), space, f, trials, static_cast<std::uint64_t>(seed), parallel).best());
  std::nth_element(bests.begin(), bests.begin() + seeds / 2, bests.end());
  return bests[static_cast<std::size_t>(seeds / 2)];
}

}  // namespace hypertune_test
