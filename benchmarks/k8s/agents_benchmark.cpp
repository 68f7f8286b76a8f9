// What a driver of many pods costs that connect to it: the whole of it, with agents that are played, on simulated
// nodes. Usage: PODS=1000 KUBECONFIG=… benchmark_agents [SECONDS at rest]; for benchmarks/k8s/scale.py
//
// Three processes: the driver, which is what is measured; played hosts (tests/remote/played_hosts.hpp), which speak as
// agents do and train nothing; and what stands for the pods' keepers: it watches for pods that run, and connects for
// each to where its annotation says that the driver is, by WebSocket over TLS and with the token of the Secret.
#include "../driver_measures.hpp"
#include "../processor_seconds.hpp"
#include "http.hpp"
#include "json_at.hpp"
#include "net/tls.hpp"
#include "played_hosts.hpp"
#include "pod_manifest.hpp"
#include "worker_channel.hpp"

#include <hypertune/hypertune.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/driver_address.hpp>
#include <hypertune/k8s/executor.hpp>
#include <hypertune/k8s/pod_keeper.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json.hpp>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ht = hypertune;
namespace k8s = hypertune::k8s;
namespace net = hypertune::net;
namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
namespace fs = std::filesystem;
namespace json = boost::json;
using namespace driver_measures;
using k8s::ErrorCode;
using k8s::LocalSocket;
using k8s::Part;
using k8s::WorkerChannel;

constexpr const char* on_simulated_nodes =
    "spec: {nodeSelector: {hypertune.test/simulated: 'true'}, "
    "tolerations: [{key: hypertune.test/simulated, operator: Exists}]}";
constexpr const char* own_pod = "benchmark-driver";

// ---- For the pods' keepers ----

/// A pod that runs, as the API server tells of it.
struct Called {
  std::string pod, driver, secret;
};

/// All connections of the pods, on one thread.
class PlayedKeepers {
 public:
  PlayedKeepers(const ht::test::PlayedHosts& hosts, int count)
      : client_(k8s::load_access()), hosts_(hosts.pool(count).hosts()), tls_(net::pinned_client_tls().release()) {
    tls_.set_verify_mode(asio::ssl::verify_none);  // the certificate's fingerprint is in the annotation
  }

