// The `search:` and `schedule:` keys of a sweep: every algorithm by its name, with its options.
#pragma once

#include <hypertune/config/algorithms.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/schedule/asha.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/hyper_sched.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/learning_curve.hpp>
#include <hypertune/schedule/median_stopping.hpp>
#include <hypertune/schedule/mo_asha.hpp>
#include <hypertune/schedule/patience.hpp>
#include <hypertune/schedule/pb2.hpp>
#include <hypertune/schedule/pbt.hpp>
#include <hypertune/schedule/percentile.hpp>
#include <hypertune/schedule/racing.hpp>
#include <hypertune/schedule/successive_halving.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/auto.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/differential_evolution.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/multi_fidelity.hpp>
#include <hypertune/search/nsga.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/sobol.hpp>
#include <hypertune/search/tpe.hpp>
#include <hypertune/search/warm_start.hpp>

#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {

// {type: asha, max_steps: 81}, or only: asha
inline std::string algorithm_type(const Node& node) {
  return node.is_map() ? node["type"].as<std::string>() : node.as<std::string>();
}

/// The options that every searcher takes besides its own.
struct SearcherWrapping {
  static constexpr const char* type = "search";
  int repeat = 1;
  std::optional<int> max_concurrent;
  std::vector<std::filesystem::path> warm_start;

  static void describe(auto& self, auto&& option) {
    option("repeat", self.repeat, hypertune::at_least(1),
           "how often each configuration is tried, each time as a trial of its own; the searcher learns the mean. "
           "`samples` counts the trials. With `trial.repeat` all runs are one trial with one value");
    option(
        "max_concurrent", self.max_concurrent, hypertune::at_least(1),
        "the most trials without a result at a time: fewer run at once, so each suggestion is based on more results");
    option("warm_start", self.warm_start,
           "folders of earlier experiments, from which the searcher learns first; they are no part of this one. They "
           "are read again at each resumption");
  }
};

/// The options of a replay besides those of Replay.
struct ReplaySource {
  static constexpr const char* type = "replay";
  std::filesystem::path from;
  std::optional<TrialId> trial;

  static void describe(auto& self, auto&& option) {
    option("from", self.from, "the folder of an experiment, or a file that `hypertune export --schedule` wrote");
    option("trial", self.trial, hypertune::at_least(0), "of a folder: whose schedule; else the best one's");
  }
};

/// An algorithm by its name in files.
template <class Any, class... Besides>
struct AlgorithmKind {
  std::string_view type;
  std::vector<OptionInfo> (*options)();
  Any (*read)(const Node&, Besides&...);
};
using SearcherKind = AlgorithmKind<AnySearcher, SearcherWrapping>;
using SchedulerKind = AlgorithmKind<AnyScheduler>;

/// `Options`: those of `Algorithm` itself, or of another type that belongs to it.
template <class Algorithm, class Options = Algorithm>
constexpr SearcherKind searcher_kind(std::string_view type = Algorithm::type) {
  return {type, [] { return options_of(Options{}); },
          [](const Node& node, SearcherWrapping& wrapping) -> AnySearcher {
            Options options;
            read_options(node, {"type"}, options, wrapping);
            if constexpr (std::same_as<Algorithm, Options>) return options;
            check_options(options);
            return Algorithm{};
          }};
}
template <class Algorithm>
constexpr SchedulerKind scheduler_kind() {
  return {Algorithm::type, [] { return options_of(Algorithm{}); },
          [](const Node& node) -> AnyScheduler {
            Algorithm options;
            read_options(node, {"type"}, options);
            return options;
          }};
}

inline constexpr SearcherKind searcher_kinds[] = {searcher_kind<Auto>(),
                                                  searcher_kind<Random>(),
                                                  searcher_kind<Grid>(),
                                                  searcher_kind<Sobol>(),
                                                  searcher_kind<Tpe>(),
                                                  searcher_kind<CmaEs>(),
                                                  searcher_kind<Nsga2>(),
                                                  searcher_kind<Nsga3>(),
                                                  searcher_kind<DifferentialEvolution>(),
                                                  searcher_kind<Dehb>(),
                                                  searcher_kind<Tpe, HyperBand>("bohb"),
                                                  searcher_kind<GaussianProcess>()};
