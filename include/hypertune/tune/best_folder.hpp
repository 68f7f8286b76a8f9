// best/: the best trial's parameters, result and checkpoint, in one place that a user can copy.
#pragma once

#include <hypertune/checkpoint/local_store.hpp>
#include <hypertune/detail/stable_sort.hpp>
#include <hypertune/record/detail/front.hpp>
#include <hypertune/record/results.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

// Sealed checkpoints never change, so a hard link is as good as a copy and costs nothing.
inline void link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to) {
  namespace fs = std::filesystem;
  fs::create_directories(to);
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    const auto target = to / fs::relative(entry.path(), from);
    if (entry.is_directory()) {
      fs::create_directories(target);
    } else {
      std::error_code error;
      fs::create_hard_link(entry.path(), target, error);
      if (error) fs::copy_file(entry.path(), target, fs::copy_options::overwrite_existing);
    }
  }
}

/// A trial's checkpoints: that of the best step if it is kept, then the newest ones.
inline std::vector<CheckpointInfo> checkpoints_best_first(const TrialResult& trial) {
  auto checkpoints = trial.checkpoints;
  const auto rank = [at = trial.best ? trial.best->step + 1 : -1](const CheckpointInfo& c) {
    return c.steps == at ? std::numeric_limits<int>::max() : c.steps;
  };
  hypertune::detail::stable_sort(checkpoints.begin(), checkpoints.end(),
                                 [&](const auto& a, const auto& b) { return rank(a) > rank(b); });
  return checkpoints;
}

/// Links or copies the files of the first undamaged one of these into `target`.
inline void link_checkpoint(const TrialResult& trial, LocalCheckpointStore& store,
                            const std::filesystem::path& target) {
  for (const auto& checkpoint : checkpoints_best_first(trial)) {
    try {
      return link_or_copy(store.open(checkpoint).directory(), target);
    } catch (const Error& e) {  // damaged, or removed by the user: try the next one
      if (e.code() != Errc::corrupt) throw;
    }
  }
}

}  // namespace detail

/// Replaces `directory`/best: result.json (as `hypertune best --format json` prints it) and, if the best trial has one,
/// checkpoint/ with the files of the best step's checkpoint if it is kept, else of the newest undamaged one. With
/// several objectives result.json lists the Pareto front, and the checkpoints are in trials/<id>/checkpoint/. Without a
/// best trial nothing is written. The previous folder is replaced as a whole, not merged.
inline void write_best(const Results& results, LocalCheckpointStore& store, const std::filesystem::path& directory) {
  namespace fs = std::filesystem;
  const auto best = results.find_best();
  if (!best) return;
  const fs::path aside = directory / ".best-new";
  try {
    fs::remove_all(aside);
    fs::create_directories(aside);
    std::ofstream out(aside / "result.json");
    if (results.experiment().objectives.size() > 1) {
      const char* separator = "[";
      for (const TrialId id : pareto_front(results)) {
        const TrialResult trial = results.trial(id);
        detail::link_checkpoint(trial, store, aside / "trials" / std::to_string(id) / "checkpoint");
        out << std::exchange(separator, ",\n ") << results.json(trial);
      }
      out << "]\n";
    } else {
      detail::link_checkpoint(*best, store, aside / "checkpoint");
      out << results.json(*best) << '\n';
    }
    if (!out.flush()) fail(Errc::io, "cannot write '{}': is the disk full?", (aside / "result.json").string());
    fs::remove_all(directory / "best");
    fs::rename(aside, directory / "best");
  } catch (const fs::filesystem_error& e) {
    fail(Errc::io, "cannot write '{}': {}", (directory / "best").string(), e.code().message());
  }
}

}  // namespace hypertune::inline v0
