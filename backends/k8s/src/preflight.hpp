// Preflight: checks the account's permissions before anything is begun.
#pragma once

#include <hypertune/k8s/client.hpp>

#include <stop_token>
#include <string>
#include <vector>

namespace hypertune::inline v0::k8s {

/// Something that an account must be allowed to do in a namespace.
struct Permission {
  std::string group;     ///< of the API; empty: the core one
  std::string resource;  ///< "pods", "pods/exec"
  std::string verb;
  std::string why;  ///< for people: "to start workers"
  bool operator==(const Permission&) const = default;
};

/// The permissions in `needed` that the API server does not grant, in their order; makes one call for each.
std::vector<Permission> missing_permissions(const Client& client, const std::vector<Permission>& needed,
                                            const std::stop_token& stop = {});

/// Throws an Error of kind `usage` that names each missing permission, and the rule of a Role to add.
void require_permissions(const Client& client, const std::vector<Permission>& needed, const std::stop_token& stop = {});

/// The rules of a Role that grant these permissions, each as YAML in one line: "{apiGroups: [""], resources: [pods],
/// verbs: [create, get]}".
std::vector<std::string> role_rules(const std::vector<Permission>& permissions);

}  // namespace hypertune::inline v0::k8s
