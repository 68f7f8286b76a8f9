// The shipped Roles allow exactly what is asked for.
#include "permissions.hpp"

#include "support/test.hpp"

#include <hypertune/config/yaml.hpp>
#include <hypertune/detail/read_file.hpp>

#include <set>
#include <string>
#include <tuple>
#include <vector>

using namespace hypertune;
using k8s::Use;

namespace {

using Allowed = std::set<std::tuple<std::string, std::string, std::string>>;

Allowed needed(const std::vector<Use>& uses) {
  Allowed all;
  for (const auto& each : k8s::permissions_for(uses)) all.emplace(each.group, each.resource, each.verb);
  return all;
}

/// What the Role of a manifest allows.
Allowed role_of(const std::string& file) {
  const auto text = hypertune::detail::read_file(std::string(HYPERTUNE_TEST_MANIFESTS "/") + file);
  REQUIRE(text);
  const auto begin = text->find("kind: Role\n"), end = text->find("\n---", begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  const auto role = load_yaml_text(text->substr(begin, end - begin), file);
  Allowed all;
  for (const Node& rule : role.find("rules")->items())
    for (const Node& group : rule.find("apiGroups")->items())
      for (const Node& resource : rule.find("resources")->items())
        for (const Node& verb : rule.find("verbs")->items())
          CHECK(all.emplace(group.as<std::string>(), resource.as<std::string>(), verb.as<std::string>()).second);
  return all;
}

}  // namespace

TEST_CASE("the Role of a driver in the cluster allows what it uses, and nothing else") {
  CHECK(role_of("driver.yaml") == needed({Use::workers, Use::exec, Use::files, Use::direct, Use::job,
                                          Use::submitted_job, Use::resize, Use::claims, Use::groups}));
}

TEST_CASE("the Role of a user outside allows what they use, and nothing else") {
  CHECK(role_of("user.yaml") ==
        needed({Use::workers, Use::exec, Use::files, Use::owner_job, Use::submit, Use::new_claim, Use::read_record,
                Use::machines, Use::forward, Use::resize, Use::claims, Use::groups}));
}

TEST_CASE("what is used for several things is asked for once") {
  const auto all = k8s::permissions_for({Use::workers, Use::machines, Use::submit});
  CHECK(needed({Use::workers, Use::machines, Use::submit}).size() == all.size());
  CHECK(k8s::permissions_for({}).empty());
}
