#include "sweep_file.hpp"

#include <hypertune/config/override.hpp>
#include <hypertune/config/sweep.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::command {

Sweep load_sweep(const std::string& file, const std::vector<std::string>& set, bool study) {
  Node root = load_yaml_file(file);
  for (const auto& assignment : set) {
    // What --executor stands for (see run.cpp) is said in the user's words.
    constexpr std::string_view executor = "executor={type: ";
    const bool whole = assignment.starts_with(executor) && assignment.find('}') == assignment.size() - 1 &&
                       assignment.find(',') == std::string::npos;
    root = with_override(
        root, assignment,
        whole ? "--executor " + assignment.substr(executor.size(), assignment.size() - executor.size() - 1)
              : std::string());
  }
  return sweep_from_yaml(root, study);
}

}  // namespace hypertune::inline v0::command
