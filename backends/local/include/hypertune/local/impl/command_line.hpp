// CommandLine: definitions.
#pragma once

#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/local/command_line.hpp>

#include <cstddef>
#include <utility>

namespace hypertune::inline v0::local {

HYPERTUNE_INLINE CommandLine::CommandLine(std::vector<std::string> arguments, const std::vector<std::string>& names)
    : arguments_(std::move(arguments)), known_(names) {
  if (arguments_.empty() || arguments_.front().empty())
    fail(Errc::usage, "the trial's command is empty: give the program and its arguments");
  for (const char* word : {"trial", "step", "directory", "checkpoint", "restore"}) known_.emplace_back(word);
  for (const auto& argument : arguments_) static_cast<void>(expand(argument, nullptr));
}

HYPERTUNE_INLINE std::vector<std::string> CommandLine::operator()(const Values& values) const {
  std::vector<std::string> out;
  out.reserve(arguments_.size());
  for (const auto& argument : arguments_) out.push_back(expand(argument, &values));
  return out;
}

HYPERTUNE_INLINE std::string CommandLine::expand(std::string_view text, const Values* values) const {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      out += c;
      ++i;
    } else if (c == '{') {
      const auto end = text.find('}', i);
      if (end == std::string_view::npos)
        fail(Errc::usage, "the command's argument '{}' opens a brace and does not close it; write {{{{ for a brace",
             text);
      const std::string_view name = text.substr(i + 1, end - i - 1);
      bool found = false;
      for (const auto& known : known_) found = found || known == name;
      if (!found)
        fail(Errc::usage,
             "the command's argument '{}' names '{}', which is no parameter of the space{}; write {{{{ and "
             "}}}} for braces",
             text, name, hypertune::detail::suggestion(name, known_));
      if (values != nullptr)
        if (const auto value = values->find(name); value != values->end()) out += value->second;
      i = end;
    } else if (c == '}') {
      fail(Errc::usage, "the command's argument '{}' closes a brace that it did not open; write }}}} for a brace",
           text);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace hypertune::inline v0::local
