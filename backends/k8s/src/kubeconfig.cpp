// Part of hypertune::k8s.
#include "kubeconfig.hpp"

#include "http.hpp"

#include <hypertune/detail/percent.hpp>

#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

namespace hypertune::inline v0::k8s::detail {

namespace {

/// A text that may be absent, null or empty, which kubectl does not distinguish.
std::string text_of(const Node& map, std::string_view key) {
  const auto found = map.find(key);
  return found && !found->is_null() ? found->as<std::string>() : std::string();
}

bool flag_of(const Node& map, std::string_view key) {
  const auto found = map.find(key);
  return found && !found->is_null() && found->as<bool>();
}

/// Relative paths are relative to the file that contains them.
std::filesystem::path resolved(const Node& said, const std::string& path) {
  return std::filesystem::path(said.file()).parent_path() / path;
}

std::string decoded(const Node& map, std::string_view key) {
  const auto text = text_of(map, key);
  if (text.empty()) return {};
  auto bytes = base64_decoded(text);
  if (!bytes) map[key].fail("'{}' is not base64: give what `base64 -w0 FILE` prints", key);
  return *std::move(bytes);
}

/// The value of `key`-data, or the contents of the file that `key` names.
void take_pem(const Node& map, const std::string& key, std::string& text, std::filesystem::path& file) {
  text = decoded(map, key + "-data");
  if (const auto path = text_of(map, key); text.empty() && !path.empty()) {
    file = resolved(map, path);
    text = read_named_file(file, map[key].where(), key);
  }
}

bool without_value(const Node& map, std::string_view key) {
  const auto found = map.find(key);
  return !found || found->is_null();
}

/// Converts the YAML of a cluster's extension to JSON, for a plugin.
void append_json(const Node& node, std::string& to);

void append_text(std::string_view text, std::string& to) {
  to += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (to += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      to += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      to += c;
  }
  to += '"';
}

void append_json(const Node& node, std::string& to) {
  if (node.is_null()) {
    to += "null";
  } else if (node.is_scalar()) {
    const Value value = node.scalar();
    if (const auto* text = std::get_if<std::string>(&value))
      append_text(*text, to);
    else
      to += node.as<std::string>();  // a number or boolean, as it was written
  } else if (node.is_list()) {
    const char* separator = "[";
    for (const auto& item : node.items()) append_json(item, to += std::exchange(separator, ","));
    to += *separator == '[' ? "[]" : "]";
  } else {
    const char* separator = "{";
    for (const auto& [key, value] : node.entries()) {
      append_text(key, to += std::exchange(separator, ","));
      append_json(value, to += ':');
    }
    to += *separator == '{' ? "{}" : "}";
  }
}

ExecPlugin read_plugin(const Node& exec) {
  ExecPlugin plugin;
  const std::string version = exec["apiVersion"].as<std::string>();
  constexpr std::string_view group = "client.authentication.k8s.io/";
  if (version != "client.authentication.k8s.io/v1" && version != "client.authentication.k8s.io/v1beta1")
    exec["apiVersion"].fail("the plugin speaks '{}', which is not known: a newer one speaks {}v1 or {}v1beta1", version,
                            group, group);
  plugin.api_version = version.substr(group.size());
  std::string program = text_of(exec, "command");
  if (program.empty()) exec.fail("{} has no 'command': add the program that prints the credentials", exec.title());
  if (program.find('/') != std::string::npos) program = resolved(exec, program).string();
  plugin.command.push_back(std::move(program));
  if (!without_value(exec, "args"))
    for (const auto& argument : exec["args"].items()) plugin.command.push_back(argument.as<std::string>());
  if (!without_value(exec, "env"))
    for (const auto& variable : exec["env"].items())
      plugin.environment.emplace_back(variable["name"].as<std::string>(), text_of(variable, "value"));
  plugin.install_hint = text_of(exec, "installHint");
  plugin.provide_cluster_info = flag_of(exec, "provideClusterInfo");
  const std::string mode = text_of(exec, "interactiveMode");
  if (!mode.empty() && mode != "Never" && mode != "IfAvailable" && mode != "Always")
    exec["interactiveMode"].fail("interactiveMode is Never, IfAvailable or Always, not '{}'", mode);
  plugin.needs_terminal = mode == "Always";
  return plugin;
}

void refuse_old_login(const Node& user) {
  if (!text_of(user, "username").empty() || !text_of(user, "password").empty())
    user.fail(
        "{} logs in by a password, which no API server takes any more: use a token, a client certificate or an exec "
        "plugin",
        user.title());
  if (!without_value(user, "auth-provider")) {
    const Node provider = user["auth-provider"];
    const std::string name = text_of(provider, "name");
    const char* instead = name == "gcp"     ? "gke-gcloud-auth-plugin"
                          : name == "azure" ? "kubelogin convert-kubeconfig"
                          : name == "oidc"  ? "kubectl oidc-login (kubelogin)"
                                            : "the exec plugin of your provider";
    provider.fail("auth-provider '{}' was removed from Kubernetes: use {}, which puts an 'exec' entry here", name,
                  instead);
  }
}

void take_impersonation(const Node& user, Access& access) {
  if (const auto as = text_of(user, "as"); !as.empty()) access.headers.emplace_back("Impersonate-User", as);
  if (const auto uid = text_of(user, "as-uid"); !uid.empty()) access.headers.emplace_back("Impersonate-Uid", uid);
  if (!without_value(user, "as-groups"))
    for (const auto& group : user["as-groups"].items())
      access.headers.emplace_back("Impersonate-Group", group.as<std::string>());
  if (!without_value(user, "as-user-extra"))
    for (const auto& [key, values] : user["as-user-extra"].entries())
      for (const auto& value : values.texts())
        access.headers.emplace_back("Impersonate-Extra-" + hypertune::detail::percent_encoded(key), value);
  for (const auto& [name, value] : access.headers)
    for (const char c : value)
      if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
        user.fail("what {} impersonates has a control character, which no header may have: remove it", user.title());
}

}  // namespace

std::string read_named_file(const std::filesystem::path& path, const std::string& where, const std::string& what,
                            std::size_t max_size) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  if (!file || std::filesystem::is_directory(path, error))
    fail(Errc::input, "{}: the file '{}' of {} cannot be read: is it there, and readable for you?", where,
         path.string(), what);
  std::string text(max_size + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > max_size)
    fail(Errc::input, "{}: the file '{}' of {} has more than {} bytes: is it the right one?", where, path.string(),
         what, max_size);
  return text;
}

