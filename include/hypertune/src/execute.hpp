// Definitions: execute.
#pragma once

#include <hypertune/execute/impl/allocation.hpp>
#include <hypertune/execute/impl/executor.hpp>
#include <hypertune/execute/impl/group_run.hpp>
#include <hypertune/execute/impl/group_run_commands.hpp>
#include <hypertune/execute/impl/group_run_events.hpp>
#include <hypertune/execute/impl/growths.hpp>
#include <hypertune/execute/impl/inline.hpp>
#include <hypertune/execute/impl/placement.hpp>
#include <hypertune/execute/impl/placement_reasons.hpp>
#include <hypertune/execute/impl/simulated.hpp>
#include <hypertune/execute/impl/threads.hpp>
