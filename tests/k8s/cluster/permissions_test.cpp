// Everything that hypertune asks of Kubernetes is asked for before it begins: each permission is taken away in turn.
#include "permissions.hpp"

#include "k8s/support/account.hpp"
#include "k8s/support/pod_experiments.hpp"

#include <hypertune/k8s/driver_job.hpp>
#include <hypertune/k8s/machine_pods.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::test;
using k8s::Permission;
using k8s::Use;

namespace {

/// What `work` complains of with each of the permissions taken away: it must name it, and have made nothing. In the end
/// the account has them all.
void take_each_away(const TestKubernetes& kubernetes, const Account& account, const std::vector<Use>& uses,
                    const std::function<void()>& work) {
  const auto all = k8s::permissions_for(uses);
  const auto objects = [&] {
    std::set<std::string> names;
    for (const auto& [group, kind] :
         {std::pair("api/v1", "pods"), std::pair("api/v1", "secrets"), std::pair("api/v1", "persistentvolumeclaims"),
          std::pair("apis/batch/v1", "jobs")}) {
      auto client = kubernetes.client();
      const auto list =
          client.call({.path = fmt::format("/{}/namespaces/{}/{}", group, kubernetes.name_space(), kind)}).json();
      for (const auto& each : list.at("items").as_array())
        names.insert(fmt::format("{} {}", kind, std::string_view(each.at("metadata").at("name").as_string())));
    }
    return names;
  };
  const auto before = objects();
  for (const auto& each : all) {
    INFO(each.verb << " " << each.resource);
    account.allow(all, {each});
    std::string complaint = "none";
    try {
      work();
    } catch (const Error& error) {
      complaint = error.what();
      CHECK(error.code() == Errc::usage);
    }
    CHECK_THAT(complaint,
               ContainsSubstring(fmt::format("may not, in namespace '{}': {} {} ({}); add to the rules of "
                                             "its Role: [{{apiGroups: [\"{}\"], resources: [{}], verbs: [{}]}}]",
                                             kubernetes.name_space(), each.verb, each.resource, each.why, each.group,
                                             each.resource, each.verb)));
    CHECK(objects() == before);
  }
  account.allow(all, {});
}

/// Calls of an account that were answered 403, by the audit log.
std::vector<std::string> refused_calls(const std::string& name_space) {
  std::vector<std::string> calls;
  std::ifstream in(TestKubernetes::state() / "audit.log");
  for (std::string line; std::getline(in, line);) {
    boost::system::error_code error;
    const auto call = boost::json::parse(line, error);
    if (error) continue;
    const auto* user = call.find_pointer("/user/username", error);
    const auto* code = call.find_pointer("/responseStatus/code", error);
    if (user == nullptr || code == nullptr || !code->is_int64() || code->get_int64() != 403) continue;
    if (user->as_string() != "system:serviceaccount:" + name_space + ":tester") continue;
    calls.push_back(fmt::format("{} {}", std::string_view(call.at("verb").as_string()),
                                std::string_view(call.at("requestURI").as_string())));
  }
  return calls;
}

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { ::unsetenv(name_); }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("a driver outside refuses at once where it lacks a permission, and needs no other") {
  const auto kubernetes = test_kubernetes("rights-outside");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const Account account(*kubernetes);
  int runs = 0;
  const auto work = [&](const std::string& gpu_class) {
    auto setup = workers_of(*kubernetes, 1);
    setup.options.kubeconfig = account.kubeconfig();
    setup.options.gpu_class = gpu_class;
    setup.options.gpus = gpu_class.empty() ? 0 : 1;
    setup.options.memory = 1U << 30U;
    setup.options.max_memory = gpu_class.empty() ? 0 : 1U << 31U;
    return run(small(folder.path() / std::to_string(++runs), KubernetesExecutor(setup), 1, 5));
  };
  take_each_away(*kubernetes, account, {Use::workers, Use::exec, Use::owner_job, Use::resize, Use::claims},
                 [&] { work("gpu.hypertune.test"); });
  check_whole(work(""), 1, 5);
  CHECK(refused_calls(kubernetes->name_space()).empty());
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("a driver in the cluster refuses at once where its account lacks a permission") {
  const auto kubernetes = test_kubernetes("rights-inside");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  // This process takes a pod of a Job for its own.
  const auto& space = kubernetes->name_space();
  kubernetes->create(
      {"apis", "batch", "v1", "namespaces", space, "jobs"},
      boost::json::parse(fmt::format(
                             R"({{"apiVersion": "batch/v1", "kind": "Job", "metadata": {{"name": "driver"}},
        "spec": {{"template": {{"spec": {{"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [
        {{"name": "driver", "image": "{}", "imagePullPolicy": "Never", "command": ["sleep", "1000"]}}]}}}}}}}})",
                             TestKubernetes::image))
          .as_object());
  REQUIRE(eventually([&] { return kubernetes->running().size() == 1; }, 60));
  const Variable host("KUBERNETES_SERVICE_HOST", "kubernetes"),
      pod("HYPERTUNE_POD_NAME", kubernetes->running().front()), job(std::string(k8s::job_variable).c_str(), "driver");
  const Account account(*kubernetes);
  int runs = 0;
  const auto with = [&](bool direct) {
    return [&, direct] {
      auto setup = workers_of(*kubernetes, 1);
      setup.options.kubeconfig = account.kubeconfig();
      using Connection = KubernetesOptions::Connection;
      setup.options.connection = direct ? Connection::direct : Connection::exec;
      run(small(folder.path() / std::to_string(++runs), KubernetesExecutor(setup), 1, 5));
    };
  };
  SECTION("workers connect to it") {
    take_each_away(*kubernetes, account, {Use::workers, Use::direct, Use::job, Use::submitted_job}, with(true));
  }
  SECTION("it reaches them by exec") {
    take_each_away(*kubernetes, account, {Use::workers, Use::exec, Use::job, Use::submitted_job}, with(false));
  }
}

