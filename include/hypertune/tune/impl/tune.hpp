// What resume() takes from the record.
#pragma once

#include <hypertune/record/journal_reader.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/tune/stand_in.hpp>
#include <hypertune/tune/tune.hpp>

namespace hypertune {

template <class>
Options resumed_options(const std::filesystem::path& directory, const SearchSpace& space, Options options) {
  if (detail::stand_in()) return options;  // the record is with the driver
  if (!has_journal(directory)) fail(Errc::usage, "'{}' holds no experiment to resume", directory.string());
  const Options defaults;
  if (const auto last = JournalReader(directory).last_start()) {
    if (options.name == defaults.name) options.name = last->name;
    if (options.objectives.empty() && options.metric == defaults.metric) options.objectives = last->objectives;
    if (options.samples == 0) options.samples = last->samples / trials_per_sample(space, options.search);
    if (options.seed == 0) options.seed = last->seed;
  }
  options.output = directory;
  options.resume = true;
  return options;
}

}  // namespace hypertune
