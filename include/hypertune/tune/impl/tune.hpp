// What resume() takes from the record.
#pragma once

#include <hypertune/record/journal_reader.hpp>
#include <hypertune/tune/tune.hpp>

#include <cstdint>
#include <optional>
#include <variant>

namespace hypertune {

HYPERTUNE_INLINE Options resumed_options(const std::filesystem::path& directory, const SearchSpace& space,
                                         Options options) {
  if (!has_journal(directory)) fail(Errc::usage, "'{}' holds no experiment to resume", directory.string());
  std::optional<record::ExperimentStarted> first;
  read_journal(directory, [&](const Record& record) {
    if (const auto* started = std::get_if<record::ExperimentStarted>(&record.what)) first = *started;
    return !first;
  });
  const Options defaults;
  if (first) {
    if (options.name == defaults.name) options.name = first->name;
    if (options.objectives.empty() && options.metric == defaults.metric) options.objectives = first->objectives;
    const bool times_grid = !options.search.covers_grid() && space.grid_size() > 1;
    if (options.samples == 0)
      options.samples = first->samples / (times_grid ? static_cast<std::int64_t>(space.grid_size()) : 1);
    if (options.seed == 0) options.seed = first->seed;
  }
  options.output = directory;
  options.resume = true;
  return options;
}

}  // namespace hypertune
