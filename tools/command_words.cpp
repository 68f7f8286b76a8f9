#include "command_words.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace hypertune::inline v0::command {

namespace {

// For example, "TEXT:{table,json}" has two values.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begin = type.find('{'), end = type.find('}');
  std::vector<std::string> values;
  if (begin == std::string::npos || end == std::string::npos || end < begin) return values;
  std::string rest = type.substr(begin + 1, end - begin - 1);
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    values.push_back(rest.substr(0, comma));
    rest.erase(0, std::min(comma + 1, rest.size()));
  }
  return values;
}

// Decides by the customary names of arguments and options.
Place place_of(const std::string& name, bool argument) {
  if (name == "DIR") return Place::folder;
  for (const char* file :
       {"SWEEP", "STUDY", "CLUSTER", "FILE", "PROGRAM", "COMMAND", "FROM", "TO", "ARGS", "--output", "--sync"})
    if (name == file) return Place::file;
  return argument ? Place::nothing : Place::word;
}

CommandWord word_of(const CLI::Option& option) {
  CommandWord word;
  word.text = option.get_description();
  word.values = values_of(option);
  word.required = option.get_required();
  word.argument = !option.nonpositional();
  word.many = option.get_expected_max() > 1;
  if (word.argument) {
    word.names = {option.get_name(true)};
    word.place = place_of(word.names[0], true);
    return word;
  }
  for (const auto& name : option.get_snames()) word.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) word.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) {
    word.value = word.names.back().substr(word.names.back().rfind('-') + 1);
    std::transform(word.value.begin(), word.value.end(), word.value.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    word.place = place_of(word.names.back(), false);
  }
  return word;
}

}  // namespace

std::vector<CommandInfo> commands_of(const CLI::App& app) {
  std::vector<CommandInfo> all;
  for (const auto* command : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); })) {
    CommandInfo info{
        .name = command->get_name(), .text = command->get_description(), .group = command->get_group(), .words = {}};
    for (const auto* option : command->get_options())
      if (!option->get_group().empty()) info.words.push_back(word_of(*option));
    all.push_back(std::move(info));
  }
  return all;
}

std::string synopsis_of(const CommandInfo& command) {
  std::string text = "hypertune " + command.name;
  bool options = false;
  for (const auto& word : command.words) {
    if (!word.argument) {
      options = true;
      continue;
    }
    const std::string name = word.names[0] + (word.many && word.names[0].find("…") == std::string::npos ? "…" : "");
    text += " " + (word.required || name.starts_with('[') ? name : "[" + name + "]");
  }
  return text + (options ? " [OPTIONS]" : "");
}

}  // namespace hypertune::inline v0::command
