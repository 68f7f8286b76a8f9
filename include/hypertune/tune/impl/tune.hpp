// Definitions for resume().
#pragma once

#include <hypertune/record/journal_reader.hpp>
#include <hypertune/tune/resumption.hpp>
#include <hypertune/tune/runtime_hooks.hpp>
#include <hypertune/tune/tune.hpp>

namespace hypertune::inline v0 {

Options resumed_options(const std::filesystem::path& directory, const SearchSpace& space, Options options) {
  if (detail::agent_hook()) return options;  // the record is with the driver
  if (!has_journal(directory)) fail(Errc::usage, "'{}' holds no experiment to resume", directory.string());
  options.output = directory;
  options.resume = true;
  if (options.constraints.empty())
    if (const auto last = JournalReader(directory).last_start()) options.constraints = last->constraints;
  return with_recorded(std::move(options), space);
}

}  // namespace hypertune::inline v0
