// The keys of `executor:`.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/slurm_options.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>

#include <string>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

inline OptionInfo executor_type(std::vector<std::string> words, const char* text) {
  return key("type", shape::word(std::move(words)), text, "local");
}
inline Shape worker_count_shape() { return shape::text("^[0-9]+(\\.\\.[0-9]+)?$"); }

HYPERTUNE_YAML_INLINE const Keys& host_keys() {
  static const Keys keys{
      required(key("name", shape::text(), "as ssh knows it")),
      key("slots", shape::whole(at_least(1)), "trials of one cpu at once"),
      key("cpus", shape::number(between(0, 1e9)), "that trials may take"),
      key("gpus", shape::number(between(0, 1e9)), "the same"),
      key("memory", shape::size(), "the same"),
      key("custom", shape::entries(shape::number(between(0, 1e9))), "whatever this host has: `{licence: 2}`"),
      key("labels", shape::either({shape::text(), shape::list(shape::text()), shape::entries(shape::scalar())}),
          "words about it: `[big]`, `{zone: a}`")};
  return keys;
}
HYPERTUNE_YAML_INLINE const Keys& host_source_keys() {
  static const Keys keys{key("file", shape::text(), "a host a line"),
                         key("command", shape::texts(), "a program that prints such lines"),
                         key("interval", shape::duration(at_least(0.1)), "between two looks", "10s")};
  return keys;
}
HYPERTUNE_YAML_INLINE const Keys& file_mount_keys() {
  static const Keys keys{required(key("from", shape::text(), "a file or folder of this machine")),
                         key("exclude", shape::texts(), "what stays here, as in a .gitignore: `[\"*.tmp\", .git]`")};
  return keys;
}
inline Shape file_mounts_shape() {
  return shape::entries(shape::either({shape::text(), shape::map(file_mount_keys())}));
}

HYPERTUNE_YAML_INLINE const Keys& shared_keys() {
  static const Keys keys{key("folder", shape::text(), "where checkpoints go, as this machine sees it"),
                         key("on_hosts", shape::text(), "as the hosts see it")};
  return keys;
}
HYPERTUNE_YAML_INLINE const Keys& transfer_keys() {
  static const Keys keys =
      joined(options_of(CheckpointTransfer{}),
             Keys{key("port", shape::whole(between(1, 65535)), "with `direct`: where hosts listen"),
                  key("shared", shape::either({shape::text(), shape::map(shared_keys())}),
                      "a disk that hosts and this machine have: nothing is copied", "false")});
  return keys;
}

HYPERTUNE_YAML_INLINE const Keys& local_keys() {
  static const Keys keys{
      executor_type({"local", "ssh", "slurm", "kubernetes"}, "this machine, others over ssh, jobs of Slurm, or pods"),
      key("workers", shape::word({"processes", "threads"}),
          "whether each trial is looked after by a process of its own or by a thread", "processes"),
      key("cpus", shape::number(between(0, 1e9)), "that trials may take of it"),
      key("gpus", shape::number(between(0, 1e9)), "the same"),
      key("memory", shape::size(), "the same"),
      key("custom", shape::entries(shape::number(between(0, 1e9))), "what `resources.custom` is taken from")};
  return keys;
}