  /// Until the process ends.
  void run() {
    const std::jthread thread([this] {
      const auto work = asio::make_work_guard(io_);
      io_.run();
    });
    const auto watch = client_.watch({.path = pods(), .label_selector = fmt::format("{}=worker", k8s::role_label)},
                                     [this](const k8s::WatchEvent& event) {
                                       if (event.object == nullptr || event.kind == k8s::WatchEvent::Kind::deleted)
                                         return;
                                       const auto called = called_of(*event.object);
                                       const std::lock_guard lock(mutex_);
                                       if (called.driver.empty() || !seen_.insert(called.pod).second) return;
                                       news_.push_back(called);
                                       changed_.notify_all();
                                     });
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !news_.empty(); });
      const auto called = news_.front();
      news_.pop_front();
      lock.unlock();
      if (token_.empty()) token_ = token_of(called.secret);
      if (next_ >= hosts_.size()) continue;  // one in place of another: none is lost here
      const auto* host = &hosts_[next_++];
      asio::post(io_, [this, called, host] { asio::co_spawn(io_, call(called, host), asio::detached); });
    }
  }

 private:
  std::string pods() const { return k8s::api_path({"api", "v1", "namespaces", client_.name_space(), "pods"}); }

  static Called called_of(const json::object& pod) {
    const json::value whole(pod);
    Called called;
    if (k8s::text_at(whole, "/status/phase") != "Running") return called;
    called.pod = k8s::text_at(whole, "/metadata/name");
    if (const auto* all = whole.at("metadata").as_object().if_contains("annotations"))
      if (const auto* driver = all->as_object().if_contains(k8s::driver_annotation))
        called.driver = std::string(driver->as_string());
    for (const auto& each : whole.at("spec").at("containers").at(0).at("env").as_array())
      if (k8s::text_at(each, "/name") == k8s::token_variable)
        called.secret = k8s::text_at(each, "/valueFrom/secretKeyRef/name");
    return called;
  }
  std::string token_of(const std::string& secret) {
    const auto path = k8s::api_path({"api", "v1", "namespaces", client_.name_space(), "secrets", secret});
    const auto coded = k8s::text_at(client_.call({.path = path}).json(), "/data/token");
    return k8s::detail::base64_decoded(coded).value_or("");
  }

  // A pod may run before its driver knows its name.
  asio::awaitable<void> call(Called called, const ht::remote::RemoteHost* host) {
    for (;;) {
      const bool begun = co_await call_once(called, host);
      if (begun) break;
      asio::steady_timer timer(io_, std::chrono::seconds(1));
      ErrorCode ignored;
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }
  // As DriverConnection does it, but the agent is a played one. False: the driver has not asked for it.
  asio::awaitable<bool> call_once(const Called& called, const ht::remote::RemoteHost* host) {
    const auto driver = k8s::DriverAddress::parse(called.driver);
    const auto channel = std::make_shared<WorkerChannel>(asio::ip::tcp::socket(io_), tls_);
    ErrorCode error;
    const asio::ip::tcp::endpoint endpoint(asio::ip::make_address(driver.ip), driver.port);
    co_await channel->socket().async_connect(endpoint, asio::redirect_error(asio::use_awaitable, error));
    channel->prepare();
    if (!error)
      co_await channel->stream().next_layer().async_handshake(asio::ssl::stream_base::client,
                                                              asio::redirect_error(asio::use_awaitable, error));
    channel->stream().set_option(websocket::stream_base::decorator([this](websocket::request_type& request) {
      request.set(http::field::authorization, "Bearer " + token_);
      request.set(http::field::sec_websocket_protocol,
                  boost::beast::string_view(k8s::worker_channel_protocol.data(), k8s::worker_channel_protocol.size()));
    }));
    const std::string target = std::string(k8s::worker_channel_path) + called.pod;
    if (!error)
      co_await channel->stream().async_handshake(driver.ip, target, asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return false;
    constexpr double ping = 5, silence = 20;
    channel->begin(ping, silence);
    ht::remote::AgentStream agent;
    LocalSocket socket(io_);
    WorkerChannel::Received said(Part::begin, {});
    for (;;) {
      const bool more = co_await channel->receive(said);
      if (!more) break;
      if (said.part == Part::begin && !socket.is_open()) {
        agent = host->dialer.dial({});
        socket.assign(asio::local::stream_protocol(), ::fcntl(agent.from.get(), F_DUPFD_CLOEXEC, 0));
        asio::co_spawn(io_, speak(channel, &socket), asio::detached);
      } else if (said.part == Part::input) {
        const bool taken = co_await k8s::write_all(socket, said.bytes);
        if (!taken) break;
      }
    }
    channel->cut("it is over");
    if (!socket.is_open()) co_return false;
    // `speak` has the socket; what is left when the process ends does not matter.
    asio::steady_timer never(io_, std::chrono::hours(1));
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, error));
    co_return true;
  }
  static asio::awaitable<void> speak(std::shared_ptr<WorkerChannel> channel, LocalSocket* socket) {
    bool moved = false;
    co_await k8s::pump(channel, *socket, Part::output, &moved);
    channel->close("its agent has ended");
  }

  k8s::Client client_;
  std::vector<ht::remote::RemoteHost> hosts_;
  asio::io_context io_{1};
  asio::ssl::context tls_;
  std::string token_;
  std::size_t next_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::string> seen_;
  std::deque<Called> news_;
};

// ---- The driver ----

/// What the driver takes for its own pod: an object on a simulated node.
class OwnPod {
 public:
  OwnPod() : client_(k8s::load_access()) {
    auto pod = json::parse(fmt::format(
        R"({{"apiVersion": "v1", "kind": "Pod", "metadata": {{"name": "{}"}},
             "spec": {{"nodeSelector": {{"hypertune.test/simulated": "true"}}, "restartPolicy": "Never",
                       "tolerations": [{{"key": "hypertune.test/simulated", "operator": "Exists"}}],
                       "containers": [{{"name": "driver", "image": "none"}}]}}}})",
        own_pod));
    client_.call({.method = k8s::Method::post, .path = path(), .body = json::serialize(pod), .named = true});
    ::setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1", 1);
    ::setenv("HYPERTUNE_POD_NAME", own_pod, 1);
    ::setenv("HYPERTUNE_POD_IP", "127.0.0.1", 1);
  }
  OwnPod(const OwnPod&) = delete;
  OwnPod& operator=(const OwnPod&) = delete;
  ~OwnPod() {
    try {
      client_.call({.method = k8s::Method::remove, .path = path() + "/" + own_pod});
    } catch (const std::exception& error) { ht::detail::say(error.what()); }
  }

 private:
  std::string path() const { return k8s::api_path({"api", "v1", "namespaces", client_.name_space(), "pods"}); }
  k8s::Client client_;
};

