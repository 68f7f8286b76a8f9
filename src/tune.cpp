// Part of hypertune::compiled: see detail/linkage.hpp.
#include <hypertune/tune/impl/study.hpp>
#include <hypertune/tune/impl/suggestions.hpp>
#include <hypertune/tune/impl/tune.hpp>
#include <hypertune/tune/impl/tuner.hpp>
