// Definitions of the core: trial.
#pragma once

#include <hypertune/trial/detail/impl/trial_file.hpp>
#include <hypertune/trial/impl/attributes.hpp>
#include <hypertune/trial/impl/checkpoint.hpp>
#include <hypertune/trial/impl/context.hpp>
#include <hypertune/trial/impl/failure.hpp>
#include <hypertune/trial/impl/group.hpp>
#include <hypertune/trial/impl/metric_name.hpp>
#include <hypertune/trial/impl/report.hpp>
#include <hypertune/trial/impl/resources.hpp>
