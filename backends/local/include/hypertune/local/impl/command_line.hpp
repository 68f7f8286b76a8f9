// CommandLine: definitions.
#pragma once

#include <hypertune/error.hpp>
#include <hypertune/local/command_line.hpp>

#include <cstddef>
#include <string_view>
#include <utility>

namespace hypertune::inline v0::local {

namespace detail {

/// Whether an argument is an option together with its value: `--x={x}`, `-O{x}`, `key={x}`.
inline bool is_option_with_value(std::string_view source, std::string_view literal) {
  if (literal.find_first_of(" \t\n\r") != std::string_view::npos) return false;
  if (source.starts_with('-')) return true;
  const auto equals = source.find('=');
  if (equals == 0 || equals == std::string_view::npos || source.find('{') < equals) return false;
  for (const char c : literal)  // anything else may be a script
    if (!is_name_letter(c) && std::string_view("=:,+@%").find(c) == std::string_view::npos) return false;
  return true;
}

std::vector<std::string> with_own_names(std::vector<std::string> names) {
  for (const char* word : {"trial", "step", "directory", "checkpoint", "restore", "repetition"})
    names.emplace_back(word);
  return names;
}

}  // namespace detail

CommandLine::CommandLine(std::vector<std::string> arguments, const std::vector<std::string>& names,
                         const Groups& groups) {
  if (arguments.empty() || arguments.front().empty())
    fail(Errc::usage, "the trial's command is empty: give the program and its arguments");
  const auto known = detail::with_own_names(names);
  for (auto& source : arguments) {
    PlaceholderText text(source, known, "the command's argument");
    const bool option = detail::is_option_with_value(source, text.literal());
    arguments_.push_back({std::move(text), std::move(source), option});
  }
  for (std::size_t g = 0; g < groups.size(); ++g)
    for (std::size_t i = groups[g].first; i < groups[g].second && i < arguments_.size(); ++i)
      arguments_[i].group = g + 1;
}

std::vector<std::string> CommandLine::operator()(const Values& values) const {
  std::vector<std::string> out;
  out.reserve(arguments_.size());
  std::size_t group = 0, begin = 0;
  bool left_out = false;  // the present group
  const auto end_group = [&] {
    if (group != 0 && left_out) out.resize(begin);
    left_out = false;
    begin = out.size();
  };
  for (const auto& argument : arguments_) {
    if (argument.group != group) end_group();
    group = argument.group;
    auto result = argument.text(values);
    if (group != 0)
      left_out = left_out || result.inactive;
    else if (result.inactive && argument.option)
      continue;
    if (result.text.empty() && argument.text.only_switches()) continue;
    out.push_back(std::move(result.text));
  }
  end_group();
  return out;
}

std::vector<std::pair<std::string, std::string>> CommandLine::separate_options() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (std::size_t i = 2; i < arguments_.size(); ++i) {
    const Argument& option = arguments_[i - 1];
    if (arguments_[i].group != 0 || option.group != 0 || !option.source.starts_with('-') ||
        option.text.has_placeholders() || option.source.find('=') != std::string::npos)
      continue;
    if (auto name = arguments_[i].text.single_name(); !name.empty()) found.emplace_back(std::move(name), option.source);
  }
  return found;
}

}  // namespace hypertune::inline v0::local
