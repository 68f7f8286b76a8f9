// Credentials that change: tokens in files, programs that print them.
#include "credential_source.hpp"
#include "exec_plugin.hpp"
#include "k8s/support/access_files.hpp"
#include "kubeconfig.hpp"
#include "support/test.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <filesystem>
#include <string>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::k8s::detail;
using namespace hypertune::test;

namespace {

/// A program of a folder that prints an ExecCredential, or whatever else its script does.
ExecPlugin plugin_of(const AccessFiles& files, const std::string& script) {
  const auto path = files.write("plugin", "#!/bin/sh\n" + script);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  return {.api_version = "v1", .command = {path.string()}};
}

std::string credential(const std::string& status) {
  return R"(echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": )" + status +
         "}'\n";
}

std::string authorization(const Credential& credential) {
  for (const auto& [name, value] : credential.headers)
    if (name == "Authorization") return value;
  return "none";
}

}  // namespace

TEST_CASE("a token's file is read again, and only a change is one") {
  const AccessFiles files;
  Access access{.server = "http://127.0.0.1:1", .token = "static", .token_file = files.write("token", "one\n")};
  CredentialSource source(access, "127.0.0.1", false);
  const auto first = source.fetch(false, {});
  CHECK(authorization(*first) == "Bearer one");
  CHECK(source.fetch(false, {}) == first);
  files.write("token", "two");
  const auto second = source.fetch(false, {});
  CHECK(authorization(*second) == "Bearer two");
  CHECK(second->generation > first->generation);
  files.write("token", "");
  CHECK_THAT(problem([&] { source.fetch(false, {}); }), ContainsSubstring("is empty"));
  files.write("token", "th\nree");
  const std::string told = problem([&] { source.fetch(false, {}); });
  CHECK_THAT(told, ContainsSubstring("a line break"));
  CHECK_THAT(told, !ContainsSubstring("ree"));
  CHECK(source.check_at() < 60 + hypertune::detail::steady_seconds());
}

TEST_CASE("a plugin is asked once, again when what it gave has expired or was refused") {
  const AccessFiles files;
  const auto count = files.path("count");
  const auto runs = [&](const std::string& expires) {
    Access access{.server = "http://127.0.0.1:1"};
    access.plugin =
        plugin_of(files, "echo x >> " + count.string() + "\nn=$(grep -c x " + count.string() + ")\n" +
                             R"(echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",)"
                             R"("status": {"token": "t'$n'")" +
                             expires + "}}'\n");
    return CredentialSource(access, "127.0.0.1", false);
  };
  SECTION("without an end") {
    auto source = runs("");
    CHECK(authorization(*source.fetch(false, {})) == "Bearer t1");
    CHECK(authorization(*source.fetch(false, {})) == "Bearer t1");
    CHECK(authorization(*source.fetch(true, {})) == "Bearer t2");
    CHECK(authorization(*source.fetch(false, {})) == "Bearer t2");
  }
  SECTION("with one in the future") {
    auto source = runs(R"(,"expirationTimestamp": "2999-01-01T00:00:00Z")");
    CHECK(authorization(*source.fetch(false, {})) == "Bearer t1");
    CHECK(authorization(*source.fetch(false, {})) == "Bearer t1");
  }
  SECTION("with one that is over: again, but not for each call") {
    auto source = runs(R"(,"expirationTimestamp": "2001-01-01T00:00:00Z")");
    const double before = hypertune::detail::steady_seconds();
    CHECK(authorization(*source.fetch(false, {})) == "Bearer t1");
    CHECK(source.check_at() > before + 0.4);
    CHECK(source.check_at() < before + 30);
  }
}

TEST_CASE("a plugin is told of its call, its variables and the cluster") {
  const AccessFiles files;
  const auto seen = files.path("seen");
  Access access{.server = "https://a:1", .certificate_authority = "CA", .tls_server_name = "kube"};
  access.plugin = plugin_of(
      files, "echo \"$KUBERNETES_EXEC_INFO $REGION $1\" > " + seen.string() + "\n" + credential(R"({"token": "t"})"));
  access.plugin->command.push_back("get-token");
  access.plugin->environment = {{"REGION", "eu"}};
  access.plugin->provide_cluster_info = true;
  access.plugin->cluster_config = R"({"audience":"x"})";
  CHECK(run_plugin(access, {}).token == "t");
  const std::string text = read_named_file(seen, "test", "seen");
  CHECK(text ==
        R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","spec":{"interactive":false,)"
        R"("cluster":{"server":"https://a:1","certificate-authority-data":"Q0E=","tls-server-name":"kube",)"
        R"("config":{"audience":"x"}}}} eu get-token)"
        "\n");
}

TEST_CASE("a plugin that fails is told with how to get it, and without what it printed") {
  const AccessFiles files;
  const auto told = [&](const std::string& script) {
    Access access{.server = "https://a:1", .origin = "context 'x'"};
    access.plugin = plugin_of(files, script);
    return problem([&] { run_plugin(access, {}, 5); });
  };
  CHECK_THAT(told("echo secret; echo 'log in first' >&2; exit 3"),
             ContainsSubstring("exit code 3: log in first") && !ContainsSubstring("secret"));
  CHECK_THAT(told("echo secret"), ContainsSubstring("no JSON") && !ContainsSubstring("secret"));
  CHECK_THAT(told(credential("{}")), ContainsSubstring("neither a token nor"));
  CHECK_THAT(told(credential(R"({"clientCertificateData": "x"})")), ContainsSubstring("no key"));
  CHECK_THAT(told(credential(R"({"token": "t", "expirationTimestamp": "soon"})")),
             ContainsSubstring("no date: 'soon'"));
  CHECK_THAT(
      told(
          R"(echo '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "t"}}')"),
      ContainsSubstring("make them the same"));
  Access access{.server = "https://a:1", .origin = "context 'x'"};
  access.plugin = ExecPlugin{.api_version = "v1", .command = {"/none/at/all"}, .install_hint = "Get it\nfrom there."};
  CHECK_THAT(problem([&] { run_plugin(access, {}); }),
             ContainsSubstring("'/none/at/all' of context 'x'") && ContainsSubstring("Get it from there."));
  access.plugin->needs_terminal = true;
  CHECK_THAT(problem([&] { run_plugin(access, {}); }), ContainsSubstring("terminal"));
}

TEST_CASE("times of RFC 3339") {
  CHECK(parse_time("1970-01-01T00:00:10Z") == 10.0);
  CHECK(parse_time("1970-01-01T01:00:10.5+01:00") == 10.5);
  CHECK(parse_time("1969-12-31T23:00:00-01:00") == 0.0);
  for (const char* text :
       {"", "soon", "1970-01-01", "1970-01-01T00:00:10", "1970-01-01T00:00:10+1", "1970-01-01T00:00:10Zx"}) {
    INFO(text);
    CHECK_FALSE(parse_time(text));
  }
}
