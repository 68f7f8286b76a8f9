// The kinds of charts.
#pragma once

#include "chart.hpp"
#include "source.hpp"

#include <vector>

namespace hypertune::inline v0::plot {

Chart best(Source& source);
Chart curves(Source& source);
Chart rungs(Source& source);
Chart importance(Source& source);
Chart slice(Source& source);
Chart contour_or_rank(Source& source);
Chart parallel(Source& source);
Chart pareto_or_against(Source& source);
Chart hypervolume(Source& source);
Chart edf(Source& source);
Chart timeline_or_slots(Source& source);
Chart lineage_or_schedule(Source& source);

/// `best` or `edf` of several experiments, each with a name.
Chart together(const std::vector<Source>& sources, const Names& names);

}  // namespace hypertune::inline v0::plot
