// Definitions of the core: tune.
#pragma once

#include <hypertune/detail/definitions.hpp>
#include <hypertune/impl/formatters.hpp>
#include <hypertune/tune/detail/impl/controller.hpp>
#include <hypertune/tune/detail/impl/controller_events.hpp>
#include <hypertune/tune/detail/impl/controller_slots.hpp>
#include <hypertune/tune/detail/impl/dispatcher.hpp>
#include <hypertune/tune/detail/impl/dispatcher_hosts.hpp>
#include <hypertune/tune/detail/impl/dispatcher_workers.hpp>
#include <hypertune/tune/detail/impl/experiment_directory.hpp>
#include <hypertune/tune/detail/impl/experiment_state.hpp>
#include <hypertune/tune/detail/impl/judge.hpp>
#include <hypertune/tune/detail/impl/resumption.hpp>
#include <hypertune/tune/detail/impl/stop_judge.hpp>
#include <hypertune/tune/detail/impl/suggestions.hpp>
#include <hypertune/tune/detail/requests/impl/control.hpp>
#include <hypertune/tune/detail/requests/impl/controller_requests.hpp>
#include <hypertune/tune/impl/options.hpp>
#include <hypertune/tune/impl/stop.hpp>
#include <hypertune/tune/impl/study.hpp>
#include <hypertune/tune/impl/tune.hpp>
#include <hypertune/tune/impl/tuner.hpp>

const char include_hypertune_src_hpp_in_one_file_or_link_hypertune_hypertune = 0;
