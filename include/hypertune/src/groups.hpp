// Definitions of trials with several workers.
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/execute/detail/group/impl/group_run.hpp>
#include <hypertune/execute/detail/group/impl/group_run_commands.hpp>
#include <hypertune/execute/detail/group/impl/group_run_events.hpp>
#include <hypertune/execute/detail/group/impl/groups.hpp>

const char include_hypertune_src_groups_hpp_or_link_hypertune_hypertune = 0;
