// CommandLine: a command's arguments, with {names} replaced by values of the trial.
#pragma once

#include <hypertune/detail/linkage.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::local {

/// Arguments in which {name} stands for a parameter; {trial}, {step}, {directory}, {checkpoint} and {restore} stand for
/// the values of the environment variables HYPERTUNE_…; and {{ and }} stand for braces. The {name} of a parameter that
/// is not active in a trial becomes empty. No shell is involved.
class CommandLine {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  /// `names`: the space's parameters. Throws an Error of kind `usage` if an argument names anything else, or braces do
  /// not match.
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
