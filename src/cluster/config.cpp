// Parsing CLUSTER.yaml.
#include <hypertune/cluster/config.hpp>
#include <hypertune/cluster/detail/keys.hpp>
#include <hypertune/cluster/detail/pod_config.hpp>
#include <hypertune/config/shape_check.hpp>
#include <hypertune/config/yaml_json.hpp>
#include <hypertune/detail/text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <variant>

namespace hypertune::inline v0::cluster {
namespace detail {

using Words = std::vector<std::string_view>;

/// Whether a key that hypertune ignores has a value: Ray's examples contain many empty keys.
static bool says_something(const Node& node) {
  if (node.is_null()) return false;
  if (node.is_list()) return node.size() > 0;
  if (node.is_map()) {
    const auto entries = node.entries();
    return std::any_of(entries.begin(), entries.end(), [](const auto& entry) { return says_something(entry.second); });
  }
  return !node.as<std::string>().empty() && !(node.data().plain && node.as<std::string>() == "False") &&
         !(node.data().plain && node.as<std::string>() == "false");
}

std::filesystem::path local_path(const std::string& text, const std::filesystem::path& folder) {
  std::filesystem::path path = text;
  if (text == "~" || text.starts_with("~/")) {
    const char* home = std::getenv("HOME");
    path = std::filesystem::path(home != nullptr ? home : "/") / (text.size() > 2 ? text.substr(2) : "");
  } else if (path.is_relative()) {
    path = folder / path;
  }
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored);
  return ignored ? path : absolute.lexically_normal();
}

/// A list of commands; a single string is a list of one.
static std::vector<std::string> commands_of(const Node& map, std::string_view key) {
  const auto found = map.find(key);
  if (!found || found->is_null()) return {};
  if (!found->is_list() && !found->is_scalar())
    found->fail("{} must be a list of shell commands, not {}", found->title(), found->kind_text());
  return found->texts();
}

static int count_of(const Node& node) {
  const int count = node.as<int>();
  if (count > 100'000) node.fail("{} is {}: more machines than anybody has", node.title(), count);
  return count;
}

static const Words& provider_types() {
  static const Words all{"local",  "command", "aws",      "kubernetes",     "gcp",     "azure",    "vsphere",
                         "aliyun", "spark",   "external", "fake_multinode", "kuberay", "readonly", "gen2"};
  return all;
}

// Parses one file. Collects the keys that only Ray uses, for one warning.
class ClusterReader {
 public:
  ClusterReader(const Node& root, std::filesystem::path folder, const ClusterOverrides& overrides)
      : root_(root), folder_(std::move(folder)), overrides_(overrides) {}

  ClusterConfig read() {
    if (root_.is_null()) root_.fail("this file is empty: it needs at least cluster_name and provider");
    check_values(root_, cluster_keys());
    config_.name = overrides_.name.empty() ? root_["cluster_name"].as<std::string>() : overrides_.name;
    check_name();
    read_provider(root_["provider"]);
    if (const auto auth = root_.find("auth"); auth && !auth->is_null()) read_auth(*auth);
    config_.initialization_commands = commands_of(root_, "initialization_commands");
    config_.setup_commands = commands_of(root_, "setup_commands");
    config_.head_setup_commands = commands_of(root_, "head_setup_commands");
    config_.worker_setup_commands = commands_of(root_, "worker_setup_commands");
    config_.rsync_exclude = commands_of(root_, "rsync_exclude");
    config_.rsync_filter = commands_of(root_, "rsync_filter");
    if (const auto mounts = root_.find("file_mounts"); mounts && !mounts->is_null()) read_mounts(*mounts);
    if (const auto x = given("upscaling_speed")) config_.upscaling_speed = x->as<double>();
    if (const auto x = given("idle_timeout_minutes")) config_.idle_timeout = x->as<double>() * 60;
    if (const auto x = given("currency")) config_.currency = x->as<std::string>();
    if (root_.has("available_node_types"))
      read_types(root_["available_node_types"]);
    else
      read_old_types();
    read_counts();
    ignore_those_of(root_, cluster_keys());
    if (!ignored_.empty()) {
      std::string list;
      for (const auto& key : ignored_) list += (list.empty() ? "" : ", ") + key;
      config_.warnings.push_back(fmt::format(
          "{}: these keys are known from Ray but mean nothing to hypertune and are ignored: {}", root_.file(), list));
    }
    return std::move(config_);
  }

 private:
  std::optional<Node> given(std::string_view key) const {
    auto found = root_.find(key);
    if (found && found->is_null()) return std::nullopt;
    return found;
  }
  void ignore_those_of(const Node& map, const hypertune::Keys& keys) {
    for (const auto& key : keys) {
      const auto found = key.ignored ? map.find(key.name) : std::nullopt;
      if (found && says_something(*found)) ignored_.push_back(found->path());
    }
  }

  // The name is used in folder names, tags and host names.
  void check_name() const {
    const auto& name = config_.name;
    const bool sound = !name.empty() && name.size() <= 63 && name.front() != '-' && name.front() != '.' &&
                       std::all_of(name.begin(), name.end(), [](unsigned char c) {
                         return (c < 0x80 && std::isalnum(c) != 0) || c == '-' || c == '_' || c == '.';
                       });
    if (sound) return;
    if (!overrides_.name.empty())
      fail(Errc::usage, "--cluster-name '{}': use up to 63 letters, digits, '-', '_' and '.'", name);
    root_["cluster_name"].fail("'cluster_name' must be up to 63 letters, digits, '-', '_' and '.', not '{}'", name);
  }

  void read_provider(const Node& node) {
    auto& provider = config_.provider;
    provider.line = node.line();
    provider.type = node["type"].as<std::string>();
    const auto& known = provider_types();
    if (std::find(known.begin(), known.end(), provider.type) == known.end())
      node["type"].fail("there is no provider '{}'{}", provider.type,
                        hypertune::detail::suggestion(provider.type, Words{"local", "command", "aws", "kubernetes"}));
    const bool pods = provider.type == "kubernetes";
    const bool own = provider.type == "local" || provider.type == "command" || provider.type == "aws" || pods;
    if (own) {
      const auto keys = provider_keys(provider.type);
      check_values(node, keys);
      ignore_those_of(node, keys);
    }
    const auto text = [&](const char* key) {
      const auto found = node.find(key);
      return found && found->is_scalar() ? found->as<std::string>() : std::string();
    };
    provider.region = text("region");
    provider.endpoint_url = text("endpoint_url");
    provider.profile = text("profile");
    if (const auto zones = node.find("availability_zone"); zones && zones->is_scalar()) {
      std::string_view rest = zones->data().text;
      while (!rest.empty()) {
        std::string zone(hypertune::detail::take_until(rest, ','));
        std::erase(zone, ' ');
        if (!zone.empty()) provider.availability_zones.push_back(std::move(zone));
      }
    }
    provider.use_internal_ips = node.get("use_internal_ips", false);
    provider.cache_stopped_nodes = node.get("cache_stopped_nodes", false);
    if (const auto x = node.find("timeout")) provider.timeout = own ? x->duration() : provider.timeout;
    if (const auto x = node.find("start_timeout"))
      provider.start_timeout = own ? x->duration() : provider.start_timeout;
    provider.trust_new_host_keys = provider.type != "local";
    if (const auto x = node.find("host_keys"); x && own)
      provider.trust_new_host_keys = x->as<std::string>() == "accept-new";
    if (pods) {
      read_pods_provider(node, folder_, provider);
      check_pods_name(overrides_.name.empty() ? root_["cluster_name"] : root_, config_.name);
    }
    if (provider.type == "local") {
      provider.head_ip = text("head_ip");
      if (const auto ips = node.find("worker_ips"); ips && !ips->is_null()) provider.worker_ips = ips->texts();
      if (provider.head_ip.empty() && provider.worker_ips.empty())
        node.fail("the local provider needs hosts: add head_ip: HOST, and worker_ips: [HOST, …]");
      if (provider.head_ip.empty()) {  // any host can be the head
        provider.head_ip = provider.worker_ips.front();
        provider.worker_ips.erase(provider.worker_ips.begin());
      }
      std::set<std::string> seen{provider.head_ip};
      for (const auto& host : provider.worker_ips)
        if (!seen.insert(host).second && host != "...")
          node["worker_ips"].fail("the host '{}' is named twice: remove one of the two", host);
      for (const auto& host : seen)
        if (host.empty() || host.front() == '-' || host.find_first_of(" \t\n'\"$;") != std::string::npos)
          node.fail("'{}' is no host name", host);
    }
    if (provider.type == "command") {
      const auto command = node["command"];
      provider.command = command.texts();
      if (provider.command.empty() || provider.command.front().empty())
        command.fail("{} needs a program: command: [./provider, ARG, …]", command.title());
      auto& program = provider.command.front();
      if (program.find('/') != std::string::npos) program = local_path(program, folder_).string();
      if (const auto settings = node.find("settings")) provider.settings = json_of(*settings);
    }
  }

  void read_auth(const Node& node) {
    check_values(node, auth_keys());
    if (config_.provider.type != "kubernetes")
      ignore_those_of(node, auth_keys());
    else
      for (const auto& [key, value] : node.entries())  // pods are reached through the API server
        if (says_something(value)) ignored_.push_back(value.path());
    const auto text = [&](const char* key) {
      const auto found = node.find(key);
      return found && !found->is_null() ? found->as<std::string>() : std::string();
    };
    auto& auth = config_.auth;
    auth.ssh_user = text("ssh_user");
    if (auth.ssh_user.starts_with('-') || auth.ssh_user.find_first_of(" @\t\n'\"$;") != std::string::npos)
      node["ssh_user"].fail("'auth.ssh_user' cannot be '{}'", auth.ssh_user);
    auth.ssh_proxy_command = text("ssh_proxy_command");
    const auto path = [&](const char* key) {
      const auto value = text(key);
      return value.empty() ? std::filesystem::path() : local_path(value, folder_);
    };
    auth.ssh_private_key = path("ssh_private_key");
    auth.ssh_public_key = path("ssh_public_key");
    auth.ssh_config = path("ssh_config");
  }

  void read_mounts(const Node& node) {
    for (const auto& [remote, local] : node.entries()) {
      if (remote.find('\n') != std::string::npos || remote.empty())
        local.fail("{} is no path on the machines", local.title());
      config_.file_mounts.push_back({remote, local_path(local.as<std::string>(), folder_)});
    }
  }

  static double amount(const Node& node) {
    const double x = node.as<double>();
    if (!(x >= 0) || !std::isfinite(x) || x > 1e15) node.fail("{} must be 0 or more, not {}", node.title(), x);
    return x;
  }
  void read_resources(const Node& node, NodeType& type) {
    if (node.is_null() || (node.is_map() && node.entries().empty())) return;
    type.resources.cpus = 0;
    for (const auto& [key, value] : node.entries()) {
      if (key == "CPU" || key == "cpus" || key == "cpu")
        type.resources.cpus = amount(value);
      else if (key == "GPU" || key == "gpus" || key == "gpu")
        type.resources.gpus = amount(value);
      else if (key == "memory")
        type.resources.memory = value.bytes();
      else if (key == "object_store_memory")
        ignored_.push_back(value.path());
      else
        type.resources.custom[key] = amount(value);
    }
    type.resources_known = true;
  }
  // In Ray, a spot machine is requested inside the configuration for AWS.
  static bool asks_for_spot(const Node& node) {
    const auto market = node.is_map() ? node.find("InstanceMarketOptions") : std::nullopt;
    const auto kind = market && market->is_map() ? market->find("MarketType") : std::nullopt;
    return kind && kind->is_scalar() && kind->as<std::string>() == "spot";
  }
  void read_spot(const Node& node, NodeType& type) {
    if (const auto spot = node.find("spot"); spot && !spot->is_null()) {
      const auto word = spot->as<std::string>();
      if (word == "prefer")
        type.spot = Spot::prefer;
      else if (word == "only")
        type.spot = Spot::only;
      else if (word == "never")
        type.spot = Spot::never;
      else if (spot->data().plain && (word == "true" || word == "false" || word == "True" || word == "False"))
        type.spot = spot->as<bool>() ? Spot::prefer : Spot::never;
      else
        spot->fail("{} must be true (spot first, then on-demand), only, or false, not '{}'{}", spot->title(), word,
                   hypertune::detail::suggestion(word, Words{"prefer", "only", "never"}));
    }
    if (const auto price = node.find("price"); price && !price->is_null()) {
      if (price->is_map()) {
        check_values(*price, price_keys());
        if (const auto x = price->find("on_demand")) type.price = x->as<double>();
        if (const auto x = price->find("spot")) type.spot_price = x->as<double>();
      } else {
        hypertune::detail::expect_shape(*price, price_keys().front().shape);
        type.price = price->as<double>();
      }
    }
  }

  // A form between Ray's old and new one: head_node and worker_nodes are defaults for the node_config of each type.
  std::string merged_config(const char* defaults, const std::optional<Node>& own) const {
    const auto base = given(defaults);
    const bool have_own = own && own->is_map();
    if (!base || !base->is_map()) return have_own ? json_of(*own) : "{}";
    hypertune::detail::JsonWriter out;
    out.begin_object();
    for (const auto& [key, value] : base->entries())
      if (!have_own || !own->has(key)) hypertune::detail::put_yaml(out.key(key), value);
    if (have_own)
      for (const auto& [key, value] : own->entries()) hypertune::detail::put_yaml(out.key(key), value);
    return out.end_object().take();
  }

  void read_types(const Node& node) {
    if (node.entries().empty()) node.fail("{} is empty: it needs a type for the head", node.title());
    std::string head;
    if (const auto x = given("head_node_type")) head = x->as<std::string>();
    for (const auto& [name, entry] : node.entries()) {
      check_values(entry, node_type_keys());
      NodeType type;
      type.name = name;
      type.line = entry.line();
      type.max_workers = -1;
      if (const auto x = entry.find("resources")) read_resources(*x, type);
      if (const auto x = entry.find("min_workers"); x && !x->is_null()) type.min_workers = count_of(*x);
      if (const auto x = entry.find("max_workers"); x && !x->is_null()) type.max_workers = count_of(*x);
      if (const auto x = entry.find("idle_timeout_s"); x && !x->is_null()) type.idle_timeout = x->as<double>();
      if (const auto x = entry.find("priority"); x && !x->is_null()) type.priority = x->as<int>();
      if (type.max_workers >= 0 && type.min_workers > type.max_workers)
        entry["min_workers"].fail("'min_workers' of '{}' is {}, more than its max_workers, {}", name, type.min_workers,
                                  type.max_workers);
      if (const auto x = entry.find("node_config"); x && !x->is_null()) {
        if (!x->is_map()) x->fail("{} must be a map for the provider, not {}", x->title(), x->kind_text());
        if (asks_for_spot(*x)) type.spot = Spot::prefer;
      }
      type.node_config =
          merged_config(head.empty() || name == head ? "head_node" : "worker_nodes", entry.find("node_config"));
      if (const auto x = entry.find("node_config")) type.config_line = x->line();
      if (config_.provider.type == "kubernetes") read_pod_type(entry, type);
      read_spot(entry, type);
      type.own_setup_commands = entry.has("worker_setup_commands");
      type.setup_commands = commands_of(entry, "worker_setup_commands");
      ignore_those_of(entry, node_type_keys());
      config_.types.push_back(std::move(type));
    }
    if (const auto x = given("head_node_type")) {
      const NodeType* found = config_.find_type(head);
      if (found == nullptr) {
        std::vector<std::string> names;
        for (const auto& type : config_.types) names.push_back(type.name);
        x->fail("'head_node_type' is '{}', which is none of available_node_types{}", head,
                hypertune::detail::suggestion(head, names));
      }
      config_.head_type = static_cast<std::size_t>(found - config_.types.data());
    } else if (config_.types.size() > 1) {
      root_.fail("'head_node_type' is missing: name one of available_node_types");
    }
  }

  // Ray's old form: head_node and worker_nodes are the whole configuration.
  void read_old_types() {
    if (config_.provider.type == "kubernetes")
      root_.fail("pods need 'available_node_types': {{head: {{node_config: {{spec: {{containers: […]}}}}}}}}");
    const auto read = [&](const char* key, const char* name) {
      NodeType type;
      type.name = name;
      type.max_workers = -1;
      if (const auto node = root_.find(key); node && !node->is_null()) {
        type.line = node->line();
        type.node_config = json_of(*node);
        if (asks_for_spot(*node)) type.spot = Spot::prefer;
        // hypertune's own keys, next to those of the provider
        if (node->is_map()) {
          if (const auto x = node->find("resources"); x && x->is_map()) read_resources(*x, type);
          read_spot(*node, type);
        }
      }
      config_.types.push_back(std::move(type));
    };
    read("head_node", "head");
    read("worker_nodes", "worker");
    config_.types[0].max_workers = 0;
    if (const auto x = given("head_node_type"))
      x->fail("'head_node_type' names one of available_node_types, and there are none: add them");
  }

  void read_counts() {
    const bool local = config_.provider.type == "local";
    const int hosts = static_cast<int>(config_.provider.worker_ips.size());
    int least = 0, most = 0;
    for (const auto& type : config_.types) {
      least += type.min_workers;
      most += std::max(type.max_workers, 0);
    }
    const auto min_given = given("min_workers"), max_given = given("max_workers");
    config_.min_workers = min_given ? count_of(*min_given) : local ? hosts : 0;
    if (const auto initial = given("initial_workers")) {
      if (count_of(*initial) > config_.min_workers) config_.min_workers = count_of(*initial);
    }
    config_.max_workers = max_given ? count_of(*max_given)
                          : local   ? hosts
                                    : std::max({2, most, least, config_.min_workers});
    if (overrides_.max_workers) config_.max_workers = *overrides_.max_workers;
    if (overrides_.min_workers) config_.min_workers = *overrides_.min_workers;
    if (config_.min_workers < 0 || config_.max_workers < 0)
      fail(Errc::usage, "--min-workers and --max-workers must be 0 or more");
    if (overrides_.min_workers && overrides_.max_workers && config_.min_workers > config_.max_workers)
      fail(Errc::usage, "--min-workers {} is more than --max-workers {}", config_.min_workers, config_.max_workers);
    if (overrides_.min_workers && config_.max_workers < config_.min_workers) config_.max_workers = config_.min_workers;
    if (local) config_.max_workers = std::min(config_.max_workers, hosts);
    config_.min_workers = std::min(config_.min_workers, config_.max_workers);  // the maximum takes precedence
    for (auto& type : config_.types) {
      // As in Ray: workers of the head's type only where the file says how many. The local provider's hosts are given.
      if (type.max_workers < 0)
        type.max_workers = !local && &type == &config_.head() ? type.min_workers : config_.max_workers;
      if (overrides_.max_workers) type.min_workers = std::min(type.min_workers, *overrides_.max_workers);
    }
    int possible = 0;
    for (const auto& type : config_.types) possible += std::min(type.max_workers, config_.max_workers);
    if (local || possible >= config_.min_workers) return;
    const auto why = fmt::format("workers are wanted ({}), but the node types allow {}: give 'max_workers' to one{}",
                                 config_.min_workers, possible,
                                 config_.types.size() == 1 ? ", as that of the head's type is 0 without it" : "");
    if (overrides_.min_workers || !min_given) fail(Errc::usage, "{}", why);
    min_given->fail("{}", why);
  }

  const Node& root_;
  std::filesystem::path folder_;
  const ClusterOverrides& overrides_;
  ClusterConfig config_;
  std::vector<std::string> ignored_;
};

}  // namespace detail

std::string json_of(const Node& node) {
  hypertune::detail::JsonWriter out;
  return hypertune::detail::put_yaml(out, node).take();
}

ClusterConfig cluster_from_yaml(const Node& root, const std::filesystem::path& folder,
                                const ClusterOverrides& overrides) {
  return detail::ClusterReader(root, folder, overrides).read();
}

ClusterConfig load_cluster(const std::filesystem::path& file, const ClusterOverrides& overrides) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(file, ignored);
  const Node root = load_yaml_file(file);
  auto config = cluster_from_yaml(root, absolute.parent_path(), overrides);
  config.file = absolute;
  return config;
}

}  // namespace hypertune::inline v0::cluster
