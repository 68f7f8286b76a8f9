// Takes options that were not given from the record.
#pragma once

#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/tune/detail/experiment_directory.hpp>
#include <hypertune/tune/detail/resumption.hpp>
#include <hypertune/tune/detail/runtime_hooks.hpp>

#include <optional>

namespace hypertune::inline v0 {

Options with_recorded(Options options, const SearchSpace& space) {
  options.take_old_names();
  if (!options.resume || detail::agent_hook()) return options;  // in an agent, the record is with the driver
  const auto directory = experiment_directory(options);
  if (!has_journal(directory)) return options;
  std::optional<record::ExperimentStarted> last;
  try {
    last = JournalReader(directory).last_start();
  } catch (const Error&) { return options; }  // opening it for writing later says what is wrong
  if (!last) return options;
  if (!options.name.given()) options.name = last->name;
  if (!options.samples.given()) options.samples = last->samples / trials_per_sample(space, options.search);
  if (!options.seed.given()) options.seed = last->seed;
  if (!options.objectives.empty() || last->objectives.empty()) return options;
  const Objective& first = last->objectives.front();
  if (!options.metric.given() && !options.mode.given())
    options.objectives = last->objectives;
  else if (!options.metric.given())
    options.metric = first.metric;
  else if (!options.mode.given() && *options.metric == first.metric)
    options.mode = first.mode;
  return options;
}

}  // namespace hypertune::inline v0
