// All reports and all trials of an experiment as Apache Arrow, for pyarrow, pandas, Polars, DuckDB and R. Compiled, as
// it needs FlatBuffers: link hypertune::arrow.
#pragma once

#include <filesystem>

namespace hypertune::inline v0 {

/// Writes `folder`/reports.arrow and `folder`/trials.arrow in Arrow's IPC file format (Feather version 2),
/// uncompressed, so that they can be mapped into memory. The experiment in `directory` may be running.
///
/// A row for each report: `sequence` (number of the record), `time`, `trial`, `attempt`, `step`, and `metrics_<name>`
/// of each metric, null where the report has none. A row for each trial: `trial`, `state`, `steps`, `attempts`,
/// `created`, `started`, `ended`, `duration` (seconds), `best_step`, `best_<objective>`, …, `feasible` (where metrics
/// have bounds), `params_<name>`, `metrics_<name>` (of the last report), `attributes_<name>`, `failures`, `cause`.
/// Times are UTC in microseconds. A parameter or an attribute is a column of flags, whole numbers, numbers, or else of
/// text. The schemas' metadata has the experiment: `name`, `objectives`, `space`, `search`, `schedule`, and its
/// attributes as `attribute_<name>`.
///
/// Of reports it holds one batch of at most 16 MiB or 1,024 rows. Errors: as JournalReader's, `usage` where one of the
/// files exists, `io`.
void export_arrow(const std::filesystem::path& directory, const std::filesystem::path& folder);

}  // namespace hypertune::inline v0
