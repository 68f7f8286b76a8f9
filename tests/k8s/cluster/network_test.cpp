// What may stand between the driver and the API server, or between workers and the driver.
#include "k8s/support/gateway.hpp"
#include "k8s/support/pod_experiments.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

using namespace hypertune;
using namespace hypertune::test;

namespace {

boost::json::value json_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  return boost::json::parse(std::string(std::istreambuf_iterator<char>(in), {}));
}

std::string api_address() { return std::string(json_of(TestKubernetes::state() / "facts.json").at("ip").as_string()); }

/// A kubeconfig like the admin's, whose cluster has these keys as well.
std::filesystem::path config_with(const TemporaryDirectory& folder, const boost::json::object& keys) {
  auto config = json_of(TestKubernetes::kubeconfig());
  auto& cluster = config.at("clusters").at(0).at("cluster").as_object();
  for (const auto& [key, value] : keys) cluster[key] = value;
  const auto path = folder.path() / "kubeconfig";
  std::ofstream(path) << boost::json::serialize(config);
  return path;
}

boost::json::string text(const std::string& value) { return boost::json::string(value); }

// Known to the proxies of these tests alone, and in the API server's certificate.
constexpr const char* only_beyond = "https://kubernetes.default:6443";

Gateway::Options proxy_to_api() {
  Gateway::Options options;
  options.hosts = {{"kubernetes.default", api_address()}};
  return options;
}

std::string complaint_of(const Options& options) {
  try {
    run(options);
  } catch (const Error& error) { return error.what(); }
  return "none";
}

}  // namespace

