// The Pareto front of an ExperimentView.
#pragma once

#include <hypertune/record/detail/front.hpp>
#include <hypertune/show/detail/view/experiment_view.hpp>

#include <cstddef>
#include <vector>

namespace hypertune::inline v0::view {

/// The losses of each trial's last report, by index of rows(), for comparing several objectives. nullopt if the trial
/// does not count: it has failed, lacks an objective, or breaks a constraint that other trials meet. The rules are
/// those of pareto_front(results).
detail::FrontLosses front_losses(const ExperimentView& view);
/// The indices of the trials that no other trial dominates, in order, as in pareto_front(results).
std::vector<std::size_t> front_places(const ExperimentView& view);

}  // namespace hypertune::inline v0::view
