// Peers that lie, drip, flood or ask for what is not theirs.
#include "transfer_support.hpp"

#include <hypertune/checkpoint/detail/content_hash.hpp>
#include <hypertune/checkpoint/detail/manifest.hpp>

#include <fmt/format.h>
#include <zstd.h>

#include <chrono>
#include <future>

using namespace hypertune;
using namespace hypertune::test;
using namespace std::chrono_literals;

namespace {

struct Hosted : TwoNodes {
  explicit Hosted(const std::function<void(CheckpointServerOptions&)>& change = {}) : info(save(source, 0, 3, files)) {
    auto o = options();
    o.listen = UnixSocket{socket("server")};
    if (change) change(o);
    server = std::make_unique<CheckpointServer>(o);
  }
  std::string ask(const std::string& text, std::chrono::milliseconds timeout = 5s) const {
    return exchange(socket("server"), text, timeout);
  }
  Files files{{"a", random_bytes(1, 300'000)}};
  CheckpointInfo info;
  std::unique_ptr<CheckpointServer> server;
};

std::string reply(const std::string& status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + status + "\r\n" + headers + fmt::format("Content-Length: {}\r\n\r\n", body.size()) + body;
}

/// Fetches `info` from a server that answers by `script`, with little patience.
std::pair<Errc, std::string> fetch_from(TwoNodes& nodes, const CheckpointInfo& info,
                                        std::function<ScriptedServer::Answer(const std::string&)> script,
                                        FetchOptions options = {}) {
  ScriptedServer server(nodes.socket("hostile"), std::move(script));
  options.retries = 1;
  options.stall_timeout = 400ms;
  options.streams = 1;
  drop_partial_fetches(nodes.target, info.trial, 0s);  // each liar by itself
  const auto begin = std::chrono::steady_clock::now();
  const auto error =
      error_of([&] { static_cast<void>(fetch_checkpoint(server.endpoint(), info, nodes.target, options)); });
  CHECK(std::chrono::steady_clock::now() - begin < 20s);
  CHECK(nodes.target.list(info.trial).empty());
  return error;
}

}  // namespace

TEST_CASE("a server whose answers are no answers is refused in one line") {
  TwoNodes nodes;
  const auto info = save(nodes.source, 0, 3, {{"a", "a"}});
  using Answer = ScriptedServer::Answer;
  const auto code = [&](const Answer& answer) {
    return fetch_from(nodes, info, [&](const std::string&) { return answer; }).first;
  };
  CHECK(code({"this is no HTTP\r\n\r\n"}) == Errc::protocol);
  CHECK(code({"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, "5\r\nhello\r\n"}) == Errc::protocol);
  CHECK(code({"HTTP/1.1 200 OK\r\n\r\n", false, "endless"}) == Errc::protocol);
  CHECK(code({"HTTP/1.1 200 OK\r\n", false, "X-Header: and another one\r\n"}) == Errc::protocol);
  CHECK(code({"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"}) == Errc::protocol);
  CHECK(code({"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"}) == Errc::protocol);
  CHECK(code({"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"}) == Errc::protocol);
  CHECK(code({"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello"}) == Errc::protocol);
  CHECK(code({reply("302 Found", "Location: http://example.com/\r\n", "")}) == Errc::protocol);
  CHECK(code({reply("200 OK", "Content-Encoding: gzip\r\n", "x")}) == Errc::protocol);
  CHECK(code({reply("100 Continue", "", "")}) == Errc::protocol);
  CHECK(code({reply("401 Unauthorized", "", "no\x1b[31m\n")}) == Errc::usage);
  CHECK(code({reply("404 Not Found", "", "gone\n")}) == Errc::corrupt);
  CHECK(code({reply("200 OK", "", "not its manifest")}) == Errc::corrupt);
  CHECK(code({""}) == Errc::io);                           // closes at once
  CHECK(code({"HTTP/1.1 200 OK\r\n", true}) == Errc::io);  // never goes on
  CHECK(code({"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", true}) == Errc::io);
  const auto text = fetch_from(nodes, info, [](const std::string&) {
                      return Answer{reply("401 Unauthorized", "", "no\x1b[31m\n")};
                    }).second;
  CHECK(text.find('\x1b') == std::string::npos);
}

TEST_CASE("a manifest that leads out of its folder is refused, whatever its digest") {
  TwoNodes nodes;
  for (const std::string name : {"../escape", "/etc/passwd", "a/../../b", "", ".", "a//b", "manifest.json"}) {
    std::string text = fmt::format(
        "{{\"format\": \"hypertune-checkpoint\",\n \"version\": 1,\n \"trial\": 0,\n \"steps\": 3,\n \"parent\": "
        "\"\",\n "
        "\"files\": [\n  {{\"name\": \"{}\", \"size\": 4, \"xxh3_128\": \"{}\"}}],\n \"checksum\": ",
        name, detail::ContentHash::of("evil"));
    text += '"' + detail::ContentHash::of(text) + "\"}\n";
    const CheckpointInfo info{
        .trial = 0, .steps = 3, .name = "step-3", .bytes = 4, .digest = detail::ContentHash::of(text)};
    const auto [code, said] = fetch_from(
        nodes, info, [&](const std::string&) { return ScriptedServer::Answer{reply("200 OK", "", text), true}; });
    CHECK(code == Errc::corrupt);
  }
  CHECK_FALSE(std::filesystem::exists(nodes.directory.path() / "escape"));
}

TEST_CASE("content that is not what was asked for is refused") {
  TwoNodes nodes;
  const Files files{{"a", std::string(5000, 'z')}};
  const auto info = save(nodes.source, 0, 3, files);
  const std::string manifest = read_file(nodes.source.folder(info) / "manifest.json");
  const auto packed = [](const std::string& text) {
    std::string out(ZSTD_compressBound(text.size()), '\0');
    out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 19));
    return out;
  };
  const std::string range = "Content-Range: bytes 0-4999/5000\r\n", zstd = range + "Content-Encoding: zstd\r\n";
  const auto with = [&](const std::string& data) {
    return fetch_from(nodes, info,
                      [&](const std::string& request) {
                        return ScriptedServer::Answer{
                            request.find("/manifest") != std::string::npos ? reply("200 OK", "", manifest) : data,
                            true};
                      })
        .first;
  };
  CHECK(with(reply("206 Partial Content", "Content-Range: bytes 0-4998/5000\r\n", std::string(4999, 'z'))) ==
        Errc::protocol);
  CHECK(with(reply("206 Partial Content", range, std::string(4999, 'z'))) == Errc::protocol);
  CHECK(with(reply("206 Partial Content", range, std::string(5001, 'z'))) == Errc::protocol);
  CHECK(with(reply("206 Partial Content", "", std::string(5000, 'z'))) == Errc::protocol);
  CHECK(with(reply("200 OK", range, std::string(5000, 'z'))) == Errc::protocol);
  CHECK(with(reply("206 Partial Content", range, std::string(5000, 'y'))) == Errc::corrupt);
  CHECK(with(reply("206 Partial Content", zstd, "no zstd at all")) == Errc::protocol);
  CHECK(with(reply("206 Partial Content", zstd, packed(std::string(4999, 'z')))) == Errc::protocol);
  CHECK(with(reply("206 Partial Content", zstd, packed(std::string(5000, 'z')) + "more")) == Errc::protocol);
  CHECK(with(reply("206 Partial Content", zstd, packed(std::string(100'000'000, 'z')).substr(0, 5000))) ==
        Errc::protocol);  // a bomb
  CHECK(with(reply("206 Partial Content", zstd, packed(std::string(5000, 'y')))) == Errc::corrupt);
}

TEST_CASE("a forged chunk list is refused") {
  TwoNodes nodes;
  const auto info = save(nodes.source, 0, 3, {{"a", random_bytes(1, 5000)}});
  const std::string manifest = read_file(nodes.source.folder(info) / "manifest.json");
  FetchOptions options;
  options.content_id = content_id(nodes.source, info);
  const auto with = [&](const std::string& status, const std::string& chunks) {
    return fetch_from(
               nodes, info,
               [&](const std::string& request) {
                 if (request.find("/manifest") != std::string::npos)
                   return ScriptedServer::Answer{reply("200 OK", "", manifest), true};
                 return ScriptedServer::Answer{reply(status, "", chunks), true};
               },
               options)
        .first;
  };
  CHECK(with("200 OK", "") == Errc::corrupt);
  CHECK(with("200 OK", "hypertune-chunks 1\n" + std::string(36, 'x')) == Errc::corrupt);
  CHECK(with("202 Accepted", "for ever\n") == Errc::io);
}

TEST_CASE("the server refuses what it does not answer") {
  Hosted nodes;
  const std::string base = "/v1/trials/0/checkpoints/" + nodes.info.digest;
  const auto get = [&](const std::string& target, const std::string& headers = {}) {
    return nodes.ask("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers + "\r\n");
  };
  CHECK_THAT(get(base + "/manifest?name=step-3"), ContainsSubstring("200 OK"));
  CHECK_THAT(get(base + "/data?name=step-3", "Range: bytes=0-9\r\n"), ContainsSubstring("206 Partial"));
  for (const char* range : {"bytes=0-300000", "bytes=5-4", "bytes=-5", "bytes=5-", "bytes=0-1,3-4", "0-5",
                            "bytes=0-18446744073709551616", "bytes=-1-5", "bytes=a-b"})
    CHECK_THAT(get(base + "/data?name=step-3", fmt::format("Range: {}\r\n", range)), ContainsSubstring("416 "));
  CHECK_THAT(get(base + "/data?name=step-3"), ContainsSubstring("416 "));
  for (const char* target :
       {"/", "/v1/trials/0/checkpoints/../../x", "/v1/trials/-1/checkpoints", "/v1/trials/0",
        "/v1/trials/0/checkpoints/zz", "/v1/trials/99999999999999999999/checkpoints", "/v1/trials/0/checkpoints?x=1"})
    CHECK_THAT(get(target), ContainsSubstring("404 "));
  for (const char* name : {"..%2F..%2Fetc", "%00", ".incoming-x", "a%2Fb", "..", "%", "%zz", ""})
    CHECK_THAT(get(base + "/manifest?name=" + name), ContainsSubstring("404 "));
  CHECK_THAT(get(base + "/" + std::string(5000, 'a')), ContainsSubstring("404 "));
  CHECK_THAT(nodes.ask("POST " + base + " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"),
             ContainsSubstring("405 "));
  CHECK_THAT(nodes.ask("PUT " + base + " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"),
             ContainsSubstring("400 "));
  CHECK_THAT(nodes.ask("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
             ContainsSubstring("400 "));
  CHECK_THAT(nodes.ask("\x16\x03\x01 TLS to a server without\r\n\r\n"), ContainsSubstring("400 "));
  CHECK_THAT(nodes.ask("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"), ContainsSubstring("<closed>"));
  CHECK(nodes.server->counters().refused > 20);
  // And it still serves.
  require_files(nodes.target, fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target).checkpoint,
                nodes.files);
}

TEST_CASE("a link in a store is not followed out of it") {
  Hosted nodes;
  const auto file = nodes.source.folder(nodes.info) / "a";
  std::filesystem::rename(file, nodes.directory.path() / "elsewhere");
  std::filesystem::create_symlink(nodes.directory.path() / "elsewhere", file);
  CHECK(error_of([&] {
          static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target));
        }).first == Errc::corrupt);
}

TEST_CASE("only the token opens") {
  const Secret token = Secret::generate();
  Hosted nodes([&](CheckpointServerOptions& o) { o.token = token; });
  Endpoint endpoint = nodes.server->endpoint();
  CHECK(endpoint.to_string().find(token.reveal()) == std::string::npos);
  for (const Secret& wrong :
       {Secret(), Secret::generate(), Secret(token.reveal() + "0"), Secret(token.reveal().substr(1))}) {
    endpoint.token = wrong;
    const auto [code, text] =
        error_of([&] { static_cast<void>(fetch_checkpoint(endpoint, nodes.info, nodes.target)); });
    CHECK(code == Errc::usage);
    CHECK_THAT(text, ContainsSubstring("token"));
    CHECK(text.find(token.reveal()) == std::string::npos);
  }
  CHECK(nodes.partial(0).empty());
  endpoint.token = token;
  CHECK(find_checkpoint(endpoint, nodes.info) == nodes.info);
}

TEST_CASE("only the pinned certificate is taken, and the token is not shown to another") {
  const auto identity = TlsIdentity::generate("a");
  Hosted nodes([&](CheckpointServerOptions& o) {
    o.tls = identity;
    o.token = Secret::generate();
  });
  Endpoint endpoint = nodes.server->endpoint();
  CHECK(endpoint.certificate == identity.fingerprint());
  endpoint.certificate = TlsIdentity::generate("b").fingerprint();
  const auto [code, text] = error_of([&] { static_cast<void>(fetch_checkpoint(endpoint, nodes.info, nodes.target)); });
  CHECK(code == Errc::usage);
  CHECK_THAT(text, ContainsSubstring("certificate"));
  CHECK(nodes.server->counters().requests + nodes.server->counters().refused == 0);
  // Without TLS, it says nothing.
  endpoint.certificate.clear();
  FetchOptions options;
  options.retries = 0;
  CHECK(error_of([&] { static_cast<void>(fetch_checkpoint(endpoint, nodes.info, nodes.target, options)); }).first ==
        Errc::io);
}

TEST_CASE("peers that drip or say nothing hold nobody up") {
  Hosted nodes([](CheckpointServerOptions& o) {
    o.max_unauthenticated = 8;
    o.max_connections = 16;
    o.request_timeout = 2s;
  });
  std::vector<std::future<std::string>> slow;
  for (int i = 0; i < 40; ++i)
    slow.push_back(std::async(std::launch::async,
                              [&, i] { return nodes.ask(i % 2 == 0 ? "" : "GET / HTTP/1.1\r\nX-Slow: ", 30s); }));
  require_files(nodes.target, fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target).checkpoint,
                nodes.files);
  for (auto& each : slow) CHECK_THAT(each.get(), ContainsSubstring("<closed>"));  // long before 30 s
  CHECK(nodes.server->counters().open <= 16);
}

TEST_CASE("stopping waits for nobody for long") {
  Hosted nodes([](CheckpointServerOptions& o) { o.stop_grace = 100ms; });
  auto idle = std::async(std::launch::async, [&] { return nodes.ask("GET / HTTP/1.1\r\nX-Slow: ", 200s); });
  const std::string half = "GET /v1/trials/0/checkpoints HTTP/1.1\r\n\r\n";
  CHECK_THAT(nodes.ask(half, 300ms), ContainsSubstring("200 OK"));
  nodes.server->stop();
  nodes.server->stop();
  CHECK_THAT(idle.get(), ContainsSubstring("<closed>"));  // not the client's patience
  CHECK_FALSE(std::filesystem::exists(nodes.socket("server")));
  FetchOptions options;
  options.retries = 1;
  CHECK(error_of([&] {
          static_cast<void>(fetch_checkpoint(nodes.server->endpoint(), nodes.info, nodes.target, options));
        }).first == Errc::io);
}

TEST_CASE("a server says what it cannot do") {
  TwoNodes nodes;
  auto options = nodes.options();
  const auto code = [&] { return error_of([&] { CheckpointServer server(options); }).first; };
  options.listen = Tcp{.address = "0.0.0.0"};
  CHECK(code() == Errc::usage);  // beyond loopback, without a token
  options.token = Secret::generate();
  CHECK_NOTHROW(CheckpointServer(options));
  options.listen = Tcp{.address = "no such host.invalid"};
  CHECK(code() == Errc::usage);
  options.listen = UnixSocket{nodes.socket("file")};
  write_file(nodes.socket("file"), "a file");
  CHECK(code() == Errc::usage);
  options.listen = UnixSocket{nodes.socket("s")};
  {
    CheckpointServer first(options);
    CHECK(code() == Errc::busy);
  }
  options.stores.clear();
  CHECK(code() == Errc::usage);
}

TEST_CASE("a socket left by a killed server does not stop the next") {
  TwoNodes nodes;
  auto options = nodes.options();
  options.listen = UnixSocket{nodes.socket("s")};
  {
    CheckpointServer first(options);
    std::filesystem::create_hard_link(nodes.socket("s"), nodes.socket("kept"));
  }
  std::filesystem::rename(nodes.socket("kept"), nodes.socket("s"));
  CheckpointServer second(options);
  CHECK(list_checkpoints(second.endpoint(), 0).empty());
}