HYPERTUNE_YAML_INLINE const Keys& ssh_keys() {
  static const Keys keys = [] {
    Shape source = shape::map(host_source_keys());
    source.one_of = {{"file"}, {"command"}};
    const Shape host = shape::either({shape::text(), shape::map(host_keys())});
    return Keys{
        executor_type({"ssh"}, "other machines over ssh"),
        key("hosts", shape::either({shape::word({"slurm"}), shape::filled(shape::list(host)), source}),
            "where trials run"),
        key("cluster", shape::text(), "in place of `hosts`: a CLUSTER.yaml whose machines come and go with the queue"),
        key("grow", shape::boolean(),
            "with `cluster`: `false` uses the machines that are up, and launches and ends none", "true"),
        key("ssh_config", shape::text(), "in place of `~/.ssh/config`"),
        key("identity_file", shape::text(), "a private key"),
        key("user", shape::text(), "the account on the hosts"),
        key("port", shape::whole(between(1, 65535)), "of the hosts' SSH servers"),
        key("options", shape::either({shape::text(), shape::list(shape::text()), shape::entries(shape::text())}),
            "as of `ssh -o`: `{ServerAliveInterval: 5}`"),
        key("connect_timeout", shape::duration(at_least(1)), "how long a host may take to answer a login", "10s"),
        key("silence", shape::duration(between(1, 3600)), "a host counts as lost after so long without a sign of life"),
        key("file_mounts", file_mounts_shape(), "files that the hosts need: `{train.py: train.py}`, or with more"),
        key("workdir", shape::text(), "where trials run"),
        key("cache", shape::text(), "where programs and files are kept by their content"),
        key("notice_command", shape::text(),
            "a command on each host that ends when the host is about to be taken away"),
        key("notice_url", shape::text(), "… or an address that says so (EC2's spot notice)"),
        key("transfer", shape::map(transfer_keys()), "how checkpoints travel"),
        key("cpus", shape::number(between(0, 1e9)), "that trials may take of each host"),
        key("gpus", shape::number(between(0, 1e9)), "the same"),
        key("memory", shape::size(), "the same"),
        key("custom", shape::entries(shape::number(between(0, 1e9))), "the same")};
  }();
  return keys;
}

HYPERTUNE_YAML_INLINE const Keys& slurm_keys() {
  static const Keys keys = [] {
    Keys all = joined(
        Keys{executor_type({"slurm"}, "workers that are jobs of Slurm, or steps in an allocation"),
             key("workers", worker_count_shape(), "as many as the queue of trials asks for, within these", "1..8")},
        options_of(SlurmOptions{}),
        Keys{key("transfer", shape::map(transfer_keys()), "how checkpoints travel. `direct` needs `network` here")});
    for (auto& one : all)  // also accepts Slurm's notation
      if (one.name == "time") one.shape = shape::text("^([0-9]+-)?[0-9]+(:[0-9]+){0,2}$|^([0-9.]+ *(d|h|m|s|ms)? *)+$");
    return all;
  }();
  return keys;
}

HYPERTUNE_YAML_INLINE const Keys& pod_keys() {
  static const Keys keys{key("apiVersion", shape::text(), "v1"), key("kind", shape::text(), "Pod"),
                         key("metadata", shape::any(), "labels and annotations of each pod"),
                         key("spec", shape::any(), "the pod's specification")};
  return keys;
}
HYPERTUNE_YAML_INLINE const Keys& kubernetes_keys() {
  static const Keys keys = joined(
      Keys{executor_type({"kubernetes"}, "workers that are pods of Kubernetes"),
           key("workers", worker_count_shape(), "as many as the queue of trials asks for, within these", "1..8")},
      options_of(KubernetesOptions{}),
      Keys{key("node_selector", shape::entries(shape::scalar()), "labels that nodes must have"),
           key("file_mounts", file_mounts_shape(), "files that trials need: `{train.py: train.py}`, or with more"),
           key("transfer", shape::map(transfer_keys()), "how checkpoints travel"),
           key("pod", shape::map(pod_keys()),
               "a pod in Kubernetes' own words (`metadata`, `spec`), into which all this is put")});
  return keys;
}

}  // namespace detail

HYPERTUNE_YAML_INLINE Shape executor_shape() {
  return shape::either({shape::word({"local", "ssh", "slurm", "kubernetes"}),
                        shape::variants({{"local", detail::local_keys()},
                                         {"ssh", detail::ssh_keys()},
                                         {"slurm", detail::slurm_keys()},
                                         {"kubernetes", detail::kubernetes_keys()}},
                                        false)});
}

}  // namespace hypertune::inline v0
