// Who and where: kubeconfigs and their merging, service accounts, proxies, and what is refused.
#include "k8s/support/access_files.hpp"
#include "support/test.hpp"

#include <fstream>
#include <map>
#include <string>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::test;

TEST_CASE("a context names server, CA, credentials and namespace") {
  const AccessFiles files;
  files.write("keys/ca.crt", "CA");
  const auto path = files.write("config", R"(
current-context: work
contexts:
- {name: work, context: {cluster: c, user: u, namespace: lab}}
- {name: other, context: {cluster: c, user: v}}
clusters:
- name: c
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: keys/ca.crt
    tls-server-name: kubernetes
users:
- {name: u, user: {token: abc, as: jane, as-groups: [a, b], as-user-extra: {scopes: [x]}}}
- {name: v, user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}}
)");
  const Access access = load_access(files.options({path}));
  CHECK(access.server == "https://10.0.0.1:6443");
  CHECK(access.certificate_authority == "CA");
  CHECK(access.certificate_authority_file == files.path("keys/ca.crt"));
  CHECK(access.tls_server_name == "kubernetes");
  CHECK(access.token == "abc");
  CHECK(access.name_space == "lab");
  CHECK(access.origin == "context 'work' of '" + path.string() + "'");
  using Headers = std::vector<std::pair<std::string, std::string>>;
  CHECK(access.headers == Headers{{"Impersonate-User", "jane"},
                                  {"Impersonate-Group", "a"},
                                  {"Impersonate-Group", "b"},
                                  {"Impersonate-Extra-scopes", "x"}});

  auto options = files.options({path});
  options.context = "other";
  options.name_space = "mine";
  const Access other = load_access(options);
  CHECK(other.client_certificate == "CERT");
  CHECK(other.client_key == "KEY");
  CHECK(other.token.empty());
  CHECK(other.name_space == "mine");
}

TEST_CASE("of several files the first that has a name says all of it") {
  const AccessFiles files;
  files.write("a/ca.crt", "OF A");
  files.write("b/ca.crt", "OF B");
  const auto a = files.write("a/config", R"(
clusters: [{name: c, cluster: {server: "https://a:1", certificate-authority: ca.crt}}]
users: [{name: red, user: {token: first}}]
)");
  const auto b = files.write("b/config", R"(
current-context: x
clusters: [{name: c, cluster: {server: "https://b:1", tls-server-name: b}}, {name: d, cluster: {server: "https://d:1", certificate-authority: ca.crt}}]
users: [{name: red, user: {token: second, as: jane}}]
contexts: [{name: x, context: {cluster: c, user: red}}, {name: y, context: {cluster: d, user: red, namespace: n}}]
)");
  const auto c = files.write("c/config", "current-context: y\ncontexts: [{name: x, context: {cluster: d}}]\n");
  SECTION("named one by one") {
    const Access access = load_access(files.options({a, b, c}));
    CHECK(access.server == "https://a:1");
    CHECK(access.certificate_authority == "OF A");
    CHECK(access.tls_server_name.empty());
    CHECK(access.token == "first");
    CHECK(access.headers.empty());
    CHECK(access.name_space == "default");
  }
  SECTION("by KUBECONFIG, where a file that is missing does not count") {
    auto options = files.options({});
    files.variables["KUBECONFIG"] = a.string() + "::/none/at/all:" + b.string() + ":" + c.string();
    CHECK(load_access(options).token == "first");
    options.context = "y";
    const Access access = load_access(options);
    CHECK(access.server == "https://d:1");
    CHECK(access.certificate_authority == "OF B");
    CHECK(access.name_space == "n");
  }
  SECTION("by KUBECONFIG, whose files are named where none is there") {
    files.variables["KUBECONFIG"] = "/none/at/all:/nor/this";
    std::string said;
    try {
      load_access(files.options({}));
    } catch (const Error& error) { said = error.what(); }
    CHECK_THAT(said, ContainsSubstring("KUBECONFIG is '/none/at/all:/nor/this', of which no file is there"));
  }
  SECTION("or the one in the home folder") {
    files.variables["HOME"] = files.path("home").string();
    files.write("home/.kube/config",
                "current-context: x\nclusters: [{name: c, cluster: {server: 'https://h:1'}}]\n"
                "contexts: [{name: x, context: {cluster: c}}]\n");
    CHECK(load_access(files.options({})).server == "https://h:1");
  }
}

