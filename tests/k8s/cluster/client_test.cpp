// The client against a real API server: commands, streams, ports and logs of pods, and its restart.
#include "k8s/support/fake_api.hpp"
#include "k8s/support/test_kubernetes.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <thread>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::test;

namespace {

void start_pod(const TestKubernetes& kubernetes, const std::string& name, const std::string& script) {
  const boost::json::object container{{"name", "main"},
                                      {"image", TestKubernetes::image},
                                      {"imagePullPolicy", "Never"},
                                      {"command", {"/bin/sh", "-c", script}}};
  kubernetes.create({"api", "v1", "namespaces", kubernetes.name_space(), "pods"},
                    {{"metadata", {{"name", name}}},
                     {"spec",
                      {{"restartPolicy", "Never"},
                       {"terminationGracePeriodSeconds", 0},
                       {"dnsPolicy", "Default"},
                       {"hostNetwork", true},
                       {"containers", boost::json::array{container}}}}});
  REQUIRE(eventually(
      [&] {
        const auto pod = kubernetes.get({"api", "v1", "namespaces", kubernetes.name_space(), "pods", name});
        return pod->at("status").at("phase").as_string() != "Pending";
      },
      60));
}

PodCommand shell(const std::string& script) { return {.pod = "p", .command = {"/bin/sh", "-c", script}}; }

std::string read_all(int fd) {
  std::string text;
  char piece[4096];
  for (ssize_t n = 0; (n = ::read(fd, piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(n));
  return text;
}

}  // namespace

TEST_CASE("commands in a pod: exit codes, streams, bytes in order, and their bounds") {
  const auto kubernetes = test_kubernetes("client-exec");
  if (!kubernetes) return;
  start_pod(*kubernetes, "p", "sleep 1000");
  Client client = kubernetes->client();
  const auto ended = client.run(shell("echo out; echo err >&2; exit 3"));
  CHECK(ended.exit == 3);
  CHECK(ended.out == "out\n");
  CHECK(ended.err == "err\n");
  CHECK(client.run(shell("cat; echo over"), {.input = [] { return std::string_view(); }}).out == "over\n");

  // More than all buffers together hold, each way, in pieces that no frame's size divides.
  std::string bytes(20'000'003, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 2654435761U >> 13U);
  std::size_t at = 0;
  const auto echoed = client.run(shell("cat"), {.input = [&] {
                                   const auto piece = std::string_view(bytes).substr(at, 77'777);
                                   at += piece.size();
                                   return piece;
                                 }});
  CHECK(echoed.out == bytes);
  CHECK_FALSE(echoed.input_cut);

  const auto refused = api_problem([&] { client.run({.pod = "p", .command = {"/none"}}); });
  REQUIRE(refused);
  CHECK_THAT(refused->what(), ContainsSubstring("/none"));
  CHECK(api_problem([&] { client.run({.pod = "none", .command = {"/bin/sh"}}); })->status() == 404);
  CHECK(api_problem([&] { client.run(shell("sleep 1000"), {.deadline = 0.5}); })->reason() == "Timeout");
  CHECK(api_problem([&] { client.run(shell("sleep 1000"), {.stall = 0.5}); })->reason() == "Timeout");
  CHECK_THAT(problem([&] { client.run(shell("cat /dev/zero"), {.max_output = 1'000'000}); }),
             ContainsSubstring("more than 1000000 bytes"));
  std::size_t taken = 0;
  client.run(shell("cat /dev/zero"),
             {.take_out = [&](std::string_view piece) { return (taken += piece.size()) < 1'000'000; }});
  CHECK(taken >= 1'000'000);
  std::stop_source stop;
  std::thread stopping([&] { stop.request_stop(); });
  CHECK(api_problem([&] { client.run(shell("sleep 1000"), {}, stop.get_token()); })->reason() == "Stopped");
  stopping.join();
}

TEST_CASE("a stream has back-pressure, half-closes, and says how it ended") {
  const auto kubernetes = test_kubernetes("client-stream");
  if (!kubernetes) return;
  start_pod(*kubernetes, "p", "sleep 1000");
  Client client = kubernetes->client();
  auto stream = client.open_stream(shell("cat; echo bye >&2; exit 7"));
  REQUIRE(::write(stream.to.get(), "ping\n", 5) == 5);
  char reply[5];
  REQUIRE(::recv(stream.from.get(), reply, sizeof reply, MSG_WAITALL) == 5);
  CHECK(std::string(reply, 5) == "ping\n");
  stream.to = {};
  CHECK(read_all(stream.from.get()).empty());
  CHECK(read_all(stream.err.get()) == "bye\nthe command ended with exit code 7\n");
  stream.carrier.end(5);

  // Nobody reads: what the pod writes waits there, and the client's buffers have a bound.
  auto full = client.open_stream(shell("cat /dev/zero"));
  auto other = client.open_stream(shell("cat"));
  REQUIRE(::write(other.to.get(), "x", 1) == 1);
  REQUIRE(::recv(other.from.get(), reply, 1, 0) == 1);  // another stream goes on meanwhile
  full.carrier.end(0);
  read_all(full.from.get());
  CHECK_THAT(read_all(full.err.get()), ContainsSubstring("the connection to the pod is lost: it was left"));

  // The pod goes: so does the stream.
  kubernetes->remove_pod("p", 0);
  CHECK(read_all(other.from.get()).empty());
  CHECK_FALSE(read_all(other.err.get()).empty());
  other.carrier.end(5);
}

TEST_CASE("a port of a pod on loopback, and why a connection to it did not come about") {
  const auto kubernetes = test_kubernetes("client-forward");
  if (!kubernetes) return;
  start_pod(*kubernetes, "p", "sleep 1000");
  // The pod is in this machine's network: its port is that of a server here.
  const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Descriptor owner(server);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(::bind(server, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(::listen(server, 8) == 0);
  REQUIRE(::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  std::thread echo([&] {
    for (int i = 0; i < 2; ++i) {
      const Descriptor peer(::accept(server, nullptr, nullptr));
      char byte[1000];
      for (ssize_t n = 0; (n = ::recv(peer.get(), byte, sizeof byte, 0)) > 0;)
        if (::send(peer.get(), byte, static_cast<std::size_t>(n), MSG_NOSIGNAL) < n || byte[n - 1] == '.') break;
    }
  });
  Client client = kubernetes->client();
  const auto connected = [](std::uint16_t port) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    return socket;
  };
  const auto forward = client.forward({.pod = "p", .port = ntohs(address.sin_port)});
  for (int i = 0; i < 2; ++i) {
    const auto socket = connected(forward.port());
    const std::string text = std::string(300'000, static_cast<char>('a' + i)) + ".";
    std::thread sending([&] { ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL); });
    CHECK(read_all(socket.get()) == text);
    sending.join();
  }
  echo.join();
  CHECK(forward.trouble().empty());
  const auto nobody = client.forward({.pod = "none", .port = 1});
  CHECK(read_all(connected(nobody.port()).get()).empty());
  CHECK(eventually([&] { return nobody.trouble().find("pods \"none\" not found") != std::string::npos; }));
  CHECK_THAT(problem([&] { client.forward({.pod = "p", .port = 1}, forward.port()); }),
             ContainsSubstring("choose another port"));
}

TEST_CASE("a log is followed to its end, and a watch goes on, over a death of the API server") {
  const auto kubernetes = test_kubernetes("client-restart");
  if (!kubernetes) return;
  Client client = kubernetes->client();
  std::mutex mutex;
  std::vector<std::string> lines;
  std::atomic<bool> ended{false}, disturbed{false};
  std::atomic<int> events{0};
  std::set<std::string> there;
  const std::string pods = api_path({"api", "v1", "namespaces", kubernetes->name_space(), "pods"});
  Watch watch = client.watch({.path = pods, .max_backoff = 0.5}, [&](const WatchEvent& event) {
    const std::lock_guard lock(mutex);
    if (event.kind == WatchEvent::Kind::trouble) disturbed = true;
    if (event.object == nullptr) return;
    ++events;
    const std::string name(event.object->at("metadata").at("name").as_string());
    if (event.kind == WatchEvent::Kind::deleted)
      there.erase(name);
    else
      there.insert(name);
  });
  start_pod(*kubernetes, "p", "i=0; while [ $i -lt 40 ]; do echo $i; i=$((i+1)); sleep 0.2; done");
  LogFollower log = client.follow_log({.pod = "p"}, [&](const LogEvent& event) {
    const std::lock_guard lock(mutex);
    if (event.kind == LogEvent::Kind::line) lines.emplace_back(event.text);
    if (event.kind == LogEvent::Kind::ended) ended = true;
  });
  REQUIRE(eventually([&] {
    const std::lock_guard lock(mutex);
    return lines.size() > 3;
  }));
  TestKubernetes::tell({"kill-apiserver"});
  REQUIRE(eventually([&] { return disturbed.load(); }));
  TestKubernetes::tell({"start-apiserver"});
  REQUIRE(eventually([&] { return ended.load(); }, 60));
  log.end();
  std::vector<std::string> expected;
  for (int i = 0; i < 40; ++i) expected.push_back(std::to_string(i));
  CHECK(lines == expected);
  kubernetes->remove_pod("p", 0);
  CHECK(eventually([&] {
    const std::lock_guard lock(mutex);
    return there.empty();
  }));
}

TEST_CASE("only the right certificate is trusted, and only the right credentials are let in") {
  const auto kubernetes = test_kubernetes("client-trust");
  if (!kubernetes) return;
  const Access right = load_access({.kubeconfig = {TestKubernetes::kubeconfig()}});
  const auto told = [](const Access& access) {
    Client client(access);
    try {
      client.call({.path = "/api/v1/namespaces", .deadline = 2});
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("none");
  };
  CHECK(told(right) == "none");
  Access access = right;
  access.tls_server_name = "kubernetes.default.svc";
  CHECK(told(access) == "none");
  access.tls_server_name = "example.org";
  CHECK_THAT(told(access), ContainsSubstring("not trusted for the name 'example.org'"));
  access = right;
  access.certificate_authority.clear();
  access.certificate_authority_file.clear();
  CHECK_THAT(told(access), ContainsSubstring("is not trusted"));
  access = right;
  access.client_certificate.clear();
  access.client_key.clear();
  access.client_certificate_file.clear();
  access.client_key_file.clear();
  CHECK_THAT(told(access), ContainsSubstring("forbidden"));  // anonymous
  access.token = "nonsense";
  CHECK_THAT(told(access), ContainsSubstring("are not valid (any more)") && !ContainsSubstring("nonsense"));

  // A service account's token, as a pod has it.
  Client admin(right);
  const auto token = admin
                         .call({.method = Method::post,
                                .path = api_path({"api", "v1", "namespaces", kubernetes->name_space(),
                                                  "serviceaccounts", "default", "token"}),
                                .body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}})"})
                         .json();
  const AccessFiles files;
  files.write("token", std::string(token.at("status").at("token").as_string()));
  files.write("ca.crt", right.certificate_authority);
  files.write("namespace", kubernetes->name_space());
  const auto address = right.server.substr(8);
  files.variables["KUBERNETES_SERVICE_HOST"] = address.substr(0, address.find(':'));
  files.variables["KUBERNETES_SERVICE_PORT"] = address.substr(address.find(':') + 1);
  auto options = files.options({});
  options.service_account = files.folder.path();
  Client pod(load_access(options));
  const auto review = pod.call({.method = Method::post,
                                .path = "/apis/authentication.k8s.io/v1/selfsubjectreviews",
                                .body = R"({"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"})"})
                          .json();
  CHECK(review.at("status").at("userInfo").at("username").as_string() ==
        "system:serviceaccount:" + kubernetes->name_space() + ":default");
}
