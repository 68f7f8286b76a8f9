// Api: what the page asks for, answered from the experiments that are followed.
#pragma once

#include "experiments.hpp"

#include <hypertune/serve/http_answer.hpp>
#include <hypertune/show/view/query.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace hypertune::inline v0::dashboard {

/// What an experiment has cost, as JSON: {"spent", "rate", "currency", "budget"}; "null" where there is nothing.
using CostText = std::function<std::string(const std::filesystem::path& folder)>;

class Api {
 public:
  Api(const Experiments& experiments, CostText cost) : experiments_(experiments), cost_(std::move(cost)) {}

  /// Answers GET of a target below /api/. Any thread; it may take some tenths of a second.
  HttpAnswer answer(std::string_view target) const;
  /// The same for who is in this process: the answer's JSON, or what is wrong as an Error.
  std::string body(std::string_view target) const;

  /// The data of an event of an experiment that has changed; "" where it is gone.
  std::string changed(const std::string& id) const;

 private:
  std::string experiments() const;
  std::string of_experiment(Followed& followed, const view::Query& query) const;

  const Experiments& experiments_;
  CostText cost_;
};

/// /api/trial: a trial whole. It reads the Journal where the sample of a curve is not enough.
std::string trial_answer(Followed& followed, const view::Query& query);
/// /api/log: a part of what a trial has printed.
std::string log_answer(Followed& followed, const view::Query& query);
/// What the driver says that trials wait for. Returns what keeps all of them from running, if it says that.
std::string ask_why_waiting(const std::filesystem::path& folder, const std::vector<TrialId>& trials,
                            std::vector<std::pair<TrialId, std::string>>& reasons);

}  // namespace hypertune::inline v0::dashboard
