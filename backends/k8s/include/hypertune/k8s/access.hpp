// Access: which API server of Kubernetes is asked, and how it knows who asks.
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
  /// Files of contexts, merged as kubectl does: the first file that says something wins. Empty: those of KUBECONFIG,
  /// else ~/.kube/config where it is there, else the service account of the pod in which this program runs.
  std::vector<std::filesystem::path> kubeconfig = {};
  std::string context = {};     ///< empty: the files' current-context
  std::string name_space = {};  ///< empty: the context's, or the service account's, or "default"
  /// What a pod's service account is mounted at: files `token`, `ca.crt` and `namespace`.
  std::filesystem::path service_account = "/var/run/secrets/kubernetes.io/serviceaccount";
  /// Reads a variable of the environment; by default this process's.
  std::function<std::optional<std::string>(const std::string& name)> variable = {};
};

/// A program that prints credentials (client.authentication.k8s.io), as a kubeconfig names it.
struct ExecPlugin {
  std::string api_version;           ///< of client.authentication.k8s.io: "v1" or "v1beta1"
  std::vector<std::string> command;  ///< with its arguments
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to this process's
  std::string install_hint = {};                                      ///< how to get the program, for people
  bool provide_cluster_info = false;                                  ///< it is told of the cluster
  bool needs_terminal = false;                                        ///< interactiveMode: Always
  std::string cluster_config = {};  ///< JSON for it, of the cluster's extension; may be empty
  bool operator==(const ExecPlugin&) const = default;
};

/// All that is needed to ask an API server. A value; it holds secrets, and nothing prints it.
struct Access {
  std::string server;                      ///< "https://10.0.0.1:6443", a path may follow
  std::string certificate_authority = {};  ///< certificates in PEM, which alone are trusted; empty: the system's
  std::filesystem::path certificate_authority_file = {};  ///< where they are from, if they can change
  std::string tls_server_name = {};                       ///< the certificate's name; empty: the server's host
  std::string client_certificate = {}, client_key = {};   ///< in PEM
  std::filesystem::path client_certificate_file = {}, client_key_file = {};  ///< the same, read again when it changes
  std::string token = {};                                                    ///< a bearer token
  std::filesystem::path token_file = {};  ///< the same, read again at least every minute
  std::optional<ExecPlugin> plugin = {};  ///< asked for a token or a client certificate, and again when that expires
  std::vector<std::pair<std::string, std::string>> headers = {};  ///< Impersonate-…, added to each request
  std::string proxy = {};  ///< "http://proxy:3128"; a CONNECT goes there. Empty: none
  std::string name_space = "default";
  std::string origin = {};  ///< "context 'x' of '/home/me/.kube/config'", for messages
};

/// Reads files and the environment; connects to nobody. An Error of kind `input` names the file, the line, what is
/// wrong and how to mend it; one of kind `usage` says that nothing names an API server, or that a context is not there.
///
/// What is refused: insecure-skip-tls-verify, passwords, auth-provider; messages name what to use instead. http:// is
/// for loopback addresses only.
Access load_access(const AccessOptions& options = {});

}  // namespace hypertune::inline v0::k8s
