// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/search/impl/auto.hpp>
#include <hypertune/search/impl/default_searcher.hpp>
#include <hypertune/search/impl/gaussian_process.hpp>
