// The Pareto front of an ExperimentView.
#pragma once

#include <hypertune/show/view/experiment_view.hpp>

#include <cstddef>
#include <optional>
#include <vector>

namespace hypertune::inline v0::view {

/// What each trial counts with where several objectives are compared: the losses of its last report. nullopt where it
/// does not: it has failed, or lacks an objective. As pareto_front() of the results says, by place of rows(); where
/// some trials keep the constraints on metrics, the others do not count either.
std::vector<std::optional<std::vector<double>>> front_losses(const ExperimentView& view);
/// The places of the trials that no other one beats in all objectives, in order: as pareto_front(results).
std::vector<std::size_t> front_places(const ExperimentView& view);

}  // namespace hypertune::inline v0::view
