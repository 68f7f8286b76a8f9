// Definitions: record.
#pragma once

#include <hypertune/record/impl/callback.hpp>
#include <hypertune/record/impl/comparison.hpp>
#include <hypertune/record/impl/prometheus.hpp>
#include <hypertune/record/impl/rank_test.hpp>
#include <hypertune/record/impl/record.hpp>
#include <hypertune/record/impl/results.hpp>
#include <hypertune/record/impl/trace_export.hpp>
#include <hypertune/record/impl/trial_result.hpp>
