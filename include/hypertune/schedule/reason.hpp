// Why a scheduler stopped a trial, as text for users.
#pragma once

#include <hypertune/trial/trial.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace hypertune::inline v0 {

/// Shows losses as values of the metrics: schedulers minimise, users may maximise.
class LossText {
 public:
  LossText() = default;
  /// Adds the metric of the next objective.
  void add(std::string metric, bool maximised);

  /// "0.71": the value of the first objective.
  std::string value(double loss) const;
  /// "accuracy 0.71".
  std::string named(double loss) const;
  /// "cost 3, latency 7".
  std::string named(std::span<const double> losses) const;
  /// "accuracy 0.71, needed 0.83": with as many digits as it takes to tell them apart.
  std::string against(double loss, double bar, const char* word = "needed") const;
  /// The name of an objective's metric.
  std::string name(std::size_t objective = 0) const;

 private:
  struct Metric {
    std::string name;
    bool maximised = false;
  };
  std::string text(double loss, std::size_t objective, int digits) const;
  std::vector<Metric> metrics_;
};

namespace detail {

/// How a trial compares at a rung; `bar` is the loss that it takes to pass.
struct RungVerdict {
  std::size_t rung = 0;  // counted from 0
  int steps = 0;
  double loss = worst_loss, bar = worst_loss;
  std::size_t quota = 0, trials = 0;  // `quota` of `trials` pass it

  /// "at rung 3 (9 steps): accuracy 0.71, needed 0.83 (the best 9 of 27)".
  std::string text(const LossText& losses) const;
};

}  // namespace detail

}  // namespace hypertune::inline v0
