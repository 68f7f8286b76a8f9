// The keys of a sweep's file, as tables for its reader, docs/sweep.md, docs/stopping.md and `hypertune schema`.
#pragma once

#include <hypertune/config/shape.hpp>

namespace hypertune::inline v0 {

/// The shape of the whole file. `study`: without `trial`.
Shape sweep_shape(bool study);

namespace detail {

Keys sweep_keys(bool study);

const Keys& trial_keys();
const Keys& trial_file_keys();
const Keys& metric_expression_keys();  ///< trial: {metrics: {name: {…}}}
const Keys& step_expression_keys();    ///< trial: {step: {…}}
const Keys& repeat_keys();
Keys resources_keys();
const Keys& workers_keys();
const Keys& group_keys();
const Keys& stop_keys();         ///< except the metrics
const Keys& metric_stop_keys();  ///< stop: {metric: {…}}
Keys plateau_keys();
Keys expected_gain_keys();
const Keys& constraint_keys();
Keys checkpoint_keys();
const Keys& failures_keys();
const Keys& log_rule_keys();
const Keys& known_keys();
const Keys& prometheus_keys();
const Keys& mlflow_keys();
Shape mode_shape();

}  // namespace detail
}  // namespace hypertune::inline v0
