// The words of earlier versions in YAML, and what replaces them.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace hypertune::inline v0::detail {

/// A key of an earlier version, or a value of the key `of`. It is old only where a map has a key `now`, so that two maps
/// can have had the same key.
struct OldWord {
  std::string_view before, now;
  bool taken = false;        ///< still means the same; otherwise it is refused, with a message that names `now`
  std::string_view of = {};  ///< empty: this is a key
};

inline constexpr OldWord old_words[] = {
    {"workers", "isolation", true},
    {"processes", "process", true, "isolation"},
    {"threads", "thread", true, "isolation"},
    {"workers", "pool", true},
    {"hang_limit", "hang_timeout", true},
    {"ordered_patience", "ordered_timeout", true},
    {"group_patience", "group_timeout", true},
    {"silence", "heartbeat_timeout", true},
    {"idle", "idle_timeout", true},
    {"grace", "stop_grace", true},
    {"notice", "save_grace", true},
    {"patience", "flush_grace", true},
    {"most_memory", "max_memory", true},
    {"max", "max_retries", true},
    {"grace", "grace_period"},
    {"max", "max_steps"},
    {"reduction", "reduction_factor"},
    {"keep", "percentile"},
    {"min_improvement", "min_delta"},
    {"interval", "perturbation_interval"},
    {"quantile", "quantile_fraction"},
    {"resample", "resample_probability"},
    {"factor", "perturbation_factor"},
    {"burn_in", "burn_in_period"},
    {"population", "population_size"},
    {"startup", "startup_trials"},
    {"share", "gamma"},
    {"most_good", "max_good"},
    {"candidates", "ei_candidates"},
    {"local", "max_observations"},
    {"sigma", "sigma0"},
    {"restarts", "restart_strategy"},
    {"weight", "mutation_factor"},
    {"crossover", "crossover_probability"},
    {"mutation", "mutation_probability"},
    {"limit", "max_concurrent"},
};

/// What is written today for the key `key` of a map that has the keys `known`; null if it is no old word there.
inline const OldWord* old_key(std::string_view key, const std::vector<std::string_view>& known) {
  for (const auto& word : old_words)
    if (word.of.empty() && word.before == key && std::find(known.begin(), known.end(), word.now) != known.end())
      return &word;
  return nullptr;
}

/// The same for a value of the key `key`.
inline const OldWord* old_value(std::string_view key, std::string_view value) {
  for (const auto& word : old_words)
    if (!word.of.empty() && word.of == key && word.before == value) return &word;
  return nullptr;
}

}  // namespace hypertune::inline v0::detail
