// Definitions of trials with several workers.
#pragma once

#include <hypertune/detail/impl/groups_part.hpp>
#include <hypertune/execute/detail/group/impl/group_run.hpp>
#include <hypertune/execute/detail/group/impl/group_run_commands.hpp>
#include <hypertune/execute/detail/group/impl/group_run_events.hpp>
#include <hypertune/execute/detail/group/impl/groups.hpp>
