// The laws of a Searcher, for any implementation: check_searcher([] { return MySearcher{}; }).
#pragma once

#include "spaces.hpp"
#include "test.hpp"

#include <hypertune/search/searcher.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace hypertune_test {

struct SearcherLaws {
  bool distinct = false;  ///< no configuration is suggested twice
  int trials = 60;        ///< in each space
  bool thousand_dimensions = true;
  std::size_t objectives = 1;
};

/// What results the trials of a simulated experiment have.
enum class Fate { mixed, all_infinite, all_failed, none_returns };

namespace conformance {

/// What a searcher was told, and what it answered.
struct SearchEvent {
  enum class Kind { asked, started, reported, ended } kind;
  hypertune::TrialId trial;
  hypertune::Point point;  // asked: the answer
  hypertune::Suggestion::Kind answer = hypertune::Suggestion::Kind::point;
  int steps = 0;
  std::vector<double> losses;
  hypertune::TrialState state = hypertune::TrialState::running;
};

inline void tell(hypertune::AnySearcher& searcher, const SearchEvent& e) {
  using Kind = hypertune::Observation::Kind;
  searcher.observe({.kind = e.kind == SearchEvent::Kind::started    ? Kind::started
                            : e.kind == SearchEvent::Kind::reported ? Kind::report
                                                                    : Kind::ended,
                    .trial = e.trial,
                    .point = e.point,
                    .steps = e.steps,
                    .losses = e.losses,
                    .state = e.state});
}

inline bool same(const hypertune::Point& a, const hypertune::Point& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return x == y || (!hypertune::is_active(x) && !hypertune::is_active(y));
  });
}

inline hypertune::Suggestion ask(hypertune::AnySearcher& searcher, hypertune::TrialId trial, std::uint64_t seed) {
  hypertune::Rng rng = hypertune::derived_rng(seed, {static_cast<std::uint64_t>(trial), 1});
  return searcher.suggest({.trial = trial, .rng = rng});
}

/// A simulated experiment: trials start, report, end in any order, some never; now and then one comes from elsewhere.
inline std::vector<SearchEvent> live(hypertune::AnySearcher searcher, const hypertune::SearchSpace& space, Fate fate,
                                     const SearcherLaws& laws, std::uint64_t seed) {
  using hypertune::Suggestion;
  using hypertune::TrialState;
  hypertune::Rng chance(seed + 17);
  searcher.prepare(space, {.objectives = laws.objectives, .samples = laws.trials, .parallelism = 4, .seed = seed});
  std::vector<SearchEvent> events;
  const auto happens = [&](SearchEvent e) {
    tell(searcher, e);
    events.push_back(std::move(e));
  };
  struct Running {
    hypertune::TrialId trial;
    hypertune::Point point;
    int steps = 0;
    std::vector<double> losses;
  };
  std::vector<Running> running;
  const auto losses = [&] {
    std::vector<double> result(laws.objectives);
    for (double& x : result)
      x = fate == Fate::all_infinite || hypertune::uniform01(chance) < 0.1 ? hypertune::worst_loss
          : hypertune::uniform01(chance) < 0.05                            ? 1e308
                                                                           : hypertune::uniform01(chance) - 0.5;
    return result;
  };
  const auto end_one = [&] {
    const auto at = static_cast<std::ptrdiff_t>(hypertune::uniform01(chance) * static_cast<double>(running.size()));
    Running trial = std::move(running[static_cast<std::size_t>(at)]);
    running.erase(running.begin() + at);
    const double x = hypertune::uniform01(chance);
    const auto state = fate == Fate::all_failed || x < 0.15 ? TrialState::failed
                       : x < 0.5                            ? TrialState::stopped
                                                            : TrialState::completed;
    if (state != TrialState::failed && trial.losses.empty()) {
      trial.losses = losses();
      trial.steps = 1;
      happens({SearchEvent::Kind::reported, trial.trial, trial.point, {}, trial.steps, trial.losses, {}});
    }
    happens({SearchEvent::Kind::ended, trial.trial, trial.point, {}, trial.steps, trial.losses, state});
  };
  bool exhausted = false;
  for (hypertune::TrialId trial = 0; trial < laws.trials;) {
    const double x = hypertune::uniform01(chance);
    if (!running.empty() && fate != Fate::none_returns && (x < 0.2 || running.size() > 6)) {
      end_one();
      continue;
    }
    if (!running.empty() && x < 0.5 && fate != Fate::all_failed) {
      auto& r = running[static_cast<std::size_t>(hypertune::uniform01(chance) * static_cast<double>(running.size()))];
      r.losses = losses();
      ++r.steps;
      happens({SearchEvent::Kind::reported, r.trial, r.point, {}, r.steps, r.losses, {}});
      if (x < 0.35) continue;
    }
    hypertune::Point point;
    if (!laws.distinct && !exhausted && hypertune::uniform01(chance) < 0.05) {
      point = space.sample(chance);  // known from elsewhere
    } else {
      const Suggestion answer = ask(searcher, trial, seed);
      const Suggestion again = ask(searcher, trial, seed);
      REQUIRE(answer.kind == again.kind);
      INFO("asking twice in a row gives the same point");
      REQUIRE(same(answer.point, again.point));
      events.push_back({SearchEvent::Kind::asked, trial, answer.point, answer.kind, 0, {}, {}});
      if (answer.kind == Suggestion::Kind::wait) {
        INFO("a searcher must not wait when nothing is pending");
        REQUIRE_FALSE(running.empty());
        REQUIRE_FALSE(exhausted);
        if (fate == Fate::none_returns) break;
        end_one();
        continue;
      }
      if (answer.kind == Suggestion::Kind::exhausted) {
        if (exhausted && running.empty()) break;
        exhausted = true;
        if (running.empty() || fate == Fate::none_returns) break;
        end_one();
        continue;
      }
      INFO("exhaustion is final");
      REQUIRE_FALSE(exhausted);
      point = answer.point;
      const auto problem = space.invalid(point);
      INFO("suggested: " << problem.value_or("a sound point"));
      REQUIRE_FALSE(problem);
      REQUIRE(space.feasible(point));
    }
    running.push_back({trial, point, 0, {}});
    happens({SearchEvent::Kind::started, trial, point, {}, 0, {}, {}});
    ++trial;
  }
  return events;
}

}  // namespace conformance

