// Definitions for resume().
#pragma once

#include <hypertune/record/detail/journal_reader.hpp>
#include <hypertune/tune/detail/resumption.hpp>
#include <hypertune/tune/detail/runtime_hooks.hpp>
#include <hypertune/tune/tune.hpp>

#include <memory>
#include <string>
#include <utility>

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

std::string detail::first_metric(const Options& options) { return objectives_of(options).front().metric; }

Results tune(const SearchSpace& space, std::shared_ptr<const Program> program, Options options) {
  return Tuner(space, std::move(program), std::move(options)).run();
}

}  // namespace hypertune::inline v0
