// The `search:` and `schedule:` keys of a sweep: algorithms by name.
#pragma once

#include <hypertune/config/options.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/schedule/scheduler.hpp>
#include <hypertune/search/replay.hpp>
#include <hypertune/search/searcher.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace hypertune::inline v0 {

/// search: auto | random | grid | sobol | tpe | cma_es | nsga2 | nsga3 | differential_evolution | dehb | bohb | gp,
/// with `repeat: N` (each configuration N times), `max_concurrent: N` (open suggestions) and `warm_start: [FOLDER, …]`
/// (results of earlier experiments).
AnySearcher searcher_from_yaml(const Node& node);

/// The scheduler that belongs to a searcher (bohb, dehb). It is used if the file names no scheduler.
std::optional<AnyScheduler> scheduler_of_searcher_from_yaml(const Node& node);

/// schedule: {type: replay, from: …, trial: …, max_steps: …}, which is also the searcher. It replays a schedule that a
/// population found; `from` is the folder of its experiment (the best trial is taken, or `trial`) or a file written by
/// `hypertune export --schedule`. nullopt if the node names another scheduler.
std::optional<Replay> replay_from_yaml(const Node& node);

/// schedule: fifo | asha | hyperband | median | percentile | patience | race | successive_halving | mo_asha |
/// learning_curve | hyper_sched | pbt | pb2 | replay.
AnyScheduler scheduler_from_yaml(const Node& node);

/// An algorithm by its name in files.
struct AlgorithmInfo {
  std::string_view type;
  std::vector<OptionInfo> options;
};

/// All algorithms, for the reference. The first entry, of type `search`, has the options that every searcher takes.
std::vector<AlgorithmInfo> known_searchers();
std::vector<AlgorithmInfo> known_schedulers();

}  // namespace hypertune::inline v0
