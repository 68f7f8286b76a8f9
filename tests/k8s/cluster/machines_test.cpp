// Pods as machines of a cluster: made once, found again, reached, and gone without a trace.
#include "k8s/support/test_kubernetes.hpp"

#include <hypertune/k8s/machine_pods.hpp>
#include <hypertune/remote/agent_files.hpp>
#include <hypertune/remote/host_files.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <vector>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::test;

namespace {

MachinePods machines_of(const TestKubernetes& kubernetes, const std::string& cluster = "lab") {
  return MachinePods(
      {.cluster = cluster, .name_space = kubernetes.name_space(), .kubeconfig = TestKubernetes::kubeconfig()});
}

MachinePodRequest pod_spec(const std::string& token, const std::string& image = TestKubernetes::image,
                           const std::string& more = "") {
  return {
      .token = token,
      .node_type = "cpu",
      .node_config = fmt::format(R"({{"spec": {{"dnsPolicy": "Default", "terminationGracePeriodSeconds": 2{}, )"
                                 R"("containers": [{{"name": "side", "image": "{}", "imagePullPolicy": "Never"}}]}}}})",
                                 more, image),
      .title = "c.yaml:1: 'node_config'",
      .resources = {.cpus = 0.1}};
}

MachinePod running(const MachinePods& pods, const std::string& name) {
  MachinePod found;
  REQUIRE(eventually(
      [&] {
        for (const auto& pod : pods.list())
          if (pod.name == name) found = pod;
        return found.phase == MachinePod::Phase::running;
      },
      60));
  return found;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a machine is made once for a token, however often it is asked for, and shown until it has ended") {
  const auto kubernetes = test_kubernetes("machines");
  if (!kubernetes) return;
  const auto pods = machines_of(*kubernetes);
  CHECK(pods.list().empty());
  std::vector<std::future<MachinePod>> calls;
  for (int i = 0; i < 8; ++i)
    calls.push_back(
        std::async(std::launch::async, [&] { return machines_of(*kubernetes).create(pod_spec("ht-one")); }));
  for (auto& call : calls) CHECK(call.get().token == "ht-one");
  CHECK(kubernetes->pods().size() == 1);
  auto other = pod_spec("ht-two");
  other.head = true;
  const auto head = pods.create(other);
  CHECK(head.head);
  machines_of(*kubernetes, "elsewhere").create(pod_spec("ht-three"));
  auto list = pods.list();
  REQUIRE(list.size() == 2);  // not that of another cluster
  const auto worker = running(pods, "lab-worker-one");
  CHECK(worker.node_type == "cpu");
  CHECK_FALSE(worker.head);
  CHECK_FALSE(worker.address.empty());

  // One that has ended is no machine, and its end is known.
  const auto shell = pods.shell(worker.name);
  shell.run("kill -s TERM 1", {}, {});
  REQUIRE(eventually([&] { return pods.list().size() == 1; }, 60));
  CHECK_THAT(pods.explain(worker.name), ContainsSubstring("ended"));
  CHECK_THROWS_WITH(pods.create(pod_spec("ht-one")), ContainsSubstring("has ended"));
  CHECK_THROWS_WITH(pods.shell(worker.name), ContainsSubstring("ended"));
  CHECK(pods.remove_ended() == 1);
  REQUIRE(eventually(
      [&] { return !kubernetes->exists({"api", "v1", "namespaces", kubernetes->name_space(), "pods", worker.name}); }));
  CHECK(pods.explain(worker.name).empty());
  pods.remove({head.name, worker.name, "never-there"});
  CHECK(eventually([&] { return pods.list().empty(); }, 60));
  CHECK(machines_of(*kubernetes, "elsewhere").list().size() == 1);
}

TEST_CASE("a machine's files arrive whole, whatever its runtime says of the end of its input") {
  const auto kubernetes = test_kubernetes("machine-files");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto pods = machines_of(*kubernetes);
  const auto name = running(pods, pods.create(pod_spec("ht-one")).name).name;
  const auto shell = pods.shell(name);
  std::string bytes;
  for (int i = 0; i < 200'000; ++i) bytes += static_cast<char>(i * 7919 >> 3);
  for (int i = 0; i < 60; ++i) remote::upload_text(shell, bytes, "/tmp/file");
  remote::download(shell, "/tmp/file", folder.path() / "back");
  CHECK(bytes_of(folder.path() / "back") == bytes);
  // A command with this process's own streams.
  const auto in = folder.path() / "in", out = folder.path() / "out";
  std::ofstream(in, std::ios::binary) << "word";
  const remote::Descriptor from(::open(in.c_str(), O_RDONLY | O_CLOEXEC));
  const remote::Descriptor to(::open(out.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  CHECK(pods.run_foreground(name, {"sh", "-c", "read word; echo \"said $word\"; exit 3"},
                            {.in = from.get(), .out = to.get(), .err = to.get()}) == 3);
  CHECK(bytes_of(out) == "said word\n");
}

TEST_CASE("a pod that the API server refuses is said with its place in the file") {
  const auto kubernetes = test_kubernetes("machine-refused");
  if (!kubernetes) return;
  const auto pods = machines_of(*kubernetes);
  CHECK_THROWS_WITH(pods.create(pod_spec("ht-one", "a", R"(, "nonsense": 1)")), ContainsSubstring("nonsense"));
  CHECK_THROWS_WITH(pods.create(pod_spec("ht-one", "a", R"(, "volumes": 1)")),
                    ContainsSubstring("c.yaml:1: 'node_config': 'volumes' must be a list"));
  CHECK(kubernetes->pods().empty());
}
