// Checks the account's permissions.
#include "preflight.hpp"

#include "json_at.hpp"

#include <hypertune/error.hpp>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace hypertune::inline v0::k8s {
namespace {

namespace json = boost::json;

bool is_allowed(Client client, const Permission& permission, const std::stop_token& stop) {
  const auto slash = permission.resource.find('/');
  json::object attributes{{"namespace", json::string(client.name_space())},
                          {"group", json::string(permission.group)},
                          {"resource", json::string(permission.resource.substr(0, slash))},
                          {"verb", json::string(permission.verb)}};
  if (slash != std::string::npos) attributes["subresource"] = json::string(permission.resource.substr(slash + 1));
  const json::object review{{"apiVersion", "authorization.k8s.io/v1"},
                            {"kind", "SelfSubjectAccessReview"},
                            {"spec", {{"resourceAttributes", std::move(attributes)}}}};
  const auto answer = client
                          .call({.method = Method::post,
                                 .path = api_path({"apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"}),
                                 .body = json::serialize(review),
                                 .deadline = 30,
                                 .named = true},  // it makes no object, so it can be repeated
                                stop)
                          .json();
  return flag_at(answer, "/status/allowed");
}

}  // namespace

std::vector<Permission> missing_permissions(const Client& client, const std::vector<Permission>& needed,
                                            const std::stop_token& stop) {
  std::vector<Permission> missing;
  for (const auto& permission : needed)
    if (!is_allowed(client, permission, stop)) missing.push_back(permission);
  return missing;
}

std::vector<std::string> role_rules(const std::vector<Permission>& permissions) {
  struct Rule {
    std::string group;
    std::vector<std::string> resources, verbs;
  };
  std::vector<Rule> rules;
  for (const auto& each : permissions) {
    auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& r) {
      return r.group == each.group && r.resources == std::vector{each.resource};
    });
    if (rule == rules.end()) rule = rules.insert(rules.end(), {each.group, {each.resource}, {}});
    rule->verbs.push_back(each.verb);
  }
  std::vector<std::string> lines;
  lines.reserve(rules.size());
  for (const auto& rule : rules)
    lines.push_back(fmt::format("{{apiGroups: [\"{}\"], resources: [{}], verbs: [{}]}}", rule.group,
                                fmt::join(rule.resources, ", "), fmt::join(rule.verbs, ", ")));
  return lines;
}

void require_permissions(const Client& client, const std::vector<Permission>& needed, const std::stop_token& stop) {
  const auto missing = missing_permissions(client, needed, stop);
  if (missing.empty()) return;
  std::string each;
  for (const auto& permission : missing)
    each += fmt::format("{}{} {} ({})", each.empty() ? "" : ", ", permission.verb, permission.resource, permission.why);
  fail(Errc::usage, "the account of {} may not, in namespace '{}': {}; add to the rules of its Role: [{}]",
       client.origin(), client.name_space(), each, fmt::join(role_rules(missing), ", "));
}

}  // namespace hypertune::inline v0::k8s