void Kubeconfig::add_entries(const Node& root, const char* list, const char* kind, Entries& into) {
  const auto found = root.find(list);
  if (!found || found->is_null()) return;
  std::map<std::string, std::string> here;
  for (const auto& entry : found->items()) {
    const std::string name = entry["name"].as<std::string>();
    if (const auto [before, fresh] = here.emplace(name, entry.where()); !fresh)
      entry.fail("there are two {}s '{}' in this file, the other one at {}: remove or rename one", kind, name,
                 before->second);
    const auto value = entry.find(kind);
    if (!value || !value->is_map())
      entry.fail("the {} '{}' has no '{}': add it, or remove the entry", kind, name, kind);
    into.emplace(name, *value);
  }
}

void Kubeconfig::add(const Node& root) {
  files_.push_back(root.file());
  if (root.is_null()) return;
  add_entries(root, "clusters", "cluster", clusters_);
  add_entries(root, "users", "user", users_);
  add_entries(root, "contexts", "context", contexts_);
  if (current_.empty()) current_ = text_of(root, "current-context");
}

std::string Kubeconfig::listed() const {
  std::string all;
  for (const auto& file : files_) all += (all.empty() ? "'" : ", '") + file + "'";
  return all;
}

void Kubeconfig::take_cluster(const std::string& name, const Node& cluster, Access& access) {
  access.server = text_of(cluster, "server");
  if (access.server.empty()) cluster.fail("the cluster '{}' has no 'server': add the API server's URL", name);
  if (flag_of(cluster, "insecure-skip-tls-verify"))
    cluster["insecure-skip-tls-verify"].fail(
        "insecure-skip-tls-verify is not supported, as anybody could take the server's place: remove it, and put the "
        "cluster's CA certificate, in base64, in certificate-authority-data of the cluster '{}'",
        name);
  take_pem(cluster, "certificate-authority", access.certificate_authority, access.certificate_authority_file);
  access.tls_server_name = text_of(cluster, "tls-server-name");
  access.proxy = text_of(cluster, "proxy-url");
  const auto url = parse_url(access.server);
  if (!url || (url->scheme != "https" && url->scheme != "http") || !url->user.empty())
    cluster["server"].fail("the server of the cluster '{}' must be a URL like https://10.0.0.1:6443", name);
  if (url->scheme == "http" && !is_loopback(url->host))
    cluster["server"].fail(
        "the server of the cluster '{}' is without TLS, which is for loopback addresses only: use https://", name);
  if (const auto proxy = parse_url(access.proxy); !access.proxy.empty() && (!proxy || proxy->scheme != "http"))
    cluster["proxy-url"].fail("proxy-url of the cluster '{}' must begin with http://: other proxies are not supported",
                              name);
}

