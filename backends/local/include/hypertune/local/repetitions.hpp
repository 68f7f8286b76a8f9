// The runs of a command that is repeated within a trial: how their reports become one, and the file that keeps them.
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/trial/detail/command_rules.hpp>
#include <hypertune/trial/report.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hypertune::inline v0::local {

/// The report of a trial whose command has made these, one in each run (at least one). It has the metrics that are in
/// all of them, combined by `rule`; NaN if one of the values is. For each of `spread`: its sample standard deviation as
/// NAME_std, unless there is a metric of that name or only one run. Attributes are those of the last run. `modes`: which
/// values of a metric are better, for RepeatRule::worst.
Report combined(const std::vector<Report>& runs, RepeatRule rule, const std::map<std::string, Mode>& modes,
                const std::vector<std::string>& spread);

/// The seed of a run: of the first one the trial's.
std::uint64_t seed_of_repetition(std::uint64_t seed, int repetition);

/// Keeps the reports of runs that have ended in the trial's folder, one on each line after the configuration. What
/// cannot be written or read is only run again.
class RepetitionFile {
 public:
  /// `configuration`: one line; what was kept of another one does not count.
  RepetitionFile(std::filesystem::path file, std::string configuration)
      : file_(std::move(file)), configuration_(std::move(configuration)) {}

  std::vector<Report> read() const;
  /// Writes all runs that have ended.
  void write(const std::vector<Report>& runs) const;

 private:
  std::filesystem::path file_;
  std::string configuration_;
};

}  // namespace hypertune::inline v0::local
