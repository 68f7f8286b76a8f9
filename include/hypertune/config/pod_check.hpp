// Slips in a pod that is written in Kubernetes' own words.
#pragma once

#include <hypertune/config/linkage.hpp>
#include <hypertune/config/yaml.hpp>

namespace hypertune::inline v0::detail {

/// Of a pod's `spec`, and of its containers: a key that is nearly one of Kubernetes' is a slip, which the API server
/// would take without a word. One that is nowhere near may be of another version, and is for the API server to judge.
/// Error of kind `input` with line and key.
void check_pod_slips(const Node& spec);
/// Of a whole pod: that it is a map of these parts, that `spec` is a map with lists of containers, and the slips in it.
void check_pod(const Node& pod);

}  // namespace hypertune::inline v0::detail

#ifndef HYPERTUNE_YAML_COMPILED
#include <hypertune/config/impl/pod_check.hpp>
#endif
