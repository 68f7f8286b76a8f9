// search: and schedule: of a sweep: every algorithm by its name and its options.
#pragma once

#include <hypertune/config/algorithms.hpp>
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

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hypertune {

namespace detail {

// {type: asha, max: 81}, or just: asha
inline std::string algorithm_type(const Node& node) {
  return node.is_map() ? node["type"].as<std::string>() : node.as<std::string>();
}

[[noreturn]] inline void unknown_algorithm(const Node& node, const std::string& type,
                                           const std::vector<std::string_view>& known) {
  std::string names;
  for (const auto name : known) names += (names.empty() ? "" : ", ") + std::string(name);
  (node.is_map() ? node["type"] : node)
      .fail("there is no {} '{}'{}; there are {}", node.path(), type,
            nearest(type, known).empty() ? "" : suggestion(type, known), names);
}

// The place of the word under `key` in `words`.
inline std::size_t one_of(const Node& node, std::string_view key, const std::vector<std::string_view>& words,
                          std::string_view fallback) {
  const std::string word = node.is_map() ? node.get<std::string>(key, std::string(fallback)) : std::string(fallback);
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string all;
  for (const auto known : words) all += (all.empty() ? "" : ", ") + std::string(known);
  node[key].fail("'{}' cannot be '{}'{}; there are {}", key, word, suggestion(word, words), all);
}

}  // namespace detail

HYPERTUNE_YAML_INLINE AnySearcher searcher_from_yaml(const Node& node) {
  const std::string type = detail::algorithm_type(node);
  const auto get = [&]<class T>(std::string_view key, T fallback) {
    return node.is_map() ? node.get<T>(key, fallback) : fallback;
  };
  const auto only = [&](std::vector<std::string_view> keys) {
    keys.insert(keys.end(), {"type", "repeat", "limit", "warm_start"});
    if (node.is_map()) node.only(keys);
  };
  const auto base = [&]() -> AnySearcher {
    if (type == "random") {
      only({});
      return Random{};
    }
    if (type == "auto") {
      only({});
      return Auto{};
    }
    if (type == "grid") {
      only({"resolution"});
      return Grid{.resolution = get("resolution", 10)};
    }
    if (type == "sobol") {
      only({"scramble"});
      return Sobol{.scramble = get("scramble", true)};
    }
    if (type == "tpe") {
      only({"startup", "share", "most_good", "candidates", "prior_strength"});
      const Tpe usual;
      const Tpe tpe{.startup = get("startup", usual.startup),
                    .share = get("share", usual.share),
                    .most_good = get("most_good", usual.most_good),
                    .candidates = get("candidates", usual.candidates),
                    .prior_strength = get("prior_strength", usual.prior_strength)};
      detail::checked(node, [&] { tpe.check(); });
      return tpe;
    }
    if (type == "cma_es") {
      only({"population", "sigma", "restarts", "shape"});
      CmaEs cma{.population = get("population", 0), .sigma = get("sigma", 0.0)};
      const std::vector<std::string_view> restarts{"none", "ipop", "bipop"}, shapes{"automatic", "full", "separable"};
      cma.restarts = static_cast<CmaRestarts>(detail::one_of(node, "restarts", restarts, "bipop"));
      cma.shape = static_cast<CmaShape>(detail::one_of(node, "shape", shapes, "automatic"));
      return detail::checked(node, [&] {
        cma.check();
        return cma;
      });
    }
    if (type == "gp") {
      only({"startup", "local", "prior_confidence"});
      GaussianProcess gp{
          .startup = get("startup", 0), .local = get("local", 250), .prior_confidence = get("prior_confidence", 0.0)};
      detail::checked(node, [&] { gp.check(); });
      return gp;
    }
    if (type == "differential_evolution") {
      only({"population", "weight", "crossover"});
      DifferentialEvolution de{
          .population = get("population", 0), .weight = get("weight", 0.5), .crossover = get("crossover", 0.9)};
      return detail::checked(node, [&] {
        de.check();
        return de;
      });
    }
    if (type == "bohb") {
      only({"max", "reduction"});
      return Tpe{};
    }
    if (type == "dehb") {
      only({"max", "reduction", "weight", "crossover"});
      Dehb dehb{.max = get("max", 81),
                .reduction = get("reduction", 3),
                .weight = get("weight", 0.5),
                .crossover = get("crossover", 0.5)};
      return detail::checked(node, [&] {
        dehb.check();
        return dehb;
      });
    }
    if (type == "nsga2" || type == "nsga3") {
      only({"population", "crossover", "mutation", "crossover_eta", "mutation_eta"});
      const auto fill = [&]<class Nsga>(Nsga nsga) -> AnySearcher {
        nsga.population = get("population", nsga.population);
        nsga.crossover = get("crossover", nsga.crossover);
        nsga.mutation = get("mutation", nsga.mutation);
        nsga.crossover_eta = get("crossover_eta", nsga.crossover_eta);
        nsga.mutation_eta = get("mutation_eta", nsga.mutation_eta);
        return detail::checked(node, [&] {
          nsga.check();
          return nsga;
        });
      };
      return type == "nsga2" ? fill(Nsga2{}) : fill(Nsga3{});
    }
    detail::unknown_algorithm(node, type,
                              {"auto", "random", "grid", "sobol", "tpe", "cma_es", "nsga2", "nsga3",
                               "differential_evolution", "dehb", "bohb", "gp"});
  };
  AnySearcher searcher = base();
  if (node.is_map() && node.has("warm_start")) {
    std::vector<std::filesystem::path> experiments;
    for (const Node& folder : node["warm_start"].items()) experiments.emplace_back(folder.as<std::string>());
    searcher = warm_start(std::move(searcher), std::move(experiments));
  }
  if (const int times = get("repeat", 1); times > 1)
    searcher = repeat(std::move(searcher), times);
  else if (times < 1)
    node["repeat"].fail("'repeat' must be 1 or more, not {}", times);
  if (node.is_map() && node.has("limit")) {
    const int most = node["limit"].as<int>();
    if (most < 1) node["limit"].fail("'limit' must be 1 or more, not {}", most);
    searcher = limit(std::move(searcher), most);
  }
  return searcher;
}

HYPERTUNE_YAML_INLINE std::optional<AnyScheduler> scheduler_of_searcher_from_yaml(const Node& node) {
  const std::string type = detail::algorithm_type(node);
  if (type != "bohb" && type != "dehb") return std::nullopt;
  return detail::checked(node, [&]() -> AnyScheduler {
    const HyperBand band{.max = node.is_map() ? node.get("max", 81) : 81,
                         .reduction = node.is_map() ? node.get("reduction", 3) : 3};
    hyperband_brackets(band.max, band.reduction);
    return band;
  });
}

HYPERTUNE_YAML_INLINE std::optional<Replay> replay_from_yaml(const Node& node) {
  if (detail::algorithm_type(node) != "replay") return std::nullopt;
  if (!node.is_map()) node.fail("'replay' needs what to train by: {{type: replay, from: the experiment's folder}}");
  node.only({"type", "from", "trial", "max"});
  return detail::checked(node, [&] {
    Replay replay{.schedule = {}, .max = node.get("max", 0)};
    const std::filesystem::path from = node["from"].as<std::string>();
    if (std::filesystem::is_directory(from)) {
      const Results found = Results::read(from);
      replay.schedule =
          node.has("trial") ? found.schedule(node["trial"].as<std::int64_t>()) : found.schedule(found.best());
    } else {
      if (node.has("trial"))
        node["trial"].fail("'trial' names one of a folder's trials, but '{}' is a file", from.string());
      for (const Node& entry : load_yaml_file(from).items()) {
        ScheduleEntry read{.from_step = entry["from_step"].as<int>(), .params = {}};
        for (const auto& [name, value] : entry["params"].entries()) read.params.set(name, value.scalar());
        replay.schedule.push_back(std::move(read));
      }
    }
    replay.check();
    return replay;
  });
}

HYPERTUNE_YAML_INLINE AnyScheduler scheduler_from_yaml(const Node& node) {
  const std::string type = detail::algorithm_type(node);
  const auto get = [&]<class T>(std::string_view key, T fallback) {
    return node.is_map() ? node.get<T>(key, fallback) : fallback;
  };
  const auto only = [&](std::vector<std::string_view> keys) {
    keys.emplace_back("type");
    if (node.is_map()) node.only(keys);
  };
  return detail::checked(node, [&]() -> AnyScheduler {
    if (type == "fifo") {
      only({"max"});
      return Fifo{.max = get("max", 0)};
    }
    if (type == "asha") {
      only({"grace", "max", "reduction", "brackets", "promotion"});
      Asha asha{.grace = get("grace", 1),
                .max = get("max", 81),
                .reduction = get("reduction", 3),
                .brackets = get("brackets", 1),
                .promotion = get("promotion", false)};
      asha.check();
      return asha;
    }
    if (type == "hyperband") {
      only({"max", "reduction"});
      return HyperBand{.max = get("max", 81), .reduction = get("reduction", 3)};
    }
    if (type == "median") {
      only({"grace", "min_trials", "max"});
      return MedianStopping{.grace = get("grace", 1), .min_trials = get("min_trials", 3), .max = get("max", 0)};
    }
    if (type == "percentile") {
      only({"keep", "grace", "min_trials", "max"});
      return Percentile{.keep = get("keep", 50.0),
                        .grace = get("grace", 1),
                        .min_trials = get("min_trials", 3),
                        .max = get("max", 0)};
    }
    if (type == "patience") {
      only({"patience", "min_improvement", "grace", "max"});
      return Patience{.patience = get("patience", 10),
                      .min_improvement = get("min_improvement", 0.0),
                      .grace = get("grace", 1),
                      .max = get("max", 0)};
    }
    if (type == "race") {
      only({"instances", "grace", "alpha", "test", "reports"});
      Race race{.instances = get("instances", 0), .grace = get("grace", 5), .alpha = get("alpha", 0.05)};
      race.test = static_cast<RaceTest>(detail::one_of(node, "test", {"t", "wilcoxon", "friedman"}, "t"));
      race.reports =
          static_cast<RaceReports>(detail::one_of(node, "reports", {"running_mean", "value"}, "running_mean"));
      return race;
    }
    if (type == "successive_halving") {
      only({"grace", "max", "reduction", "trials"});
      return SuccessiveHalving{.grace = get("grace", 1),
                               .max = get("max", 81),
                               .reduction = get("reduction", 3),
                               .trials = get("trials", 0)};
    }
    if (type == "mo_asha") {
      only({"grace", "max", "reduction", "history"});
      return MoAsha{.grace = get("grace", 1),
                    .max = get("max", 81),
                    .reduction = get("reduction", 3),
                    .history = get("history", 200)};
    }
    if (type == "learning_curve") {
      only({"max", "points", "chance"});
      return LearningCurve{.max = get("max", 100), .points = get("points", 8), .chance = get("chance", 0.05)};
    }
    if (type == "hyper_sched") {
      only({"deadline", "grace", "reduction", "max"});
      return HyperSched{.deadline = node.is_map() && node.has("deadline") ? node["deadline"].duration() : 3600,
                        .grace = get("grace", 1),
                        .reduction = get("reduction", 3),
                        .max = get("max", 0)};
    }
    const auto mutate = [&] {
      return node.is_map() && node.has("mutate") ? node["mutate"].texts() : std::vector<std::string>{};
    };
    if (type == "pbt") {
      only({"interval", "max", "quantile", "resample", "factor", "exploit", "window", "burn_in", "population",
            "synchronous", "mutate"});
      const std::string exploit = get("exploit", std::string("truncation"));
      if (exploit != "truncation" && exploit != "t_test")
        node["exploit"].fail("'exploit' must be truncation or t_test, not '{}'", exploit);
      return Pbt{.interval = get("interval", 4),
                 .max = get("max", 100),
                 .quantile = get("quantile", 0.25),
                 .resample = get("resample", 0.25),
                 .factor = get("factor", 1.2),
                 .exploit = exploit == "t_test" ? Pbt::Exploit::t_test : Pbt::Exploit::truncation,
                 .window = get("window", 10),
                 .burn_in = get("burn_in", 0),
                 .population = get("population", 0),
                 .synchronous = get("synchronous", false),
                 .mutate = mutate()};
    }
    if (type == "pb2") {
      only({"interval", "max", "quantile", "width", "history", "population", "synchronous", "mutate"});
      return Pb2{.interval = get("interval", 4),
                 .max = get("max", 100),
                 .quantile = get("quantile", 0.25),
                 .width = get("width", 1.0),
                 .history = get("history", 100),
                 .population = get("population", 0),
                 .synchronous = get("synchronous", false),
                 .mutate = mutate()};
    }
    if (auto replay = replay_from_yaml(node)) return std::move(*replay);
    detail::unknown_algorithm(
        node, type,
        {"fifo", "asha", "hyperband", "median", "percentile", "patience", "race", "successive_halving", "mo_asha",
         "learning_curve", "hyper_sched", "pbt", "pb2", "replay"});
  });
}

}  // namespace hypertune
