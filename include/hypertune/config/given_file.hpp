// Files that `start_with` and `known` of a sweep name.
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/tune/policies.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// What a file of configurations is read for.
struct GivenFor {
  const SearchSpace& space;
  /// With results: the tuned metrics, which each row must have; and further metrics to look for.
  std::vector<Objective> objectives = {};
  std::vector<std::string> further = {};
  bool results = false;
};

/// The rows of `path`: the folder of an experiment, a file of CSV (with a header) or one of JSON lines, told apart by
/// their names and contents.
///
/// A column of CSV is the parameter, metric or number of steps that it names; `params_`, `config/` and `metrics_` before
/// the name are understood, so that exports of hypertune and tables of Optuna and Ray can be read. Other columns are
/// ignored. A line of JSON is an object `{"params": …, "metrics": …, "steps": …}` or, without results, the
/// configuration itself. Trials that failed or have not ended are left out, as far as the rows say so.
///
/// Every configuration has met the space and its constraints. An Error of kind `input`, with file and line (or trial),
/// if one does not, if a row cannot be read or lacks a tuned metric, and if there are more than 256 MiB or 1,000,000
/// rows.
std::vector<KnownResult> read_given(const std::filesystem::path& path, const GivenFor& wanted);
/// What it says of a path where nothing is.
std::string no_given_file(const std::filesystem::path& path);

/// The same of a text; `name` stands for its file.
std::vector<KnownResult> read_given_text(std::string_view text, const std::string& name, const GivenFor& wanted);

}  // namespace hypertune::inline v0