inline constexpr SchedulerKind scheduler_kinds[] = {
    scheduler_kind<Fifo>(),
    scheduler_kind<Asha>(),
    scheduler_kind<HyperBand>(),
    scheduler_kind<MedianStopping>(),
    scheduler_kind<Percentile>(),
    scheduler_kind<Patience>(),
    scheduler_kind<Race>(),
    scheduler_kind<SuccessiveHalving>(),
    scheduler_kind<MoAsha>(),
    scheduler_kind<LearningCurve>(),
    scheduler_kind<HyperSched>(),
    scheduler_kind<Pbt>(),
    scheduler_kind<Pb2>(),
    {Replay::type, [] { return options_of(ReplaySource{}, Replay{}); },
     [](const Node& node) -> AnyScheduler { return *replay_from_yaml(node); }}};

template <class Kinds>
const auto& kind_of(const Node& node, const Kinds& kinds) {
  const std::string type = algorithm_type(node);
  std::vector<std::string_view> known;
  for (const auto& kind : kinds) {
    if (kind.type == type) return kind;
    known.push_back(kind.type);
  }
  (node.is_map() ? node["type"] : node)
      .fail("there is no {} '{}'{}; there are {}", node.path(), type,
            nearest(type, known).empty() ? "" : suggestion(type, known), joined(known));
}

}  // namespace detail

AnySearcher searcher_from_yaml(const Node& node) {
  return detail::checked(node, [&] {
    detail::SearcherWrapping wrapping;
    AnySearcher searcher = detail::kind_of(node, detail::searcher_kinds).read(node, wrapping);
    check_options(wrapping);
    if (!wrapping.warm_start.empty()) searcher = warm_start(std::move(searcher), std::move(wrapping.warm_start));
    if (wrapping.repeat > 1) searcher = repeat(std::move(searcher), wrapping.repeat);
    if (wrapping.max_concurrent) searcher = limit(std::move(searcher), *wrapping.max_concurrent);
    return searcher;
  });
}

std::optional<AnyScheduler> scheduler_of_searcher_from_yaml(const Node& node) {
  const std::string type = detail::algorithm_type(node);
  if (type != "bohb" && type != "dehb") return std::nullopt;
  HyperBand band;
  read_known_options(node, band);
  return detail::checked(node, [&]() -> AnyScheduler { return band; });
}

std::optional<Replay> replay_from_yaml(const Node& node) {
  if (detail::algorithm_type(node) != Replay::type) return std::nullopt;
  if (!node.is_map()) node.fail("'replay' needs what to train by: {{type: replay, from: the experiment's folder}}");
  Replay replay;
  detail::ReplaySource source;
  read_options(node, {"type"}, source, replay);
  const Node from = node["from"];
  return detail::checked(node, [&] {
    if (std::filesystem::is_directory(source.from)) {
      const Results found = Results::read(source.from);
      replay.schedule = source.trial ? found.schedule(*source.trial) : found.schedule(found.best());
    } else {
      if (source.trial)
        node["trial"].fail("'trial' names one of a folder's trials, but '{}' is a file", source.from.string());
      for (const Node& entry : load_yaml_file(source.from).items()) {
        ScheduleEntry read{.from_step = entry["from_step"].as<int>(), .params = {}};
        for (const auto& [name, value] : entry["params"].entries()) read.params.set(name, value.scalar());
        replay.schedule.push_back(std::move(read));
      }
    }
    check_options(replay);
    return replay;
  });
}

AnyScheduler scheduler_from_yaml(const Node& node) {
  return detail::checked(node, [&] { return detail::kind_of(node, detail::scheduler_kinds).read(node); });
}

std::vector<AlgorithmInfo> known_searchers() {
  std::vector<AlgorithmInfo> all{{detail::SearcherWrapping::type, options_of(detail::SearcherWrapping{})}};
  for (const auto& kind : detail::searcher_kinds) all.push_back({kind.type, kind.options()});
  return all;
}
std::vector<AlgorithmInfo> known_schedulers() {
  std::vector<AlgorithmInfo> all;
  for (const auto& kind : detail::scheduler_kinds) all.push_back({kind.type, kind.options()});
  return all;
}

}  // namespace hypertune::inline v0
