#include "sweep_file.hpp"

#include <hypertune/config/override.hpp>
#include <hypertune/config/sweep.hpp>
#include <hypertune/detail/say.hpp>
#include <hypertune/detail/text_width.hpp>
#include <hypertune/search/adaptors.hpp>

#include <string>
#include <string_view>

namespace hypertune::inline v0::command {

namespace {

Node load_raw(const std::string& file, const std::vector<std::string>& set) {
  Node root = load_yaml_file(file);
  for (const auto& assignment : set) {
    // The assignment made for --executor (see run.cpp) is named so in errors.
    constexpr std::string_view executor = "executor={type: ";
    const bool whole = assignment.starts_with(executor) && assignment.find('}') == assignment.size() - 1 &&
                       assignment.find(',') == std::string::npos;
    root = with_override(
        root, assignment,
        whole ? "--executor " + assignment.substr(executor.size(), assignment.size() - executor.size() - 1)
              : std::string());
  }
  return root;
}

}  // namespace

Node load_with(const std::string& file, const std::vector<std::string>& set) {
  Node root = load_raw(file, set);
  if (!root.is_map() || !root.has("space")) return root;  // a CLUSTER.yaml
  return with_present_words(root, sweep_shape(!root.has("trial")), [](const std::string& change) {
    detail::say("hypertune: " + detail::terminal::printable(change) + " (the old word is taken for now)");
  });
}

Sweep load_sweep(const std::string& file, const std::vector<std::string>& set, bool study) {
  return sweep_from_yaml(load_with(file, set), study);
}

void require_bounded(const Sweep& sweep) {
  const Options& options = sweep.options;
  if (options.samples == 0 && !options.search.finite() && !has_grid(sweep.space) && options.stop.empty())
    fail(Errc::input, "{}:1: how many trials? add 'samples: 50', or 'stop' (or give --samples; a grid needs neither)",
         sweep.file.string());
}

}  // namespace hypertune::inline v0::command
