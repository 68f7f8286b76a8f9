#include "check_warnings.hpp"

#include "forecast.hpp"
#include "local_trials.hpp"
#include "metric_names.hpp"

#include <hypertune/detail/nearest.hpp>
#include <hypertune/detail/read_file.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/tune/options.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

constexpr std::array<std::string_view, 10> interpreters{"python", "pypy", "bash", "sh",      "zsh",
                                                        "perl",   "ruby", "node", "Rscript", "julia"};

std::string text_of_file(const std::filesystem::path& file) {
  constexpr std::uintmax_t most = 1 << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error) || std::filesystem::file_size(file, error) > most || error)
    return {};
  return detail::read_file(file).value_or("");
}

// Whether a program may read all parameters from HYPERTUNE_PARAMS: its text, or that of a script in its command, says
// so.
bool reads_params(const TrialOptions& trial) {
  bool scripts = false;
  for (const auto& word : trial.command) {
    const auto text = text_of_file(word);
    if (text.find("HYPERTUNE_") != std::string::npos) return true;
    scripts = scripts || text.starts_with("#!") || word.ends_with(".py") || word.ends_with(".sh");
  }
  for (const auto& [name, value] : trial.environment)
    if (value.find("HYPERTUNE_") != std::string::npos) return true;
  return !scripts;  // a binary program may read them
}

void about_parameters(const Sweep& sweep, std::vector<std::string>& warnings) {
  const auto named = names_used(sweep);
  const auto mentioned = [&](const std::string& name) {
    return std::find(named.begin(), named.end(), name) != named.end();
  };
  for (const auto& file : sweep.trial->files)
    if (!mentioned(file.path) && !mentioned("directory") && !reads_params(*sweep.trial))
      warnings.push_back(
          fmt::format("the command never mentions the file '{0}': write {{{0}}} where its path belongs", file.path));
  std::string absent;
  std::size_t count = 0;
  for (std::size_t d = 0; d < sweep.space.size(); ++d)
    if (!mentioned(sweep.space.name(d))) {
      absent += (absent.empty() ? "'" : ", '") + sweep.space.name(d) + "'";
      ++count;
    }
  if (count == 0) return;
  // A command that gets some of them as arguments will hardly read the others elsewhere.
  if (count == sweep.space.size() && reads_params(*sweep.trial)) return;
  warnings.push_back(fmt::format(
      "the command never mentions {}: write {{{}}} where its value belongs, unless the program reads HYPERTUNE_PARAMS",
      absent, absent.substr(1, absent.find('\'', 1) - 1)));
}

void about_options(const Sweep& sweep, std::vector<std::string>& warnings) {
  for (const auto& [name, option] : options_left_alone(sweep))
    warnings.push_back(
        fmt::format("where '{1}' is not active, an empty text follows {0}: write [{0}, \"{{{1}}}\"], a list within the "
                    "command, and both are left out",
                    option, name));
}

// A metric that is called as what hypertune can measure, and must be reported by the trainer.
void about_measures(const Sweep& sweep, std::vector<std::string>& warnings) {
  const auto& trial = *sweep.trial;
  for (const auto& [metric, mode] : objectives_of(sweep.options))
    if (measured_from(metric) && !trial.metrics.contains(metric) &&
        std::none_of(trial.measure.begin(), trial.measure.end(),
                     [&, &name = metric](const auto& each) { return each.first == name; }))
      warnings.push_back(
          fmt::format("the trainer must report '{0}' itself: write 'measure: [{0}]' under 'trial', and "
                      "hypertune measures it",
                      metric));
}

// A local file that the command names does not exist on other machines unless it is copied there.
void about_files(const Sweep& sweep, std::vector<std::string>& warnings) {
  const auto& executor = sweep.executor;
  if (!executor.ssh && !executor.kubernetes) return;
  const auto& mounts = executor.ssh ? executor.ssh->file_mounts : executor.kubernetes->file_mounts;
  const auto brought = [&](const std::filesystem::path& word) {
    return std::any_of(mounts.begin(), mounts.end(), [&](const FileMount& mount) {
      const auto inside = word.lexically_relative(std::filesystem::path(mount.remote).lexically_normal());
      return !inside.empty() && *inside.begin() != "..";
    });
  };
  for (const auto& word : sweep.trial->command) {
    const auto path = std::filesystem::path(word).lexically_normal();
    std::error_code ignored;
    if (word.empty() || path.is_absolute() || word.find('{') != std::string::npos) continue;
    if (!std::filesystem::is_regular_file(path, ignored) || brought(path)) continue;
    warnings.push_back(
        fmt::format("'{0}' is a file here that is not brought to the workers: give executor.file_mounts: {{{0}: {0}}}, "
                    "unless it is "
                    "there already",
                    path.string()));
  }
}

// An interpreter exists, so that only the trials would find that their script does not. Returns whether that is so.
bool about_script(const Sweep& sweep, std::vector<std::string>& warnings) {
  if (sweep.executor.type != "local") return false;
  const auto& command = sweep.trial->command;
  auto interpreter = std::filesystem::path(command.front()).filename().string();
  interpreter.erase(interpreter.find_last_not_of("0123456789.") + 1);  // python3.11
  if (std::find(interpreters.begin(), interpreters.end(), interpreter) == interpreters.end()) return false;
  const auto script =
      std::find_if(command.begin() + 1, command.end(), [](const auto& word) { return !word.starts_with('-'); });
  // After an option, the word may be its value: python -m module, perl -e text.
  const bool certain = script == command.begin() + 1 && script != command.end();
  std::error_code ignored;
  if (!certain || script->find('{') != std::string::npos || std::filesystem::exists(*script, ignored)) return false;
  std::vector<std::string> files;
  const auto folder = std::filesystem::path(*script).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored))
    files.push_back((folder / entry.path().filename()).string());
  const auto near = detail::nearest(*script, files);
  warnings.push_back(fmt::format("the command runs '{}', which does not exist here{}", *script,
                                 near.empty() ? "" : fmt::format("; is '{}' meant?", near)));
  return true;
}

