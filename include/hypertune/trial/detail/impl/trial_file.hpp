// Names of files that a trial's folder may have beside hypertune's own: definitions.
#pragma once

#include <hypertune/detail/format.hpp>
#include <hypertune/trial/detail/trial_file.hpp>

#include <algorithm>

namespace hypertune::inline v0::detail {

std::string refused_trial_file(std::string_view path) {
  constexpr std::string_view own[] = {"log", "progress.csv", "checkpoints", "saved", "repetitions"};
  if (path.empty() || path.starts_with('/') || path.ends_with('/') || path.find('\0') != std::string_view::npos)
    return "it must be the path of a file below the trial's folder";
  const std::string_view first = path.substr(0, path.find('/'));
  for (std::string_view rest = path; !rest.empty();) {
    const auto part = rest.substr(0, rest.find('/'));
    if (part.empty() || part == "." || part == "..") return "it must be the path of a file below the trial's folder";
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  if (first.starts_with('.') || first.starts_with("worker-") || first.starts_with("events.out.") ||
      std::find(std::begin(own), std::end(own), first) != std::end(own))
    return detail::format("hypertune itself has '{}' in the trial's folder: take another name", first);
  return {};
}

}  // namespace hypertune::inline v0::detail
