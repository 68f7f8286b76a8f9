// Replay: trains with one configuration after the other, following a schedule.
#pragma once

#include <hypertune/detail/indirect.hpp>
#include <hypertune/record/trial_result.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/searcher.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
struct ReplayState;
}

/// Trains by the schedule of an earlier trial of population based training: at each entry's step the trial is saved and
/// continues with that entry's configuration. It is both the searcher, which suggests only the first configuration, and
/// the scheduler:
/// ```cpp
/// const auto found = ht::Results::read("runs/pbt");
/// const ht::Replay replay{.schedule = found.schedule(found.best()), .max_steps = 200};
/// options.search = replay; options.schedule = replay;   // options.samples: number of repetitions
/// ```
/// With `samples` above 1 the schedule is trained that many times, with different seeds. Trials must save their state.
struct Replay {
  static constexpr const char* type = "replay";

  std::vector<ScheduleEntry> schedule;  ///< by ascending step, the first from step 0
  int max_steps = 0;                    ///< steps after which a trial is complete; 0: no limit

  static void describe(auto& self, auto&& option) {
    option("max_steps", self.max_steps, at_least(0), "steps after which a trial is complete; 0: no limit");
  }

  detail::Indirect<detail::ReplayState> state_{};

  static constexpr bool exploits = true;
  static constexpr bool multi_objective = true;

  void check() const;

  // --- the searcher
  void prepare(const SearchSpace& space, const SearchContext&) { prepare(space, std::uint64_t{0}); }
  Suggestion suggest(const Ask&);
  void observe(const Observation&) {}

  // --- the scheduler
  void prepare(const SearchSpace& space, std::uint64_t);
  void on_create(TrialId trial);
  Decision on_report(const Progress& progress);
  void on_exploit(TrialId id, TrialId, const Point&);
  void on_resume(TrialId id);
  void on_end(TrialId id, TrialState);
  Choice choose_next(const Pool& pool) const;

  std::string name() const { return "replay"; }
};

}  // namespace hypertune::inline v0
