// PodToken: the token that workers present to their driver, in a Secret of the cluster.
#pragma once

#include "pod_manifest.hpp"

#include <hypertune/k8s/client.hpp>
#include <hypertune/net/secret.hpp>

#include <stop_token>
#include <string>

namespace hypertune::inline v0::k8s {

/// The token in the Secret of this name, under the key "token"; creates both if they do not exist. So a restarted
/// driver uses the token that its pods have.
Secret pod_token(Client client, const std::string& name, const std::string& experiment, const Owner& owner,
                 const std::stop_token& stop = {});

}  // namespace hypertune::inline v0::k8s
