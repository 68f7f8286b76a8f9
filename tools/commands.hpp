// The subcommands of `hypertune`. Each returns the exit code, and throws hypertune::Error if it fails.
#pragma once

#include <hypertune/record/results.hpp>
#include <hypertune/show/detail/dashboard_start.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace hypertune::inline v0::command {

inline constexpr int exit_done = 0;        ///< done
inline constexpr int exit_failed = 1;      ///< the experiment failed
inline constexpr int exit_usage = 2;       ///< bad usage or bad input
inline constexpr int exit_unanswered = 3;  ///< the driver has not answered a request, which stays
inline constexpr int exit_interrupted = 130;

struct RunArguments {
  std::string file;
  std::string executor;          ///< empty: the one in the file
  std::vector<std::string> set;  ///< key=value
  std::string samples;           ///< N, or +N for N more than there are
  std::string output;
  bool resume = false, retry_failed = false, quiet = false, plain = false;
  bool dashboard = false;
  std::uint16_t port = 0;  ///< of the dashboard
};
int run(const RunArguments& arguments);

struct StudyArguments {
  std::string file;
  std::vector<std::string> set;
  std::string output;
  std::uint16_t port = 0;
  bool resume = false;
};
int study(const StudyArguments& arguments);

struct DashboardArguments {
  std::vector<std::string> folders;
  std::string listen = "127.0.0.1";
  std::string identity, token;  ///< files; empty: new ones
  std::uint16_t port = 0;
  bool open = false;
};
int dashboard(const DashboardArguments& arguments);
/// Starts the page of an experiment that this program runs, for Options::dashboard.
DashboardStart dashboard_of_run(std::uint16_t port);
/// The ssh command that a user on another machine runs to reach a loopback port of this machine; empty if this is not a
/// remote shell.
std::string tunnel_line(std::uint16_t port);

/// "running", "ended", … `exit_reason`: the message of a driver that ended with an error. `paused`: the user has paused
/// the whole experiment.
const char* state_of(const ExperimentInfo& info, bool driven, const std::string& exit_reason, bool paused);
/// Asks the driver of a running experiment whether the user has paused the whole experiment.
bool is_paused(const std::string& directory);

/// The file in an experiment's folder with the options that overrode the sweep's file in its last run.
inline constexpr const char* options_file = "resume-options";
/// Error of kind `usage` if `file` is a sweep: status needs an experiment or a cluster.
void refuse_sweep(const std::string& file);
int status(const std::string& directory, const std::string& format);

/// Prints the best trial of `results`, or with several objectives the Pareto front.
void print_best(const Results& results);

struct ResultsArguments {
  std::string directory;
  std::string format = "table";
  bool history = false, cost = false, pareto = false, importance = false;
  std::size_t rows = 0;
};
int results(const ResultsArguments& arguments);
/// The same options as words of a command line, for the folder "experiment".
std::vector<std::string> words_of(const ResultsArguments& arguments);

int best(const std::string& directory, const std::string& format);

/// The experiments in a folder and below it.
int list(const std::string& directory, const std::string& format);

/// The folders of experiments in a folder and below it, in order of their names.
std::vector<std::filesystem::path> experiments_below(const std::filesystem::path& folder);

struct CompareArguments {
  std::vector<std::string> directories;  ///< [GROUP=]DIR
  std::string metric, mode;              ///< empty: the first objective and its mode
  std::string at = "reports";
  std::string format = "table";
  bool by_name = false;  ///< experiments of the same name are a group
};
int compare(const CompareArguments& arguments);

struct ImportArguments {
  std::string source, directory;
  std::string study, metric, mode;
};
int import_from(const ImportArguments& arguments);

/// Parses a trial id. Error of kind `usage` if it is not valid.
std::int64_t trial_number(const std::string& text);

/// For stop, pause, continue, resize: some trials, or (if none is named) the whole experiment.
struct ControlArguments {
  std::string directory;
  std::vector<std::string> trials;
  bool now = false;
  int workers = 0;                  ///< of resize
  std::vector<std::string> params;  ///< add: name=value; note: name=value or name
};
int stop(const ControlArguments& arguments);
int pause(const ControlArguments& arguments);
int proceed(const ControlArguments& arguments);
int resize(const ControlArguments& arguments);
int add(const ControlArguments& arguments);
/// If the experiment is running, its driver records the note; otherwise it is recorded here.
int note(const ControlArguments& arguments);

struct WhatIfArguments {
  std::string directory;
  std::vector<std::string> set;  ///< schedule.KEY=VALUE
  std::vector<int> workers;      ///< empty: as many as there were
  bool shuffled = false;
  std::uint64_t seed = 0;
  std::string format = "table";
};
/// What an experiment would have found, and when, with another schedule or other workers.
int what_if(const WhatIfArguments& arguments);

struct ExportArguments {
  std::string directory;
  std::string format = "csv";
  std::string output;
  bool schedule = false;
  std::int64_t trial = -1;  // the trial whose schedule is exported; -1: the best one
};
int export_results(const ExportArguments& arguments);

}  // namespace hypertune::inline v0::command
