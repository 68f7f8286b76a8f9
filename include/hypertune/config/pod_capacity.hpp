// What a worker that is a pod has, where its options leave it to `pod`.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/yaml.hpp>
#include <hypertune/trial/resources.hpp>

#include <optional>
#include <string_view>

namespace hypertune::inline v0 {

/// What trials may use of a worker: cpus and memory of the options, or, where one is left out, what `pod` asks for, for
/// the worker's container or for the whole pod. One cpu if neither says. Error of kind `input` for a `pod` that is no
/// YAML.
Resources capacity_of(const KubernetesOptions& options);

namespace detail {

/// How much of a resource ("cpu") a pod asks for, for the worker's container or else for all of them together. `first`:
/// which of "requests" and "limits" counts if both are given.
std::optional<double> asked_by_pod(const Node& pod, std::string_view resource, std::string_view first = "requests");
/// A quantity of Kubernetes: "500m", "4Gi", "1e3"; nullopt: it is none, which the API server will say.
std::optional<double> quantity_of(std::string_view text);

}  // namespace detail
}  // namespace hypertune::inline v0
