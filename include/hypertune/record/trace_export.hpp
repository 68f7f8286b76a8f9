// Exports an experiment as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace hypertune::inline v0 {

/// Writes the experiment in `directory` (which may be running) in pieces to `sink`, as JSON of the Trace Event Format.
///
/// Each host is a process of the trace. Each trial that it runs at a time is a thread ("slot 0", …); every worker of a
/// trial has its own slot. Attempts are slices, with their steps inside; checkpoints, failures, resizes and notes are
/// instants. The process "trials" shows when each trial was pending, running or paused, and how long its checkpoints
/// took from the report to the record, including the transfer from another host. The process "experiment" shows the
/// drivers, hosts that come and go, the number of running trials, and the best value so far that meets the constraints. An arrow leads from a
/// checkpoint to the attempt that continued from it. Times are microseconds since the experiment's first start.
///
/// Memory grows with the trials that have not ended, not with reports. Errors: those of JournalReader.
void export_trace(const std::filesystem::path& directory, const std::function<void(std::string_view)>& sink);

}  // namespace hypertune::inline v0
