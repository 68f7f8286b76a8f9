// Preflight: whether the account may do what is needed, before anything is begun.
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

/// Those of `needed` that the API server does not allow, in their order; it is asked for each.
std::vector<Permission> missing_permissions(const Client& client, const std::vector<Permission>& needed,
                                            const std::stop_token& stop = {});

/// Error of kind `usage` that names each and the rule of a Role to add. Nothing if none is missing.
void require_permissions(const Client& client, const std::vector<Permission>& needed, const std::stop_token& stop = {});

/// The rules of a Role that allow these, as YAML in one line each: "{apiGroups: [""], resources: [pods], verbs:
/// [create, get]}".
std::vector<std::string> role_rules(const std::vector<Permission>& permissions);

}  // namespace hypertune::inline v0::k8s
