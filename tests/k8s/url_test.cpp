// URLs of servers and proxies, paths and queries, and which hosts a proxy is for.
#include "http.hpp"
#include "support/test.hpp"

#include <string>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::k8s::detail;

TEST_CASE("a URL is taken apart, and what is none is told") {
  const auto url = parse_url("HTTPS://Api.Example.org/k8s/clusters/c-1/");
  REQUIRE(url);
  CHECK(url->scheme == "https");
  CHECK(url->host == "api.example.org");
  CHECK(url->port == 443);
  CHECK(url->path == "/k8s/clusters/c-1");
  CHECK(url->authority() == "api.example.org:443");

  const auto six = parse_url("https://[fd00::1]:6443");
  REQUIRE(six);
  CHECK(six->host == "fd00::1");
  CHECK(six->authority() == "[fd00::1]:6443");

  const auto proxy = parse_url("http://me:p%40ss@proxy:3128");
  REQUIRE(proxy);
  CHECK(proxy->user == "me:p@ss");
  CHECK(proxy->host == "proxy");
  CHECK(proxy->port == 3128);

  for (const char* text : {"", "10.0.0.1:6443", "https://", "https://host:0", "https://host:65536", "https://host:x",
                           "https://[::1", "https://[host]:1", "https://a b", "https://host?x=1", "http://%zz@host",
                           "http://%4@host", "https://host\n", "://host"}) {
    INFO(text);
    CHECK_FALSE(parse_url(text));
  }
}

TEST_CASE("parts of paths and values of queries cannot become something else") {
  CHECK(api_path({"api", "v1", "namespaces", "a/b?c", "pods"}) == "/api/v1/namespaces/a%2Fb%3Fc/pods");
  CHECK(target_of("/x", {{"labelSelector", "a=b,c in (d)"}, {"command", "e\r\nf"}}) ==
        "/x?labelSelector=a%3Db%2Cc%20in%20%28d%29&command=e%0D%0Af");
  CHECK(target_of("/x?y=1", {{"z", ""}}) == "/x?y=1&z=");
  CHECK(target_of("/x", {}) == "/x");
}

TEST_CASE("NO_PROXY names hosts, their subdomains, addresses and networks") {
  const std::string list = "example.org, .internal,10.0.0.0/8,192.168.1.7,*.lab,special:6443,[fd00::2]:6443";
  for (const char* host : {"example.org", "api.example.org", "api.internal", "10.1.2.3", "192.168.1.7", "a.lab",
                           "special", "fd00::2", "127.0.0.1", "::1", "localhost"}) {
    INFO(host);
    CHECK(bypasses_proxy(host, 6443, list));
  }
  for (const char* host : {"notexample.org", "11.1.2.3", "192.168.1.8", "internal", "fd00::3"}) {
    INFO(host);
    CHECK_FALSE(bypasses_proxy(host, 6443, list));
  }
  CHECK_FALSE(bypasses_proxy("special", 443, list));
  CHECK(bypasses_proxy("anything", 1, "*"));
  CHECK_FALSE(bypasses_proxy("anything", 1, ""));
}
