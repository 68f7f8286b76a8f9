// CommandLine: a command's arguments, with {names} replaced by values of the trial.
#pragma once

#include <hypertune/local/placeholder_text.hpp>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::local {

namespace detail {

/// These names, and those that stand for the attempt's own values.
std::vector<std::string> with_own_names(std::vector<std::string> names);

}  // namespace detail

/// Arguments in which {name} stands for a parameter (more forms: PlaceholderText); {trial}, {step}, {directory},
/// {checkpoint}, {restore} and {repetition} stand for the values of the environment variables HYPERTUNE_…; and {{ and }}
/// stand for braces. No shell is involved.
///
/// An argument vanishes if it names a parameter that is not active in a trial and is an option with its value
/// (`--depth={depth}`, `model.depth={depth}`: it begins with a dash or a name and =, and has no spaces), or if it
/// consists of {name?…} alone and these are empty. Arguments that are listed as a group vanish together if one of them
/// names such a parameter. Elsewhere, in a script for `sh -c` or as an argument that is found by its position, a
/// parameter that is not active becomes empty.
class CommandLine {
 public:
  using Values = PlaceholderText::Values;
  using Groups = std::vector<std::pair<std::size_t, std::size_t>>;

  /// `names`: the space's parameters, and other things that may be named. `groups`: of arguments that vanish together,
  /// as indices [first, end) in increasing order. Throws an Error of kind `usage` if an argument names anything else, or
  /// braces do not match.
  CommandLine(std::vector<std::string> arguments, const std::vector<std::string>& names, const Groups& groups = {});

  /// Throws an Error of kind `usage` if a value does not fit its placeholder.
  std::vector<std::string> operator()(const Values& values) const;

  /// For each parameter that stands alone in an argument behind an option (`--depth {depth}`), and in no group: the
  /// parameter, and the option. If the parameter is not active, an empty text follows the option.
  std::vector<std::pair<std::string, std::string>> separate_options() const;

 private:
  struct Argument {
    PlaceholderText text;
    std::string source;
    bool option = false;    ///< vanishes if it names something without a value
    std::size_t group = 0;  ///< one more than its index; 0: none
  };
  std::vector<Argument> arguments_;
};

}  // namespace hypertune::inline v0::local
