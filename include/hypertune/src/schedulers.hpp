// Definitions of all schedulers but Fifo and Asha, and of those that are searchers too (BOHB, DEHB).
#pragma once

#include <hypertune/detail/parts.hpp>
#include <hypertune/schedule/detail/impl/by_step.hpp>
#include <hypertune/schedule/detail/impl/epsilon_net.hpp>
#include <hypertune/schedule/detail/impl/explore.hpp>
#include <hypertune/schedule/detail/impl/friedman.hpp>
#include <hypertune/schedule/detail/impl/paired_tests.hpp>
#include <hypertune/schedule/detail/impl/population.hpp>
#include <hypertune/schedule/detail/impl/time_varying_bandit.hpp>
#include <hypertune/schedule/detail/impl/welch.hpp>
#include <hypertune/schedule/impl/hyper_sched.hpp>
#include <hypertune/schedule/impl/hyperband.hpp>
#include <hypertune/schedule/impl/learning_curve.hpp>
#include <hypertune/schedule/impl/median_stopping.hpp>
#include <hypertune/schedule/impl/mo_asha.hpp>
#include <hypertune/schedule/impl/patience.hpp>
#include <hypertune/schedule/impl/pb2.hpp>
#include <hypertune/schedule/impl/pbt.hpp>
#include <hypertune/schedule/impl/percentile.hpp>
#include <hypertune/schedule/impl/racing.hpp>
#include <hypertune/schedule/impl/successive_halving.hpp>
#include <hypertune/search/impl/multi_fidelity.hpp>

const char include_hypertune_src_schedulers_hpp_or_link_hypertune_hypertune = 0;