int measure(const ht::test::PlayedHosts& played, int pods, double seconds) {
  constexpr int steps = 200;
  const auto& counts = played.counts();
  std::string folder = (fs::temp_directory_path() / "hypertune-benchmark-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) ht::fail(ht::Errc::io, "no folder in '{}'", folder);
  const OwnPod own;
  ht::KubernetesSetup setup;
  setup.options.image = "none";
  setup.options.program = "/none";
  setup.options.cpus = 0.01;
  setup.options.pool = {1, pods};
  setup.options.connection = ht::KubernetesOptions::Connection::direct;
  setup.options.pod = on_simulated_nodes;
  ht::Options options;
  options.samples = pods;
  options.search = ht::Random{};
  options.output = fs::path(folder) / "run";
  options.display = ht::Display::quiet;
  options.resources.cpus = 0.01;
  options.handle_signals = false;
  options.executor = ht::KubernetesExecutor(setup);
  fmt::print("\n| {} pods | |\n|---|---:|\n", pods);
  {
    const double empty = resident();
    TunerThread run([&] { return ht::make_tuner(space(), train, std::move(options)); });
    const auto begin = Clock::now();
    double processor = processor_seconds();
    run.start();
    until([&] { return run.over() || counts.launches >= pods; });
    if (run.over()) run.end();
    row("until a trial runs on each, s", fmt::format("{:.1f}", since(begin)));
    row("… processor time of the driver, s", fmt::format("{:.2f}", processor_seconds() - processor));
    row("peak resident memory until then, MB", fmt::format("{:.1f}", megabytes("/proc/self/status", "VmHWM")));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const double at_first = resident();
    const auto rest = Clock::now();
    processor = processor_seconds();
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    row("at rest: % of a core", fmt::format("{:.1f}", 100 * (processor_seconds() - processor) / since(rest)));
    const double at_last = resident();
    row("resident memory at rest, first and last, MB", fmt::format("{:.1f}, {:.1f}", at_first, at_last));
    row("… more than before there were pods, for each, kB", fmt::format("{:.0f}", 1000 * (at_last - empty) / pods));
    row("threads", std::to_string(threads()));

    const auto reported = counts.reports.load();
    const auto go = Clock::now();
    processor = processor_seconds();
    played.allow(steps);
    until([&] { return counts.reports >= reported + std::int64_t{steps} * pods; });
    const auto reports = static_cast<double>(counts.reports - reported);
    row("reports a second", fmt::format("{:.0f}", reports / since(go)));
    row("… and for each second of the driver's processor time",
        fmt::format("{:.0f}", reports / (processor_seconds() - processor)));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    row("resident memory after that, MB", fmt::format("{:.1f}", resident()));
    played.allow(steps + 2);
    const auto end = Clock::now();
    if (run.end().count(ht::TrialState::completed) != static_cast<std::size_t>(pods))
      ht::fail(ht::Errc::experiment, "not all trials have completed");
    row("from the last step to the end, all pods deleted, s", fmt::format("{:.1f}", since(end)));
    row("peak resident memory, MB", fmt::format("{:.1f}", megabytes("/proc/self/status", "VmHWM")));
  }
  fs::remove_all(folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* given = std::getenv("PODS");
  const int pods = given != nullptr ? std::max(1, std::atoi(given)) : 1000;
  try {
    // Before there are threads: the agents, and what connects for them.
    const ht::test::PlayedHosts played({.steps = 202, .cpus = 0.01}, ht::test::PlayedHosts::In::process);
    const pid_t keepers = ::fork();
    if (keepers == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        PlayedKeepers(played, pods).run();
      } catch (const std::exception& error) { ht::detail::say(error.what()); }
      ::_exit(1);
    }
    const int code = measure(played, pods, argc > 1 ? std::atof(argv[1]) : 20);
    ::kill(keepers, SIGKILL);
    ::waitpid(keepers, nullptr, 0);
    return code;
  } catch (const std::exception& error) {
    ht::detail::say(error.what());
    return 2;
  }
}
