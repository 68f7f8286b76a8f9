// Definitions of the core: record.
#pragma once

#include <hypertune/record/impl/callback.hpp>
#include <hypertune/record/impl/record.hpp>
#include <hypertune/record/impl/results.hpp>
#include <hypertune/record/impl/trial_result.hpp>
