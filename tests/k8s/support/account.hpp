// An account of the tests' Kubernetes that may do what it is given.
#pragma once

#include "k8s/support/test_kubernetes.hpp"
#include "preflight.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// A service account in the test's namespace that may do what it is given, and nothing else.
class Account {
 public:
  explicit Account(const TestKubernetes& kubernetes) : kubernetes_(kubernetes) {
    TestKubernetes::tell({"user", "tester", "get:configmaps", "--namespace", kubernetes.name_space()});
  }
  std::filesystem::path kubeconfig() const {
    return TestKubernetes::state() / (kubernetes_.name_space() + ".tester.kubeconfig");
  }
  k8s::Client client() const {
    return k8s::Client(k8s::load_access({.kubeconfig = {kubeconfig()}, .name_space = kubernetes_.name_space()}));
  }
  /// Waits until the API server goes by it.
  void allow(const std::vector<k8s::Permission>& all, const std::vector<k8s::Permission>& but) const {
    auto allowed = all;
    std::erase_if(allowed,
                  [&](const k8s::Permission& each) { return std::find(but.begin(), but.end(), each) != but.end(); });
    boost::json::array rules;
    for (const auto& each : allowed)
      rules.emplace_back(boost::json::object{{"apiGroups", {boost::json::string(each.group)}},
                                             {"resources", {boost::json::string(each.resource)}},
                                             {"verbs", {boost::json::string(each.verb)}}});
    kubernetes_.change(
        {"apis", "rbac.authorization.k8s.io", "v1", "namespaces", kubernetes_.name_space(), "roles", "tester"},
        boost::json::serialize(boost::json::object{{"rules", std::move(rules)}}));
    REQUIRE(eventually([&] { return k8s::missing_permissions(client(), all) == but; }));
  }

 private:
  const TestKubernetes& kubernetes_;
};

}  // namespace hypertune::inline v0::test
