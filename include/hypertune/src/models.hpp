// Definitions of the searchers that model the results (GaussianProcess, CmaEs, Nsga2, DifferentialEvolution), from which
// Auto chooses. Without them Auto searches by TPE, and says so.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/search/impl/auto_models.hpp>
#include <hypertune/search/impl/cma_es.hpp>
#include <hypertune/search/impl/differential_evolution.hpp>
#include <hypertune/search/impl/gaussian_process.hpp>
#include <hypertune/search/impl/nsga.hpp>

const char include_hypertune_src_models_hpp_or_link_hypertune_hypertune = 0;
