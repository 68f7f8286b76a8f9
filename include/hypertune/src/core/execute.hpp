// Definitions of the core: execute.
#pragma once

#include <hypertune/execute/detail/impl/growths.hpp>
#include <hypertune/execute/detail/impl/placement.hpp>
#include <hypertune/execute/detail/impl/placement_reasons.hpp>
#include <hypertune/execute/impl/allocation.hpp>
#include <hypertune/execute/impl/executor.hpp>
#include <hypertune/execute/impl/inline.hpp>
#include <hypertune/execute/impl/threads.hpp>
