// The keys of a CLUSTER.yaml.
#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/detail/keys.hpp>

#include <string>

namespace hypertune::inline v0::cluster {
namespace detail {

using hypertune::Keys;

static Shape words() { return shape::or_empty(shape::texts()); }
static Shape word() { return shape::or_empty(shape::text()); }
static Shape count() { return shape::or_empty(shape::whole(at_least(0))); }
static Shape price() { return shape::number(at_least(0)); }
static Shape price_or_empty() { return shape::or_empty(price()); }
static Shape amount() { return shape::number(between(0, 1e15)); }

const Keys& price_keys() {
  static const Keys keys{key("on_demand", price(), "for each hour"),
                         key("spot", price(), "for each hour of a spot machine")};
  return keys;
}

static Shape resources_shape() {
  Shape resources = shape::map(
      {key("CPU", amount(), "cores"), key("GPU", amount(), "GPUs"), key("memory", shape::size(), "bytes, or 32GiB")});
  resources.parts = {amount()};
  return shape::or_empty(std::move(resources));
}
static Shape spot_shape() {
  return shape::or_empty(shape::word({"true", "false", "only"}, {"prefer", "never", "True", "False"}));
}
static Shape price_shape() { return shape::or_empty(shape::either({price(), shape::map(price_keys())})); }

const Keys& node_type_keys() {
  static const Keys keys = [] {
    Keys all{key("resources", resources_shape(), "`{CPU: 8, GPU: 1, memory: 32GiB, licence: 1}`: what trials may use"),
             key("min_workers", count(), "of this type", "0"),
             key("max_workers", count(), "of this type, beside the head"),
             key("idle_timeout_s", price_or_empty(), "seconds after which such a machine without work ends"),
             key("priority", shape::or_empty(shape::whole()),
                 "of types that suit the waiting trials equally well, the highest is launched first", "0"),
             key("node_config", shape::or_empty(shape::entries(shape::any())),
                 "what the provider is given: for `aws`, what run-instances takes; for `kubernetes`, a pod"),
             key("price", price_shape(), "for each hour, or of each kind"),
             key("spot", spot_shape(),
                 "true (`prefer`): spot, and on-demand where there is none; `only`: spot or nothing; false (`never`)",
                 "false"),
             key("worker_setup_commands", words(), "in place of the cluster's")};
    ignore_keys(all, {"initialization_commands", "docker", "labels"});
    return all;
  }();
  return keys;
}

const Keys& auth_keys() {
  static const Keys keys = [] {
    Keys all{key("ssh_user", word(), "the account on the machines"),
             key("ssh_private_key", word(), "a key here; its `.pub` is put on machines that `aws` makes"),
             key("ssh_public_key", word(), "another public key"), key("ssh_proxy_command", word(), "as of ssh"),
             key("ssh_config", word(), "in place of `~/.ssh/config`")};
    ignore_keys(all, {"ssh_proxy_use_node_id"});
    return all;
  }();
  return keys;
}

Keys provider_keys(std::string_view type) {
  Keys keys{
      required(key("type", shape::word({std::string(type)}), "hosts that exist, EC2, pods, or a program of your own")),
      key("use_internal_ips", shape::boolean(), "reach machines by their private addresses", "false"),
      key("cache_stopped_nodes", shape::boolean(), "stop machines instead of terminating them, and start them again",
          "false"),
      key("timeout", shape::duration(), "that one call of the provider may take", "5m"),
      key("start_timeout", shape::duration(), "until a machine must be reachable", "10m")};
  if (type != "kubernetes")
    keys.push_back(key("host_keys", shape::word({"strict", "accept-new"}),
                       "whether the first host key of a machine is trusted; not of `kubernetes`"));
  ignore_keys(keys, {"disable_node_updaters", "disable_launch_config_check", "foreground_node_launch", "module",
                     "coordinator_address", "use_internal_ip"});
  if (type == "local") {
    keys.push_back(key("head_ip", word(), "`local`: where programs run"));
    keys.push_back(key("worker_ips", words(), "`local`: the other hosts"));
  } else if (type == "command") {
    keys.push_back(required(key("command", shape::texts(), "`command`: the program")));
    keys.push_back(key("settings", shape::any(), "`command`: handed to the program as it stands", "{}"));
  } else if (type == "aws") {
    keys.push_back(key("region", word(), "`aws`"));
    keys.push_back(key("availability_zone", word(), "`aws`: tried in this order"));
    keys.push_back(key("endpoint_url", word(), "`aws`"));
    keys.push_back(key("profile", word(), "`aws`"));
    ignore_keys(keys, {"security_group", "aws_credentials", "cloudwatch", "boto_config"});
  } else if (type == "kubernetes") {
    keys.push_back(key("namespace", word(), "`kubernetes`: where pods are made"));
    keys.push_back(key("kubeconfig", word(), "`kubernetes`"));
    keys.push_back(key("context", word(), "`kubernetes`: the context of the kubeconfig"));
    keys.push_back(key("service_account", word(),
                       "`kubernetes`: of the head's pod, used by submitted sweeps to reach the other pods"));
    ignore_keys(keys, {"services", "autoscaler_service_account", "autoscaler_role", "autoscaler_role_binding"});
  }
  return keys;
}

const Keys& cluster_keys() {
  static const Keys keys = [] {
    const Shape provider = shape::variants({{"local", provider_keys("local")},
                                            {"aws", provider_keys("aws")},
                                            {"kubernetes", provider_keys("kubernetes")},
                                            {"command", provider_keys("command")}},
                                           true);
    const Shape settings = shape::or_empty(shape::entries(shape::any()));
    Keys all{
        required(key("cluster_name", shape::text("^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$"),
                     "up to 63 letters, digits, `-`, `_`, `.`: in the tags of all machines")),
        required(key("provider", provider, "who makes the machines")),
        key("auth", shape::or_empty(shape::map(auth_keys())), "how they are reached"),
        key("min_workers", count(), "workers that `up` makes, and that are kept"),
        key("max_workers", count(), "never more than that"),
        key("initial_workers", count(), "as `min_workers`, by Ray's old name"),
        key("available_node_types", shape::filled(shape::entries(shape::map(node_type_keys()))), "kinds of machines"),
        key("head_node_type", word(), "which of them the head is"),
        key("head_node", settings, "Ray's old form: what the provider is given for the head", "{}"),
        key("worker_nodes", settings, "Ray's old form: what the provider is given for workers", "{}"),
        key("upscaling_speed", price_or_empty(),
            "how many machines may be launched at once, as a fraction of those that exist (5 at least)", "1"),
        key("idle_timeout_minutes", price_or_empty(), "after which a machine without work ends", "5"),
        key("initialization_commands", words(), "run on every machine before files are copied, once for each content"),
        key("setup_commands", words(), "run on every machine, once for each content"),
        key("head_setup_commands", words(), "run on the head, once for each content"),
        key("worker_setup_commands", words(), "run on workers, once for each content"),
        key("file_mounts", shape::or_empty(shape::entries(shape::text())),
            "`{place on the machines: file or folder here}`"),
        key("rsync_exclude", words(), "patterns of what is not copied: `[\"**/.git\", \"*.o\"]`"),
        key("rsync_filter", words(), "names of files with such patterns: `[.gitignore]`"),
        key("currency", word(), "of the prices", "USD")};
    ignore_keys(all, {"head_start_ray_commands", "worker_start_ray_commands", "docker", "cluster_synced_files",
                      "file_mounts_sync_continuously", "metadata", "no_restart", "autoscaling_mode",
                      "target_utilization_fraction", "worker_default_node_type"});
    return all;
  }();
  return keys;
}

}  // namespace detail

Shape cluster_shape() { return shape::map(detail::cluster_keys()); }

}  // namespace hypertune::inline v0::cluster
