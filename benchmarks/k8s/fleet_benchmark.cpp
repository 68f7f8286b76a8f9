// Makes, watches and deletes the pods of so many workers, as the executor does it: a thread each that waits for its
// pod, one that looks after all of them. Nothing is run in them. Usage: PODS=1000 KUBECONFIG=… benchmark_fleet
// [SECONDS] holds them for so many seconds (20) once all run. For benchmarks/k8s/scale.py.
#include "pod_fleet.hpp"

#include <hypertune/detail/say.hpp>
#include <hypertune/error.hpp>
#include <hypertune/k8s/access.hpp>
#include <hypertune/k8s/client.hpp>
#include <hypertune/remote/notices.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace hypertune;

constexpr const char* pod_on_simulated_nodes =
    "spec: {nodeSelector: {hypertune.test/simulated: 'true'}, "
    "tolerations: [{key: hypertune.test/simulated, operator: Exists}]}";

std::string worker(int i) { return fmt::format("worker-{}", i + 1); }

int measure(int pods, double hold) {
  KubernetesOptions options;
  options.image = "none";
  options.cpus = 0.01;
  options.pod = pod_on_simulated_nodes;
  const auto notices = std::make_shared<remote::Notices>([](const std::string& line) { fmt::print("{}\n", line); });
  k8s::FleetPlan plan;
  plan.name = plan.experiment = "fleet";
  plan.command = {"none"};
  k8s::PodFleet fleet(k8s::Client(k8s::load_access()), options, plan, notices);

  std::atomic<int> run = 0, failed = 0;
  std::mutex mutex;
  std::condition_variable_any changed;
  // As ElasticExecutor does it, twice a second.
  const std::jthread looks([&](const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      lock.unlock();
      fleet.reconcile(stop);
      lock.lock();
      changed.wait_for(lock, stop, std::chrono::milliseconds(500), [] { return false; });
    }
  });
  std::vector<std::jthread> dials;
  for (int i = 0; i < pods; ++i)
    dials.emplace_back([&, i](const std::stop_token& stop) {
      try {
        fleet.acquire(worker(i), stop);
        ++run;
      } catch (const std::exception& error) {
        ++failed;
        fmt::print("{}: {}\n", worker(i), error.what());
      }
    });
  for (auto& dial : dials) dial.join();
  dials.clear();
  fmt::print("{} pods run, {} failed\n", run.load(), failed.load());
  std::fflush(stdout);
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::duration<double>(hold), [] { return false; });
  }
  fleet.finish();
  return run == pods ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* pods = std::getenv("PODS");
  try {
    return measure(pods != nullptr ? std::max(1, std::atoi(pods)) : 1000, argc > 1 ? std::atof(argv[1]) : 20);
  } catch (const std::exception& error) {
    hypertune::detail::say(error.what());
    return 2;
  }
}