TEST_CASE("submitting a driver, and reading its record, refuse at once where the account lacks a permission") {
  const auto kubernetes = test_kubernetes("rights-submit");
  if (!kubernetes) return;
  const Account account(*kubernetes);
  const auto job = [&] {
    auto workers = pods_of(*kubernetes);
    workers.kubeconfig = account.kubeconfig();
    return k8s::DriverJob({.workers = workers, .name = "away", .service_account = "default"});
  };
  SECTION("submit") {
    take_each_away(*kubernetes, account, {Use::submit, Use::new_claim},
                   [&] { job().submit({.program = HYPERTUNE_TEST_WORKER, .arguments = {"run"}}, {}); });
  }
  SECTION("down") {
    take_each_away(*kubernetes, account, {Use::submit, Use::new_claim}, [&] { job().remove(true); });
  }
  SECTION("what reads the record") {
    take_each_away(*kubernetes, account, {Use::read_record}, [&] {
      const auto nothing = [](std::string_view) { return true; };
      job().run_with_record({"status"}, nothing, nothing);
    });
  }
}

TEST_CASE("machines that are pods are refused at once where the account lacks a permission") {
  const auto kubernetes = test_kubernetes("rights-machines");
  if (!kubernetes) return;
  const Account account(*kubernetes);
  const auto pods = [&] {
    return k8s::MachinePods(
        {.cluster = "c", .name_space = kubernetes->name_space(), .kubeconfig = account.kubeconfig()});
  };
  SECTION("making one") {
    take_each_away(*kubernetes, account, {Use::machines}, [&] {
      pods().create({.token = "ht-1",
                     .node_type = "any",
                     .node_config = R"({"spec": {"containers": [{"name": "worker", "image": "i"}]}})",
                     .title = "c.yaml"});
    });
  }
  SECTION("forwarding a port") {
    take_each_away(*kubernetes, account, {Use::forward}, [&] { pods().require_forward(); });
  }
}
