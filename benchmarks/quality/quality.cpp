// Runs one searcher on one problem, or lends the problems to a peer.
// quality problems                            every problem and its parameters, as JSON
// quality run SEARCHER PROBLEM SEED EVALS     SEARCHER in the grammar of sweep.yaml: tpe, or {type: tpe, …}; prints the
//                                             regret after each evaluation and the time that suggestions took
// quality values PROBLEM SEED                 reads a configuration a line (JSON), prints its value and the regret so
// far
#include "problems.hpp"

#include <hypertune/config/algorithms.hpp>
#include <hypertune/random.hpp>

#include <boost/json/src.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>

namespace json = boost::json;
using namespace quality;

namespace {

const Problem& problem(const std::string& name) {
  for (const auto& p : problems())
    if (p.name == name) return p;
  ht::fail(ht::Errc::usage, "there is no problem '{}'", name);
}

/// What a searcher is told, and what its choice is worth: the true value of the one that looks best.
class Judge {
 public:
  Judge(const Problem& problem, std::uint64_t seed) : problem_(problem), seed_(seed) {}

  double told(const ht::Params& params) {
    const double truth = problem_.value(params);
    ht::Rng rng = ht::derived_rng(seed_, {count_++, 2});
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += ht::uniform01(rng);
    const double value = problem_.noise > 0 ? truth + problem_.noise * normal : truth;
    if (value < best_) {
      best_ = value;
      regret_ = truth - problem_.optimum;
    }
    return value;
  }
  double regret() const { return regret_; }

 private:
  const Problem& problem_;
  std::uint64_t seed_, count_ = 0;
  double best_ = std::numeric_limits<double>::infinity(), regret_ = best_;
};

json::object described(const Parameter& p) {
  static constexpr const char* kinds[] = {"real", "log_real", "integer", "choice"};
  json::object o{{"name", p.name}, {"kind", kinds[std::size_t(p.kind)]}, {"low", p.low}, {"high", p.high}};
  if (!p.options.empty()) o["options"] = json::array(p.options.begin(), p.options.end());
  if (!p.parent.empty()) o["when"] = json::array{p.parent, p.value};
  return o;
}

int list() {
  json::array all;
  for (const auto& p : problems()) {
    json::array parameters;
    for (const auto& parameter : p.parameters) parameters.push_back(described(parameter));
    all.push_back(
        json::object{{"name", p.name}, {"further", p.further}, {"optimum", p.optimum}, {"parameters", parameters}});
  }
  fmt::print("{}\n", json::serialize(all));
  return 0;
}

int run(const std::string& searcher_text, const Problem& p, std::uint64_t seed, int evaluations) {
  const auto space = space_of(p);
  auto searcher = ht::searcher_from_yaml(ht::load_yaml_text(searcher_text, "searcher"));
  searcher.prepare(space.search_space(), {.samples = evaluations, .parallelism = 1, .seed = seed});
  Judge judge(p, seed);
  double seconds = 0;
  std::vector<double> regret;
  for (int trial = 0; trial < evaluations; ++trial) {
    ht::Rng rng = ht::derived_rng(seed, {std::uint64_t(trial), 1});
    const auto begin = std::chrono::steady_clock::now();
    const auto suggestion = searcher.suggest({.trial = trial, .rng = rng});
    if (suggestion.kind != ht::Suggestion::Kind::point) break;
    const ht::Point& point = suggestion.point;
    searcher.observe({.kind = ht::Observation::Kind::started, .trial = trial, .point = point});
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double loss[] = {judge.told(space.search_space().params(point))};
    regret.push_back(judge.regret());
    const auto told = std::chrono::steady_clock::now();
    searcher.observe(
        {.kind = ht::Observation::Kind::report, .trial = trial, .point = point, .steps = 1, .losses = loss});
    searcher.observe({.kind = ht::Observation::Kind::ended,
                      .trial = trial,
                      .point = point,
                      .steps = 1,
                      .losses = loss,
                      .state = ht::TrialState::completed});
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - told).count();
  }
  fmt::print(R"({{"seconds": {:.4f}, "regret": [{}]}})"
             "\n",
             seconds, fmt::join(regret, ", "));
  return 0;
}

int values(const Problem& p, std::uint64_t seed) {
  Judge judge(p, seed);
  for (std::string line; std::getline(std::cin, line);) {
    ht::Params params;
    const auto given = json::parse(line).as_object();
    for (const auto& parameter : p.parameters) {
      const auto* value = given.if_contains(parameter.name);
      if (value == nullptr) continue;
      if (parameter.kind == Parameter::Kind::choice)
        params.set(parameter.name, std::string(value->as_string()));
      else if (parameter.kind == Parameter::Kind::integer)
        params.set(parameter.name, value->to_number<std::int64_t>());
      else
        params.set(parameter.name, value->to_number<double>());
    }
    const double value = judge.told(params);
    fmt::print("{} {}\n", value, judge.regret());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<std::string> a(argv + 1, argv + argc);
  if (a.size() == 1 && a[0] == "problems") return list();
  if (a.size() == 5 && a[0] == "run") return run(a[1], problem(a[2]), std::stoull(a[3]), std::stoi(a[4]));
  if (a.size() == 3 && a[0] == "values") return values(problem(a[1]), std::stoull(a[2]));
  ht::fail(ht::Errc::usage, "quality problems | run SEARCHER PROBLEM SEED EVALS | values PROBLEM SEED");
} catch (const std::exception& error) {
  std::fprintf(stderr, "quality: %s\n", error.what());
  return 2;
}
