// Calls of servers that refuse, break off, stall and restart.
#include "k8s/support/fake_api.hpp"
#include "support/test.hpp"

#include <hypertune/detail/run_clock.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace hypertune;
using namespace hypertune::k8s;
using namespace hypertune::test;

TEST_CASE("calls share connections, as many as are allowed, and name who asks") {
  std::atomic<int> at_once{0}, most{0};
  std::string seen;
  FakeServer server([&](Peer& peer) {
    const int now = ++at_once;
    for (int before = most; now > before && !most.compare_exchange_weak(before, now);) {}
    for (Peer::Request request; peer.read(request);) {
      if (request.line.starts_with("PATCH"))
        seen = request.line + "\n" + request.header("Authorization") + "\n" + request.header("Content-Type") + "\n" +
               request.header("User-Agent") + "\n" + request.body;
      peer.answer(200, R"({"ok": true})");
    }
    --at_once;
  });
  Access access = access_to(server);
  access.server += "/prefix";
  access.token = "abc";
  Client client(access, {.connections = 3, .user_agent = "test/1"});
  Client copy = client;
  const k8s::Answer answer = copy.call(
      {.method = Method::patch, .path = "/x", .query = {{"a", "b c"}}, .body = "{}", .type = Body::merge_patch});
  CHECK(answer.status == 200);
  CHECK(answer.body == R"({"ok": true})");
  CHECK(seen == "PATCH /prefix/x?a=b%20c HTTP/1.1\nBearer abc\napplication/merge-patch+json\ntest/1\n{}");
  for (int i = 0; i < 20; ++i) copy.call({.path = "/x"});
  CHECK(server.connections() == 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([client]() mutable {
      for (int k = 0; k < 5; ++k) client.call({.path = "/x"});
    });
  for (auto& thread : threads) thread.join();
  CHECK(most <= 3);
}

TEST_CASE("refusals that pass are waited for, and Retry-After counts") {
  std::atomic<int> calls{0};
  FakeServer server([&](Peer& peer) {
    for (Peer::Request request; peer.read(request);) {
      const int n = ++calls;
      if (n == 1)
        peer.answer(429, status_text(429, "TooManyRequests", "slow"), "Retry-After: 1\r\n");
      else if (n == 2 && request.line.starts_with("GET"))
        peer.answer(503, "");
      else
        peer.answer(201, "{}");
    }
  });
  Client client(access_to(server));
  const auto begin = hypertune::detail::steady_seconds();
  SECTION("of a GET") {
    CHECK(client.call({.path = "/x"}).status == 201);
    CHECK(calls == 3);
  }
  SECTION("of a POST, which was not performed") {
    CHECK(client.call({.method = Method::post, .path = "/x", .body = "{}"}).status == 201);
    CHECK(calls == 2);
  }
  CHECK(hypertune::detail::steady_seconds() - begin >= 1);
}

TEST_CASE("a POST whose answer is lost is repeated only where its name says whose it is") {
  std::atomic<int> calls{0};
  FakeServer server([&](Peer& peer) {
    Peer::Request request;
    while (peer.read(request)) {
      if (++calls == 1) return peer.reset();
      peer.answer(409, status_text(409, "AlreadyExists", "pods \\\"p\\\" already exists"));
    }
  });
  Client client(access_to(server));
  Request request{.method = Method::post, .path = "/pods", .body = "{}"};
  SECTION("without a name") {
    const auto error = api_problem([&] { client.call(request); });
    REQUIRE(error);
    CHECK(error->status() == 0);
    CHECK(error->code() == Errc::io);
    CHECK_THAT(error->what(), ContainsSubstring("(POST /pods)"));
    CHECK(calls == 1);
  }
  SECTION("with a name") {
    request.named = true;
    const k8s::Answer answer = client.call(request);
    CHECK(answer.existed);
    CHECK(answer.status == 409);
    CHECK(calls == 2);
  }
}

TEST_CASE("a server that comes later is waited for, within the call's time") {
  std::optional<FakeServer> server(std::in_place, [](Peer& peer) {
    for (Peer::Request request; peer.read(request);) peer.answer(200, "first");
  });
  const std::uint16_t port = server->port();
  Client client(access_to(*server), {.max_backoff = 0.2});
  CHECK(client.call({.path = "/x"}).body == "first");
  server.reset();
  const auto error = api_problem([&] { client.call({.path = "/x", .deadline = 0.3}); });
  REQUIRE(error);
  CHECK_THAT(error->what(), ContainsSubstring("cannot connect to the API server 127.0.0.1:"));
  std::string got;
  std::thread waiting([&] { got = client.call({.method = Method::post, .path = "/x", .body = "{}"}).body; });
  server.emplace(
      [](Peer& peer) {
        for (Peer::Request request; peer.read(request);) peer.answer(200, "second");
      },
      [](int fd) { return std::make_unique<Peer>(fd); }, port);
  waiting.join();
  CHECK(got == "second");
}

TEST_CASE("who was refused is asked with new credentials, once") {
  const AccessFiles files;
  std::vector<std::string> tokens;
  FakeServer server([&](Peer& peer) {
    for (Peer::Request request; peer.read(request);) {
      tokens.push_back(request.header("Authorization"));
      if (tokens.size() == 1) files.write("token", "new");
      peer.answer(tokens.back() == "Bearer new" && request.line.starts_with("GET /x") ? 200 : 401,
                  status_text(401, "Unauthorized", "Unauthorized"));
    }
  });
  Access access = access_to(server);
  access.token_file = files.write("token", "old");
  access.origin = "context 'x' of '/home/me/config'";
  Client client(access);
  CHECK(client.call({.path = "/x"}).status == 200);
  CHECK(tokens == std::vector<std::string>{"Bearer old", "Bearer new"});
  const auto error = api_problem([&] { client.call({.path = "/y"}); });
  REQUIRE(error);
  CHECK(error->status() == 401);
  CHECK_THAT(error->what(),
             ContainsSubstring("the credentials of context 'x' of '/home/me/config' are not valid (any more)") &&
                 !ContainsSubstring("new"));
  CHECK(tokens.size() == 4);
}

TEST_CASE("answers that are too long, cut off, slow or no HTTP end the call") {
  const auto told = [&](const FakeServer::Script& script, ClientOptions options, double deadline) {
    FakeServer server(script);
    Client of_server(access_to(server), std::move(options));

    try {
      of_server.call({.path = "/x", .deadline = deadline});
    } catch (const Error& error) { return std::string(error.what()); }
    return std::string("none");
  };
  Peer::Request request;
  CHECK_THAT(told(
                 [](Peer& peer) {
                   Peer::Request r;
                   peer.read(r);
                   peer.answer(200, std::string(2000, 'x'));
                 },
                 {.max_answer = 1000}, 5),
             ContainsSubstring("longer than is allowed"));
  CHECK_THAT(told(
                 [](Peer& peer) {
                   Peer::Request r;
                   peer.read(r);
                   peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nxx");
                 },
                 {}, 0.3),
             ContainsSubstring("before the answer was complete"));
  CHECK_THAT(told(
                 [](Peer& peer) {
                   Peer::Request r;
                   peer.read(r);
                   peer.send("220 smtp\r\n\r\n");
                 },
                 {}, 5),
             ContainsSubstring("no HTTP"));
  CHECK_THAT(told(
                 [](Peer& peer) {
                   Peer::Request r;
                   peer.read(r);
                   peer.wait_closed();
                 },
                 {.attempt = 0.2}, 0.5),
             ContainsSubstring("did not come in time"));
  // A header that comes byte by byte and never ends.
  CHECK_THAT(told(
                 [](Peer& peer) {
                   Peer::Request r;
                   peer.read(r);
                   peer.send("HTTP/1.1 200 OK\r\nX: ");
                   std::atomic<bool> over{false};
                   std::thread dripping([&] {
                     while (!over) {
                       peer.send("x");
                       std::this_thread::yield();
                     }
                   });
                   peer.wait_closed();
                   over = true;
                   dripping.join();
                 },
                 {.attempt = 0.2}, 0.5),
             ContainsSubstring("in time") || ContainsSubstring("no HTTP"));
}

TEST_CASE("a call ends when it is told to, wherever it is") {
  std::atomic<int> asked{0};
  FakeServer server([&](Peer& peer) {
    Peer::Request request;
    peer.read(request);
    ++asked;
    if (request.line.starts_with("GET /busy")) peer.answer(503, "", "Retry-After: 5\r\n");
    peer.wait_closed();
  });
  Client client(access_to(server), {.connections = 1});
  const auto stopped = [&](const std::string& path) {
    std::stop_source source;
    std::optional<ApiError> error;
    std::thread calling(
        [&] { error = api_problem([&] { client.call({.path = path, .deadline = 600}, source.get_token()); }); });
    for (const int before = asked; asked == before;) std::this_thread::yield();
    source.request_stop();
    calling.join();
    REQUIRE(error);
    CHECK(error->reason() == "Stopped");
  };
  stopped("/hangs");
  stopped("/busy");
  std::stop_source source;
  source.request_stop();
  CHECK(api_problem([&] { client.call({.path = "/x"}, source.get_token()); })->reason() == "Stopped");
  // One that waits for a connection lets the next one have its turn.
  std::stop_source first, second;
  std::thread holds([&] { api_problem([&] { client.call({.path = "/hangs", .deadline = 600}, first.get_token()); }); });
  for (const int before = asked; asked == before;) std::this_thread::yield();
  std::thread waits(
      [&] { api_problem([&] { client.call({.path = "/hangs", .deadline = 600}, second.get_token()); }); });
  second.request_stop();
  waits.join();
  first.request_stop();
  holds.join();
  CHECK(api_problem([&] { client.call({.path = "/busy", .deadline = 0.2}); })->status() == 503);
}

TEST_CASE("no more calls a second than are allowed, and those that would be late are refused at once") {
  FakeServer server([&](Peer& peer) {
    for (Peer::Request request; peer.read(request);) peer.answer(200, "{}");
  });
  Client client(access_to(server), {.rate = 20, .burst = 2});
  const double begin = hypertune::detail::steady_seconds();
  for (int i = 0; i < 8; ++i) client.call({.path = "/x"});
  CHECK(hypertune::detail::steady_seconds() - begin >= 0.29);
  std::string told = "none";
  for (int i = 0; i < 4 && told == "none"; ++i)
    if (const auto error = api_problem([&] { client.call({.path = "/x", .deadline = 0.01}); })) told = error->what();
  CHECK_THAT(told, ContainsSubstring("20 calls a second are allowed"));
}

TEST_CASE("credentials that cannot be had are an Error that says so") {
  FakeServer server([&](Peer&) {});
  Access access = access_to(server);
  access.token_file = "/none/at/all";
  Client client(access);
  CHECK_THAT(problem([&] { client.call({.path = "/x"}); }), ContainsSubstring("/none/at/all"));
}
