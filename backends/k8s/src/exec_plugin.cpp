// Part of hypertune::k8s.
#include "exec_plugin.hpp"

#include "http.hpp"
#include "status.hpp"

#include <hypertune/process/subprocess.hpp>

#include <boost/json.hpp>

#include <cstdio>
#include <ctime>

namespace hypertune::inline v0::k8s::detail {

namespace json = boost::json;

namespace {

/// The JSON that tells the program about the call and the cluster.
std::string exec_info(const Access& access) {
  const ExecPlugin& plugin = *access.plugin;
  json::object spec{{"interactive", false}};
  if (plugin.provide_cluster_info) {
    json::object cluster{{"server", access.server}};
    if (!access.certificate_authority.empty())
      cluster["certificate-authority-data"] = base64_encoded(access.certificate_authority);
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (!access.proxy.empty()) cluster["proxy-url"] = access.proxy;
    json::error_code error;
    if (auto config = json::parse(plugin.cluster_config, error); !plugin.cluster_config.empty() && !error)
      cluster["config"] = std::move(config);
    spec["cluster"] = std::move(cluster);
  }
  return json::serialize(json::object{{"apiVersion", "client.authentication.k8s.io/" + plugin.api_version},
                                      {"kind", "ExecCredential"},
                                      {"spec", std::move(spec)}});
}

std::string last_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  return one_line(text.substr(text.rfind('\n') + 1), 300);
}

}  // namespace

std::optional<double> parse_time(std::string_view text) {
  const std::string copy(text.substr(0, 64));
  std::tm time{};
  int used = 0;
  if (std::sscanf(copy.c_str(), "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &time.tm_year, &time.tm_mon,
                  &time.tm_mday,  // NOLINT
                  &time.tm_hour, &time.tm_min, &time.tm_sec, &used) != 6 ||
      used == 0)
    return std::nullopt;
  time.tm_year -= 1900;
  time.tm_mon -= 1;
  std::string_view rest = std::string_view(copy).substr(static_cast<std::size_t>(used));
  double fraction = 0;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    double unit = 0.1;
    for (; !rest.empty() && rest.front() >= '0' && rest.front() <= '9'; rest.remove_prefix(1), unit /= 10)
      fraction += unit * (rest.front() - '0');
  }
  double offset = 0;
  if (rest != "Z" && rest != "z") {
    int hours = 0, minutes = 0;
    const std::string zone(rest);
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') ||
        std::sscanf(zone.c_str() + 1, "%2d:%2d", &hours, &minutes) != 2)  // NOLINT
      return std::nullopt;
    offset = (zone[0] == '-' ? -60.0 : 60.0) * (hours * 60 + minutes);
  }
  return static_cast<double>(::timegm(&time)) + fraction - offset;
}

PluginCredential read_plugin_output(std::string_view text, const std::string& api_version) {
  const auto value = parse_json(text);
  const auto* object = value ? value->if_object() : nullptr;
  if (object == nullptr) fail(Errc::protocol, "what it printed is no JSON object");
  if (text_in(*object, "kind") != "ExecCredential") fail(Errc::protocol, "what it printed is no ExecCredential");
  if (const auto version = text_in(*object, "apiVersion"); version != "client.authentication.k8s.io/" + api_version)
    fail(Errc::protocol, "it speaks '{}', but the kubeconfig says client.authentication.k8s.io/{}: make them the same",
         one_line(version, 80), api_version);
  const auto* status = object_in(*object, "status");
  if (status == nullptr) fail(Errc::protocol, "what it printed has no 'status'");
  PluginCredential credential{.token = std::string(text_in(*status, "token")),
                              .client_certificate = std::string(text_in(*status, "clientCertificateData")),
                              .client_key = std::string(text_in(*status, "clientKeyData"))};
  if (credential.client_certificate.empty() != credential.client_key.empty())
    fail(Errc::protocol, "it gave a client certificate and no key, or the other way round");
  if (credential.token.empty() && credential.client_certificate.empty())
    fail(Errc::protocol, "it gave neither a token nor a client certificate");
  if (const auto expires = text_in(*status, "expirationTimestamp"); !expires.empty()) {
    credential.expires = parse_time(expires);
    if (!credential.expires) fail(Errc::protocol, "its expirationTimestamp is no date: '{}'", one_line(expires, 40));
  }
  return credential;
}

PluginCredential run_plugin(const Access& access, std::stop_token stop, double deadline) {
  const ExecPlugin& plugin = *access.plugin;
  const std::string& program = plugin.command.front();
  if (plugin.needs_terminal)
    fail(Errc::usage,
         "the plugin '{}' of {} wants a terminal (interactiveMode: Always), which there is none: log in by hand first, "
         "or use another one",
         program, access.origin);
  process::RunOptions options;
  options.deadline = deadline;
  options.max_output = std::size_t{1} << 20U;
  options.stop = std::move(stop);
  for (const auto& [name, value] : plugin.environment) options.spawn.environment[name] = value;
  options.spawn.environment["KUBERNETES_EXEC_INFO"] = exec_info(access);
  process::Collected ran;
  try {
    ran = process::collect(plugin.command, std::move(options));
  } catch (const process::NotStarted& e) {
    const std::string hint =
        plugin.install_hint.empty() ? "install it, or put it in PATH" : one_line(plugin.install_hint, 600);
    fail(Errc::usage, "the plugin '{}' of {} cannot be run: {}. {}", program, access.origin, e.why(), hint);
  }
  const std::string said = last_line(ran.err);
  if (ran.stopped) fail(Errc::io, "stopped while the plugin '{}' was running", program);
  if (ran.late)
    fail(Errc::io, "the plugin '{}' of {} took longer than {:g} s{}{}", program, access.origin, deadline,
         said.empty() ? "" : ": ", said);
  if (ran.code() != 0)
    fail(Errc::usage, "the plugin '{}' of {} ended with exit code {}{}{}", program, access.origin, ran.code(),
         said.empty() ? "" : ": ", said);
  try {
    return read_plugin_output(ran.out, plugin.api_version);
  } catch (const Error& e) { fail(Errc::protocol, "the plugin '{}' of {}: {}", program, access.origin, e.what()); }
}

}  // namespace hypertune::inline v0::k8s::detail
