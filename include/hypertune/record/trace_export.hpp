// An experiment as a trace, for Perfetto (ui.perfetto.dev) and chrome://tracing.
#pragma once

#include <hypertune/detail/linkage.hpp>

#include <filesystem>
#include <functional>
#include <string_view>

namespace hypertune::inline v0 {

/// Writes the experiment in `directory` (which may be running) in pieces to `sink` as JSON of the Trace Event Format.
///
/// Each host is a process of the trace, and each trial that it runs at a time a thread ("slot 0", …; of several workers
/// each has its slot). There are slices for attempts, with their steps inside, and instants for checkpoints, failures,
/// resizes and notes. The process "trials" has the times in which each trial was pending, ran, or was paused, and how
/// long its checkpoints took from the report to the record, which includes their way from another host; the process
/// "experiment" its drivers, hosts that come and go, how many trials run, and the best so far. An arrow leads from a
/// checkpoint to where training went on from it. Microseconds since the experiment's first start.
///
/// What it holds grows with the trials that run, not with reports. Errors: as JournalReader's.
void export_trace(const std::filesystem::path& directory, const std::function<void(std::string_view)>& sink);

}  // namespace hypertune::inline v0

#ifndef HYPERTUNE_COMPILED
#include <hypertune/record/impl/trace_export.hpp>
#endif
