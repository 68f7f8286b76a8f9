// Definitions of hypertune::compiled: execute.
#pragma once

#include <hypertune/execute/impl/group_run.hpp>
#include <hypertune/execute/impl/inline.hpp>
#include <hypertune/execute/impl/simulated.hpp>
#include <hypertune/execute/impl/threads.hpp>
