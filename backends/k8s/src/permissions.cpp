// The table of permissions.
#include "permissions.hpp"

#include <algorithm>

namespace hypertune::inline v0::k8s {
namespace {

using Uses = std::uint16_t;
constexpr Uses operator|(Use a, Use b) { return static_cast<Uses>(static_cast<Uses>(a) | static_cast<Uses>(b)); }
constexpr Uses operator|(Uses a, Use b) { return static_cast<Uses>(a | static_cast<Uses>(b)); }
constexpr Uses only(Use use) { return static_cast<Uses>(use); }

struct Row {
  const char *group, *resource, *verb;
  Uses uses;
  const char* why;
};

// A right that is used for several things may have a row for each, with its reason.
// Kubernetes asks for `get` where the stream of an exec or a port-forward is a WebSocket, and from 1.35 on for `create`
// as well.
constexpr Row table[] = {
    {"", "pods", "create", only(Use::workers), "to start workers"},
    {"", "pods", "create", only(Use::machines), "to make machines"},
    {"", "pods", "create", only(Use::read_record), "to read the record"},
    {"", "pods", "get", Use::workers | Use::read_record | Use::machines, "to look at one"},
    {"", "pods", "list", Use::workers | Use::submit | Use::read_record, "to see how they are"},
    {"", "pods", "list", only(Use::machines), "to find those of the cluster"},
    {"", "pods", "watch", only(Use::workers), "to see how they are"},
    {"", "pods", "delete", Use::workers | Use::read_record | Use::machines, "to end them"},
    {"", "pods", "patch", only(Use::direct), "to tell them where this driver is"},
    {"", "pods/exec", "create", Use::exec | Use::files | Use::submit | Use::read_record | Use::machines,
     "to reach into them"},
    {"", "pods/exec", "get", Use::exec | Use::files | Use::submit | Use::read_record | Use::machines,
     "to reach into them"},
    {"", "pods/log", "get", Use::workers | Use::submit | Use::machines, "to show what they say"},
    {"", "pods/portforward", "create", only(Use::forward), "to forward ports"},
    {"", "pods/portforward", "get", only(Use::forward), "to forward ports"},
    {"", "pods/resize", "patch", only(Use::resize), "to give them more memory"},
    {"", "events", "list", Use::exec | Use::submit | Use::read_record, "to know what has happened to a pod or a job"},
    {"", "events", "watch", only(Use::exec), "to know at once that a worker has started"},
    {"", "secrets", "create", only(Use::direct), "to give workers a token"},
    {"", "secrets", "get", only(Use::direct), "to find that again"},
    {"batch", "jobs", "create", only(Use::owner_job), "to make one that owns the workers"},
    {"batch", "jobs", "create", only(Use::submit), "to submit it"},
    {"batch", "jobs", "get", Use::owner_job | Use::job | Use::submit | Use::read_record, "to look at it"},
    {"batch", "jobs", "list", only(Use::submit), "to find all of an experiment"},
    {"batch", "jobs", "patch", Use::owner_job | Use::submitted_job, "to keep it alive while the driver lives"},
    {"batch", "jobs", "delete", Use::owner_job | Use::submit, "to end it"},
    {"", "persistentvolumeclaims", "create", only(Use::new_claim), "to make the volume of its record"},
    {"", "persistentvolumeclaims", "get", Use::submit | Use::read_record, "to find the volumes"},
    {"", "persistentvolumeclaims", "delete", only(Use::new_claim), "to delete that again"},
    {"resource.k8s.io", "resourceclaimtemplates", "create", only(Use::claims), "to claim GPUs"},
    {"resource.k8s.io", "resourceclaimtemplates", "delete", only(Use::claims), "to delete that again"},
    {"scheduling.k8s.io", "podgroups", "create", only(Use::groups), "to have a trial's pods placed all or none"},
    {"scheduling.k8s.io", "podgroups", "delete", only(Use::groups), "to delete that again"},
    {"", "serviceaccounts", "get", only(Use::submit), "to find the driver's account"},
};

}  // namespace

std::vector<Permission> permissions_for(const std::vector<Use>& uses) {
  Uses wanted = 0;
  for (const Use use : uses) wanted = wanted | use;
  std::vector<Permission> needed;
  for (const auto& row : table) {
    const bool known = std::any_of(needed.begin(), needed.end(), [&](const Permission& each) {
      return each.group == row.group && each.resource == row.resource && each.verb == row.verb;
    });
    if ((row.uses & wanted) != 0 && !known) needed.push_back({row.group, row.resource, row.verb, row.why});
  }
  return needed;
}

}  // namespace hypertune::inline v0::k8s
