// The keys of `executor:`.
#pragma once

#include <hypertune/config/executor_keys.hpp>
#include <hypertune/config/kubernetes_options.hpp>
#include <hypertune/config/options.hpp>
#include <hypertune/config/slurm_options.hpp>
#include <hypertune/config/ssh_executor_options.hpp>
#include <hypertune/hosts/checkpoint_transfer.hpp>
#include <hypertune/hosts/host_options.hpp>

#include <string>
#include <utility>

namespace hypertune::inline v0 {

namespace detail {

inline OptionInfo executor_type(std::vector<std::string> words, const char* text) {
  return key("type", shape::word(std::move(words)), text, "local");
}

const Keys& host_keys() {
  static const Keys keys = joined(Keys{required(key("name", shape::text(), "the name by which ssh knows the host"))},
                                  options_of(HostOptions{}));
  return keys;
}
const Keys& host_source_keys() {
  static const Keys keys{key("file", shape::text(), "a file with one host in each line"),
                         key("command", shape::texts(), "a program that prints such a file"),
                         key("interval", shape::duration(at_least(0.1)), "how often the list is read", "10s")};
  return keys;
}
const Keys& file_mount_keys() {
  static const Keys keys{
      required(key("from", shape::text(), "a file or folder of this machine")),
      key("exclude", shape::texts(), "files that are not copied, as in a .gitignore: `[\"*.tmp\", .git]`")};
  return keys;
}
const Keys& shared_keys() {
  static const Keys keys{key("folder", shape::text(), "where checkpoints go, as this machine sees it"),
                         key("on_hosts", shape::text(), "the same folder, as the hosts see it")};
  return keys;
}
const Keys& transfer_keys() {
  static const Keys keys = options_of(CheckpointTransfer{});
  return keys;
}

inline Keys capacity_keys(const char* custom) {
  Keys keys;
  describe_capacity(HostOptions{}, OptionLister{keys}, custom);
  return keys;
}

const Keys& local_keys() {
  static const Keys keys =
      joined(Keys{executor_type({"local", "ssh", "slurm", "kubernetes"},
                                "this machine, others over ssh, jobs of Slurm, or pods"),
                  key("isolation", shape::word({"process", "thread"}),
                      "whether each trial is served by a process of its own or by a thread", "process")},
             capacity_keys("what `resources.custom` is taken from"));
  return keys;
}

const Keys& ssh_keys() {
  static const Keys keys =
      joined(Keys{executor_type({"ssh"}, "other machines over ssh")}, options_of(SshExecutorOptions{}),
             capacity_keys("what `resources.custom` is taken from, on each host"));
  return keys;
}

const Keys& slurm_keys() {
  static const Keys keys =
      joined(Keys{executor_type({"slurm"}, "workers that are jobs of Slurm, or steps in an allocation")},
             options_of(SlurmOptions{}));
  return keys;
}

const Keys& pod_keys() {
  static const Keys keys{key("apiVersion", shape::text(), "v1"), key("kind", shape::text(), "Pod"),
                         key("metadata", shape::any(), "labels and annotations of each pod"),
                         key("spec", shape::any(), "the pod's specification")};
  return keys;
}
const Keys& kubernetes_keys() {
  static const Keys keys = joined(Keys{executor_type({"kubernetes"}, "workers that are pods of Kubernetes")},
                                  options_of(KubernetesOptions{}));
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
