// How soon a trial reports: in a new pod beside a bare pod of the same image, and on a pod that is there beside a host
// over ssh. Usage: benchmark_reach [--rounds N] [--ssh CONFIG] [--image NAME], KUBECONFIG=…; for
// benchmarks/k8s/reach.py. It is the program in the image, too.

#include <hypertune/hypertune.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/k8s/executor.hpp>
#include <hypertune/remote/runtime.hpp>
#include <hypertune/ssh/executor.hpp>

#include <boost/json.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace {

namespace ht = hypertune;
namespace k8s = hypertune::k8s;
namespace json = boost::json;
namespace fs = std::filesystem;
using ht::Seconds;

/// The same in all pods of this machine.
Seconds machine_clock() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

struct Config {
  double x = 0;
};
auto space() { return ht::space<Config>(ht::dim("x", &Config::x, ht::uniform(0.0, 1.0))); }
ht::Training train(Config config) { co_yield ht::report("value", config.x); }

struct Arguments {
  int rounds = 24, warm = 6;
  std::string image = "hypertune.test/reach:1", ssh = {};
};

/// When each trial was launched, had reported first, and had ended.
struct Times {
  std::mutex mutex;
  struct Trial {
    Seconds launched = 0, reported = 0, ended = 0;
  };
  std::map<ht::TrialId, Trial> trials;
};

/// Any executor, and the times of what passes it.
class TimedExecutor {
 public:
  TimedExecutor(ht::AnyExecutor executor, std::shared_ptr<Times> times)
      : executor_(std::move(executor)), times_(std::move(times)) {}

  std::vector<ht::Host> hosts() const { return executor_.hosts(); }
  Seconds now() const { return executor_.now(); }
  void start(ht::ExecutorStart start) {
    start.sink = [times = times_, sink = std::move(start.sink)](ht::Event event) {
      const auto now = machine_clock();
      {
        const std::lock_guard lock(times->mutex);
        if (const auto* reported = std::get_if<ht::Reported>(&event)) times->trials[reported->trial].reported = now;
        if (const auto* ended = std::get_if<ht::Finished>(&event)) times->trials[ended->trial].ended = now;
        if (const auto* failed = std::get_if<ht::Failed>(&event)) ht::fail(ht::Errc::io, "{}", failed->cause.text);
      }
      sink(std::move(event));
    };
    executor_.start(std::move(start));
  }
  void perform(ht::Command command) {
    if (const auto* launch = std::get_if<ht::Launch>(&command)) {
      const std::lock_guard lock(times_->mutex);
      times_->trials[launch->trial].launched = machine_clock();
    }
    executor_.perform(std::move(command));
  }
  void wait(Seconds deadline) { executor_.wait(deadline); }
  void notify() { executor_.notify(); }
  void shutdown() { executor_.shutdown(); }
  std::string name() const { return executor_.name(); }
  void prepare(const ht::Workload& workload) { executor_.prepare(workload); }
  void trial_ended(ht::TrialId trial) { executor_.trial_ended(trial); }
  void teardown(bool unfinished) { executor_.teardown(unfinished); }

 private:
  ht::AnyExecutor executor_;
  std::shared_ptr<Times> times_;
};

/// The pods of a label as the API server tells of them.
class Pods {
 public:
  Pods(const k8s::Client& client, const std::string& selector) : client_(client) {
    watch_ = client_.watch({.path = path(), .label_selector = selector}, [this](const k8s::WatchEvent& event) {
      using Kind = k8s::WatchEvent::Kind;
      const std::lock_guard lock(mutex_);
      if (event.kind == Kind::trouble || event.kind == Kind::synced) return;
      const auto& metadata = event.object->at("metadata").as_object();
      const std::string name(metadata.at("name").as_string());
      if (event.kind == Kind::deleted)
        phases_.erase(name);
      else
        phases_[name] = event.object->at("status").at("phase").as_string();
      changed_.notify_all();
    });
  }
  std::string path(const std::string& pod = {}, const std::string& part = {}) const {
    return k8s::api_path({"api", "v1", "namespaces", client_.name_space(), "pods"}) + (pod.empty() ? "" : "/" + pod) +
           (part.empty() ? "" : "/" + part);
  }
  void until(const std::function<bool(const std::map<std::string, std::string>&)>& holds) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(2), [&] { return holds(phases_); }))
      ht::fail(ht::Errc::io, "what is measured has not come about within two minutes");
  }

 private:
  k8s::Client client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> phases_;
  k8s::Watch watch_;  // last: it ends first
};

/// From the POST of a pod to the first line of its main(). `volume`: it has the one that Kubernetes gives to each pod.
Seconds bare_start(k8s::Client client, Pods& pods, const Arguments& arguments, int number, bool volume) {
  const auto name = fmt::format("bare-{}", number);
  json::object container{{"name", "bare"},
                         {"image", json::string(arguments.image)},
                         {"imagePullPolicy", "Never"},
                         {"command", json::array{"/bin/benchmark_reach", "--bare"}},
                         {"resources", {{"requests", {{"cpu", "100m"}}}}}};
  json::object spec{{"restartPolicy", "Never"}, {"containers", json::array{container}}};
  if (!volume) spec["automountServiceAccountToken"] = false;
  const json::object pod{{"apiVersion", "v1"},
                         {"kind", "Pod"},
                         {"metadata", {{"name", json::string(name)}, {"labels", {{"of", "benchmark"}}}}},
                         {"spec", std::move(spec)}};
  const auto begin = machine_clock();
  client.call({.method = k8s::Method::post, .path = pods.path(), .body = json::serialize(pod), .named = true});
  pods.until([&](const auto& phases) {
    const auto found = phases.find(name);
    return found != phases.end() && (found->second == "Succeeded" || found->second == "Failed");
  });
  const auto said = client.call({.path = pods.path(name, "log")}).body;
  client.call({.method = k8s::Method::remove, .path = pods.path(name), .body = R"({"gracePeriodSeconds": 0})"});
  pods.until([](const auto& phases) { return phases.empty(); });
  const auto at = std::strtod(said.c_str(), nullptr);
  if (!(at > begin)) ht::fail(ht::Errc::io, "the bare pod has said '{}'", said);
  return at - begin;
}

