// Experiments of other programs as experiments of hypertune. Compiled: link hypertune::import.
#pragma once

#include <hypertune/record/record.hpp>

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace hypertune::inline v0 {

struct ImportOptions {
  std::string study;         ///< of an Optuna storage: which one; empty: the only one there is
  std::string metric;        ///< Ray: the objective, which it does not write down; Optuna: what to call its value
  std::optional<Mode> mode;  ///< Ray: its direction
};

/// What was taken.
struct Imported {
  std::string what;          ///< "study 'digits' of Optuna"
  std::size_t trials = 0;    ///< that are there now
  std::size_t left_out = 0;  ///< that had not begun or not ended
  std::size_t damaged = 0;   ///< of Ray: that cannot be read; they are left out, too
  std::string damage;        ///< … and what is wrong with the first one
};

/// Writes what is in `source` as an experiment into the new folder `directory`, so that all that reads experiments
/// reads it: `results`, `compare`, `export`, a searcher's warm start. `source` is an SQLite storage of Optuna (3.0 or
/// newer), a file of its JournalStorage, or a folder of Ray Tune's results (a folder with `params.json` and
/// `result.json` for each trial). It is not changed.
///
/// Trials are numbered by when they began; what they were called is their attribute `optuna_number` or `ray_trial`.
/// Optuna's trials have what they ended with as the objective, in their last report, and are judged by that alone, as
/// Optuna does; intermediate values are the metric `intermediate_value`, in reports spread over the trial's time, as it
/// does not record theirs. Its pruned trials are stopped ones, without the objective. Of Ray each result is a report.
/// Nested names of Ray are joined by `/`. Errors: `usage`
/// (an experiment in `directory`; no or several studies; no metric), `input` (what `source` holds is none of these),
/// `io`.
Imported import_experiment(const std::filesystem::path& source, const std::filesystem::path& directory,
                           const ImportOptions& options = {});

}  // namespace hypertune::inline v0
