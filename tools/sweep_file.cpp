#include "sweep_file.hpp"

#include <hypertune/config/override.hpp>
#include <hypertune/config/sweep.hpp>

namespace hypertune::command {

Sweep load_sweep(const std::string& file, const std::vector<std::string>& set, bool study) {
  Node root = load_yaml_file(file);
  for (const auto& assignment : set) root = with_override(root, assignment);
  return sweep_from_yaml(root, study);
}

}  // namespace hypertune::command
