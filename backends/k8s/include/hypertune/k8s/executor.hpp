// KubernetesExecutor: trials on workers that are pods.
#pragma once

#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/execute/executor.hpp>
#include <hypertune/k8s/access.hpp>
#include <hypertune/remote/elastic.hpp>
#include <hypertune/remote/executor.hpp>
#include <hypertune/remote/runtime.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

/// Meant for designated initialisers.
struct KubernetesSetup {
  KubernetesOptions options = {};
  /// The program that is copied into pods if the options name no program of the image. Called with the arguments below
  /// and then `--hypertune-agent` it must become an agent (a Runtime does that). Empty: this program.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  std::vector<std::filesystem::path> programs = {};  ///< file mounts; it is checked that they can run there
  std::vector<std::string> needs = {};               ///< programs that must be found there, from the trials' folder
  /// Its connect timeout counts from when the pod runs; its heartbeat timeout that of the options, its transfer the
  /// options'.
  remote::RemoteOptions remote = {};
  /// Receives lines for the user while no experiment takes them; by default they go to standard error. Called on any
  /// thread.
  std::function<void(const std::string&)> say = {};
};

/// Each worker is a pod, whose agent is reached through the API server, or connects to the driver if the driver runs in
/// a pod itself. The number of pods follows the queue of trials; they end when they were idle for some time, and with
/// the run, however it ends. The experiment begins while pods are still awaited, and reports what they wait for. A pod
/// that is deleted, evicted or preempted is a preemption notice: its trials save a checkpoint and continue in another
/// pod. The API server may be unreachable for a while. Copies are the same executor.
class KubernetesExecutor : public remote::ElasticExecutor {
 public:
  /// Error of kind `usage` for options that make no sense; nothing is connected yet.
  explicit KubernetesExecutor(KubernetesSetup setup);
};

static_assert(Executor<KubernetesExecutor>);

}  // namespace hypertune::inline v0::k8s

namespace hypertune::inline v0 {
using k8s::KubernetesExecutor;
using k8s::KubernetesSetup;

/// `ht::on_kubernetes(runtime, {.image = "registry/lab/train:7", .cpus = 4, .gpus = 1})`: trials in pods, each run by
/// this program, which is called there with the arguments it was called with here.
inline KubernetesExecutor on_kubernetes(const remote::AgentRuntime& runtime, KubernetesOptions options) {
  KubernetesSetup setup;
  setup.options = std::move(options);
  return KubernetesExecutor(runtime.setup(std::move(setup)));
}
}  // namespace hypertune::inline v0
