// The keys of a CLUSTER.yaml: tables for its parser, docs/cluster.md and `hypertune schema`.
#pragma once

#include <hypertune/config/shape.hpp>

#include <string_view>

namespace hypertune::inline v0::cluster::detail {

const hypertune::Keys& cluster_keys();
/// `type`: one of the built-in provider types.
hypertune::Keys provider_keys(std::string_view type);
const hypertune::Keys& auth_keys();
const hypertune::Keys& node_type_keys();
const hypertune::Keys& price_keys();

}  // namespace hypertune::inline v0::cluster::detail
