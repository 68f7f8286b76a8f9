// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/search/impl/default_searcher.hpp>
#include <hypertune/search/impl/parzen.hpp>
#include <hypertune/search/impl/tpe.hpp>
#include <hypertune/search/impl/trial_ranking.hpp>
