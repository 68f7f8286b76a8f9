// compare: experiments side by side.
#include "commands.hpp"
#include "terminal_text.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/error.hpp>
#include <hypertune/record/comparison.hpp>
#include <hypertune/record/journal_schema.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::command {

namespace {

namespace fs = std::filesystem;

struct Named {
  fs::path directory;
  std::string group;  // empty: a group of its own
  bool named = true;  // false: found in a folder that was named
};

// [GROUP=]DIR, where DIR is an experiment, or a folder of experiments, which are then repetitions of one.
void add_named(const std::string& word, std::vector<Named>& named) {
  Named one{word, ""};
  if (const auto equals = word.find('='); equals != std::string::npos && equals > 0 && !fs::exists(word))
    one = {word.substr(equals + 1), word.substr(0, equals)};
  if (has_journal(one.directory)) {
    named.push_back(std::move(one));
    return;
  }
  const auto found = experiments_below(one.directory);
  if (found.empty()) fail(Errc::input, "there is no experiment in '{}', nor in a folder of it", one.directory.string());
  if (one.group.empty()) one.group = fs::absolute(one.directory / "").parent_path().filename().string();
  for (const auto& directory : found) named.push_back({directory, one.group, false});
}

// A label that distinguishes the experiments: the name, or the folder if several have the same name.
void give_labels(std::vector<ComparedExperiment>& experiments) {
  std::map<std::string, int> names;
  for (const auto& each : experiments) ++names[each.info.name];
  for (auto& each : experiments)
    if (each.info.name.empty() || names[each.info.name] > 1) each.label = each.directory.lexically_normal().string();
}

}  // namespace

int compare(const CompareArguments& arguments) {
  std::vector<Named> named;
  for (const auto& word : arguments.directories) add_named(word, named);
  std::optional<Mode> mode;
  if (!arguments.mode.empty()) mode = arguments.mode == "max" ? Mode::maximize : Mode::minimize;
  std::vector<ComparedExperiment> experiments;
  std::vector<std::string> groups;
  for (const auto& one : named) {
    try {
      experiments.push_back(compared_experiment(one.directory, arguments.metric, mode));
      groups.push_back(one.group);
    } catch (const Error& error) {  // one damaged folder does not hide the others
      if (one.named || error.code() != Errc::corrupt) throw;
      detail::say("hypertune: left out: " + detail::terminal::printable(error.what()));
    }
  }
  give_labels(experiments);
  for (std::size_t i = 0; i < experiments.size(); ++i) {
    auto& each = experiments[i];
    each.group = !groups[i].empty() ? groups[i] : arguments.by_name ? each.info.name : each.label;
  }
  static const std::map<std::string, Budget> budgets{
      {"end", Budget::end}, {"trials", Budget::trials}, {"reports", Budget::reports}, {"time", Budget::time}};
  const Comparison comparison = hypertune::compare(std::move(experiments), {.at = budgets.at(arguments.at)});
  if (arguments.format == "json")
    fmt::print("{}\n", comparison_json(comparison));
  else
    fmt::print("{}", comparison_table(comparison, terminal_width()));
  return exit_done;
}

}  // namespace hypertune::inline v0::command
