// A sweep as read from its file: plain data, no YAML.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/slurm_options.hpp>
#include <hypertune/config/ssh_executor_options.hpp>
#include <hypertune/record/mlflow_options.hpp>
#include <hypertune/space/search_space.hpp>
#include <hypertune/trial/detail/command_rules.hpp>
#include <hypertune/trial/measured.hpp>
#include <hypertune/tune/options.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

/// A path that a sweep's file names: relative to the current folder or, if there is no such file, to the sweep's own;
/// `~/` is the home folder.
inline std::filesystem::path found_from(const std::filesystem::path& sweep_file, const std::filesystem::path& path) {
  if (path.empty()) return path;
  const std::string text = path.string();
  if (text.starts_with("~/"))
    if (const char* home = std::getenv("HOME")) return std::filesystem::path(home) / text.substr(2);
  std::error_code ignored;
  const auto beside = sweep_file.parent_path() / path;
  const bool is_beside =
      path.is_relative() && !std::filesystem::exists(path, ignored) && std::filesystem::exists(beside, ignored);
  return is_beside ? beside : path;
}

/// The action if a line of a trial's log matches (failures.log).
struct LogRuleOptions {
  std::string match;  ///< a regular expression
  bool exclude_host = false;
  bool no_retry = false;
  std::string where = {};  ///< file:line, for error messages
};

/// A file of each trial, made from a template (trial.files).
struct TrialFileOptions {
  std::string path;                      ///< below the trial's folder
  std::string from;                      ///< the template's file; empty: `text` is given in the sweep
  std::optional<std::string> text = {};  ///< the template; read from `from` before trials begin
  std::string open = "@", close = "@";   ///< the marks round a placeholder
  std::string where = {};                ///< file:line, for error messages
};

/// trial: how to run a trial.
struct TrialOptions {
  std::vector<std::string> command;  ///< with placeholders {name}
  /// Of words of the command that are there together or not at all: the first index, and the one after the last.
  std::vector<std::pair<std::size_t, std::size_t>> command_groups;
  std::vector<TrialFileOptions> files;
  std::map<std::string, std::string> metrics;  ///< regular expressions over the output, by metric; empty: JSON lines
  std::map<std::string, std::string> units;    ///< percent, seconds, bytes or count, by metric; of those that name it
  std::string step;                            ///< a regular expression that finds the step; empty: steps are counted
  std::optional<int> first_step;               ///< what the program calls its first step, if that is said
  bool steps_of_attempt = false;               ///< whether it counts anew from a checkpoint
  std::map<std::string, std::string> environment;
  std::vector<std::pair<std::string, Measured>> measure;  ///< what hypertune measures, by the metrics' names
  double stop_grace = 10;                                 ///< seconds from SIGTERM to SIGKILL
  CommandOutput output = CommandOutput::pipe;
  std::vector<int> success{0};  ///< exit codes that mean success
  ReportRule report = ReportRule::each;
  RepeatOptions repeat;
  std::vector<LogRuleOptions> log_rules;
  /// file:line, for errors that are found when these are compiled: of each word of the command, and of each metric's
  /// expression.
  std::vector<std::string> command_places;
  std::map<std::string, std::string> metric_places;
  std::string step_place;
};

/// executor: where the trials run.
struct ExecutorOptions {
  std::string type = "local";         ///< local, ssh, slurm or kubernetes
  std::string isolation = "process";  ///< local: process or thread
  double cpus = 0, gpus = -1;         ///< what the machine, or each host, offers; 0 and -1: all it has
  std::uint64_t memory = 0;
  std::map<std::string, double> custom;
  std::optional<SshExecutorOptions> ssh;        ///< of type ssh
  std::optional<SlurmOptions> slurm;            ///< of type slurm
  std::optional<KubernetesOptions> kubernetes;  ///< of type kubernetes
};

/// A sweep as read from its file: everything is validated, nothing is started. The caller sets `options.executor`, as
/// it depends on the backends in the build.
struct Sweep {
  SearchSpace space;
  Options options;
  std::optional<TrialOptions> trial;  ///< absent in a study's file
  ExecutorOptions executor;
  std::vector<MlflowOptions> mlflow;  ///< the caller starts these loggers, as they are compiled separately
  std::filesystem::path file;
};

}  // namespace hypertune::inline v0
