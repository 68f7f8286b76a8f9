#include "init_probe.hpp"

#include "init_words.hpp"

#include <hypertune/detail/run_clock.hpp>
#include <hypertune/files/temporary_folder.hpp>
#include <hypertune/local/child_process.hpp>
#include <hypertune/local/command_line.hpp>
#include <hypertune/local/output_lines.hpp>
#include <hypertune/local/output_timing.hpp>
#include <hypertune/local/process_end.hpp>
#include <hypertune/local/report_line.hpp>
#include <hypertune/tune/detail/folder_growth.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

namespace hypertune::inline v0::command {

namespace fs = std::filesystem;

namespace {

// Runs a command and passes its output to `take`, until `take` returns false, the command ends, or the time is over.
// Returns its wait(2) status if it has ended. `take` gets what is new of both streams, and whether it is the last.
template <class Take>
std::optional<int> run_and_read(const std::vector<std::string>& command, Seconds timeout, const Take& take) {
  local::detail::ChildProcess child(command);  // its destructor kills it, with all that it started
  const double until = detail::steady_seconds() + timeout;
  constexpr std::size_t most = std::size_t{8} << 20U;
  std::size_t read = 0;
  for (bool more = true; more && read < most;) {
    std::string out, err;
    child.pump(0.1, out, err);
    read += out.size() + err.size();
    const bool over = child.status().has_value();
    more = take(out, err, over) && !over && detail::steady_seconds() < until;
  }
  return child.status();
}

std::string help_text(const std::vector<std::string>& command, Seconds timeout) {
  std::string out, err;
  run_and_read(command, timeout, [&](const std::string& more_out, const std::string& more_err, bool) {
    out += more_out;
    err += more_err;
    return true;
  });
  return out.size() > err.size() ? out : err;
}

std::vector<std::string> with_option(const HelpRun& run, const std::string& option) {
  auto words = run.command;
  if (run.script)
    words.back() += " " + option;
  else
    words.push_back(option);
  return words;
}

// A word of a command that names a file, and one that was written under this name, or one that begins so: model.bin.
struct WrittenFile {
  std::string word, file;
};

// Whether a file was made or changed after `since`. Not by its time of modification: some programs set that.
bool written(const fs::path& file, const timespec& since) {
  struct stat about{};
  if (::stat(file.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  return std::pair(about.st_ctim.tv_sec, about.st_ctim.tv_nsec) >= std::pair(since.tv_sec, since.tv_nsec);
}

std::vector<WrittenFile> written_files(const std::vector<std::string>& command, const timespec& since) {
  std::set<std::string> words;
  const auto add = [&](const std::string& word) {
    words.insert(word);
    if (const auto equals = word.rfind('='); equals != std::string::npos) words.insert(word.substr(equals + 1));
  };
  const Started started = started_by(command);
  for (std::size_t i = started.program + 1; i < command.size(); ++i) add(command[i]);
  if (started.script)
    for (const auto& one : shell_commands(command[*started.script]))
      for (const auto& word : one) add(word.text);
  std::vector<WrittenFile> found;
  std::error_code error;
  for (const auto& word : words) {
    constexpr std::size_t longest = 1000, max_entries = 10000;
    if (word.empty() || word.size() > longest || word.front() == '-' || word.find('{') != std::string::npos) continue;
    const fs::path path(word);
    if (!path.has_filename() || fs::is_directory(path, error)) continue;
    if (written(path, since)) {
      found.push_back({word, word});
      continue;
    }
    const std::string name = path.filename().string();
    std::size_t n = 0;
    for (fs::directory_iterator it(path.has_parent_path() ? path.parent_path() : fs::path("."), error), last;
         !error && it != last && ++n < max_entries; it.increment(error)) {
      const std::string other = it->path().filename().string();
      const bool begins = other.size() > name.size() && other.starts_with(name) &&
                          std::string_view("._-").find(other[name.size()]) != std::string_view::npos;
      if (!begins || !written(it->path(), since)) continue;
      found.push_back({word, (path.parent_path() / other).string()});
      break;
    }
  }
  return found;
}

// Tries the ends of ranges.
class EndTrial {
 public:
  EndTrial(const FirstRun& first, Guess& guess, Pinned& pinned, MetricFinder& finder)
      : first_(first),
        guess_(guess),
        pinned_(pinned),
        finder_(finder),
        until_(detail::steady_seconds() + first.budget) {
    if (const auto* tuned = metric_to_tune(finder.found(), first.command))
      metric_ = static_cast<std::size_t>(tuned - finder.found().data());
    for (const auto& parameter : guess.space) {
      names_.push_back(parameter.name);
      given_[parameter.name] = parameter.given;
    }
    given_["directory"] = folder_.path().string();
  }

  // Before anything else, as trials of the same command must not write the same file.
  void move_files() {
    const auto files = written_files(first_.command, first_.begin);
    if (files.empty() || guess_.space.empty()) return;
    const auto before = guess_.command, left_before = guess_.left;
    for (const auto& file : files) {
      const std::string to = "{directory}/" + fs::path(file.word).filename().string();
      guess_.moved.emplace_back(file.word, to);
      move_file(guess_, file.word, to);
    }
    std::string why;
    const auto& any = guess_.space.front();
    if (works(any, any.given, why).value_or(false)) {
      guess_.notes.emplace_back(
          "{directory} is the trial's own folder: the command writes there, and trials run at once.");
      return;
    }
    guess_.command = before;
    guess_.left = left_before;
    guess_.moved.clear();
    for (const auto& file : files) guess_.shared.push_back(file.file);
  }

  void run() {
    // The upper ends first: with little time each parameter has at least been another one once.
    for (auto& parameter : guess_.space)
      if (parameter.domain.of_options())
        try_options(parameter);
      else
        try_end(parameter, parameter.domain.high);
    for (auto& parameter : guess_.space)
      if (!parameter.domain.of_options()) try_end(parameter, parameter.domain.low);
    for (auto& parameter : guess_.space)
      if (untried_.contains(parameter.name)) parameter.comment += "; not all of it was tried, for lack of time";
  }

 private:
  // nullopt: there is no time to know it.
  std::optional<bool> works(const Parameter& parameter, const std::string& value, std::string& why) {
    const double left = until_ - detail::steady_seconds();
    over_ = over_ || left < first_.run.took;
    if (over_) {
      untried_.insert(parameter.name);
      return std::nullopt;
    }
    auto values = given_;
    values[parameter.name] = value;
    const auto words = local::CommandLine(guess_.command, names_)(values);
    std::map<std::string, std::string> texts;
    for (const auto& [name, one] : values)
      if (const auto* text = std::get_if<std::string>(&one)) texts[name] = *text;
    empty_folder();
    const ProbedRun run = probe_command(words, left, finder_, texts);
    guess_.writes = std::max(guess_.writes, detail::bytes_below(folder_.path()));
    if (!run.status && !run.reported) {
      over_ = true;
      untried_.insert(parameter.name);
      return std::nullopt;
    }
    why = run.failure;
    if (run.status && first_.run.status ? *run.status != *first_.run.status : run.status && *run.status != 0)
      return false;
    if (!metric_) return true;
    if (finder_.reported(*metric_)) return true;
    why = fmt::format("it prints no {}", finder_.found()[*metric_].name);
    return false;
  }

  // Each trial begins with an empty one.
  void empty_folder() const {
    std::error_code error;
    for (fs::directory_iterator it(folder_.path(), error), last; !error && it != last; it.increment(error)) {
      std::error_code ignored;
      fs::remove_all(it->path(), ignored);
    }
  }

  static std::string text_of(const Domain& domain, double value) {
    return domain.whole() ? std::to_string(static_cast<std::int64_t>(value)) : number_text(value);
  }

  void try_end(Parameter& parameter, double& end) {
    Domain& domain = parameter.domain;
    double given = 0;
    try {
      given = std::stod(parameter.given);
    } catch (const std::exception&) { return; }
    const bool logarithmic = domain.type.starts_with("log_");
    const auto middle = [&](double a, double b) {
      const double m = logarithmic ? std::sqrt(a * b) : (a + b) / 2;
      return domain.whole() ? std::round(m) : std::stod(number_text(m));
    };
    std::string why, refused;
    // Whole numbers, of a range that is not of whole numbers, may be all that the command takes.
    if (!domain.whole() && &end == &domain.high && given == std::floor(given) && domain.high > 1) {
      const std::string between = number_text(given + 0.1 < domain.high ? given + 0.1 : given - 0.1);
      const auto good = works(parameter, between, why);
      if (!good) return;
      if (!*good) {
        refused = between + " is refused";
        domain.type = domain.type == "log_uniform" && given > 1 ? "log_int" : "integer";
        domain.low = std::min(given, std::max(1.0, std::ceil(domain.low)));
        domain.high = std::max(given + 1, std::floor(domain.high));
      }
    }
    constexpr int most = 3;
    bool narrowed = !refused.empty();
    for (int n = 0; n < most && end != given; ++n) {
      const auto good = works(parameter, text_of(domain, end), why);
      if (!good) return;
      if (*good) break;
      if (!std::exchange(narrowed, true) || n == 0)
        refused += (refused.empty() ? "" : ", ") + fmt::format("{} is refused", text_of(domain, end));
      end = n + 1 < most ? middle(given, end) : given;
    }
    if (refused.empty()) return;
    parameter.comment += "; " + refused;
    if (domain.low >= domain.high) pinned_[parameter.name] = why.empty() ? refused : refused + ": " + why;
  }

  void try_options(Parameter& parameter) {
    auto& options = parameter.domain.options;
    std::vector<std::string> refused;
    for (std::size_t i = 0; i < options.size();) {
      if (options[i] == parameter.given) {
        ++i;
        continue;
      }
      std::string why;
      const auto good = works(parameter, options[i], why);
      if (!good) break;
      if (*good) {
        ++i;
        continue;
      }
      refused.push_back(options[i]);
      options.erase(options.begin() + static_cast<std::ptrdiff_t>(i));
      if (options.size() == 1) pinned_[parameter.name] = "all other values are refused: " + why;
    }
    constexpr std::size_t few = 4;
    if (refused.size() > few)
      parameter.comment += fmt::format("; {} others are refused", refused.size());
    else if (!refused.empty())
      parameter.comment += fmt::format("; refused: {}", fmt::join(refused, ", "));
  }

  const FirstRun& first_;
  Guess& guess_;
  Pinned& pinned_;
  MetricFinder& finder_;
  double until_;
  detail::TemporaryFolder folder_;
  std::vector<std::string> names_;
  local::CommandLine::Values given_;
  std::optional<std::size_t> metric_;  // the one to tune, as far as the first run shows it
  std::set<std::string> untried_;
  bool over_ = false;
};

}  // namespace

Helps probe_help(const std::vector<std::string>& command, Seconds timeout) {
  Helps helps;
  for (const auto& run : help_runs(command)) {
    std::string text = help_text(with_option(run, "--help"), timeout);
    if (const auto more = longer_help(text); !more.empty()) {
      const auto all = help_text(with_option(run, more), timeout);
      if (read_help(all).size() > read_help(text).size()) text = all;
    }
    helps[run.program] = read_help(text);
  }
  return helps;
}

ProbedRun probe_command(const std::vector<std::string>& command, Seconds timeout, MetricFinder& finder,
                        const std::map<std::string, std::string>& parameters) {
  ProbedRun run;
  std::string out_said, err_said;
  int reports = 0;
  constexpr int enough = 3;  // the first line may be about something else
  finder.begin_run(parameters);
  const auto take = [&](std::string& said, bool standard) {
    return [&, standard](const local::OutputLine& line) {
      if (finder.add_line(line.text, standard)) ++reports;
      if (line.text.find_first_not_of(" \t") != std::string::npos) said = line.text;
    };
  };
  const local::OutputLines::Take take_out = take(out_said, true), take_err = take(err_said, false);
  local::OutputLines out_lines, err_lines;
  const double begin = detail::steady_seconds();
  std::optional<double> first, until;
  run.status = run_and_read(command, timeout, [&](const std::string& out, const std::string& err, bool over) {
    const double now = detail::steady_seconds();
    if (!out.empty() && !first) first = now;
    run.silent = run.silent && out.empty() && err.empty();
    out_lines.add(out, now, take_out);
    err_lines.add(err, now, take_err);
    if (over) {
      out_lines.end(take_out);
      err_lines.end(take_err);
    }
    // It may be about to end, and its exit code says whether it succeeds.
    if (reports >= enough && !until) until = now + 1 + (now - begin) / 4;
    return !until || now < *until;
  });
  run.took = detail::steady_seconds() - begin;
  run.reported = reports >= enough;
  run.kept_back =
      run.status && first && local::came_at_the_end({.began = begin, .first = *first, .ended = begin + run.took});
  run.found = finder.found();
  if (run.status && *run.status != 0) {
    run.failure = local::cause_of_status(*run.status, "the command").text;
    const std::string& said = err_said.empty() ? out_said : err_said;
    if (!said.empty()) run.failure += ": " + local::shortened(said);
  }
  return run;
}

void try_ends(const FirstRun& first, Guess& guess, Pinned& pinned, MetricFinder& finder) {
  if (!first.run.status && !first.run.reported) return;  // it takes longer than that
  if (!first.run.failure.empty() && metric_to_tune(finder.found(), first.command) == nullptr) return;
  EndTrial trial(first, guess, pinned, finder);
  trial.move_files();
  trial.run();
}

}  // namespace hypertune::inline v0::command
