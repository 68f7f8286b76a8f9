// Definitions of the core: schedule.
#pragma once

#include <hypertune/schedule/detail/impl/rung.hpp>
#include <hypertune/schedule/impl/asha.hpp>
#include <hypertune/schedule/impl/reason.hpp>
#include <hypertune/schedule/impl/scheduler.hpp>
