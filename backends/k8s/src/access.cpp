// Part of hypertune::k8s.
#include "http.hpp"
#include "kubeconfig.hpp"
#include "process_variable.hpp"

#include <hypertune/detail/text.hpp>
#include <hypertune/k8s/access.hpp>

#include <string_view>

namespace hypertune::inline v0::k8s {

namespace {

using Variable = std::function<std::optional<std::string>(const std::string&)>;

std::string trimmed(std::string text) {
  constexpr std::string_view blank = " \t\r\n";
  text.erase(text.find_last_not_of(blank) + 1);
  text.erase(0, std::min(text.find_first_not_of(blank), text.size()));
  return text;
}

/// The files that KUBECONFIG names, or the default one, without those that do not exist.
std::vector<std::filesystem::path> usual_files(const Variable& variable) {
  std::vector<std::filesystem::path> named, files;
  if (const auto list = variable("KUBECONFIG")) {
    std::string_view rest = *list;
    while (!rest.empty())
      if (const auto file = hypertune::detail::take_until(rest, ':'); !file.empty()) named.emplace_back(file);
  } else if (const auto home = variable("HOME")) {
    named.push_back(std::filesystem::path(*home) / ".kube" / "config");
  }
  std::error_code error;
  for (auto& file : named)
    if (std::filesystem::exists(file, error)) files.push_back(std::move(file));
  return files;
}

Access of_service_account(const AccessOptions& options, const Variable& variable) {
  const auto host = variable("KUBERNETES_SERVICE_HOST"), port = variable("KUBERNETES_SERVICE_PORT");
  if (!host || !port) {
    if (const auto list = variable("KUBECONFIG"))
      fail(Errc::usage,
           "nothing says which Kubernetes to use: KUBECONFIG is '{}', of which no file is there, and this is no pod; "
           "correct KUBECONFIG, or name a kubeconfig",
           *list);
    fail(Errc::usage,
         "nothing says which Kubernetes to use: KUBECONFIG is not set, there is no ~/.kube/config, and this is no pod; "
         "name a kubeconfig");
  }
  Access access;
  access.server = host->find(':') == std::string::npos ? fmt::format("https://{}:{}", *host, *port)
                                                       : fmt::format("https://[{}]:{}", *host, *port);
  access.origin = "this pod's service account";
  const auto& folder = options.service_account;
  if (!detail::parse_url(access.server))
    fail(Errc::input, "KUBERNETES_SERVICE_HOST and _PORT are no address: '{}'", access.server);
  std::error_code error;
  if (!std::filesystem::exists(folder / "token", error))
    fail(
        Errc::input,
        "this pod has no service account token at '{}': remove automountServiceAccountToken: false from the pod or its "
        "service account",
        folder.string());
  access.token_file = folder / "token";
  access.certificate_authority_file = folder / "ca.crt";
  access.certificate_authority =
      detail::read_named_file(access.certificate_authority_file, access.origin, "the cluster's CA");
  if (std::filesystem::exists(folder / "namespace", error))
    if (auto name = trimmed(detail::read_named_file(folder / "namespace", access.origin, "its namespace"));
        !name.empty())
      access.name_space = std::move(name);
  return access;
}

/// Sets the proxy from the environment if the kubeconfig has none, by the rules of Go's programs.
void take_proxy(const Variable& variable, Access& access) {
  if (!access.proxy.empty()) return;
  const auto either = [&](const char* upper, const char* lower) {
    auto value = variable(upper);
    return value ? value : variable(lower);
  };
  const auto url = detail::parse_url(access.server);
  auto proxy = url->scheme == "https" ? either("HTTPS_PROXY", "https_proxy") : std::nullopt;
  if (!proxy || detail::bypasses_proxy(url->host, url->port, either("NO_PROXY", "no_proxy").value_or(""))) return;
  if (proxy->find("://") == std::string::npos) proxy->insert(0, "http://");
  const auto parsed = detail::parse_url(*proxy);
  if (!parsed || parsed->scheme != "http")
    fail(Errc::input, "HTTPS_PROXY is no URL that begins with http://: other proxies are not supported");
  access.proxy = *std::move(proxy);
}

}  // namespace

Access load_access(const AccessOptions& options) {
  const Variable variable = options.variable ? options.variable : Variable(variable_of_process);
  detail::Kubeconfig config;
  for (const auto& file : options.kubeconfig.empty() ? usual_files(variable) : options.kubeconfig)
    config.add(load_yaml_file(file));
  Access access = config.empty() ? of_service_account(options, variable) : config.access(options.context);
  if (config.empty() && !options.context.empty())
    fail(Errc::usage, "there is no kubeconfig, and so no context '{}': name the file", options.context);
  if (!options.name_space.empty()) access.name_space = options.name_space;
  take_proxy(variable, access);
  return access;
}

}  // namespace hypertune::inline v0::k8s
