// CommandLine: a command's arguments with the trial's values in place of {names}.
#pragma once

#include <hypertune/detail/nearest.hpp>
#include <hypertune/error.hpp>
#include <hypertune/space/params.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

/// Arguments in which {name} stands for a parameter, {trial}, {step}, {directory}, {checkpoint} or {restore} for what
/// the environment variables of that name say, and {{ and }} for braces. An argument whose parameter is not active in a
/// trial becomes empty there. No shell is involved.
class CommandLine {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  /// `names`: the space's parameters. Error of kind `usage` if an argument names anything else, or a brace is left
  /// open.
  CommandLine(std::vector<std::string> arguments, const std::vector<std::string>& names)
      : arguments_(std::move(arguments)), known_(names) {
    if (arguments_.empty() || arguments_.front().empty())
      fail(Errc::usage, "the trial's command is empty: give the program and its arguments");
    for (const char* word : {"trial", "step", "directory", "checkpoint", "restore"}) known_.emplace_back(word);
    for (const auto& argument : arguments_) static_cast<void>(expand(argument, nullptr));
  }

  std::vector<std::string> operator()(const Values& values) const {
    std::vector<std::string> out;
    out.reserve(arguments_.size());
    for (const auto& argument : arguments_) out.push_back(expand(argument, &values));
    return out;
  }

 private:
  std::string expand(std::string_view text, const Values* values) const {
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

  std::vector<std::string> arguments_;
  std::vector<std::string> known_;
};

}  // namespace hypertune::inline v0::local
