// The local API: everything to tune on this machine, and nothing that speaks to a network, reads YAML or needs CUDA.
#pragma once

#include <hypertune/execute/inline.hpp>
#include <hypertune/execute/simulated.hpp>
#include <hypertune/execute/threads.hpp>
#include <hypertune/record/results.hpp>
#include <hypertune/schedule/asha.hpp>
#include <hypertune/schedule/fifo.hpp>
#include <hypertune/schedule/hyperband.hpp>
#include <hypertune/schedule/median_stopping.hpp>
#include <hypertune/schedule/patience.hpp>
#include <hypertune/schedule/percentile.hpp>
#include <hypertune/schedule/racing.hpp>
#include <hypertune/search/adaptors.hpp>
#include <hypertune/search/cma_es.hpp>
#include <hypertune/search/differential_evolution.hpp>
#include <hypertune/search/gaussian_process.hpp>
#include <hypertune/search/grid.hpp>
#include <hypertune/search/multi_fidelity.hpp>
#include <hypertune/search/nsga.hpp>
#include <hypertune/search/random.hpp>
#include <hypertune/search/sobol.hpp>
#include <hypertune/search/tpe.hpp>
#include <hypertune/space/space.hpp>
#include <hypertune/trial/trainable.hpp>
#include <hypertune/tune/study.hpp>
#include <hypertune/tune/tune.hpp>