/// An experiment of so many trials, one after the other.
std::map<ht::TrialId, Times::Trial> run_trials(ht::AnyExecutor executor, int trials) {
  std::string folder = (fs::temp_directory_path() / "hypertune-benchmark-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) ht::fail(ht::Errc::io, "no folder in '{}'", folder);
  const auto times = std::make_shared<Times>();
  ht::Options options;
  options.samples = trials;
  options.concurrency = 1;
  options.search = ht::Random{};
  options.output = fs::path(folder) / "run";
  options.display = ht::Display::quiet;
  options.resources.cpus = 0.1;
  options.executor = TimedExecutor(std::move(executor), times);
  ht::tune(space(), train, std::move(options));
  fs::remove_all(folder);
  if (times->trials.size() != static_cast<std::size_t>(trials)) ht::fail(ht::Errc::io, "not all trials have ended");
  return times->trials;
}

k8s::KubernetesExecutor on_pods(const Arguments& arguments, bool reuse) {
  ht::KubernetesSetup setup;
  auto& options = setup.options;
  options.image = arguments.image;
  options.program = "/bin/benchmark_reach";
  options.cpus = 0.1;
  options.pool = {1, 1};
  options.reuse = reuse;
  options.pod = "spec: {containers: [{name: worker, imagePullPolicy: Never}]}";
  return k8s::KubernetesExecutor(setup);
}
ht::SshExecutor on_ssh(const Arguments& arguments) {
  ht::SshSetup setup;
  setup.hosts = std::vector<std::string>{"host1"};
  setup.ssh.config = arguments.ssh;
  return ht::SshExecutor(setup);
}

double percentile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return percentile(values, 0.5);
}
void row(const std::string& what, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  fmt::print("| {} | {:.1f} | {:.1f} - {:.1f} | {:.1f} - {:.1f} | {} |\n", what, 1e3 * percentile(seconds, 0.5),
             1e3 * percentile(seconds, 0.25), 1e3 * percentile(seconds, 0.75), 1e3 * seconds.front(),
             1e3 * seconds.back(), seconds.size());
}
void difference(const std::string& what, const std::vector<double>& ours, const std::vector<double>& theirs) {
  fmt::print("| {} | {:.1f} | | | |\n", what, 1e3 * (median(ours) - median(theirs)));
}

int measure(const Arguments& arguments) {
  k8s::Client client(k8s::load_access());
  Pods pods(client, "of=benchmark"), workers(client, "hypertune/role=worker");
  std::vector<double> bare, stripped, whole, next, warm, ssh;
  const auto none = [](const auto& phases) { return phases.empty(); };
  const auto reports_after = [](const auto& trials, std::vector<double>& into) {
    bool first = true;  // there the pod, or the connection, is waited for
    for (const auto& [trial, times] : trials)
      if (!std::exchange(first, false)) into.push_back(times.reported - times.launched);
  };
  // In turn, so that what else this machine does is in all of them. The first round warms caches up.
  for (int round = 0; round <= arguments.rounds; ++round) {
    bare.push_back(bare_start(client, pods, arguments, round, true));
    stripped.push_back(bare_start(client, pods, arguments, round, false));
    const auto begin = machine_clock();
    const auto trials = run_trials(on_pods(arguments, false), 2);
    whole.push_back(trials.begin()->second.reported - begin);
    next.push_back(trials.rbegin()->second.reported - trials.begin()->second.ended);
    workers.until(none);
    reports_after(run_trials(on_pods(arguments, true), arguments.warm), warm);
    workers.until(none);
    if (!arguments.ssh.empty()) reports_after(run_trials(on_ssh(arguments), arguments.warm), ssh);
    if (round > 0) continue;
    for (auto* values : {&bare, &stripped, &whole, &next, &warm, &ssh}) values->clear();
  }
  fmt::print("| ms | median | quartiles | min - max | n |\n|---|--:|--:|--:|--:|\n");
  row("bare pod: POST to the first line of main()", bare);
  row("bare pod without any volume: the same", stripped);
  row("a pod for each trial: from the end of the one before to the first report", next);
  difference("… more than the bare pod", next, bare);
  row("a whole experiment: tune() called to the first report", whole);
  difference("… more than the bare pod", whole, bare);
  row("a pod that is there: launch to the first report", warm);
  if (!ssh.empty()) {
    row("a host over ssh: launch to the first report", ssh);
    difference("… more on the pod", warm, ssh);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto first_line = machine_clock();
  if (argc == 2 && std::string_view(argv[1]) == "--bare") {
    std::printf("%.6f\n", first_line);
    return 0;
  }
  try {
    const auto agent = ht::remote::run_agent_if_asked(argc, argv, [](const std::string&) {
      return ht::make_program<Config>(ht::detail::decoder(space()), train, "value");
    });
    if (agent) return *agent;
    Arguments arguments;
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string_view name = argv[i];
      if (name == "--rounds") arguments.rounds = std::max(1, std::atoi(argv[i + 1]));
      if (name == "--warm") arguments.warm = std::max(2, std::atoi(argv[i + 1]));
      if (name == "--image") arguments.image = argv[i + 1];
      if (name == "--ssh") arguments.ssh = argv[i + 1];
    }
    return measure(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
