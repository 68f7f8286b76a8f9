// What a StopCondition consists of: leaves, joined by "any" and "all".
#pragma once

#include <hypertune/record/record.hpp>
#include <hypertune/trial/trial.hpp>
#include <hypertune/tune/stop.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hypertune::inline v0::detail {

struct StopAtValue {
  std::string metric;
  double value;
  std::optional<Mode> mode;  // maximize: at least, minimize: at most, nullopt: the mode of the objective
};
struct StopAtSteps {
  std::int64_t steps;  // of one trial, or of all together
};
struct StopAtTime {
  Seconds seconds;
};
struct StopAtFailures {
  std::int64_t trials;
};
struct StopIfExperiment {
  std::function<bool(const ExperimentProgressView&)> holds;
  std::string text;
};
struct StopIfTrial {
  std::function<bool(const TrialProgressView&)> holds;
  std::string text;
};
using StopLeaf = std::variant<StopAtValue, StopAtSteps, StopAtTime, StopAtFailures, Plateau, StopIfExperiment,
                              StopIfTrial, ExpectedGain>;

struct StopNode {
  enum class Kind : std::uint8_t { leaf, any, all } kind = Kind::leaf;
  StopLeaf leaf = StopAtSteps{0};
  std::vector<std::shared_ptr<const StopNode>> children = {};
};

}  // namespace hypertune::inline v0::detail
