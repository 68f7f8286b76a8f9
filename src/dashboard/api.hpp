// Api: answers the page's requests from the experiments that are followed.
#pragma once

#include "experiments.hpp"

#include <hypertune/net/http_answer.hpp>
#include <hypertune/show/detail/view/query.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::dashboard {

/// What an experiment has cost, as JSON: {"spent", "rate", "currency", "budget"}; "null" if that is unknown.
using CostText = std::function<std::string(const std::filesystem::path& folder)>;

class Api {
 public:
  Api(const Experiments& experiments, CostText cost) : experiments_(experiments), cost_(std::move(cost)) {}

  /// Answers GET of a target below /api/. May be called from any thread; may take some tenths of a second.
  HttpAnswer answer(std::string_view target) const;
  /// The same for callers in this process: returns the JSON, or throws an Error.
  std::string body(std::string_view target) const;

  /// The data of the event for an experiment that has changed; "" if the experiment is gone.
  std::string changed(const std::string& id) const;

 private:
  std::string experiments() const;
  std::string of_experiment(Followed& followed, const view::Query& query) const;

  const Experiments& experiments_;
  CostText cost_;
};

/// /api/trial: everything about one trial. It reads the Journal if the sampled curve is not enough.
std::string trial_answer(Followed& followed, const view::Query& query);
/// /api/log: a part of a trial's output.
std::string log_answer(Followed& followed, const view::Query& query);
/// How many seconds an answer waits for a driver that is asked.
inline constexpr double ask_patience = 1;

}  // namespace hypertune::inline v0::dashboard
