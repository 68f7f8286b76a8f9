// Definitions of what is learnt from experiments: comparisons, what_if() with its simulated executor, exports for
// Prometheus and of traces.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/execute/impl/simulated.hpp>
#include <hypertune/record/impl/comparison.hpp>
#include <hypertune/record/impl/prometheus.hpp>
#include <hypertune/record/impl/rank_test.hpp>
#include <hypertune/record/impl/trace_export.hpp>
#include <hypertune/tune/detail/impl/recorded_curves.hpp>
#include <hypertune/tune/impl/curve_beyond.hpp>
#include <hypertune/tune/impl/what_if.hpp>

const char include_hypertune_src_analysis_hpp_or_link_hypertune_hypertune = 0;
