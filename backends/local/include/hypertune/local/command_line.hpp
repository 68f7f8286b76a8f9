// CommandLine: a command's arguments with the trial's values in place of {names}.
#pragma once

#include <hypertune/detail/linkage.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
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
  CommandLine(std::vector<std::string> arguments, const std::vector<std::string>& names);

  std::vector<std::string> operator()(const Values& values) const;

 private:
  std::string expand(std::string_view text, const Values* values) const;

  std::vector<std::string> arguments_;
  std::vector<std::string> known_;
};

}  // namespace hypertune::inline v0::local

#ifndef HYPERTUNE_COMPILED
#include <hypertune/local/impl/command_line.hpp>
#endif