// A space with fewer configurations than trials are asked for.
void about_end(const Sweep& sweep, std::vector<std::string>& warnings) {
  const Options& options = sweep.options;
  if (options.samples <= 0) return;
  const std::int64_t wanted = *options.samples * trials_per_sample(sweep.space, options.search);
  const auto points = sweep.space.cardinality();
  const std::string has = points ? fmt::format("the space has {} configuration{}", *points, *points == 1 ? "" : "s")
                                 : "the space has fewer configurations";
  if (const auto end = trials_until_end(sweep); end && *end < wanted) {
    warnings.push_back(fmt::format("'samples' is {}, but {}: the run ends after {} trial{}, when all have been tried",
                                   *options.samples, has, *end, *end == 1 ? "" : "s"));
    return;
  }
  if (!points || sweep.space.grid_size() > 1 || options.search.finite() ||
      static_cast<double>(*points) >= static_cast<double>(*options.samples))
    return;
  const std::string searcher = options.search.name();
  const bool draws = searcher.find("random") != std::string::npos || searcher.find("sobol") != std::string::npos;
  if (!draws && searcher.find("cma_es") == std::string::npos) return;
  warnings.push_back(fmt::format("'samples' is {}, but {}: some are tried again{}", *options.samples, has,
                                 draws ? "" : ", until all have been tried"));
}

}  // namespace

std::vector<std::string> warnings_about(const Sweep& sweep, int parallel, int cores) {
  std::vector<std::string> warnings;
  const Options& options = sweep.options;
  if (sweep.trial) {
    if (!about_script(sweep, warnings)) about_parameters(sweep, warnings);
    about_options(sweep, warnings);
    about_measures(sweep, warnings);
    about_files(sweep, warnings);
  }
  for (const auto& [metric, mode] : objectives_of(options))
    if (const auto usual = mode_of_name(metric); usual && *usual != mode)
      warnings.push_back(fmt::format("'{}' is to be {}: by its name it should be {} (mode: {})", metric,
                                     mode == Mode::minimize ? "as small as possible" : "as large as possible",
                                     mode == Mode::minimize ? "large" : "small",
                                     mode == Mode::minimize ? "max" : "min"));
  const auto grid = sweep.space.grid_size();
  if (grid > 1 && options.samples > 1)
    warnings.push_back(fmt::format("'samples' counts once for each of the grid's {} combinations: that makes {} trials",
                                   grid, trials_per_sample(sweep.space, options.search) * *options.samples));
  constexpr std::uint64_t large = 100'000;
  if (grid > large)
    warnings.push_back(fmt::format("the grid has {} combinations: domains with a range need far fewer trials", grid));
  about_end(sweep, warnings);
  if (cores > 0 && options.concurrency > cores && options.resources.cpus == 0)
    warnings.push_back(fmt::format("'concurrency' is {}, but this machine has {} cores: trials slow each other down",
                                   options.concurrency, cores));
  if (parallel > 0 && options.concurrency > parallel)
    warnings.push_back(
        fmt::format("'concurrency' is {}, but there is room for {} trials at once", options.concurrency, parallel));
  if (makes_one_report(sweep) && options.schedule.name() != "fifo")
    warnings.push_back(fmt::format(
        "each trial makes one report, when its command has ended, so that '{}' can stop none early: leave 'schedule' "
        "out, or let the command report more than once",
        options.schedule.name()));
  if (options.schedule.max_steps() == 1)
    warnings.push_back("the schedule ends each trial after 1 step: 'max_steps' is in reports, not in epochs");
  if (options.start_with.size() > static_cast<std::size_t>(std::max<std::int64_t>(*options.samples, 0)) &&
      options.samples > 0)
    warnings.push_back(fmt::format("'start_with' has {} configurations, more than 'samples': {}",
                                   options.start_with.size(), *options.samples));
  if (options.search.name().starts_with("repeat("))
    warnings.push_back(
        "'search.repeat' makes a trial of each run of a configuration, which is ranked by its own value, so that the "
        "best "
        "may be the luckiest one: 'trial.repeat' ranks by the median or mean of the runs");
  return warnings;
}

void about_loggers(const Node& root, std::vector<std::string>& warnings) {
  const auto loggers = root.find("loggers");
  if (!loggers || !loggers->is_list()) return;
  for (const auto& logger : loggers->items()) {
    if (!logger.is_map() || !logger.find("file")) continue;
    const std::filesystem::path file(logger["file"].as<std::string>());
    std::error_code ignored;
    if (!file.parent_path().empty() && !std::filesystem::is_directory(file.parent_path(), ignored))
      warnings.push_back(fmt::format("'loggers': '{}' will not be written: there is no folder '{}'", file.string(),
                                     file.parent_path().string()));
  }
}

}  // namespace hypertune::inline v0::command
