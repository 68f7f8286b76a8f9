// The keys of `executor:`.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/slurm_options.hpp>
#include <hypertune/config/ssh_spec.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/hosts/host_options.hpp>

#include <string>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

inline OptionInfo executor_type(std::vector<std::string> words, const char* text) {
  return key("type", shape::word(std::move(words)), text, "local");
}
inline Shape pool_size_shape() { return shape::text("^[0-9]+(\\.\\.[0-9]+)?$"); }

const Keys& host_keys() {
  static const Keys keys = joined(
      Keys{required(key("name", shape::text(), "as ssh knows it"))}, options_of(HostOptions{}),
      Keys{key("labels", shape::either({shape::text(), shape::list(shape::text()), shape::entries(shape::scalar())}),
               "words about it: `[big]`, `{zone: a}`")});
  return keys;
}
const Keys& host_source_keys() {
  static const Keys keys{key("file", shape::text(), "a host a line"),
                         key("command", shape::texts(), "a program that prints such lines"),
                         key("interval", shape::duration(at_least(0.1)), "how often the list is read", "10s")};
  return keys;
}
const Keys& file_mount_keys() {
  static const Keys keys{
      required(key("from", shape::text(), "a file or folder of this machine")),
      key("exclude", shape::texts(), "files that are not copied, as in a .gitignore: `[\"*.tmp\", .git]`")};
  return keys;
}
inline Shape file_mounts_shape() {
  return shape::entries(shape::either({shape::text(), shape::map(file_mount_keys())}));
}

const Keys& shared_keys() {
  static const Keys keys{key("folder", shape::text(), "where checkpoints go, as this machine sees it"),
                         key("on_hosts", shape::text(), "as the hosts see it")};
  return keys;
}
const Keys& transfer_keys() {
  static const Keys keys =
      joined(options_of(CheckpointTransfer{}),
             Keys{key("port", shape::whole(between(1, 65535)), "with `direct`: where hosts listen"),
                  key("shared", shape::either({shape::text(), shape::map(shared_keys())}),
                      "a disk that hosts and this machine have: nothing is copied", "false")});
  return keys;
}

inline Keys capacity_keys(const char* cpus, const char* custom) {
  Keys keys;
  describe_capacity(HostOptions{}, OptionLister{keys}, cpus, custom);
  return keys;
}

const Keys& local_keys() {
  static const Keys keys =
      joined(Keys{executor_type({"local", "ssh", "slurm", "kubernetes"},
                                "this machine, others over ssh, jobs of Slurm, or pods"),
                  key("isolation", shape::word({"process", "thread"}),
                      "whether each trial is served by a process of its own or by a thread", "process")},
             capacity_keys("that trials may take of it", "what `resources.custom` is taken from"));
  return keys;
}

const Keys& ssh_keys() {
  static const Keys keys = [] {
    Shape source = shape::map(host_source_keys());
    source.one_of = {{"file"}, {"command"}};
    const Shape host = shape::either({shape::text(), shape::map(host_keys())});
    Keys own = options_of(SshSpec{});
    insert_before(
        own, "connect_timeout",
        key("options", shape::either({shape::text(), shape::list(shape::text()), shape::entries(shape::text())}),
            "as of `ssh -o`: `{ServerAliveInterval: 5}`"));
    insert_before(
        own, "workdir",
        key("file_mounts", file_mounts_shape(), "files that the hosts need: `{train.py: train.py}`, or with more"));
    return joined(Keys{executor_type({"ssh"}, "other machines over ssh"),
                       key("hosts", shape::either({shape::word({"slurm"}), shape::filled(shape::list(host)), source}),
                           "where trials run")},
                  own, Keys{key("transfer", shape::map(transfer_keys()), "how checkpoints are copied")},
                  capacity_keys("that trials may take of each host", "the same"));
  }();
  return keys;
}

const Keys& slurm_keys() {
  static const Keys keys = [] {
    Keys all =
        joined(Keys{executor_type({"slurm"}, "workers that are jobs of Slurm, or steps in an allocation"),
                    key("pool", pool_size_shape(), "how many workers, as the queue of trials asks for them", "1..8")},
               options_of(SlurmOptions{}),
               Keys{key("transfer", shape::map(transfer_keys()),
                        "how checkpoints are copied. `direct` needs `network` here")});
    for (auto& one : all)  // also accepts Slurm's notation
      if (one.name == "time") one.shape = shape::text("^([0-9]+-)?[0-9]+(:[0-9]+){0,2}$|^([0-9.]+ *(d|h|m|s|ms)? *)+$");
    return all;
  }();
  return keys;
}

const Keys& pod_keys() {
  static const Keys keys{key("apiVersion", shape::text(), "v1"), key("kind", shape::text(), "Pod"),
                         key("metadata", shape::any(), "labels and annotations of each pod"),
                         key("spec", shape::any(), "the pod's specification")};
  return keys;
}
const Keys& kubernetes_keys() {
  static const Keys keys = joined(
      Keys{executor_type({"kubernetes"}, "workers that are pods of Kubernetes"),
           key("pool", pool_size_shape(), "how many workers, as the queue of trials asks for them", "1..8")},
      options_of(KubernetesOptions{}),
      Keys{key("node_selector", shape::entries(shape::scalar()), "labels that nodes must have"),
           key("file_mounts", file_mounts_shape(), "files that trials need: `{train.py: train.py}`, or with more"),
           key("transfer", shape::map(transfer_keys()), "how checkpoints are copied"),
           key("pod", shape::map(pod_keys()),
               "a pod manifest (`metadata`, `spec`) into which the other keys are merged")});
  return keys;
}

}  // namespace detail

Shape executor_shape() {
  return shape::either({shape::word({"local", "ssh", "slurm", "kubernetes"}),
                        shape::variants({{"local", detail::local_keys()},
                                         {"ssh", detail::ssh_keys()},
                                         {"slurm", detail::slurm_keys()},
                                         {"kubernetes", detail::kubernetes_keys()}},
                                        false)});
}

}  // namespace hypertune::inline v0
