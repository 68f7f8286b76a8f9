// Converts records to updates of MLflow runs. No I/O.
#pragma once

#include <hypertune/record/record.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::detail::mlflow {

/// The id of the run for the whole experiment, among those of trials.
inline constexpr TrialId parent_run = -1;

struct Metric {
  std::string key;
  double value;
  std::int64_t time;  // ms since 1970
  std::int64_t step;
};

struct RunUpdate {
  std::string name;          // used if the run has to be created
  std::int64_t created = 0;  // ms since 1970
  std::vector<std::pair<std::string, std::string>> params;
  std::vector<Metric> metrics;
  std::map<std::string, std::string> tags;
  std::string status;  // empty: unchanged
  std::optional<std::int64_t> ended;
};

/// Makes a key that MLflow allows: letters, digits, and `_-. :/`, at most 250 bytes. If a name is not such a key, its
/// other characters become `_`, and a hash of the whole name is appended, so that different names have different keys.
std::string key_text(std::string_view name);
/// At most `bytes` bytes of the text, without splitting a character.
std::string cut(std::string_view text, std::size_t bytes);

/// Collects records, in order, as updates for each run.
class RunUpdates {
 public:
  void add(const Record& record);
  std::map<TrialId, RunUpdate>& runs() { return runs_; }

 private:
  friend struct Take;
  std::map<TrialId, RunUpdate> runs_;
};

/// The bodies of log-batch requests for this run: as many as MLflow's limits require.
std::vector<std::string> log_batches(const std::string& run, const RunUpdate& update);

}  // namespace hypertune::inline v0::detail::mlflow
