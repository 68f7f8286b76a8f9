// Definitions of the core: search.
#pragma once

#include <hypertune/search/detail/impl/default_searcher.hpp>
#include <hypertune/search/detail/impl/grid_combinations.hpp>
#include <hypertune/search/detail/impl/sobol_sequence.hpp>
#include <hypertune/search/impl/adaptors.hpp>
#include <hypertune/search/impl/auto.hpp>
#include <hypertune/search/impl/grid.hpp>
#include <hypertune/search/impl/parzen.hpp>
#include <hypertune/search/impl/replay.hpp>
#include <hypertune/search/impl/searcher.hpp>
#include <hypertune/search/impl/sobol.hpp>
#include <hypertune/search/impl/tpe.hpp>
#include <hypertune/search/impl/trial_ranking.hpp>
#include <hypertune/search/impl/warm_start.hpp>
