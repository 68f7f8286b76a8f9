// The definitions that every program needs: spaces, random, grid, Sobol and TPE searches, ASHA, threads, the record and the
// Tuner. See <hypertune/src.hpp>.
#pragma once

#include <hypertune/src/core/checkpoint.hpp>
#include <hypertune/src/core/execute.hpp>
#include <hypertune/src/core/record.hpp>
#include <hypertune/src/core/schedule.hpp>
#include <hypertune/src/core/search.hpp>
#include <hypertune/src/core/space.hpp>
#include <hypertune/src/core/trial.hpp>
#include <hypertune/src/core/tune.hpp>
