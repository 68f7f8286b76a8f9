// Imports experiments of other programs. Not header-only: link hypertune::import.
#pragma once

#include <hypertune/record/record.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace hypertune::inline v0 {

struct ImportOptions {
  std::string study;         ///< Optuna: the name of the study; may be empty if the storage has only one
  std::string metric;        ///< Ray: the objective, which its results do not record; Optuna: a name for its value
  std::optional<Mode> mode;  ///< Ray: the direction of the objective
};

/// The result of an import.
struct Imported {
  std::string what;          ///< such as "study 'digits' of Optuna"
  std::size_t trials = 0;    ///< in the new experiment
  std::size_t left_out = 0;  ///< trials that had not begun or not ended
  std::size_t damaged = 0;   ///< Ray: trials that cannot be read; they are left out, too
  std::string damage;        ///< what is wrong with the first of these
  std::size_t earlier = 0;   ///< Ray: trials of earlier runs in the same folder; they are left out, too
};

/// Writes the contents of `source` as an experiment into the new folder `directory`, so that everything that reads
/// experiments can use it: `results`, `compare`, `export`, a searcher's warm start. `source` is an SQLite storage of
/// Optuna (3.0 or newer), a file of its JournalStorage, or a folder of Ray Tune's results (a folder with `params.json`
/// and `result.json` for each trial). It is not changed.
///
/// The attribute `optuna_number` or `ray_trial` keeps the original name of a trial. Trials of Optuna are in the order of
/// their numbers, those of Ray in the order in which they began. The final value of an Optuna trial becomes the
/// objective in its last report, and the trial is judged by that alone, as in Optuna. Its intermediate values become the
/// metric `intermediate_value`, in reports spread over the trial's time, because Optuna does not record their times. Its
/// pruned trials become stopped trials without the objective. Its constraints become metrics in the last report that
/// must be at most 0: `constraint_0`, … or `constraint_NAME`. In a storage that Optuna 5.0 or newer wrote, one that a
/// complete trial lacks counts as met, as there, and is 0. Each result of Ray becomes a report; nested names are joined
/// by `/`, true is 1 and false 0. Its trials end as their status in the newest `experiment_state-*.json` says
/// (docs/command-line.md has the mapping). Errors: `usage` (there is an
/// experiment in `directory`; no study or several; no metric), `input` (`source` is none of these), `io`.
Imported import_experiment(const std::filesystem::path& source, const std::filesystem::path& directory,
                           const ImportOptions& options = {});

}  // namespace hypertune::inline v0
