// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/search/impl/default_searcher.hpp>
#include <hypertune/search/impl/parzen.hpp>
#include <hypertune/search/impl/tpe.hpp>
#include <hypertune/search/impl/trial_ranking.hpp>

namespace hypertune {
namespace detail {
template class BasicParzenSpace<void>;
template class BasicParzenEstimator<void>;
template class BasicTrialRanking<void>;
}  // namespace detail
template struct BasicTpe<void>;
template AnySearcher default_searcher<>();
}  // namespace hypertune
