// Exports all reports and all trials of an experiment as Apache Arrow, for pyarrow, pandas, Polars, DuckDB and R. Not
// header-only, because it needs FlatBuffers: link hypertune::arrow.
#pragma once

#include <filesystem>

namespace hypertune::inline v0 {

/// Writes `folder`/reports.arrow and `folder`/trials.arrow in Arrow's IPC file format (Feather version 2),
/// uncompressed, so that they can be mapped into memory. The experiment in `directory` may be running.
///
/// One row per report: `sequence` (number of the record), `time`, `trial`, `attempt`, `step`, and one column
/// `metrics_<name>` per metric, null if the report lacks it. One row per trial: `trial`, `state`, `steps`, `attempts`,
/// `created`, `started`, `ended`, `duration` (seconds), `best_step`, `best_<objective>`, …, `feasible` (if metrics have
/// bounds), `params_<name>`, `metrics_<name>` (of the last report), `attributes_<name>`, `failures`, `cause`. Times are
/// UTC in microseconds. The column of a parameter or an attribute holds flags, whole numbers, numbers, or otherwise
/// text. The schemas' metadata describes the experiment: `name`, `objectives`, `space`, `search`, `schedule`, and its
/// attributes as `attribute_<name>`.
///
/// Memory: one batch of reports, at most 16 MiB or 1,024 rows. Errors: those of JournalReader; `usage` if one of the
/// files exists; `io`.
void export_arrow(const std::filesystem::path& directory, const std::filesystem::path& folder);

}  // namespace hypertune::inline v0
