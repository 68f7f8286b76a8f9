// KubernetesOptions: the options of a worker on Kubernetes, in C++ and as `executor: {type: kubernetes, …}`. Plain
// data.
#pragma once

#include <hypertune/config/pool_size.hpp>
#include <hypertune/detail/old_name.hpp>
#include <hypertune/files/file_mount.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/option.hpp>
#include <hypertune/trial/trial.hpp>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace hypertune::inline v0 {

namespace detail {
/// A pod in Kubernetes' own notation: a map in files, its JSON in the option.
struct PodManifest {
  using form_tag = void;
};
}  // namespace detail

/// Meant for designated initialisers: `{.image = "registry/lab/train:7", .cpus = 4, .gpus = 1}`. A worker is a pod that
/// runs trials until no more of them wait, or only one trial (`reuse`).
struct KubernetesOptions {
  static constexpr const char* type = "kubernetes";
  /// Whether to use nodes that the cloud may take back at any time.
  enum class Spot : std::uint8_t {
    any,     ///< left to Kubernetes' scheduler
    prefer,  ///< if there are any
    only,
    never,
  };
  /// How a worker's agent and the driver connect.
  enum class Connection : std::uint8_t {
    automatic,  ///< `direct` if the driver is a pod itself, else `exec`
    exec,       ///< the driver starts agents through the API server, as `kubectl exec` does; no other port is needed
    direct,     ///< workers connect to the driver's pod, by WebSocket over TLS
  };

  PoolSize pool = {};  ///< "1..8" in files
  std::string image = {};
  std::string name_space = {};  ///< `namespace` in files
  std::filesystem::path kubeconfig = {};
  std::string context = {};
  std::optional<double> cpus = {};  ///< left out: what `pod` asks for, or else 1; see capacity_of()
  std::uint64_t memory = 0;
  std::uint64_t max_memory = 0;                     ///< 0: `memory` stays
  detail::OldName<std::uint64_t> most_memory = {};  ///< now max_memory
  int gpus = 0;
  std::string gpu_resource = "nvidia.com/gpu";
  std::string gpu_class = {};
  std::map<std::string, std::string> node_selector = {};
  Spot spot = Spot::any;
  std::string priority_class = {};
  std::string service_account = {};
  std::vector<std::string> image_pull_secrets = {};
  std::string queue = {};
  Connection connection = Connection::automatic;
  std::string program = {};
  std::string workdir = {};
  std::vector<FileMount> file_mounts = {};
  /// A claim for a volume in which checkpoints are kept instead of being copied (see SharedCheckpoints). It is mounted
  /// at `transfer.shared->on_hosts` in workers and at `transfer.shared->folder` in the driver; each is by default
  /// /hypertune-checkpoints.
  std::string volume = {};
  CheckpointTransfer transfer = {};
  Seconds save_grace = 60;
  detail::OldName<Seconds> notice = {};  ///< now save_grace
  bool reuse = true;
  Seconds idle_timeout = 60;
  detail::OldName<Seconds> idle = {};  ///< now idle_timeout
  Seconds group_timeout = 300;
  detail::OldName<Seconds> group_patience = {};  ///< now group_timeout
  Seconds heartbeat_timeout = 10;
  detail::OldName<Seconds> silence = {};  ///< now heartbeat_timeout
  /// A pod in Kubernetes' own notation, as YAML or JSON; a map in files. The options above are merged into it.
  std::string pod = {};

