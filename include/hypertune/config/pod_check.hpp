// Finds misspelt keys in a pod that is written in Kubernetes' own notation.
#pragma once

#include <hypertune/config/yaml.hpp>

namespace hypertune::inline v0::detail {

/// Checks a pod's `spec` and its containers. A key that is similar to one of Kubernetes' is taken for a misspelling,
/// which the API server would ignore silently. Any other unknown key may belong to another version, and is left to the
/// API server. Error of kind `input` with line and key.
void check_pod_slips(const Node& spec);
/// Checks a whole pod: that it is a map of the known parts and `spec` a map with lists of containers; then the spec.
void check_pod(const Node& pod);

}  // namespace hypertune::inline v0::detail