TEST_CASE("a pod's service account is used where no file says otherwise") {
  const AccessFiles files;
  files.write("account/token", "t1\n");
  files.write("account/ca.crt", "CA");
  files.write("account/namespace", "jobs");
  files.variables["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  files.variables["KUBERNETES_SERVICE_PORT"] = "443";
  auto options = files.options({});
  options.service_account = files.path("account");
  const Access access = load_access(options);
  CHECK(access.server == "https://[fd00::1]:443");
  CHECK(access.token_file == files.path("account/token"));
  CHECK(access.certificate_authority == "CA");
  CHECK(access.name_space == "jobs");
  CHECK(access.origin == "this pod's service account");

  options.service_account = files.path("none");
  CHECK_THAT(problem([&] { load_access(options); }), ContainsSubstring("automountServiceAccountToken"));
  files.variables.erase("KUBERNETES_SERVICE_HOST");
  CHECK_THAT(problem([&] { load_access(options); }), ContainsSubstring("name a kubeconfig"));
}

TEST_CASE("what a kubeconfig may not say is told with its place and how to mend it") {
  const AccessFiles files;
  const auto said = [&](const std::string& cluster, const std::string& user, const std::string& more = "") {
    const auto path = files.write("config",
                                  "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                  "clusters: [{name: c, cluster: " +
                                      cluster +
                                      "}]\n"
                                      "users: [{name: u, user: " +
                                      user + "}]\n" + more);
    return problem([&] { load_access(files.options({path})); });
  };
  const std::string server = "{server: 'https://a:1'}";
  CHECK(said(server, "{token: x}") == "none");
  CHECK_THAT(said("{server: 'https://a:1', insecure-skip-tls-verify: true}", "{}"),
             ContainsSubstring("config:3: ") && ContainsSubstring("certificate-authority-data of the cluster 'c'"));
  CHECK(said("{server: 'https://a:1', insecure-skip-tls-verify: false}", "{}") == "none");
  CHECK_THAT(said("{server: 'http://a:1'}", "{}"), ContainsSubstring("without TLS"));
  CHECK(said("{server: 'http://127.0.0.1:8001'}", "{}") == "none");
  CHECK_THAT(said("{server: 'a:1'}", "{}"), ContainsSubstring("must be a URL"));
  CHECK_THAT(said("{}", "{}"), ContainsSubstring("no 'server'"));
  CHECK_THAT(said("{server: 'https://a:1', certificate-authority: none.crt}", "{}"),
             ContainsSubstring("none.crt' of certificate-authority cannot be read"));
  CHECK_THAT(said("{server: 'https://a:1', certificate-authority-data: '%%'}", "{}"),
             ContainsSubstring("'certificate-authority-data' is not base64"));
  CHECK_THAT(said("{server: 'https://a:1', proxy-url: 'socks5://p:1'}", "{}"), ContainsSubstring("http://"));
  CHECK_THAT(said(server, "{username: u, password: p}"), ContainsSubstring("by a password"));
  CHECK_THAT(said(server, "{auth-provider: {name: gcp}}"), ContainsSubstring("gke-gcloud-auth-plugin"));
  CHECK_THAT(said(server, "{client-certificate-data: Q0VSVA==}"), ContainsSubstring("add client-key"));
  CHECK_THAT(said(server, "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}"),
             ContainsSubstring("config:4: ") && ContainsSubstring("v1beta1"));
  CHECK_THAT(said(server, "{exec: {apiVersion: client.authentication.k8s.io/v1}}"), ContainsSubstring("no 'command'"));
  CHECK_THAT(said(server, "{as: \"a\\r\\nb\"}"), ContainsSubstring("control character"));
  const auto twice = files.write("config", "clusters: [{name: c, cluster: {}}, {name: c, cluster: {}}]\n");
  CHECK_THAT(problem([&] { load_access(files.options({twice})); }), ContainsSubstring("two clusters 'c'"));
  CHECK_THAT(said(server, "{}", "current-context: y\n"), !ContainsSubstring("none"));
}

TEST_CASE("contexts that are not there are told with those that are") {
  const AccessFiles files;
  const auto path =
      files.write("config", "contexts: [{name: x, context: {cluster: c, user: u}}, {name: y, context: {}}]\n");
  auto options = files.options({path});
  CHECK_THAT(problem([&] { load_access(options); }),
             ContainsSubstring("no current-context is set") && ContainsSubstring("x, y"));
  options.context = "z";
  CHECK_THAT(problem([&] { load_access(options); }), ContainsSubstring("there is no context 'z': there are x, y"));
  options.context = "x";
  CHECK_THAT(problem([&] { load_access(options); }),
             ContainsSubstring("config:1: the context 'x' names the cluster 'c'"));
  options.kubeconfig = {files.path("none")};
  CHECK_THAT(problem([&] { load_access(options); }), ContainsSubstring("none"));
}

TEST_CASE("a proxy comes from the kubeconfig, else from the environment") {
  const AccessFiles files;
  const auto config = [&](const std::string& more) {
    return files.options({files.write("config",
                                      "current-context: x\ncontexts: [{name: x, context: {cluster: c}}]\n"
                                      "clusters: [{name: c, cluster: {server: 'https://api.lab:6443'" +
                                          more + "}}]\n")});
  };
  CHECK(load_access(config("")).proxy.empty());
  files.variables["HTTPS_PROXY"] = "proxy:3128";
  CHECK(load_access(config("")).proxy == "http://proxy:3128");
  CHECK(load_access(config(", proxy-url: 'http://own:1'")).proxy == "http://own:1");
  files.variables["NO_PROXY"] = ".lab";
  CHECK(load_access(config("")).proxy.empty());
  files.variables.erase("NO_PROXY");
  files.variables["HTTPS_PROXY"] = "socks5://secret:word@proxy:1";
  const std::string told = problem([&] { load_access(config("")); });
  CHECK_THAT(told, ContainsSubstring("HTTPS_PROXY"));
  CHECK_THAT(told, !ContainsSubstring("word"));
}