/// Puts a searcher through the laws of searcher.hpp in every space of the table: each suggestion lies in the space and
/// meets its conditions and constraints; a searcher that was told the same goes on with the same suggestions, whether
/// it was asked before or not; infinite losses, failed trials and trials that never return do no harm; exhaustion is
/// final.
template <class Make>
void check_searcher(Make make, SearcherLaws laws = {}) {
  for (const auto& [name, space] : spaces()) {
    if (space.size() >= 1000 && !laws.thousand_dimensions) continue;
    for (const Fate fate : {Fate::mixed, Fate::all_infinite, Fate::all_failed, Fate::none_returns}) {
      INFO("space: " << name << ", fate: " << static_cast<int>(fate));
      SearcherLaws own = laws;
      if (space.size() >= 1000) own.trials = std::min(laws.trials, 12);
      const std::uint64_t seed = 7 + static_cast<std::uint64_t>(fate);
      const auto events = conformance::live(hypertune::AnySearcher(make()), space, fate, own, seed);

      // One that is told the same, but asked only now and then, answers the same; so does a copy of it.
      hypertune::AnySearcher replayed(make());
      replayed.prepare(space, {.objectives = laws.objectives, .samples = own.trials, .parallelism = 4, .seed = seed});
      std::size_t asked = 0;
      std::vector<hypertune::Point> seen;
      for (const auto& e : events) {
        if (e.kind != conformance::SearchEvent::Kind::asked) {
          conformance::tell(replayed, e);
          continue;
        }
        if (laws.distinct && e.answer == hypertune::Suggestion::Kind::point) {
          INFO("no configuration is suggested twice");
          REQUIRE(std::none_of(seen.begin(), seen.end(), [&](const auto& p) { return conformance::same(p, e.point); }));
          seen.push_back(e.point);
        }
        if (++asked % 3 != 0) continue;
        hypertune::AnySearcher copy = replayed;
        for (auto* searcher : {&copy, &replayed}) {
          const auto answer = conformance::ask(*searcher, e.trial, seed);
          INFO("trial " << e.trial << ": the replayed searcher answers as the first one did");
          REQUIRE(answer.kind == e.answer);
          REQUIRE(conformance::same(answer.point, e.point));
        }
      }
    }
  }
}

}  // namespace hypertune_test