  static void describe(auto& self, auto&& option) {
    using Unit = Bounds::Unit;
    option("pool", self.pool, "how many workers, as the queue of trials asks for them");
    option("image", self.image, "the image of a worker's container");
    option("namespace", self.name_space, "where pods are made; empty: that of the context, or of the driver's own pod");
    option("kubeconfig", self.kubeconfig,
           "in place of `KUBECONFIG` and `~/.kube/config`. Without any, and within a pod: the pod's service account");
    option("context", self.context, "a context of the kubeconfig; empty: its current one");
    option("cpus", self.cpus, above(0).at_most(4096),
           "`resources.requests.cpu` of a worker; left out: what `pod` asks for, for the container or the whole pod, "
           "or 1");
    option("memory", self.memory, at_least(0).in(Unit::bytes),
           "`requests.memory` and `limits.memory` of a worker; 0: what `pod` asks for, if anything");
    option("max_memory", self.max_memory, at_least(0).in(Unit::bytes),
           "up to how much a worker gets, twice as much each time that one has run out of memory; 0: `memory` stays");
    option("gpus", self.gpus, between(0, 1024), "the GPUs of a worker");
    option("gpu_resource", self.gpu_resource, "what the cluster calls them");
    option("gpu_class", self.gpu_class,
           "a DeviceClass (DRA, Kubernetes 1.34) whose devices are claimed, in place of `gpu_resource`");
    option("spot", self.spot, {"any", "prefer", "only", "never"},
           "whether nodes are used that the cloud may take back at any time");
    option("priority_class", self.priority_class, "`priorityClassName`");
    option("service_account", self.service_account, "`serviceAccountName` of workers, which need no rights");
    option("image_pull_secrets", self.image_pull_secrets, "`imagePullSecrets`, by name");
    option("queue", self.queue, "a queue of Kueue's: pods have its label, and wait until it admits them");
    option("connection", self.connection, {"auto", "exec", "direct"},
           "`exec`: through the API server; `direct`: workers connect to the driver, which must be a pod; `auto`: "
           "`direct` where it is one");
    option("program", self.program,
           "the program in the image that serves trials; empty: this program is sent into each pod");
    option("workdir", self.workdir, "the folder in which trials run; empty: one of the pod's own");
    option("volume", self.volume,
           "a volume claim for checkpoints, which all workers and the driver write to: none is copied");
    option("save_grace", self.save_grace, between(1, 86400).in(Unit::seconds),
           "`terminationGracePeriodSeconds`: how long a pod that is taken away may save");
    option("reuse", self.reuse,
           "whether a pod serves one trial after another; `false`: one attempt of one trial, and one at once whatever "
           "room it has");
    option("idle_timeout", self.idle_timeout, at_least(0).in(Unit::seconds),
           "how long a worker may be without a trial until it is ended");
    option(
        "group_timeout", self.group_timeout, between(1, 86400).in(Unit::seconds),
        "of a trial with several workers: how long some of its pods are held while the others find no room; then all "
        "are given back for a while");
    option("heartbeat_timeout", self.heartbeat_timeout, between(1, 3600).in(Unit::seconds),
           "a worker without a heartbeat for this long is lost");
    option("node_selector", self.node_selector, "labels that nodes must have");
    option("file_mounts", self.file_mounts, "files that trials need: `{train.py: train.py}`, or with more");
    option("transfer", self.transfer, "how checkpoints are copied");
    option("pod", self.pod, detail::PodManifest{},
           "a pod manifest (`metadata`, `spec`) into which the other keys are merged");
  }
  /// Options by the names of earlier versions, under their new ones.
  void take_old_names() {
    notice.give_to(save_grace);
    idle.give_to(idle_timeout);
    silence.give_to(heartbeat_timeout);
    group_patience.give_to(group_timeout);
    most_memory.give_to(max_memory);
  }
  /// Checks what a single option's bounds cannot.
  void check() const {
    const auto refuse = [](const char* name, const std::string& problem) { throw OptionError(type, name, problem); };
    check_pool(pool, type);
    const auto is_label = [](std::string_view text, bool dots) {
      return text.size() <= (dots ? 253U : 63U) && std::isalnum(static_cast<unsigned char>(text.front())) != 0 &&
             std::isalnum(static_cast<unsigned char>(text.back())) != 0 &&
             std::all_of(text.begin(), text.end(), [&](char c) {
               return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || (dots && c == '.');
             });
    };
    for (const auto& [name, text, dots] :
         {std::tuple("namespace", &name_space, false), std::tuple("priority_class", &priority_class, true),
          std::tuple("service_account", &service_account, true), std::tuple("queue", &queue, true),
          std::tuple("gpu_class", &gpu_class, true), std::tuple("volume", &volume, true)})
      if (!text->empty() && !is_label(*text, dots))
        refuse(name, detail::format("is '{}', which is not a valid Kubernetes name (a-z, 0-9 and '-')", *text));
    for (const auto& secret : image_pull_secrets)
      if (secret.empty() || !is_label(secret, true))
        refuse("image_pull_secrets", detail::format("has '{}', which is not a valid name of a secret", secret));
    if (max_memory > 0 && (memory == 0 || max_memory < memory))
      refuse("max_memory", "is below memory, which a worker begins with (memory has to be given, too)");
    if (!gpu_class.empty() && gpus == 0)
      refuse("gpu_class",
             detail::format("is '{}', and gpus is 0: say how many of its devices a worker gets", gpu_class));
    if (image.empty() && pod.empty())
      refuse("image", "is missing: name the image of a worker's container (or give it in 'pod')");
    if (image.find_first_of(" \t\n'\"") != std::string::npos)
      refuse("image", detail::format("is '{}', which is not a valid name of an image", image));
    if (!program.empty() && !program.starts_with('/'))
      refuse("program", detail::format("is '{}', but must be an absolute path in the image", program));
    if (!workdir.empty() && !workdir.starts_with('/'))
      refuse("workdir", detail::format("is '{}', but must be an absolute path in the pod", workdir));
    check_options(transfer);
    if (volume.empty() || !transfer.shared) return;
    const auto& [folder, in_pods] = *transfer.shared;
    if (!folder.empty() && !folder.is_absolute())
      refuse("volume", detail::format("needs an absolute 'transfer.shared.folder', not '{}'", folder.string()));
    if (!in_pods.empty() && !in_pods.starts_with('/'))
      refuse("volume", detail::format("needs an absolute 'transfer.shared.on_hosts', not '{}'", in_pods));
  }
};

}  // namespace hypertune::inline v0
