// Access: which Kubernetes API server to use, and the credentials for it.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hypertune::inline v0::k8s {

/// Meant for designated initialisers.
struct AccessOptions {
  /// Kubeconfig files, merged as kubectl does: for each setting the first file that has it wins. Empty: the files of
  /// KUBECONFIG, else ~/.kube/config if it exists, else the service account of the pod in which this program runs.
  std::vector<std::filesystem::path> kubeconfig = {};
  std::string context = {};     ///< empty: the files' current-context
  std::string name_space = {};  ///< empty: the context's, or the service account's, or "default"
  /// Where a pod's service account is mounted: a folder with the files `token`, `ca.crt` and `namespace`.
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  /// Reads an environment variable; by default one of this process.
  std::function<std::optional<std::string>(const std::string& name)> variable = {};
};

/// A program that prints credentials (client.authentication.k8s.io), as a kubeconfig names it.
struct ExecPlugin {
  std::string api_version;           ///< of client.authentication.k8s.io: "v1" or "v1beta1"
  std::vector<std::string> command;  ///< with its arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to this process's environment
  std::string install_hint = {};                                      ///< tells the user how to install the program
  bool provide_cluster_info = false;                                  ///< whether the program gets the cluster's data
  bool needs_terminal = false;                                        ///< interactiveMode: Always
  std::string cluster_config = {};  ///< the cluster's extension as JSON for the program; may be empty
  bool operator==(const ExecPlugin&) const = default;
};

/// Everything needed to call an API server. A value. It holds secrets, and nothing prints it.
struct Access {
  std::string server;                      ///< "https:// "https://10.0.0.1:6443", optionally with a path
  std::string certificate_authority = {};  ///< certificates in PEM, the only trusted ones; empty: the system's
  std::filesystem::path certificate_authority_file = {};  ///< the file they come from, if it can change
  std::string tls_server_name = {};                       ///< the certificate's name; empty: the server's host
  std::string client_certificate = {}, client_key = {};   ///< PEM
  std::filesystem::path client_certificate_file = {}, client_key_file = {};  ///< the same, read again when it changes
  std::string token = {};                                                    ///< a bearer token
  std::filesystem::path token_file = {};  ///< a file with the token, read again at least every minute
  std::optional<ExecPlugin> plugin = {};  ///< gives a token or a client certificate; run again when that expires
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< Impersonate-…, added to each request
  std::string proxy = {};  ///< "http:// "http://proxy:3128", reached by CONNECT. Empty: none
  std::string name_space = "default";
  std::string origin = {};  ///< "context 'x' of '/home/me/.kube/config'", for messages
};

/// Reads files and the environment; makes no connection. An Error of kind `input` names the file, the line, the mistake
/// and how to correct it. An Error of kind `usage`: no API server is configured, or the context does not exist.
///
/// Refused: insecure-skip-tls-verify, passwords, auth-provider; the messages name what to use instead. http:// is
/// accepted for loopback addresses only.
Access load_access(const AccessOptions& options = {});

}  // namespace hypertune::inline v0::k8s