void Kubeconfig::take_user(const std::string& name, const Node& user, Access& access) {
  refuse_old_login(user);
  take_pem(user, "client-certificate", access.client_certificate, access.client_certificate_file);
  take_pem(user, "client-key", access.client_key, access.client_key_file);
  if (access.client_certificate.empty() != access.client_key.empty())
    user.fail("the user '{}' has a {}: add {} or {}-data", name,
              access.client_key.empty() ? "client certificate without its key" : "client key without a certificate",
              access.client_key.empty() ? "client-key" : "client-certificate",
              access.client_key.empty() ? "client-key" : "client-certificate");
  access.token = text_of(user, "token");
  if (const auto file = text_of(user, "tokenFile"); !file.empty()) access.token_file = resolved(user, file);
  if (!without_value(user, "exec") && access.token.empty() && access.token_file.empty() &&
      access.client_certificate.empty())
    access.plugin = read_plugin(user["exec"]);
  take_impersonation(user, access);
}

Access Kubeconfig::access(const std::string& context) const {
  const std::string& name = context.empty() ? current_ : context;
  const auto names = [](const Entries& entries) {
    std::string all;
    for (const auto& [entry, node] : entries) all += (all.empty() ? "" : ", ") + entry;
    return all.empty() ? std::string("none") : all;
  };
  if (name.empty())
    fail(Errc::usage, "{}: no current-context is set: name one of its contexts ({})", listed(), names(contexts_));
  const auto found = contexts_.find(name);
  if (found == contexts_.end())
    fail(Errc::usage, "{}: there is no context '{}': there are {}", listed(), name, names(contexts_));
  const Node& node = found->second;
  Access access;
  access.origin = fmt::format("context '{}' of '{}'", name, node.file());
  const auto cluster_name = text_of(node, "cluster"), user_name = text_of(node, "user");
  const auto cluster = clusters_.find(cluster_name);
  if (cluster == clusters_.end())
    node.fail("the context '{}' names the cluster '{}', which is not there: there are {}", name, cluster_name,
              names(clusters_));
  take_cluster(cluster_name, cluster->second, access);
  if (!user_name.empty()) {
    const auto user = users_.find(user_name);
    if (user == users_.end())
      node.fail("the context '{}' names the user '{}', who is not there: there are {}", name, user_name, names(users_));
    take_user(user_name, user->second, access);
    if (access.plugin && access.plugin->provide_cluster_info && !without_value(cluster->second, "extensions"))
      for (const auto& extension : cluster->second["extensions"].items())
        if (text_of(extension, "name") == "client.authentication.k8s.io/exec")
          append_json(extension["extension"], access.plugin->cluster_config);
  }
  if (auto name_space = text_of(node, "namespace"); !name_space.empty()) access.name_space = std::move(name_space);
  return access;
}

}  // namespace hypertune::inline v0::k8s::detail
