// Where an experiment is kept.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/record/journal_schema.hpp>
#include <hypertune/tune/options.hpp>

#include <filesystem>

namespace hypertune::inline v0 {

/// The folder of an experiment: what the user named, or runs/<name>, or runs/<name>-2, … where that is taken.
inline std::filesystem::path experiment_directory(const Options& options) {
  if (!options.output.empty()) return options.output;
  const std::filesystem::path first = std::filesystem::path("runs") / *options.name;
  if (options.resume || !has_journal(first)) return first;
  for (int i = 2;; ++i) {
    auto next = first;
    next += detail::format("-{}", i);
    if (!has_journal(next)) return next;
  }
}

}  // namespace hypertune::inline v0
