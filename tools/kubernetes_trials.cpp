#include "kubernetes_trials.hpp"

#include "remote_trials.hpp"

#ifdef HYPERTUNE_HAS_K8S
#include <hypertune/k8s/executor.hpp>
#endif

#include <filesystem>
#include <utility>

namespace hypertune::inline v0::command {

#ifdef HYPERTUNE_HAS_K8S
AnyExecutor kubernetes_executor_of(const Sweep& sweep, const std::string& file, const std::vector<std::string>& set) {
  KubernetesSetup setup;
  setup.options = *sweep.executor.kubernetes;
  auto& options = setup.options;
  options.kubeconfig = found_from(sweep, options.kubeconfig);
  if (auto& shared = options.transfer.shared) shared->folder = found_from(sweep, shared->folder);
  options.file_mounts = mounts_of(sweep, std::move(options.file_mounts), setup.programs);
  if (const auto& program = sweep.trial->command.front();
      program.find('{') == std::string::npos && !sweep.trial->environment.contains("PATH"))
    setup.needs.push_back(program);
  setup.remote.program = sweep_description(sweep, file, set);
  return KubernetesExecutor(std::move(setup));
}
#else
AnyExecutor kubernetes_executor_of(const Sweep& sweep, const std::string&, const std::vector<std::string>&) {
  fail(Errc::usage, "{}: executor kubernetes needs OpenSSL, without which this command was built (libssl-dev)",
       sweep.file.string());
}
#endif

}  // namespace hypertune::inline v0::command