TEST_CASE("a proxy between driver and API server: an experiment goes through it, also when it cuts what is open") {
  const auto kubernetes = test_kubernetes("proxied");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto through = proxy_to_api();
  through.login = "Basic bWU6d29yZA==";  // me:word
  Gateway proxy(through);
  auto setup = workers_of(*kubernetes, 2);
  setup.options.kubeconfig = config_with(
      folder, {{"server", only_beyond}, {"proxy-url", text(fmt::format("http://me:word@127.0.0.1:{}", proxy.port()))}});
  bool cut = false;
  const auto results =
      run_disturbed(small(folder.path() / "run", KubernetesExecutor(setup), 2, 100), [&](const Until& until) {
        if (!until([&] { return reports(folder.path() / "run") > 20; })) return;
        proxy.cut();
        cut = true;
      });
  CHECK(cut);
  CHECK(proxy.connected() > 2);
  check_whole(results, 2, 100);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

TEST_CASE("HTTPS_PROXY and NO_PROXY are heeded, and a proxy that refuses says why") {
  const auto kubernetes = test_kubernetes("proxy-variables");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const auto config = config_with(folder, {{"server", only_beyond}});
  const auto asks = [&](const std::map<std::string, std::string>& variables) {
    try {
      k8s::Client client(k8s::load_access(
          {.kubeconfig = {config}, .variable = [&](const std::string& name) -> std::optional<std::string> {
             const auto found = variables.find(name);
             if (found == variables.end()) return std::nullopt;
             return found->second;
           }}));
      client.call({.path = "/version", .deadline = 5});
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("answered");
  };
  const Gateway open(proxy_to_api());
  auto options = proxy_to_api();
  options.login = "Basic bWU6d29yZA==";
  const Gateway closed(options);
  options = {};
  const Gateway elsewhere(options);
  const auto at = [](const Gateway& proxy) { return fmt::format("127.0.0.1:{}", proxy.port()); };
  CHECK(asks({{"HTTPS_PROXY", at(open)}}) == "answered");
  CHECK(asks({{"https_proxy", "http://" + at(open)}, {"NO_PROXY", "other.org,10.0.0.0/8"}}) == "answered");
  CHECK(open.connected() == 2);
  CHECK_THAT(asks({{"HTTPS_PROXY", at(open)}, {"NO_PROXY", ".default"}}),
             ContainsSubstring("cannot find the host 'kubernetes.default'"));
  CHECK(open.connected() == 2);
  CHECK_THAT(asks({{"HTTPS_PROXY", at(closed)}}),
             ContainsSubstring("it wants a login, which the proxy's URL may have"));
  CHECK_THAT(asks({{"HTTPS_PROXY", "http://me:word@" + at(closed)}}), ContainsSubstring("answered"));
  CHECK_THAT(asks({{"HTTPS_PROXY", at(elsewhere)}}),
             ContainsSubstring(fmt::format("the proxy {} does not connect to kubernetes.default:6443: it answered HTTP "
                                           "403",
                                           at(elsewhere))));
  CHECK_THAT(asks({{"HTTPS_PROXY", "127.0.0.1:1"}}), ContainsSubstring("cannot connect to the proxy 127.0.0.1:1"));
}

TEST_CASE("an API server at an IPv6 address") {
  const auto kubernetes = test_kubernetes("ipv6");
  if (!kubernetes) return;
  if (!Gateway::has_ipv6()) {
    WARN("skipped: this machine has no IPv6");
    return;
  }
  const TemporaryDirectory folder;
  Gateway::Options options;
  options.ipv6 = true;
  options.relay_to = api_address() + ":6443";
  const Gateway relay(options);
  auto setup = workers_of(*kubernetes, 2);
  setup.options.kubeconfig = config_with(folder, {{"server", text(fmt::format("https://[::1]:{}", relay.port()))}});
  check_whole(run(small(folder.path() / "run", KubernetesExecutor(setup), 2, 10)), 2, 10);
  CHECK(relay.connected() > 0);
  CHECK(eventually([&] { return kubernetes->is_empty(); }, 60));
}

namespace {

/// As long as it lives this program takes itself for a pod of the namespace, which workers reach at `ip`.
class AsPod {
 public:
  static constexpr const char* name = "driver";

  AsPod(const TestKubernetes& kubernetes, const std::string& ip) : kubernetes_(kubernetes) {
    const boost::json::object container{{"name", "main"},
                                        {"image", TestKubernetes::image},
                                        {"imagePullPolicy", "Never"},
                                        {"command", {"/bin/sleep", "1000"}}};
    kubernetes.create({"api", "v1", "namespaces", kubernetes.name_space(), "pods"},
                      {{"metadata", {{"name", name}}},
                       {"spec",
                        {{"dnsPolicy", "Default"},
                         {"terminationGracePeriodSeconds", 0},
                         {"containers", boost::json::array{container}}}}});
    ::setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
    ::setenv("HYPERTUNE_POD_NAME", name, 1);
    ::setenv("HYPERTUNE_POD_IP", ip.c_str(), 1);
  }
  AsPod(const AsPod&) = delete;
  AsPod& operator=(const AsPod&) = delete;
  ~AsPod() {
    for (const char* variable : {"KUBERNETES_SERVICE_HOST", "HYPERTUNE_POD_NAME", "HYPERTUNE_POD_IP"})
      ::unsetenv(variable);
  }
  bool is_alone() const {
    const auto pods = kubernetes_.pods();
    return pods.size() == 1 && pods.front().at("metadata").at("name").as_string() == name;
  }
  /// Of this machine, as pods see it.
  static std::string own_address() {
    return std::string(json_of(TestKubernetes::state() / "facts.json").at("net").as_string()) + ".1";
  }

 private:
  const TestKubernetes& kubernetes_;
};

}  // namespace

TEST_CASE("workers connect to their driver, and one that is deleted saves and goes on in another pod") {
  const auto kubernetes = test_kubernetes("direct");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  const AsPod driver(*kubernetes, AsPod::own_address());
  auto setup = workers_of(*kubernetes, 1);
  setup.options.connection = KubernetesOptions::Connection::direct;
  bool deleted = false;
  const auto results =
      run_disturbed(saves_when_told(folder.path() / "run", KubernetesExecutor(setup), 1, 100), [&](const Until& until) {
        if (!until([&] { return reports(folder.path() / "run") >= 10; })) return;
        for (const auto& pod : kubernetes->running())
          if (pod != AsPod::name) kubernetes->remove_pod(pod);
        deleted = true;
      });
  CHECK(deleted);
  check_whole(results, 1, 100);
  check_none_again(results);
  CHECK(eventually([&] { return driver.is_alone(); }, 60));
}

TEST_CASE("a worker that never connects ends the experiment with one sentence that says so") {
  const auto kubernetes = test_kubernetes("never-connects");
  if (!kubernetes) return;
  const TemporaryDirectory folder;
  auto setup = workers_of(*kubernetes, 1);
  setup.options.connection = KubernetesOptions::Connection::direct;
  setup.options.save_grace = 1;
  setup.remote.timeouts.refusals = 1;
  setup.remote.timeouts.connect = 4;
  std::string complaint;
  SECTION("its program is not one that serves trials") {
    const AsPod driver(*kubernetes, AsPod::own_address());
    setup.arguments = {"mute"};
    complaint = complaint_of(small(folder.path() / "run", KubernetesExecutor(setup), 1, 5));
    CHECK_THAT(complaint, ContainsSubstring("has not connected to port") && ContainsSubstring("within 4 s") &&
                              ContainsSubstring("its log ends with: it waits for a licence"));
    CHECK(eventually([&] { return driver.is_alone(); }, 60));
  }
  SECTION("the driver cannot be reached") {
    const AsPod driver(*kubernetes, "198.51.100.1");  // RFC 5737: nobody is there
    complaint = complaint_of(small(folder.path() / "run", KubernetesExecutor(setup), 1, 5));
    CHECK_THAT(complaint, ContainsSubstring("has not connected to port") && ContainsSubstring("a network policy") &&
                              ContainsSubstring("198.51.100.1"));
  }
  SECTION("its program ends: that is not waited for") {
    const AsPod driver(*kubernetes, AsPod::own_address());
    setup.options.program = "/bin/false";
    setup.remote.timeouts.connect = 1000;
    complaint = complaint_of(small(folder.path() / "run", KubernetesExecutor(setup), 1, 5));
    CHECK_THAT(complaint, ContainsSubstring("ended with exit code 1"));
  }
  INFO(complaint);
  CHECK(std::count(complaint.begin(), complaint.end(), '\n') <= 1);
}
