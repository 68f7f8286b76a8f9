// executor: {type: slurm, …} from YAML.
#pragma once

#include <hypertune/config/options.hpp>
#include <hypertune/config/slurm_options.hpp>
#include <hypertune/config/yaml.hpp>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// "1..32", or "8" for 1..8. Nullopt: it is neither.
inline std::optional<SlurmWorkers> slurm_workers(std::string_view text) {
  const auto number = [](std::string_view part, int& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  SlurmWorkers workers;
  const auto dots = text.find("..");
  if (dots == std::string_view::npos) {
    if (!number(text, workers.max)) return std::nullopt;
  } else if (!number(text.substr(0, dots), workers.min) || !number(text.substr(dots + 2), workers.max)) {
    return std::nullopt;
  }
  return workers;
}

inline SlurmOptions slurm_from_yaml(const Node& node) {
  SlurmOptions slurm;
  if (!node.is_map()) return slurm;
  read_options(node, {"type", "workers"}, slurm);
  if (const auto workers = node.find("workers")) {
    const auto text = to_string(workers->scalar());
    const auto count = slurm_workers(text);
    if (!count) workers->fail("'{}' must be like 1..32, or 8 for 1..8, not '{}'", workers->path(), text);
    slurm.workers = *count;
  }
  checked(node, [&] {
    check_options(slurm);
    return 0;
  });
  return slurm;
}

}  // namespace hypertune::inline v0::detail
