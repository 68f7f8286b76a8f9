// A real Kubernetes of the tests' own, and experiments on it.
#pragma once

#include "remote/experiments.hpp"
#include "support/eventually.hpp"
#include "support/temporary_directory.hpp"
#include "support/test.hpp"

#include <hypertune/k8s/access.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/executor.hpp>
#include <hypertune/process/subprocess.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::test {

/// The one that the test "k8s: a real Kubernetes" has brought up (see CMakeLists.txt), and a namespace of a test's own
/// in it, which goes with this object.
class TestKubernetes {
 public:
  static constexpr const char* image = "hypertune.test/agent:1";
  static constexpr const char* image_without_shell = "hypertune.test/bare:1";

  explicit TestKubernetes(const std::string& name)
      : client_(k8s::load_access({.kubeconfig = {kubeconfig()}, .name_space = name})), name_(name) {
    const boost::json::object space{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}};
    if (exists({"api", "v1", "namespaces", name_})) remove_space();  // of a run that was killed
    if (!eventually([&] { return !exists({"api", "v1", "namespaces", name_}); }, 60))
      throw std::runtime_error("the namespace of an earlier run does not end");
    create({"api", "v1", "namespaces"}, space);
    if (!eventually([&] { return exists({"api", "v1", "namespaces", name_, "serviceaccounts", "default"}); }))
      throw std::runtime_error("the namespace gets no account");
  }
  TestKubernetes(const TestKubernetes&) = delete;
  TestKubernetes& operator=(const TestKubernetes&) = delete;
  ~TestKubernetes() {
    try {
      remove_space();
    } catch (const std::exception& error) { WARN(error.what()); }
  }

  static std::filesystem::path state() { return HYPERTUNE_TEST_K8S_STATE; }
  static std::filesystem::path kubeconfig() { return state() / "admin.kubeconfig"; }
  static bool is_there() { return std::filesystem::exists(kubeconfig()); }

  k8s::Client client() const { return client_; }
  const std::string& name_space() const { return name_; }

  /// What is at this place; nullopt: nothing.
  std::optional<boost::json::value> get(std::initializer_list<std::string_view> parts, k8s::Query query = {}) const {
    auto client = client_;
    try {
      return client.call({.path = k8s::api_path(parts), .query = std::move(query)}).json();
    } catch (const k8s::ApiError& error) {
      if (error.not_found()) return std::nullopt;
      throw;
    }
  }
  bool exists(std::initializer_list<std::string_view> parts) const { return get(parts).has_value(); }
  void create(std::initializer_list<std::string_view> parts, const boost::json::object& object) const {
    auto client = client_;
    client.call({.method = k8s::Method::post,
                 .path = k8s::api_path(parts),
                 .body = boost::json::serialize(object),
                 .named = true});
  }
  /// `change`: a merge patch.
  void change(std::initializer_list<std::string_view> parts, const std::string& change) const {
    auto client = client_;
    client.call(
        {.method = k8s::Method::patch, .path = k8s::api_path(parts), .body = change, .type = k8s::Body::merge_patch});
  }
  void remove(std::initializer_list<std::string_view> parts, const std::string& options = {}) const {
    auto client = client_;
    client.call({.method = k8s::Method::remove, .path = k8s::api_path(parts), .body = options});
  }
  void remove_pod(const std::string& pod, int grace = -1) const {
    remove({"api", "v1", "namespaces", name_, "pods", pod},
           grace < 0 ? "" : fmt::format(R"({{"gracePeriodSeconds": {}}})", grace));
  }
  /// By the Eviction API, as `kubectl drain` does it.
  void evict(const std::string& pod) const {
    create({"api", "v1", "namespaces", name_, "pods", pod, "eviction"},
           {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", {{"name", pod}, {"namespace", name_}}}});
  }
  /// Pods of this namespace, as they are.
  std::vector<boost::json::object> pods() const {
    std::vector<boost::json::object> all;
    const auto list = get({"api", "v1", "namespaces", name_, "pods"});
    for (const auto& each : list->at("items").as_array()) all.push_back(each.as_object());
    return all;
  }
  /// Names of pods that run, are not leaving, and of which a container is there.
  std::vector<std::string> running() const {
    std::vector<std::string> names;
    for (const auto& pod : pods())
      if (pod.at("status").at("phase").as_string() == "Running" &&
          !pod.at("metadata").as_object().contains("deletionTimestamp"))
        names.emplace_back(pod.at("metadata").at("name").as_string());
    return names;
  }
  /// Nothing of ours is left but what the namespace has by itself.
  bool is_empty() const {
    return pods().empty() && get({"apis", "batch", "v1", "namespaces", name_, "jobs"})->at("items").as_array().empty();
  }

  /// How often something was started by exec in each pod that there has been in this namespace, by the audit log.
  std::map<std::string, int> execs() const { return calls_of_pods("get", "exec"); }
  /// How often each was deleted by hypertune.
  std::map<std::string, int> deletions() const { return calls_of_pods("delete", ""); }

  /// testk8s with these words.
  static void tell(std::vector<std::string> words) {
    words.insert(words.begin(), {"python3", HYPERTUNE_TEST_K8S, state().string()});
    const auto said = process::collect(words, {.deadline = 120, .linger = 0});
    if (said.code() != 0) throw std::runtime_error(words[3] + ": " + said.err);
  }
  static void kill_node(int node) { tell({"kill-node", std::to_string(node)}); }
  static void start_node(int node) { tell({"start-node", std::to_string(node)}); }

 private:
  std::map<std::string, int> calls_of_pods(std::string_view verb, std::string_view subresource) const {
    std::map<std::string, int> counts;
    std::set<std::string> seen;  // each call is there more than once
    std::ifstream in(state() / "audit.log");
    for (std::string line; std::getline(in, line);) {
      boost::system::error_code error;  // the last line may be incomplete
      const auto call = boost::json::parse(line, error);
      const auto* about = error ? nullptr : call.as_object().if_contains("objectRef");
      const auto part = [&](std::string_view name) -> std::string {
        const auto* found = about->as_object().if_contains(name);
        return found == nullptr ? "" : std::string(found->as_string());
      };
      if (about == nullptr || part("resource") != "pods" || part("namespace") != name_) continue;
      const auto& all = call.as_object();
      const auto* agent = all.if_contains("userAgent");
      const bool ours = agent != nullptr && agent->as_string().starts_with("hypertune");
      if (ours && all.at("verb").as_string() == verb && part("subresource") == subresource &&
          seen.emplace(all.at("auditID").as_string()).second)
        ++counts[part("name")];
    }
    return counts;
  }

  void remove_space() {
    client_.call({.method = k8s::Method::remove, .path = k8s::api_path({"api", "v1", "namespaces", name_})});
  }

  k8s::Client client_;
  std::string name_;
};

/// Null, and a warning why the test is skipped, where there is none.
inline std::unique_ptr<TestKubernetes> test_kubernetes(const std::string& name) {
  if (!TestKubernetes::is_there()) {
    const auto why = process::collect({"python3", HYPERTUNE_TEST_K8S, "check"}, {.deadline = 60}).err;
    WARN("skipped: " << (why.empty() ? "no Kubernetes was brought up: run this by ctest" : why));
    return nullptr;
  }
  return std::make_unique<TestKubernetes>(name);
}

struct FirstNode {
  std::string name;
  double cpus;  ///< that pods may ask for
};
inline FirstNode first_node(const TestKubernetes& kubernetes) {
  const auto nodes = kubernetes.get({"api", "v1", "nodes"});
  const auto& node = nodes->at("items").at(0);
  return {.name = std::string(node.at("metadata").at("name").as_string()),
          .cpus = std::stod(std::string(node.at("status").at("allocatable").at("cpu").as_string()))};
}

/// Options of workers that run the tests' programs.
inline KubernetesOptions pods_of(const TestKubernetes& kubernetes) {
  KubernetesOptions options;
  options.kubeconfig = TestKubernetes::kubeconfig();
  options.name_space = kubernetes.name_space();
  options.image = TestKubernetes::image;
  options.cpus = 0.1;
  options.program = "/bin/test_worker";
  options.save_grace = 20;
  options.pod = "spec: {containers: [{name: worker, imagePullPolicy: Never}], dnsPolicy: Default}";
  return options;
}

}  // namespace hypertune::inline v0::test
