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
  /// What is sent into pods where the options name no program of the image: one that becomes an agent when it is called
  /// with the arguments below and then `--hypertune-agent` (a Runtime does that). Empty: this program itself.
  std::filesystem::path program = {};
  std::vector<std::string> arguments = {};
  std::vector<std::filesystem::path> programs = {};  ///< among the file mounts: whether they can run there is checked
  std::vector<std::string> needs = {};               ///< programs that must be found there, in the folder of trials
  /// Its time to connect counts from when the pod runs; its liveness is the options' `silence`, its transfer theirs.
  remote::RemoteOptions remote = {};
  /// Lines for the user while no experiment takes them; by default they go to standard error. Any thread.
  std::function<void(const std::string&)> say = {};
};

/// Each worker is a pod, whose agent is reached through the API server, or connects to the driver where that is a pod
/// itself. There are as many as the queue of trials asks for; they end when they were idle for some time, and with the
/// run, however it ends. The experiment begins while they are waited for, and says what they wait for. A pod that is
/// deleted, evicted or preempted is a notice: its trials save, and go on in another one. The API server may be away for
/// a while. Copies are the same executor.
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

/// `ht::on_kubernetes(runtime, {.image = "registry/lab/train:7", .cpus = 4, .gpus = 1})`: trials on pods, each by this
/// program, called there as it was called here.
inline KubernetesExecutor on_kubernetes(const remote::AgentRuntime& runtime, KubernetesOptions options) {
  KubernetesSetup setup;
  setup.options = std::move(options);
  return KubernetesExecutor(runtime.setup(std::move(setup)));
}
}  // namespace hypertune::inline v0
